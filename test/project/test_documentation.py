# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows runs, and what it names exists."""

from __future__ import annotations

import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_blocks import Block, read_blocks
from fresh_clone import clone_source, environment_of_a_new_user, link_environment
from pasted_shell import PastedShell

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *sorted((ROOT / 'docs').rglob('*.md'))]
# Those that end by themselves; test_own_controller.py has the other one.
EXAMPLES = [path for path in sorted((ROOT / 'examples').glob('*.py')) if path.stem != 'stand_controller']
BLOCKS = {page: read_blocks(page) for page in PAGES}
# All modules, and all folders with a slash at the end.
PATHS = [f'/{path.relative_to(ROOT)}' for path in (*ROOT.glob('*.py'), *ROOT.glob('[!.]*/**/*.py'))]
PATHS += sorted({f'{path.rpartition("/")[0]}/' for path in PATHS} | {'/quad_dynamics/robots/'})
PASTED = [
    page for page in PAGES if any(b.language in ('sh', 'python') for b in BLOCKS[page] if not b.needs_ros)
]
# Commands that end with Ctrl-C, and what they must have shown before.
ENDLESS = {
    r'quad_dynamics sim --walk\b': 'whole_body stand',
    r'(make|quad_dynamics) sim\b(?!.*(--duration|--play|--walk|&))': 'stand hold',
    r'quad_dynamics topics --watch': '/joint_states',
    r'python -m viewer_node': r'viewer: http\S+',
}
# Targets that are no part of a test: they contain it, or change the tree. `.ci/run` runs the first ones.
ONLY_NAMED = r'make (test|quick|lint|format|docs|bench|figures|nodes|lock|clean|distclean)\b'
LONGEST = 240.0  # that a command may take, with other tests beside it [s]


@pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')
@pytest.mark.parametrize('example', EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name='__main__')
    assert capsys.readouterr().out


def test_readme_shows_the_examples() -> None:
    shown = re.findall(r'```python\n(.*?)```', (ROOT / 'README.md').read_text(), re.DOTALL)
    examples = [
        (ROOT / 'examples' / f'{name}.py').read_text() for name in ('first_steps', 'simulate_standing')
    ]
    assert shown == [example.split('"""\n\n', 1)[1] for example in examples]


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r'\]\(([^)#]+)', page.read_text()):
        if '://' not in target:
            assert (page.parent / target).exists(), f'{page.name} links to {target}'


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.name)
def test_nothing_is_left_to_be_filled_in(page: Path) -> None:
    assert re.findall(r'@[A-Z]+@|TODO|FIXME|XXX', page.read_text()) == []


def test_every_public_function_is_described(qd: Any) -> None:
    text = ''.join(
        (ROOT / 'docs' / page).read_text() for page in ('dynamics.md', 'identification.md', 'scenarios.md')
    )
    functions = [name for name in qd.__all__ if callable(getattr(qd, name)) and name[0].islower()]
    assert [name for name in functions if name != 'load_model' and name not in text] == []


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.name)
def test_modules_named_in_the_docs_exist(page: Path) -> None:
    """Modules and folders, as paths, in tables of modules, and as dotted names."""
    text = page.read_text()
    # Elsewhere, what ends with a slash may be a prefix of topics.
    ends = r'\.py|/' if page.name in {'architecture.md', 'CONTRIBUTING.md'} else r'\.py'
    named = re.findall(rf'`(\w[\w/]*(?:{ends}))`', text)
    for folder, rows in re.findall(
        r'^\| module of `([\w/]+)/` .*\n\|[-|]+\n((?:\|.*\n)*)', text, re.MULTILINE
    ):
        cells = ' '.join(row.split('|')[1] for row in rows.splitlines())
        named += [f'{folder}/{name}.py' for name in re.findall(r'`(\w+)`', cells)]
    for path in named:
        assert any(known.endswith(f'/{path}') for known in PATHS), f'{page.name} names {path}'
    for name in re.findall(r'`((?:quad_dynamics|qd)(?:\.\w+)+)`', text):
        pkgutil.resolve_name(re.sub(r'^qd\b', 'quad_dynamics', name))


@pytest.mark.slow
def test_pages_about_the_nodes_are_as_their_code(ros_domain: int) -> None:
    command = [sys.executable, str(ROOT / 'docs' / 'node_pages.py'), '--check']
    done = subprocess.run(command, capture_output=True, text=True, timeout=120.0, check=False)
    assert done.returncode == 0, f'{done.stdout}{done.stderr}\nrun `make docs`'


