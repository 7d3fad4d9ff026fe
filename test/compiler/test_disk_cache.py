# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels are kept, found again, and never taken from a file that is damaged or stale."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from slow_variants import slow_but

# A kernel that compiles quickly.
CODE = """
import numpy as np
from quad_dynamics import factorize
print(factorize(np.diag([4.0, 9.0])).method)
"""
KERNEL = 'factor_llt'


def run(cache: Path, code: str = CODE, **environment: str) -> subprocess.CompletedProcess[str]:
    """A new process with the given cache directory; it must succeed."""
    variables = os.environ | {'QUAD_DYNAMICS_CACHE_DIR': str(cache)} | environment
    done = subprocess.run(
        [sys.executable, '-c', code], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'llt\n'
    return done


@pytest.fixture(scope='module')
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the kernel, compiled once for all tests that start with one."""
    folder = tmp_path_factory.mktemp('compiled')
    run(folder)
    (file,) = folder.iterdir()
    return file


def test_compiled_once_and_announced(tmp_path: Path) -> None:
    assert f'compiling {KERNEL}' in run(tmp_path).stderr
    assert run(tmp_path).stderr == ''
    assert [path.suffix for path in tmp_path.iterdir()] == ['.kernel']


@pytest.mark.parametrize('damage', slow_but(['altered'], ['truncated', 'empty', 'altered', 'other']))
def test_damaged_file_is_compiled_anew(compiled: Path, tmp_path: Path, damage: str) -> None:
    file, good = tmp_path / compiled.name, compiled.read_bytes()
    middle = len(good) // 2
    file.write_bytes({
        'truncated': good[:middle],
        'empty': b'',
        'altered': good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        'other': b'something else',
    }[damage])  # fmt: skip
    assert 'compiling' in run(tmp_path).stderr
    assert run(tmp_path).stderr == ''


def test_old_files_are_removed(tmp_path: Path) -> None:
    old, recent = tmp_path / f'{KERNEL}-0123.kernel', tmp_path / f'{KERNEL}-4567.kernel'
    for path in (old, recent):
        path.write_bytes(b'')
    long_ago = time.time() - 40 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    run(tmp_path)
    assert not old.exists()
    assert recent.exists()


@pytest.mark.slow
def test_two_processes_at_once(tmp_path: Path) -> None:
    variables = os.environ | {'QUAD_DYNAMICS_CACHE_DIR': str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, '-c', CODE], env=variables, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [process.communicate()[0] for process in both] == [b'llt\n', b'llt\n']
    assert run(tmp_path).stderr == ''


def test_user_cache_directory(tmp_path: Path) -> None:
    variables = {'XDG_CACHE_HOME': str(tmp_path), 'QUAD_DYNAMICS_CACHE_DIR': ''}
    run(tmp_path, **variables)
    assert [path.name.partition('-')[0] for path in (tmp_path / 'quad_dynamics').iterdir()] == [KERNEL]


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """Everything works; that the next process will compile again is said."""
    blocked = tmp_path / 'a_file'
    blocked.write_text('')
    two = CODE + 'factorize(np.diag([4.0, 9.0])).solve(np.ones(2))'
    lines = run(blocked, two).stderr.splitlines()
    assert [line.startswith('quad_dynamics: compiling') for line in lines] == [True, False, True]  # said once
    assert lines[1].startswith(f'quad_dynamics: compiled kernels cannot be kept in {blocked} (')
    assert lines[1].endswith('set QUAD_DYNAMICS_CACHE_DIR to a directory that can be written')


@pytest.mark.slow
def test_no_home(tmp_path: Path) -> None:
    run(Path(), **{'QUAD_DYNAMICS_CACHE_DIR': '', 'XDG_CACHE_HOME': '', 'HOME': str(tmp_path / 'missing')})


@pytest.mark.slow
def test_files_that_others_could_have_written_are_not_trusted(compiled: Path, tmp_path: Path) -> None:
    """Code is loaded from them."""
    assert compiled.stat().st_mode & 0o777 == 0o644
    file = Path(shutil.copy(compiled, tmp_path))
    assert run(tmp_path).stderr == ''
    file.chmod(0o666)
    assert 'compiling' in run(tmp_path).stderr


@pytest.mark.slow
def test_code_of_changed_sources_is_not_kept(tmp_path: Path) -> None:
    """A process that imported the old sources must not leave its code under the name of the new ones."""
    edit = "from quad_dynamics.compiler import disk_cache; disk_cache._hash_sources = lambda: 'new'"
    run(tmp_path, edit + CODE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_closed_stderr(tmp_path: Path) -> None:
    run(tmp_path, 'import sys; sys.stderr.close()' + CODE)
    run(tmp_path / 'other', 'import sys; sys.stderr = None' + CODE)


def test_without_compiler_it_says_so(tmp_path: Path) -> None:
    variables = os.environ | {'QUAD_DYNAMICS_CACHE_DIR': str(tmp_path), 'NUMBA_DISABLE_JIT': '1'}
    done = subprocess.run(
        [sys.executable, '-c', CODE], env=variables, capture_output=True, text=True, check=False
    )
    assert 'NUMBA_DISABLE_JIT is set' in done.stderr


FOLDERS = ('compiler', 'kernels')  # of what becomes a part of compiled code
LOADED = """
import sys
import quad_dynamics.kernels.all
print([module.__file__ for name, module in sys.modules.items() if name.startswith('quad_dynamics.')])
"""


def test_sources_are_part_of_the_key() -> None:
    """Every module that a kernel is made from counts, in folders inside folders, too."""
    from quad_dynamics.compiler import disk_cache

    done = subprocess.run([sys.executable, '-c', LOADED], capture_output=True, text=True, check=True)
    loaded = {Path(file) for file in ast.literal_eval(done.stdout)}
    package = Path(disk_cache.__file__).parents[1]
    sources = set(disk_cache.sources())
    missing = {path for path in loaded - sources if path.relative_to(package).parts[0] in FOLDERS}
    assert missing == set()
    assert {package / 'memory' / 'layout.py', package / 'kernels' / 'whole_body' / 'legs.py'} <= sources


COPY_CODE = """
import sys
import numpy as np
from quad_dynamics.api.factorization import factorize
import quad_dynamics
assert quad_dynamics.__file__.startswith(sys.argv[1]), quad_dynamics.__file__
print(factorize(np.diag([4.0, -9.0])).failed_row)
"""


def run_copy(folder: Path, cache: Path) -> tuple[str, bool]:
    """What a copy of the package computes, and whether it was compiled for that."""
    variables = os.environ | {'QUAD_DYNAMICS_CACHE_DIR': str(cache), 'PYTHONPATH': str(folder)}
    done = subprocess.run(
        [sys.executable, '-P', '-c', COPY_CODE, str(folder)]
        if sys.version_info >= (3, 11)
        else [sys.executable, '-c', COPY_CODE, str(folder)],
        env=variables,
        cwd=cache,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), 'compiling' in done.stderr


@pytest.mark.slow
def test_moved_and_edited_sources_meet_no_stale_code(tmp_path: Path) -> None:
    """Moved sources are the same and are found again; edited ones, and those of a routine, are not."""
    import quad_dynamics

    first, cache = tmp_path / 'first', tmp_path / 'cache'
    cache.mkdir()
    package = Path(quad_dynamics.__file__).parent
    shutil.copytree(package, first / package.name, ignore=shutil.ignore_patterns('__pycache__', 'robots'))
    assert run_copy(first, cache) == ('1', True)
    assert run_copy(first, cache) == ('1', False)
    moved = first.rename(tmp_path / 'moved')
    assert run_copy(moved, cache) == ('1', False)
    source = moved / package.name / 'kernels' / 'cholesky.py'
    text = source.read_text()
    source.write_text(
        text.replace('            return 1 + i\n        M[row', '            return 7 + i\n        M[row')
    )
    assert source.read_text() != text
    assert run_copy(moved, cache) == ('7', True)
    source.write_text(text)
    assert run_copy(moved, cache) == ('1', False)
