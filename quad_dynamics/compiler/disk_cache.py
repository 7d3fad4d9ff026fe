# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled kernels on disk, so that each is compiled once per machine.

Numba's own cache only checks the source file of the outermost function: it would serve stale code after an
edit of a function that was inlined from another file. It also writes into the installed package if it can.
Here each kernel has one file in the user's cache directory. The file name contains a hash of all kernel
sources, of the versions and settings of Python and numba, and of the processor, so a file is used as long as
all of these stay the same.

The directory is $QUAD_DYNAMICS_CACHE_DIR, else `quad_dynamics` in $XDG_CACHE_HOME or ~/.cache. It may be
read-only: then its files are used, missing kernels are compiled in every process, and each process reports
this once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, serialize
from numba.core.compiler import CompileResult

_PACKAGE = Path(__file__).parents[1]
_DIGEST_BYTES = hashlib.sha256().digest_size
_KEEP_SECONDS = 30 * 24 * 3600.0
_FOREIGN_WRITE = 0o022  # group and others


class DiskCache(caching._Cache):  # type: ignore[misc]
    """The cache of one kernel, with the interface of numba's dispatchers.

    Attributes:
        missed: whether the kernel was not found and had to be compiled.
        problem: why the kernel could not be saved; '' if it was saved.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.missed = False
        self.problem = ''

    @property
    def cache_path(self) -> str:
        """Directory of the cache."""
        return str(cache_directory())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if there is no trusted file; numba then compiles it."""
        target_context.refresh()
        content = _read_trusted(self._path(target_context))
        digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        self.missed = digest != hashlib.sha256(data).digest()  # a damaged file would crash the process
        return None if self.missed else CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled kernel."""
        if _hash_sources() != SOURCE_HASH:
            return  # the sources changed while this process ran: its code belongs to neither version
        path = self._path(data.target_context)
        content = serialize.dumps(data._reduce())
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_whole(path, hashlib.sha256(content).digest() + content)
            self._remove_old(path)
        except OSError as error:
            self.problem = (
                f'compiled kernels cannot be kept in {path.parent} ({error.strerror}), so that every process '
                'compiles them again; set QUAD_DYNAMICS_CACHE_DIR to a directory that can be written'
            )

    def _path(self, target_context: Any) -> Path:
        target = repr(target_context.codegen().magic_tuple())
        key = hashlib.sha256((SOURCE_HASH + target).encode()).hexdigest()[:16]
        return cache_directory() / f'{self._name}-{key}.kernel'

    def _remove_old(self, path: Path) -> None:
        """Remove old files of this kernel, from other sources or versions."""
        for other in path.parent.glob(f'{self._name}-*.kernel'):
            if other != path and time.time() - other.stat().st_mtime > _KEEP_SECONDS:
                other.unlink(missing_ok=True)

    def enable(self) -> None:
        """Nothing to do: always on."""

    def disable(self) -> None:
        """Nothing to do: always on."""

    def flush(self) -> None:
        """Nothing to do: nothing is buffered."""


def cache_directory() -> Path:
    """The directory of the cache; it may not exist yet."""
    asked_for = os.environ.get('QUAD_DYNAMICS_CACHE_DIR')
    if asked_for:
        return Path(os.path.expanduser(asked_for)).absolute()  # noqa: PTH111 (Path's raises without a home)
    user = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')  # noqa: PTH111
    return Path(user) / 'quad_dynamics'


def sources() -> list[Path]:
    """The source files of the compiled kernels."""
    kernels = [path for name in ('compiler', 'kernels') for path in sorted((_PACKAGE / name).rglob('*.py'))]
    return [*kernels, _PACKAGE / 'memory' / 'layout.py']


def _hash_sources() -> str:
    """Hash of everything a compiled kernel depends on, except the processor."""
    config = numba.config
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.DEBUGINFO_DEFAULT)
    versions = (sys.version, numba.__version__, llvmlite.__version__, settings, config.BOUNDSCHECK)
    digest = hashlib.sha256(repr(versions).encode())
    for source in sources():
        digest.update(source.relative_to(_PACKAGE).as_posix().encode() + source.read_bytes())
    return digest.hexdigest()


# Computed when this module is imported, before any kernel is: later compilations use these sources.
SOURCE_HASH = _hash_sources()


def _read_trusted(path: Path) -> bytes:
    """Content of a file that only this user or root can have written (it contains code); else b''."""
    try:
        with path.open('rb') as file:
            status = os.fstat(file.fileno())
            ours = not hasattr(os, 'geteuid') or status.st_uid in (0, os.geteuid())
            return file.read() if ours and not status.st_mode & _FOREIGN_WRITE else b''
    except OSError:
        return b''


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: other processes see all of it or nothing."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, delete=False) as file:
        try:
            file.write(content)
            Path(file.name).chmod(0o644)  # other users of a shared cache may read it
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