def test_public_names_are_complete(qd: Any) -> None:
    """Every name in __all__ can be had, is documented, and is known to type checkers too."""
    source = (ROOT / 'quad_dynamics' / '__init__.py').read_text()
    for name in qd.__all__:
        assert getattr(qd, name).__doc__, f'{name} has no docstring'
        assert source.count(name) >= 3  # in the imports for type checkers, in the homes, in __all__
    with pytest.raises(AttributeError, match='no_such_name'):
        _ = qd.no_such_name


def test_blocks_say_what_they_are() -> None:
    """Each has a language; YAML is YAML; what needs a ROS installation is marked."""
    for block in (block for page in PAGES for block in BLOCKS[page]):
        drawing = block.page.name == 'architecture.md' and not block.language
        assert block.language in ('sh', 'python', 'yaml', 'xml', 'text') or drawing, block.where
        if block.language == 'yaml':
            yaml.safe_load(block.text)
        if block.language == 'sh':
            starts = [line.split()[0] for line in block.commands()]
            assert block.needs_ros or not {'ros2', 'colcon', 'rosdep'} & set(starts), block.where


@pytest.mark.parametrize(
    'block', [b for page in PAGES for b in BLOCKS[page] if b.needs_ros], ids=lambda block: block.where
)
def test_what_needs_ros_names_what_exists(block: Block) -> None:
    """Launch files and arguments, topics, services, their types and values, parameters and their bounds."""
    pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed (x86-64 Linux only)')
    from ros2_commands import check_line

    for line in block.commands():
        check_line(line)


@pytest.fixture(scope='module')
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nothing has been made yet."""
    made = clone_source(tmp_path_factory.mktemp('new_user'))
    link_environment(made)
    return made


@pytest.fixture
def shell(clone: Path, ros_domain: int) -> Iterator[PastedShell]:
    """A terminal in the clone; what is made in the clone is removed afterwards, but for .venv."""
    before = set(clone.rglob('*'))
    made = PastedShell(clone, environment_of_a_new_user(clone.parent))
    yield made
    made.close()
    for path in sorted(set(clone.iterdir()) - before):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize('page', PASTED, ids=lambda path: path.name)
def test_blocks_run_when_pasted(page: Path, clone: Path, shell: PastedShell) -> None:
    """As a new user does it: a terminal in a fresh clone, `make env`, then block by block, line by line."""
    blocks = [block for block in BLOCKS[page] if not block.needs_ros and not repeats_readme(block)]
    if page.name != 'README.md':  # which every other page builds on
        for line in ('make env', '. .venv/bin/activate'):
            paste(shell, line, page.name)
    for block in blocks:
        if block.file:
            (clone / block.file).write_text(block.text)
    for block in blocks:
        for line in (*block.given, *(block.commands() if block.language == 'sh' else ())):
            paste(shell, line, block.where)
    script = '\n'.join(block.text for block in blocks if block.language == 'python')
    if script:
        (clone / 'pasted.py').write_text(script)
        paste(shell, 'python pasted.py', f'the Python blocks of {page.name}')


def repeats_readme(block: Block) -> bool:
    """Whether these are the same commands as in the README, which are run there."""
    shown = [one.text for one in BLOCKS[ROOT / 'README.md']]
    return block.language == 'sh' and block.page.name != 'README.md' and block.text in shown


def paste(shell: PastedShell, line: str, where: str) -> None:
    """Paste a line; it must succeed, without a traceback."""
    dry = re.match(ONLY_NAMED, line)
    until = ''.join(shown for pattern, shown in ENDLESS.items() if re.match(pattern, line))
    code, said = shell.paste(
        line.replace('make ', 'make -n ', 1) if dry else line, LONGEST, until, page_answers if until else None
    )
    # What Ctrl-C ends may say so; `quad_dynamics` ends in order.
    good = (0, 130) if until and not line.startswith('quad_dynamics') else (0,)
    assert code in good, f'{where}: {line}\nended with {code}:\n{said}'
    assert 'Traceback' not in said, f'{where}: {line}\n{said}'


def page_answers(said: str) -> None:
    """Open the page whose address was shown, if one was."""
    address = re.search(r'http://[\w.:]+', said)
    if address is not None:
        with urllib.request.urlopen(address[0], timeout=30.0) as answer:
            assert answer.status == 200
