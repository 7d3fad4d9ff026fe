# SPDX-License-Identifier: Apache-2.0
"""Reads and writes simulator settings as YAML; all problems of a file are reported at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.parameters.parameter import nearest, raise_problems, show
from quad_dynamics.parameters.strict_yaml import StrictLoader
from quad_dynamics.simulation.settings import SimulatorSettings

TOP_KEY = 'simulator'
_MAX_BYTES = 16 * 1024 * 1024  # the file may contain a height map


def read_settings(path: str | os.PathLike[str]) -> SimulatorSettings:
    """Read the settings below the key `simulator:`.

    Args:
        path: path of the YAML file. Relative paths in it are relative to its folder.

    Raises:
        ArgumentError: the file cannot be read or is invalid; lists all problems.
    """
    file = Path(path)
    problems: list[str] = []
    data = _section(_load(file, problems), problems)
    raise_problems(str(file), problems if data is None else [])
    assert data is not None
    if 'terrain' in data:
        data = {**data, 'terrain': from_folder(data['terrain'], file.parent)}
    settings = SimulatorSettings._read(data, f'{TOP_KEY}.', problems)
    raise_problems(str(file), problems)
    assert settings is not None
    return settings


def write_settings(settings: SimulatorSettings) -> str:
    """The text of a YAML file with the settings.

    Raises:
        ArgumentError: the terrain is an object that cannot be written.
    """
    data = settings.to_dict()
    try:
        return yaml.safe_dump({TOP_KEY: data}, sort_keys=False, allow_unicode=True)
    except yaml.YAMLError as error:
        terrain = show(settings.terrain)
        raise ArgumentError(
            f'terrain is {terrain}, which cannot be written as YAML; expected a name, a path or a mapping'
        ) from error


def _load(file: Path, problems: list[str]) -> Any:
    problem = why_unreadable(file, 'a YAML file', _MAX_BYTES)
    if problem:
        problems.append(problem)
        return None
    try:
        loader = StrictLoader(file.read_text(encoding='utf-8'))
        try:
            data = loader.get_single_data()
        finally:
            problems.extend(loader.twice)
            loader.dispose()
    except OSError as error:
        problems.append(f'cannot be read: {error.strerror}')
    except UnicodeDecodeError as error:
        problems.append(f'byte {error.start} is not valid UTF-8; is this a text file?')
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.append(f'invalid YAML: {" ".join(str(error).split())}')
    else:
        return data
    return None


def _section(data: Any, problems: list[str]) -> Mapping[str, Any] | None:
    """The contents below the top key."""
    if isinstance(data, dict) and TOP_KEY in data:
        section = {} if data[TOP_KEY] is None else data[TOP_KEY]
        if isinstance(section, dict):
            return section
        problems.append(f'{TOP_KEY} is {show(section)}; expected a mapping')
    elif not problems:
        keys = list(data) if isinstance(data, dict) else []
        hints = [show(key) for key in keys if nearest(TOP_KEY, [str(key)])]
        found = f'; found {hints[0]}' if hints else ''
        problems.append(f"the key '{TOP_KEY}' is missing{found}; expected the settings below it")
    return None


def from_folder(terrain: Any, folder: Path) -> Any:
    """The terrain with its paths relative to the folder; a single word is the name of a terrain."""
    if isinstance(terrain, str) and (Path(terrain).suffix or '/' in terrain or os.sep in terrain):
        return str(folder / terrain)
    if isinstance(terrain, Mapping):
        paths = ('heights', 'terrain')
        return {key: from_folder(value, folder) if key in paths else value for key, value in terrain.items()}
    if isinstance(terrain, list):
        return [from_folder(item, folder) if isinstance(item, Mapping) else item for item in terrain]
    return terrain
