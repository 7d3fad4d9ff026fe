# SPDX-License-Identifier: Apache-2.0
"""Gaits as data (`gaits.yaml`), and the clock that tells which feet should be in contact."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import yaml

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.parameters.parameter import param, raise_problems, show
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.parameters.yaml_numbers import load_yaml
from quad_dynamics.planning.gait_transition import Joining, LegInStride, Pattern, join

_FILE = Path(__file__).with_name('gaits.yaml')
_MOST_BYTES = 1_000_000
_REQUIRED = ('period', 'duty', 'touchdown')


@dataclass(frozen=True)
class Gait(ParameterSet):
    """A gait: duration of a stride, and when each foot is in contact."""

    period: float = param(2.3, 'duration of a stride, in sqrt(l / g)', unit='-', low=0.1, high=100.0)
    duty: float = param(0.5, 'share of the stride in which a foot is in contact', unit='-', low=0.1, high=1.0)
    touchdown: tuple[float, float, float, float] = param(
        (0.0, 0.5, 0.5, 0.0),
        'touch-down times of the front left, front right, rear left and rear right foot, in strides',
        unit='-',
        low=0.0,
        high=1.0,
    )
    stance: tuple[float, float] = param(
        (1.0, 1.0),
        'factors of the distances of the feet from their centre, along x and y',
        unit='-',
        low=0.3,
        high=1.5,
    )
    sway: float = param(
        0.0,
        'how far the body moves towards the centre of the next stance feet',
        unit='-',
        low=0.0,
        high=1.0,
    )


def read_gaits(path: str | os.PathLike[str]) -> dict[str, Gait]:
    """The gaits of a file, by name; `gaits.yaml` beside this module is an example.

    Raises:
        ArgumentError: the file is invalid; lists all problems.
    """
    path = Path(path)
    problem = why_unreadable(path, 'a YAML file', _MOST_BYTES)
    if problem:
        raise_problems(str(path), [problem])
    problems: list[str] = []
    gaits: dict[str, Gait] = {}
    data = _load(path)
    if not isinstance(data, Mapping) or not data:
        raise ArgumentError(f'{path}: the file holds {show(data)}; expected gaits by name')
    for name, values in data.items():
        if not isinstance(name, str):
            problems.append(f'a gait has the name {show(name)}; expected a text')
            continue
        gait = Gait._read(values, f'{name}.', problems)
        missing = [key for key in _REQUIRED if isinstance(values, Mapping) and key not in values]
        problems += [
            f'{name}.{key} is missing; expected {Gait.parameters()[key].expected}' for key in missing
        ]
        if gait is not None:
            gaits[name] = gait
    raise_problems(str(path), problems)
    return gaits


def _load(path: Path) -> object:
    try:
        return load_yaml(path.read_text(encoding='utf-8'))
    except OSError as error:
        problem = f'cannot be read: {error.strerror}'
    except UnicodeDecodeError as error:
        problem = f'byte {error.start} is not valid UTF-8; is this a text file?'
    except yaml.YAMLError as error:
        problem = f'broken YAML: {" ".join(str(error).split())}'
    raise_problems(str(path), [problem])
    return None


# The gaits of the package, by name.
GAITS: Mapping[str, Gait] = MappingProxyType(read_gaits(_FILE))


@dataclass(frozen=True)
class _Transition:
    """How one leg changes from its old stride to the pattern of another gait. Times are since the change.

    A leg in stance at the change stays in contact until it lifts off in the new pattern. A leg in swing
    touches down as planned, and then does the same.

    Attributes:
        was_down: whether it was in stance at the change.
        phase: its phase at the change.
        duty: of its old stride, until it touches down.
        begin: when its old stance or swing began; -inf if the robot stood [clock s].
        lands: when it touches down, if it was in swing; 0 if it was in stance [clock s].
        lifts: when it lifts off in the new pattern; inf if it does not [clock s].
        joins: when it touches down in the new pattern; from then on its phase is that of the pattern
            [clock s].
    """

    was_down: bool
    phase: float
    duty: float
    begin: float
    lands: float
    lifts: float
    joins: float


class GaitClock:
    """The phase of each leg in its stride.

    Clock time is the time that passes at rate 1.

    Attributes:
        gait: the gait; `change` changes it.
        unit: sqrt(l / g) of the robot [s].
        rate: of the clock; above 1, strides are shorter.
    """

    def __init__(self, gait: Gait, unit: float, order: Sequence[int]) -> None:
        """Start a stride.

        Args:
            gait: the gait.
            unit: sqrt(l / g) of the robot [s].
            order: index into `Gait.touchdown` of each leg.
        """
        self.gait, self.unit, self._order = gait, unit, tuple(order)
        self._stride, self.rate = 0.0, 1.0
        self._elapsed, self._transitions = 0.0, tuple[_Transition, ...]()

    # ---------------------------------------------------------------- the stride

    @property
    def legs(self) -> int:
        """Number of legs."""
        return len(self._order)

    @property
    def stride(self) -> float:
        """Time in strides, from 0 to 1; setting it moves all legs to the pattern of the gait."""
        return self._stride

    @stride.setter
    def stride(self, value: float) -> None:
        self._stride, self._transitions = value % 1.0, ()

    @property
    def period(self) -> float:
        """Duration of a stride [s]."""
        return self.gait.period * self.unit / self.rate

    @property
    def stance_time(self) -> float:
        """Duration of a stance in the pattern of the gait [s]."""
        return self.gait.duty * self.period

    @property
    def swing_time(self) -> float:
        """Duration of a swing in the pattern of the gait [s]."""
        return (1.0 - self.gait.duty) * self.period

    @property
    def is_changing(self) -> bool:
        """Whether a leg has not joined the pattern of the gait yet."""
        return bool(self._transitions)

    def advance(self, dt: float) -> None:
        """Advance the clock by a time [s]."""
        self._stride = (self._stride + dt / self.period) % 1.0
        if self._transitions:
            self._elapsed += dt * self.rate
            if all(self._elapsed >= one.joins for one in self._transitions):
                self._transitions = ()

    def change(self, gait: Gait) -> None:
        """Change to another gait, leg by leg, within two strides (`gait_transition`).

        Legs in swing touch down as planned; legs in stance stay in contact until the new pattern lifts them.
        The phase of each leg is continuous, except for legs that stood, which have no phase.
        """
        if gait == self.gait:
            return
        old, legs = self.gait, [self._in_stride(leg) for leg in range(self.legs)]
        phases = [(self.phase(leg), self.duty(leg)) for leg in range(self.legs)]
        period, duty = gait.period * self.unit, gait.duty
        touchdown = tuple(gait.touchdown[i] for i in self._order)
        before = old.period * self.unit
        if duty < 1.0:
            stance = old.duty * before if old.duty < 1.0 else math.inf
            joining = join(
                legs, Pattern(period, duty * period, touchdown), stance, before - min(stance, before)
            )
        else:  # feet touch down and stay in contact
            lands = tuple(0.0 if leg.is_down else leg.left for leg in legs)
            joining = Joining(0.0, (math.inf,) * self.legs, lands)
        made = []
        for leg, (phase, lift), lifts, joins in zip(legs, phases, joining.lifts, joining.lands, strict=True):
            was = (phase, lift) if lift < 1.0 else (phase * duty, duty)  # a leg that stood has no phase
            lands_at = 0.0 if leg.is_down else leg.left
            made.append(_Transition(leg.is_down, *was, -leg.since, lands_at, lifts, joins))
        self.gait, self._stride, self._elapsed = gait, joining.stride, 0.0
        self._transitions = tuple(made)

    def _in_stride(self, leg: int) -> LegInStride:
        """Time of a leg in its stance or swing."""
        one, at = self._transition(leg), self._elapsed
        if one is None:
            return self._in_pattern(leg)
        if one.was_down and at < one.lifts:
            return LegInStride(True, at - one.begin, one.lifts - at)
        if at < one.lands:
            return LegInStride(False, at - one.begin, one.lands - at)
        if at < one.lifts:
            return LegInStride(True, at - one.lands, one.lifts - at)
        return LegInStride(False, at - one.lifts, one.joins - at)

    def _in_pattern(self, leg: int) -> LegInStride:
        """Time in its stance or swing of a leg that has joined the gait."""
        phase, duty, period = self.phase(leg), self.gait.duty, self.gait.period * self.unit
        if duty == 1.0:
            return LegInStride(True, math.inf, math.inf)
        if phase < duty:
            return LegInStride(True, phase * period, (duty - phase) * period)
        return LegInStride(False, (phase - duty) * period, (1.0 - phase) * period)

    # ---------------------------------------------------------------- legs

    def phase(self, leg: int, ahead: float = 0.0) -> float:
        """Current or future phase of a leg: 0 at touch-down, `duty(leg)` at lift-off.

        Args:
            leg: its number.
            ahead: in strides of the gait.
        """
        one = self._transition(leg, ahead)
        if one is None:
            return (self._stride + ahead - self.gait.touchdown[self._order[leg]]) % 1.0
        at = self._elapsed + ahead * self.gait.period * self.unit
        duty = self.gait.duty
        if one.was_down:
            duty = one.duty
            if at < one.lifts:
                return one.phase + (duty - one.phase) * at / one.lifts
        elif at < one.lands:
            return one.phase + (1.0 - one.phase) * at / one.lands
        elif at < one.lifts:
            return duty * (at - one.lands) / (one.lifts - one.lands)
        return duty + (1.0 - duty) * (at - one.lifts) / (one.joins - one.lifts)

    def duty(self, leg: int, ahead: float = 0.0) -> float:
        """Phase at which a leg lifts off: that of the gait, or of the previous one until its touch-down."""
        one = self._transition(leg, ahead)
        if one is None:
            return self.gait.duty
        at = self._elapsed + ahead * self.gait.period * self.unit
        return one.duty if one.was_down or at < one.lands else self.gait.duty

    def partner(self, leg: int) -> int | None:
        """The only leg that touches down at the same time; None if there is none, or several."""
        touchdown = [self.gait.touchdown[i] for i in self._order]
        same = [k for k, at in enumerate(touchdown) if k != leg and at == touchdown[leg]]
        return same[0] if len(same) == 1 else None

    def is_stance(self, leg: int, ahead: float = 0.0) -> bool:
        """Whether a foot should be in contact."""
        return self.phase(leg, ahead) < self.duty(leg, ahead)

    def swing_progress(self, leg: int) -> float:
        """From 0 at lift-off to 1 at touch-down; 1 while the foot should be in contact."""
        phase, duty = self.phase(leg), self.duty(leg)
        return (phase - duty) / (1.0 - duty) if phase >= duty else 1.0

    def swing_time_of(self, leg: int) -> float:
        """Duration of the current or next swing of a leg [s]."""
        one = self._transition(leg)
        if one is None:
            return self.swing_time
        if not one.was_down and self._elapsed < one.lands:
            return (one.lands - one.begin) / self.rate
        return (one.joins - one.lifts) / self.rate

    def next_stance_time(self, leg: int) -> float:
        """Duration of the stance that begins with the next touch-down of a leg [s]."""
        one = self._transition(leg)
        if one is None or one.was_down or self._elapsed >= one.lands or math.isinf(one.lifts):
            return self.stance_time
        return (one.lifts - one.lands) / self.rate

    def time_to_touchdown(self, leg: int) -> float:
        """Time until the next touch-down of a foot, infinity if it stays in contact [s]."""
        times = self.changes(leg, 2.0 * self._long)
        first = 1 if self.is_stance(leg) else 0
        return times[first] if len(times) > first else math.inf

    @property
    def _long(self) -> float:
        """Time within which every leg of a stepping gait touches down [s]."""
        ends = [one.joins + self.gait.period * self.unit for one in self._transitions]
        return max([self.gait.period * self.unit, *ends]) / self.rate

    def changes(self, leg: int, horizon: float) -> list[float]:
        """Alternating times of lift-off and touch-down of a foot within a horizon, in order [s].

        Args:
            leg: its number.
            horizon: duration to look ahead [s].
        """
        period, duty = self.gait.period * self.unit, self.gait.duty
        most, found = horizon * self.rate, []
        one = self._transition(leg)
        if one is not None:
            knots = (one.lands, one.lifts, one.joins) if duty < 1.0 else (one.lands,)
            found = [at - self._elapsed for at in knots if at > self._elapsed]
            at, down = found[-1], True
        else:
            phase = self.phase(leg)
            down = phase < duty
            at = -phase * period if down else -(phase - duty) * period
        if duty < 1.0:
            while at < most:
                at += duty * period if down else (1.0 - duty) * period
                down = not down
                found.append(at)
        return [max(at, 0.0) / self.rate for at in found if at <= most]

    def _transition(self, leg: int, ahead: float = 0.0) -> _Transition | None:
        """The transition of a leg, None if it follows the pattern of the gait."""
        if not self._transitions:
            return None
        one = self._transitions[leg]
        at = self._elapsed + ahead * self.gait.period * self.unit
        return one if at < one.joins else None
