# SPDX-License-Identifier: Apache-2.0
"""Reads scenarios from YAML files and mappings; all problems are reported at once, with line and key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.parameters.parameter import raise_problems, show
from quad_dynamics.parameters.strict_yaml import LineLoader
from quad_dynamics.scenarios.draws import at_high_end, at_low_end, at_random
from quad_dynamics.scenarios.scenario_reader import ScenarioReader, line_of
from quad_dynamics.scenarios.settings import Scenario

TOP_KEYS = ('scenario', 'expect')
_MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario before random values are drawn, with its expectations.

    Attributes:
        name: of the scenario.
        source: the file, or 'scenario' for a mapping.
        seeds: all of them.
        duration: of one run [s].
        expect: upper bounds by name.
    """

    name: str
    source: str
    seeds: tuple[int, ...]
    duration: float
    expect: Mapping[str, float]
    _data: Mapping[str, Any] = field(repr=False)
    _folder: Path = field(repr=False)
    _lines: Mapping[str, int] = field(repr=False)

    @staticmethod
    def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> ScenarioFile:
        """Read a scenario and check it, with every random value at both ends of its range.

        Args:
            source: path of a YAML file, or a mapping as in such a file. In a mapping, the robot may be a
                Model; relative paths are relative to the folder of the file, or to the current one.

        Raises:
            ArgumentError: the scenario is invalid; lists all problems with file, line and key.
        """
        if isinstance(source, Mapping):
            return _checked(dict(source), 'scenario', Path(), {}, [])
        if not isinstance(source, (str, os.PathLike)):
            raise ArgumentError(f'scenario is {show(source)}; expected the path of a YAML file or a mapping')
        path = Path(source)
        data, lines, problems = _load(path)
        if data is None:
            raise_problems(str(path), problems or ["the file is empty; expected the key 'scenario:'"])
        return _checked(data, str(path), path.parent, lines, problems)

    def place(self, name: str) -> str:
        """The location of a key for messages: file, line and key."""
        return f'{self.source}: {line_of(name, self._lines)}{name}'

    def draw(self, seed: int) -> Scenario:
        """The scenario of a seed.

        Raises:
            ArgumentError: a drawn value is invalid.
        """
        reader = ScenarioReader(self._data, self.source, self._folder, self._lines)
        scenario = reader.scenario(self.name, seed, at_random(seed))
        raise_problems(self.source, reader.problems)
        assert scenario is not None
        return scenario


def _load(path: Path) -> tuple[Any, dict[str, int], list[str]]:
    """The data of a file, the lines of its values, and its problems."""
    problem = why_unreadable(path, 'a YAML file', _MOST_BYTES)
    if problem:
        return None, {}, [problem]
    try:
        loader = LineLoader(path.read_text(encoding='utf-8'))
        try:
            return loader.get_single_data(), loader.lines, loader.twice
        finally:
            loader.dispose()
    except OSError as error:
        return None, {}, [f'cannot be read: {error.strerror}']
    except UnicodeDecodeError as error:
        return None, {}, [f'byte {error.start} is not valid UTF-8; is this a text file?']
    except yaml.MarkedYAMLError as error:
        line = f'line {error.problem_mark.line + 1}: ' if error.problem_mark else ''
        return None, {}, [f'{line}invalid YAML: {error.problem or error.context}']
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return None, {}, [f'invalid YAML: {" ".join(str(error).split())}']


def _checked(
    data: Any, source: str, folder: Path, lines: Mapping[str, int], problems: list[str]
) -> ScenarioFile:
    """The scenario of the data of a file."""
    if not isinstance(data, dict) or not isinstance(data.get('scenario'), Mapping):
        problems.append("the key 'scenario' is missing or not a mapping; expected the scenario below it")
        raise_problems(source, problems)
    reader = ScenarioReader(data['scenario'], source, folder, lines)
    reader.unknown_keys(data, '', TOP_KEYS)
    expect = reader.expect(data.get('expect'))
    seeds, name = reader.seeds(), reader.name(Path(source).stem)
    reader.check_draws()
    ends = [reader.scenario(name, seeds[0], draw) for draw in (at_low_end, at_high_end)]
    raise_problems(source, problems + list(dict.fromkeys(reader.problems)))
    assert ends[0] is not None
    return ScenarioFile(name, source, seeds, ends[0].duration, expect, reader.data, folder, lines)
