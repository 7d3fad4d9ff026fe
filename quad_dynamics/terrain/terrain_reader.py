# SPDX-License-Identifier: Apache-2.0
"""Reads terrains from YAML files, mappings and lists; all problems are reported at once, with location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.model.description_reader import _safe_load
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.terrain.terrain_checks import error_of, show
from quad_dynamics.terrain.terrain_names import NAMES, unknown_name
from quad_dynamics.terrain.terrain_shapes import SHAPES, Shape

TOP_KEY = 'terrain'
_MOST_BYTES = 1024 * 1024


def read_file(path: Path) -> tuple[Shape, ...]:
    """Read the shapes of a YAML file.

    Raises:
        ArgumentError: the terrain is invalid; lists all problems.
    """
    source = str(path)
    problem = why_unreadable(path, 'a YAML file', _MOST_BYTES)
    if problem:
        raise error_of(source, [problem])
    try:
        data, twice = _safe_load(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise error_of(source, [f'cannot be read: {error.strerror}']) from error
    except UnicodeDecodeError as error:
        raise error_of(source, [f'byte {error.start} is not valid UTF-8; is this a text file?']) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise error_of(source, [f'invalid YAML: {" ".join(str(error).split())}']) from error
    if not isinstance(data, dict) or TOP_KEY not in data:
        raise error_of(source, [f"the file has no top key '{TOP_KEY}:'"])
    return read_shapes(data, source, path.parent, twice)


def read_shapes(
    data: Any, source: str, folder: str | os.PathLike[str], problems: list[str] | None = None
) -> tuple[Shape, ...]:
    """Make shapes from a mapping or a list, as in a YAML file.

    Args:
        data: a mapping with the key `terrain:`, the mapping of one shape, or a list of shapes.
        source: its name in messages.
        folder: base of relative paths of height maps.
        problems: problems found so far.

    Raises:
        ArgumentError: the terrain is invalid; lists all problems.
    """
    reader = _Reader(Path(folder), problems or [])
    shapes = reader.read(data)
    if reader.problems:
        raise error_of(source, reader.problems)
    return shapes


class _Reader:
    def __init__(self, folder: Path, problems: list[str]) -> None:
        self.folder = folder
        self.problems = problems

    def read(self, data: Any) -> tuple[Shape, ...]:
        if isinstance(data, Mapping) and TOP_KEY in data:
            for key in data:
                if key != TOP_KEY:
                    self.problems.append(f"unknown key {show(key)} beside '{TOP_KEY}:'")
            data = data[TOP_KEY]
        if isinstance(data, (Mapping, str)):
            data = [data]
        if not isinstance(data, (list, tuple)) or not data:
            self.problems.append(f'{TOP_KEY} is {show(data)}; expected a list of at least one shape')
            return ()
        return tuple(shape for i, item in enumerate(data) for shape in self._item(item, f'{TOP_KEY}[{i}]'))

    def _item(self, item: Any, where: str) -> tuple[Shape, ...]:
        if isinstance(item, Shape):
            return (item,)
        if isinstance(item, str):
            if item not in NAMES:
                self.problems.append(f'{where}: {unknown_name(item)}')
                return ()
            return NAMES[item]()
        if not isinstance(item, Mapping):
            self.problems.append(f'{where} is {show(item)}; expected a shape: a mapping, or a name')
            return ()
        return self._shape(item, where)

    def _shape(self, item: Mapping[Any, Any], where: str) -> tuple[Shape, ...]:
        kind = item.get('shape')
        cls = SHAPES.get(kind) if isinstance(kind, str) else None
        if cls is None:
            found = f'shape is {show(kind)}' if 'shape' in item else "the key 'shape' is missing"
            self.problems.append(f'{where}: {found}; expected one of {", ".join(SHAPES)}')
            return ()
        known = {key: value for key, value in item.items() if key in cls.checks}
        for key in item:
            if key != 'shape' and key not in known:
                self._unknown_key(key, list(cls.checks), where)
        missing = [f.name for f in fields(cls) if f.default is MISSING and f.name not in known]
        self.problems.extend(f'{where}: {name} is missing' for name in missing)
        if isinstance(known.get('heights'), str):
            known['heights'] = self.folder / known['heights']
        _, problems = cls.check(known, f'{where}.')
        self.problems.extend(problems)
        return () if missing or problems else (cls(**known),)

    def _unknown_key(self, key: Any, known: list[str], where: str) -> None:
        near = get_close_matches(str(key), known, 1)
        hint = f"did you mean '{near[0]}'? " if near else ''
        self.problems.append(
            f'{where}: unknown key {show(key)}; {hint}known keys are shape, {", ".join(known)}'
        )
