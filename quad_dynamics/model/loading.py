# SPDX-License-Identifier: Apache-2.0
"""`load_model`: a bundled name, a file or a text becomes a Model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning
from quad_dynamics.model.builder import build_model
from quad_dynamics.model.description_reader import as_description_mapping, load_yaml
from quad_dynamics.model.model import STANDARD_GRAVITY, Model
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf_reader import read_urdf
from quad_dynamics.model.xml_tree import MAX_CHARACTERS, XmlError, decode_xml

_ROBOTS = Path(__file__).resolve().parent.parent / 'robots'

Description = Mapping[str, Any] | str | os.PathLike[str] | None


def bundled_robots() -> tuple[str, ...]:
    """Names of the robots that come with the library."""
    return tuple(sorted(folder.parent.name for folder in _ROBOTS.glob('*/*.urdf')))


def load_model(
    source: str | os.PathLike[str],
    floating_base: bool | None = None,
    description: Description = None,
    strict: bool = False,
    gravity: npt.ArrayLike | None = None,
) -> Model:
    """Load a robot.

    Args:
        source: name of a bundled robot ('mini_cheetah'), path of a .urdf or .xacro file, or URDF text.
        floating_base: whether the root link floats; None: as the robot description says, else robots with
            two or more feet float and all others are fixed.
        description: robot description, as a path to YAML or as a mapping; None: NAME.yaml beside NAME.urdf,
            if it exists and has the key `quad_dynamics:`.
        strict: refuse files that are only doubtful, too.
        gravity: (3,) in the world [m/s^2], default (0, 0, -9.81).

    Returns:
        The model. What was doubtful is in `model.warnings` and was issued as ModelWarning, one for each kind.

    Raises:
        ModelError: the file cannot become a model; `problems` lists everything that is wrong with it.
        ArgumentError: an argument is of a wrong kind.
    """
    g = _gravity(gravity)
    if floating_base is not None and not isinstance(floating_base, bool):
        raise ArgumentError(f'floating_base is {floating_base!r}; expected True, False or None')
    text, path, shown = _find(source)
    problems = Problems(shown)
    urdf = read_urdf(text, problems, path)
    if urdf is None:
        problems.raise_errors()
        raise AssertionError('a text is unreadable only together with a problem')
    data = _description_data(description, path, problems)
    model = build_model(urdf, problems, data, floating_base, g, strict)
    for line in model.warnings:
        warnings.warn(f'{shown}: {line}', ModelWarning, stacklevel=2)
    return model


def _gravity(gravity: npt.ArrayLike | None) -> npt.NDArray[np.float64]:
    g = np.array(STANDARD_GRAVITY if gravity is None else gravity, dtype=np.float64)
    if g.shape != (3,) or not np.isfinite(g).all():
        raise ArgumentError(f'gravity is {gravity!r}; expected 3 finite numbers')
    return g


def _find(source: str | os.PathLike[str]) -> tuple[str, str, str]:
    """Text of the robot, path of its file ('' if there is none), and how to call it in messages."""
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(
            f'source is of type {type(source).__name__}; expected a bundled name, a path or URDF text'
        )
    if isinstance(source, str) and '<' in source:
        return source.lstrip('\ufeff \t\r\n'), '', 'URDF text'
    name = os.fspath(source)
    if isinstance(source, str) and name in bundled_robots():
        path = _ROBOTS / name / f'{name}.urdf'
        return _read_file(path, name), str(path), name
    path = Path(name)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a name too long for the system, or with a NUL
        is_file = False
    if not is_file:
        known = ', '.join(bundled_robots())
        shown = name if len(name) <= 200 else name[:197] + '...'
        raise ModelError(
            shown, [f'there is no such file, and no bundled robot of this name; bundled are: {known}']
        )
    text = _expand_xacro(path) if path.suffix == '.xacro' else _read_file(path, name)
    return text, str(path), name


def _read_file(path: Path, shown: str) -> str:
    try:
        if path.stat().st_size > MAX_CHARACTERS:
            raise ModelError(shown, [f'the file is longer than {MAX_CHARACTERS} bytes'])
        return decode_xml(path.read_bytes())
    except OSError as error:
        raise ModelError(shown, [f'the file cannot be read: {error.strerror}']) from error
    except XmlError as error:
        raise ModelError(shown, [str(error)]) from error


def _expand_xacro(path: Path) -> str:
    try:
        import xacro
    except ImportError as error:
        fix = "install it with 'pip install xacro', or expand the file to a .urdf first"
        raise ModelError(
            str(path), [f'the file needs the package xacro, which is not installed; {fix}']
        ) from error
    try:
        return str(xacro.process_file(str(path)).toprettyxml(indent='  '))
    except Exception as error:  # xacro raises whatever its expressions raise
        raise ModelError(
            str(path), [f'xacro cannot expand the file: {str(error) or type(error).__name__}']
        ) from error


def _description_data(description: Description, path: str, problems: Problems) -> Mapping[str, Any] | None:
    if isinstance(description, Mapping):
        return as_description_mapping(description, problems)
    if description is not None:
        if not isinstance(description, (str, os.PathLike)):
            raise ArgumentError(
                f'description is of type {type(description).__name__}; expected a path or a mapping'
            )
        n_errors = problems.n_errors
        data = load_yaml(Path(description), problems)
        if data is None and problems.n_errors == n_errors:
            problems.error(f"{os.fspath(description)}: the file has no top key 'quad_dynamics:'")
        return data
    if not path:
        return None
    beside = Path(path).with_name(Path(path).name.split('.')[0] + '.yaml')
    return load_yaml(beside, problems) if beside.is_file() else None
