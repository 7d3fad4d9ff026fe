# SPDX-License-Identifier: Apache-2.0
"""Reads the parts of a scenario from plain data; collects all problems with line and key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.loading import bundled_robots
from quad_dynamics.model.model import Model
from quad_dynamics.parameters.parameter import nearest, param, show, unknown
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.scenarios.columns import EXPECTABLE
from quad_dynamics.scenarios.controller import walker_settings
from quad_dynamics.scenarios.draws import Draw, drawn, wrong_draws
from quad_dynamics.scenarios.settings import CONTROL_PERIOD, Event, Faults, Push, Scenario, Seeds, Truth
from quad_dynamics.simulation.settings import SensorSettings, SimulatorSettings
from quad_dynamics.simulation.settings_reader import from_folder
from quad_dynamics.terrain.terrain import Terrain

_MOST_EVENTS = 100_000
_SENSORS = ('typical', 'none')


@dataclass(frozen=True)
class _PlainValues(ParameterSet):
    """The plain values of a scenario."""

    duration: float = param(10.0, 'duration of a run', unit='s', low=CONTROL_PERIOD, high=1e5)
    measure_from: float = param(0.0, 'start time of the measurements', unit='s', low=0.0)
    settle: float = param(1.0, 'time after a change of the command that is not measured', unit='s', low=0.0)
    base_state: str = param('truth', 'source of the base state for the controller', choices=('truth',))
    foot_sensors: bool = param(True, 'whether the controller receives foot forces')


@dataclass(frozen=True)
class _EventData(ParameterSet):
    """An event without its push."""

    at: float = param(0.0, 'time of the event', unit='s', low=0.0)
    every: float | None = param(
        None, 'period with which the event is repeated', kind='number', unit='s', above=0.0
    )
    gait: str | None = param(None, 'gait to set', kind='text')
    cmd_vel: tuple[float, ...] | None = param(
        None, 'velocity forward, left, turning', kind='vector', size=3, unit='m/s, m/s, rad/s'
    )


_SECTIONS = ('robot', 'truth', 'simulator', 'control', 'faults', 'seeds', 'events')
KEYS = ('name', *_SECTIONS, *_PlainValues.parameters())


def line_of(place: str, lines: Mapping[str, int]) -> str:
    """`line 12: ` of a key, or of its enclosing key; '' if it is unknown."""
    while place and place not in lines:
        place = re.sub(r'(\.[^.\[]*|\[[^\[]*|^[^.\[]*)$', '', place)
    return f'line {lines[place]}: ' if place else ''


class ScenarioReader:
    """Reads the parts of a scenario and collects their problems."""

    def __init__(self, data: Mapping[str, Any], source: str, folder: Path, lines: Mapping[str, int]) -> None:
        self.data, self._source, self._folder, self._lines = data, source, folder, lines
        self.problems: list[str] = []
        self._undrawn: tuple[str, ...] = ()

    def check_draws(self) -> None:
        """Note problems with random values; these keys are not reported again."""
        wrong = wrong_draws({key: self.data[key] for key in _SECTIONS if key in self.data}, 'scenario')
        for text in wrong:
            self.complain(text)
        self._undrawn = tuple(f'{text.split(" is ", 1)[0]} ' for text in wrong)

    def complain(self, text: str) -> None:
        """Note a problem; the text starts with a key."""
        if not text.startswith(self._undrawn or ' '):
            self.problems.append(f'{self._line(text)}{text}')

    def unknown_keys(self, data: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
        """Note the keys that do not exist."""
        for key in data:
            if key not in known:
                self.complain(unknown(f'{where}: ' if where else '', 'key', key, known))

    def _line(self, text: str) -> str:
        """`line 12: ` for the key that a text starts with, or for its enclosing key; '' if unknown."""
        place = re.split(r'[:\s]', text, maxsplit=1)[0]
        key = re.search(r"unknown key '([^']*)'", text)
        if key:
            place = key[1] if place == 'unknown' else f'{place}.{key[1]}'
        return line_of(place, self._lines)

    # ---------------------------------------------------------------- values that are not random

    def name(self, default: str) -> str:
        """Name of the scenario, which becomes that of a folder."""
        name = self.data.get('name', re.sub(r'[^\w.+-]', '_', default))
        if not isinstance(name, str) or not re.fullmatch(r'[\w][\w.+-]*', name):
            self.complain(
                f'scenario.name is {show(name)}; expected letters, digits, and _ . + - after the first'
            )
            return default
        return name

    def seeds(self) -> tuple[int, ...]:
        """All seeds."""
        found = self._read(Seeds, 'seeds', self.data.get('seeds'))
        return tuple(range(found.first, found.first + found.count)) if found else (0,)

    def expect(self, data: Any) -> dict[str, float]:
        """Expectations: upper bounds by name."""
        if data is None:
            return {}
        if not isinstance(data, Mapping):
            self.complain(f'expect is {show(data)}; expected a mapping of upper bounds')
            return {}
        self.unknown_keys(data, 'expect', EXPECTABLE)
        for key, value in data.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value):
                self.complain(f'expect.{key} is {show(value)}; expected a number, the upper bound')
        return dict(data)

    # ---------------------------------------------------------------- a drawn scenario

    def scenario(self, name: str, seed: int, draw: Draw) -> Scenario | None:
        """The scenario with all random values drawn; None if it is invalid."""
        self.unknown_keys(self.data, 'scenario', KEYS)
        plain = {key: value for key, value in self.data.items() if key in _PlainValues.parameters()}
        if plain.get('base_state') == 'estimate':
            self.complain("scenario.base_state is 'estimate', which is not available yet; expected 'truth'")
            plain.pop('base_state')
        times = self._read(_PlainValues, '', plain)
        robot, control = self._robot(), self._control()
        truth = self._read(Truth, 'truth', self._drawn('truth', draw))
        faults = self._read(Faults, 'faults', self._drawn('faults', draw))
        simulator = self._simulator(self._drawn('simulator', draw), seed)
        events = self._events(times.duration if times else 0.0, draw)
        if self.problems or times is None or truth is None or faults is None or simulator is None:
            return None
        return Scenario(
            name,
            seed,
            robot,
            truth,
            simulator,
            control,
            faults,
            times.foot_sensors,
            times.duration,
            times.measure_from,
            times.settle,
            events,
        )

    def _drawn(self, key: str, draw: Draw) -> Any:
        return drawn(self.data.get(key), f'scenario.{key}', draw)

    def _read(self, cls: Any, key: str, data: Any) -> Any:
        problems: list[str] = []
        where = f'scenario.{key}.' if key else 'scenario.'
        found = cls._read({} if data is None else data, where, problems)
        for text in problems:
            self.complain(text)
        return found

    def _robot(self) -> Model | str:
        robot = self.data.get('robot')
        if isinstance(robot, Model):
            return robot
        if not isinstance(robot, str) or not robot:
            found = 'is missing' if robot is None else f'is {show(robot)}'
            self.complain(f'scenario.robot {found}; expected a bundled robot or the path of a .urdf file')
            return ''
        if robot in bundled_robots():
            return robot
        path = self._folder / robot
        if not path.is_file():
            names = bundled_robots()
            hint = nearest(robot, names)
            self.complain(
                f'scenario.robot is {show(robot)}{hint}; expected a file, or one of {", ".join(names)}'
            )
        return str(path)

    def _control(self) -> Mapping[str, Any]:
        """Settings of `Walker`, checked."""
        control = self.data.get('control') or {}
        if control:
            self._read(walker_settings(), 'control', control)
        return control if isinstance(control, Mapping) else {}

    def _simulator(self, data: Any, seed: int) -> SimulatorSettings | None:
        where = 'scenario.simulator'
        if data is not None and not isinstance(data, Mapping):
            self.complain(f'{where} is {show(data)}; expected a mapping')
            return None
        values = dict(data or {})
        if 'seed' in values:
            self.complain(f'{where}.seed is given; expected seeds in scenario.seeds')
        if 'terrain' in values:
            values['terrain'] = from_folder(values['terrain'], self._folder)
        sensors = values.get('sensors')
        if isinstance(sensors, str):
            if sensors not in _SENSORS:
                self.complain(f"{where}.sensors is {show(sensors)}; expected 'typical', 'none' or a mapping")
            values['sensors'] = SensorSettings.typical() if sensors == 'typical' else SensorSettings()
        values.setdefault('contact', 'impulse')
        found: SimulatorSettings | None = self._read(SimulatorSettings, 'simulator', {**values, 'seed': seed})
        if found is not None:
            self._check_simulator(found, where)
        return found

    def _check_simulator(self, found: SimulatorSettings, where: str) -> None:
        if found.contact == 'none':
            self.complain(f"{where}.contact is 'none'; expected 'impulse' or 'spring_damper'")
        steps = CONTROL_PERIOD / found.dt
        if steps < 0.5 or abs(steps - round(steps)) > 1e-6:
            self.complain(
                f'{where}.dt is {found.dt:g}; expected an integer fraction of {CONTROL_PERIOD:g} s, the '
                'period of the controller'
            )
        try:
            Terrain.load(found.terrain)
        except ArgumentError as error:
            self.complain(f'{where}.terrain: {error}')

    # ---------------------------------------------------------------- events

    def _events(self, duration: float, draw: Draw) -> tuple[Event, ...]:
        """All events in order of time; at equal times in the order of the file."""
        given = self.data.get('events')
        if given is None:
            return ()
        if not isinstance(given, (list, tuple)):
            self.complain(f'scenario.events is {show(given)}; expected a list')
            return ()
        events: list[Event] = []
        for i, item in enumerate(given):
            events += self._event(item, f'scenario.events[{i}]', duration, draw)
        return tuple(sorted(events, key=lambda event: event.time))

    def _event(self, item: Any, where: str, duration: float, draw: Draw) -> list[Event]:
        """All occurrences of an event; random values are drawn for each occurrence."""
        if not isinstance(item, Mapping):
            self.complain(f'{where} is {show(item)}; expected a mapping')
            return []
        known = (*_EventData.parameters(), 'push')
        self.unknown_keys(item, where, known)
        if not any(key in item for key in ('gait', 'cmd_vel', 'push')):
            self.complain(f"{where}: the event has no effect; expected 'gait', 'cmd_vel' or 'push'")
        clock = {key: drawn(item[key], f'{where}.{key}', draw) for key in ('at', 'every') if key in item}
        times = self._event_data(clock, where)
        if times is None:
            return []
        count = 1
        if times.every is not None:
            count = max(1, math.ceil((duration - times.at) / times.every - 1e-9))
        if count > _MOST_EVENTS:
            self.complain(
                f'{where}.every: the event would occur {count} times; expected at most {_MOST_EVENTS}'
            )
            return []
        rest = {key: value for key, value in item.items() if key in known and key not in clock}
        made = []
        for k in range(count):
            data = drawn(rest, f'{where}#{k}' if k else where, draw)
            push = data.pop('push', None)
            event = self._event_data(data, where)
            kick = None if push is None else self._push(push, where)
            if event is None or (push is not None and kick is None):
                return []
            at = times.at + k * (times.every or 0.0)
            named = f'{self._source}: {self._line(where)}{where}'
            made.append(Event(at, named, event.gait, event.cmd_vel, kick))  # type: ignore[arg-type]
        return made

    def _event_data(self, data: Mapping[str, Any], where: str) -> _EventData | None:
        problems: list[str] = []
        found = _EventData._read(data, f'{where}.', problems)
        for text in problems:
            self.complain(text)
        return found

    def _push(self, data: Any, where: str) -> Push | None:
        problems: list[str] = []
        found = Push._read(data, f'{where}.push.', problems)
        if isinstance(data, Mapping) and 'delta_v' not in data:
            problems.append(f'{where}.push: delta_v is missing; expected a number of at least 0 [m/s]')
        for text in problems:
            self.complain(text)
        return found
