# SPDX-License-Identifier: Apache-2.0
"""Expands xacro files, with and without ROS; `$(find NAME)` is resolved like `package://NAME`."""

from __future__ import annotations

import difflib
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from quad_dynamics.errors import ArgumentError, ModelError
from quad_dynamics.model.packages import find_package, places_searched

_MOST_MISSING = 20  # missing arguments listed in one message
_INSTALL = "install it with 'pip install xacro', or expand the file to a .urdf first"
_GIVE = 'give a value with --xacro-arg NAME=VALUE, or load_model(..., xacro_args={...})'
_NAME = re.compile(r'[^\s=]+')
_PATH = re.compile(r'(?:file://)?(/.*)', re.DOTALL)
_LOCK = threading.Lock()  # xacro keeps its state in global variables


def check_xacro_args(given: object) -> dict[str, str]:
    """Arguments of a xacro file as strings, by name.

    Raises:
        ArgumentError: it is not a mapping of names to text, numbers or booleans.
    """
    if not isinstance(given, Mapping):
        raise ArgumentError(f'xacro_args has type {type(given).__name__}; expected a mapping of values')
    found: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ArgumentError(f'xacro_args has the name {name!r}; expected text without spaces and =')
        if not isinstance(value, (str, int, float)):
            raise ArgumentError(f'xacro_args[{name!r}] is {value!r}; expected text, a number or a boolean')
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def parse_xacro_args(text: str) -> dict[str, str]:
    """Arguments from a line such as `robot_type=go1 prefix='my robot'`, quoted as in a shell.

    Raises:
        ArgumentError: a part has no name or no '='.
    """
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise ArgumentError(f'xacro arguments {text!r}: {error}') from error
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition('=')
        name = name.removesuffix(':')  # NAME:=VALUE is the syntax of ros2 and xacro
        if not equals or not _NAME.fullmatch(name):
            raise ArgumentError(f'xacro argument {part!r}; expected NAME=VALUE')
        found[name] = value
    return found


def format_xacro_args(given: Mapping[str, str]) -> str:
    """Format arguments as a line for `parse_xacro_args`."""
    return ' '.join(shlex.quote(f'{name}={value}') for name, value in given.items())


@dataclass
class _Packages:
    """Resolves `$(find NAME)`, and records the packages."""

    file: str
    found: dict[str, Path] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def find(self, name: str) -> str:
        folder = find_package(name, self.file)
        if folder is not None:
            self.found[name] = folder
            return str(folder)
        if name not in self.missing:
            self.missing.append(name)
        return f'package://{name}'  # harmless in the path of a mesh or plugin; an include of it fails


class _Arguments(dict[str, str]):
    """Arguments that record which names the file uses."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


def expand_xacro(path: Path, given: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Expand a xacro file.

    Args:
        path: path of the file.
        given: its arguments.

    Returns:
        URDF text, and the names of missing packages that the text refers to without including files of them.
        Meshes below a package that was found are written as package://NAME/...

    Raises:
        ModelError: the file cannot be expanded; missing packages and arguments are named.
    """
    try:
        import xacro
    except ImportError as error:
        problem = f'the file requires xacro, which is not installed; {_INSTALL}'
        raise ModelError(str(path), [problem]) from error
    packages, missing = _Packages(str(path)), dict.fromkeys(given)
    arguments = _Arguments(given)
    while True:
        try:
            with _LOCK, _answering(packages.find):
                document = xacro.process_file(str(path), mappings=arguments, verbosity=0)
        except Exception as error:  # xacro raises any exception that its expressions raise
            name = _missing_argument(error)
            if name is not None and name not in missing and len(missing) < _MOST_MISSING + len(given):
                missing[name] = None
                arguments = _Arguments({**arguments, name: ''})
                continue  # find further missing arguments
            raise ModelError(str(path), _problems(error, list(missing)[len(given) :], packages)) from error
        break
    absent = list(missing)[len(given) :]
    if absent:
        raise ModelError(str(path), [_without_value(absent)])
    _check_names(path, given, arguments)
    _name_packages(document, packages.found)
    return str(document.toprettyxml(indent='  ')), tuple(packages.missing)


@contextmanager
def _answering(find: Callable[[str], str]) -> Iterator[None]:
    """Make xacro resolve packages with this function; its own method needs a ROS installation."""
    from xacro import substitution_args

    module: ModuleType = substitution_args
    table: dict[str, Any] = getattr(module, '_eval_dict', {})
    old, old_entry = getattr(module, '_eval_find', None), table.get('find')
    module._eval_find = find  # type: ignore[attr-defined]
    table['find'] = find
    try:
        yield
    finally:
        module._eval_find = old  # type: ignore[attr-defined]
        table['find'] = old_entry


def _missing_argument(error: BaseException | None) -> str | None:
    """Name of the missing argument that an error is about; None if it is another error."""
    while error is not None:
        if type(error).__name__ == 'ArgException':
            return str(error)
        error = getattr(error, 'exc', None) or error.__cause__
    return None


def _problems(error: Exception, absent: list[str], packages: _Packages) -> list[str]:
    """All problems, after expansion failed."""
    found = [_without_value(absent)] if absent else []
    for name in packages.missing:
        found.append(
            f"package '{name}', required by the file, was not found; "
            f'searched: {places_searched(packages.file)}; '
            'put it beside the package of the file, or add its parent folder to ROS_PACKAGE_PATH'
        )
    if found:
        return found
    return [f'xacro cannot expand the file: {str(error) or type(error).__name__}']


def _without_value(names: list[str]) -> str:
    plural = 's' if len(names) > 1 else ''
    return f'xacro argument{plural} without a value: {", ".join(names)}; {_GIVE}'


def _check_names(path: Path, given: Mapping[str, str], arguments: _Arguments) -> None:
    known = sorted(arguments.asked)
    problems = []
    for name in given:
        if name in arguments.asked:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean '{near[0]}'? " if near else ''
        takes = f'it has: {", ".join(known)}' if known else 'it has none'
        problems.append(f"the file has no xacro argument '{name}'; {hint}{takes}")
    if problems:
        raise ModelError(str(path), problems)


def _name_packages(document: Any, found: Mapping[str, Path]) -> None:
    """Write meshes as package://NAME/..., so that they are also found from other folders."""
    for tag in ('mesh', 'texture'):
        for element in document.getElementsByTagName(tag):
            match = _PATH.fullmatch(element.getAttribute('filename'))
            if match is None:
                continue
            for name, folder in found.items():
                if match[1].startswith(f'{folder}/'):
                    inner = match[1][len(str(folder)) :].lstrip('/')
                    element.setAttribute('filename', f'package://{name}/{inner}')
                    break
