# SPDX-License-Identifier: Apache-2.0
"""`load_model`: makes a Model from the name of a bundled robot, a file or URDF text."""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning
from quad_dynamics.model.builder import build_model
from quad_dynamics.model.description_reader import as_description_mapping, load_yaml
from quad_dynamics.model.model import STANDARD_GRAVITY, Model, _vector
from quad_dynamics.model.problems import Problems, why_unreadable
from quad_dynamics.model.urdf_reader import read_urdf
from quad_dynamics.model.xacro_files import check_xacro_args, expand_xacro
from quad_dynamics.model.xml_tree import MAX_CHARACTERS, XmlError, decode_xml

_EXPECTED = 'a .urdf or .xacro file'
_SUFFIXES = re.compile(r'(\.(urdf|xacro|xml))+$', re.IGNORECASE)
_LONGEST_NAME = 200  # of text shown in a message
_ROBOTS = Path(__file__).resolve().parent.parent / 'robots'

Description = Mapping[str, Any] | str | os.PathLike[str] | None


def bundled_robots() -> tuple[str, ...]:
    """Names of the robots included in the library."""
    return tuple(sorted(folder.parent.name for folder in _ROBOTS.glob('*/*.urdf')))


def load_model(
    source: str | os.PathLike[str],
    floating_base: bool | None = None,
    description: Description = None,
    strict: bool = False,
    gravity: npt.ArrayLike | None = None,
    xacro_args: Mapping[str, str | float | bool] | None = None,
) -> Model:
    """Load a robot.

    Args:
        source: name of a bundled robot ('mini_cheetah'), path of a .urdf or .xacro file, or URDF text.
        floating_base: whether the root link floats; None: as in the robot description, else robots with two
            or more feet float and all others are fixed.
        description: robot description, as a path to YAML or as a mapping; None: NAME.yaml beside NAME.urdf,
            if it exists and has the key `quad_dynamics:`.
        strict: treat warnings as errors.
        gravity: (3,) in the world [m/s^2], default (0, 0, -9.81).
        xacro_args: arguments of a .xacro file, by name.

    Returns:
        The model. Warnings are in `model.warnings` and are issued as ModelWarning, one per kind.

    Raises:
        ModelError: the file is not a valid model; `problems` lists all problems.
        ArgumentError: an argument has a wrong type.
    """
    g = _vector(STANDARD_GRAVITY if gravity is None else gravity, 3, 'gravity')
    if floating_base is not None and not isinstance(floating_base, bool):
        raise ArgumentError(f'floating_base is {floating_base!r}; expected True, False or None')
    given = check_xacro_args({} if xacro_args is None else xacro_args)
    text, path, shown = _find(source)
    problems = Problems(shown)
    if path.lower().endswith('.xacro'):
        text, missing = expand_xacro(Path(path), given)
        for name in missing:
            problems.warn('packages named in the file were not found and are ignored: {}', name)
    elif given:
        raise ArgumentError(f'xacro_args is given, but {shown} is not a .xacro file; expected no xacro_args')
    urdf = read_urdf(text, problems, path)
    if urdf is None:
        problems.raise_errors()
        raise AssertionError('a text is unreadable only together with a problem')
    data = _description_data(description, path, problems)
    model = build_model(urdf, problems, data, floating_base, g, strict)
    for line in model.warnings:
        warnings.warn(f'{shown}: {line}', ModelWarning, stacklevel=2)
    return model


def _find(source: str | os.PathLike[str]) -> tuple[str, str, str]:
    """Text of the robot, path of its file ('' if there is none), and its name in messages."""
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(
            f'source has type {type(source).__name__}; expected a bundled name, a path or URDF text'
        )
    if isinstance(source, str) and '<' in source:
        return source.lstrip('\ufeff \t\r\n'), '', 'URDF text'
    name = os.fspath(source)
    if isinstance(source, str) and name in bundled_robots():
        path = _ROBOTS / name / f'{name}.urdf'
        return _read_file(path, name), str(path), name
    path = Path(name)
    if not name or not _exists(path):
        shown = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + '...'
        raise ModelError(shown, [_no_such_file(shown)])
    # xacro reads the file itself, but its error messages are less clear
    return _read_file(path, name), str(path), name


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except PermissionError:  # it may exist; reading it will report the problem
        return True
    except (OSError, ValueError):  # also: a name that is too long for the system, or contains a NUL
        return False
    return True


def _no_such_file(name: str) -> str:
    known = bundled_robots()
    near = difflib.get_close_matches(_SUFFIXES.sub('', Path(name).name).lower(), known, 1)
    hint = f"did you mean '{near[0]}'? " if near else ''
    return f'no such file or bundled robot; {hint}bundled robots: {", ".join(known)}'


def _read_file(path: Path, shown: str) -> str:
    problem = why_unreadable(path, _EXPECTED, MAX_CHARACTERS)
    if problem:
        raise ModelError(shown, [problem])
    try:
        return decode_xml(path.read_bytes())
    except OSError as error:
        raise ModelError(shown, [f'cannot be read: {error.strerror}']) from error
    except XmlError as error:
        raise ModelError(shown, [str(error)]) from error


def _description_data(description: Description, path: str, problems: Problems) -> Mapping[str, Any] | None:
    if isinstance(description, Mapping):
        return as_description_mapping(description, problems)
    if description is not None:
        if not isinstance(description, (str, os.PathLike)):
            raise ArgumentError(
                f'description has type {type(description).__name__}; expected a path or a mapping'
            )
        n_errors = problems.n_errors
        shown = os.fspath(description)
        data = load_yaml(Path(description), problems, shown)
        if data is None and problems.n_errors == n_errors:
            problems.error(f"{shown}: the file has no top key 'quad_dynamics:'")
        return data
    if not path:
        return None
    beside = Path(path).with_name(_SUFFIXES.sub('', Path(path).name) + '.yaml')
    return load_yaml(beside, problems, beside.name) if beside.is_file() else None
