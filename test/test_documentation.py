# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows runs, and what it names exists."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *sorted((ROOT / 'docs').rglob('*.md'))]
# Those that end by themselves; test_own_controller.py has the other one.
EXAMPLES = [path for path in sorted((ROOT / 'examples').glob('*.py')) if path.stem != 'stand_controller']


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
    text = (ROOT / 'docs' / 'dynamics.md').read_text()
    functions = [name for name in qd.__all__ if callable(getattr(qd, name)) and name[0].islower()]
    assert [name for name in functions if name != 'load_model' and name not in text] == []


def test_modules_named_in_the_docs_exist() -> None:
    for page in ('dynamics.md', 'architecture.md'):
        for path in re.findall(
            r'`((?:kernels|model|api|contact|simulation|control|ros|cli)/\w+\.py)`',
            (ROOT / 'docs' / page).read_text(),
        ):
            assert (ROOT / 'quad_dynamics' / path).exists(), f'{page} names {path}'


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
