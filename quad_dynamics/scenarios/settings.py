# SPDX-License-Identifier: Apache-2.0
"""The parts of a scenario, with each value declared once: default, unit, meaning, bounds."""

# ruff: noqa: RUF009 (param and group return what dataclasses.field returns)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quad_dynamics.model.model import Model
from quad_dynamics.model.urdf import Vector3
from quad_dynamics.parameters.parameter import group, param
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.simulation.settings import SimulatorSettings

CONTROL_PERIOD = 0.002  # of the controller, and between two rows of the traces [s]


@dataclass(frozen=True)
class Payload(ParameterSet):
    """A point mass unknown to the controller."""

    link: str | None = param(None, 'link that carries the payload; none or base: the base', kind='text')
    mass: float | None = param(None, 'mass of the payload', kind='number', unit='kg', low=0.0)
    share: float | None = param(
        None,
        "mass of the payload relative to the link's body, instead of `mass`",
        kind='number',
        unit='-',
        low=0.0,
    )
    position: Vector3 | None = param(
        None,
        "position in the frame of the link; none: the centre of mass of the link's body",
        kind='vector',
        size=3,
        unit='m',
    )

    def _across(self) -> list[str]:
        if self.mass is not None and self.share is not None:
            return ['mass and share are both given; expected one of them']
        return []


@dataclass(frozen=True)
class Truth(ParameterSet):
    """How the simulated robot differs from the controller's model."""

    payload: Payload = group(Payload, 'additional mass')
    mass_scale: float = param(1.0, 'factor of all masses and inertias', unit='-', above=0.0)
    friction: str = param(
        'urdf',
        'joint friction; typical: typical values for joints without friction in the URDF',
        choices=('urdf', 'typical'),
    )
    friction_scale: float = param(1.0, 'factor of the joint friction', unit='-', low=0.0)


def _what_a_stall_is(value: Any) -> str:
    if value is None:
        return ''
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    numbers = is_pair and all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in value)
    good = numbers and 0.0 <= value[0] < value[1] < float('inf')
    return '' if good else '[duration, every], two numbers with 0 <= duration < every [s]'


@dataclass(frozen=True)
class Faults(ParameterSet):
    """Faults between controller and drives."""

    drop: float = param(0.0, 'share of setpoints that are lost', unit='-', low=0.0, high=1.0)
    stall: Any = param(
        None,
        '[duration, every]: the controller is suspended for `duration`, once per `every`',
        kind='other',
        unit='s',
        check=_what_a_stall_is,
    )

    def stalls(self, time: float) -> bool:
        """Whether the controller is stalled; the first stall begins at `every`, not at zero."""
        if self.stall is None:
            return False
        duration, every = self.stall
        # times are multiples of the control period, except for rounding
        return bool(time > every - 1e-9 and (time + 1e-9) % every < duration)


@dataclass(frozen=True)
class Push(ParameterSet):
    """A horizontal force on the base at its centre of mass."""

    delta_v: float = param(0.0, "impulse over the robot's true mass", unit='m/s', low=0.0)
    heading: float = param(0.0, 'direction in the world; 0: +x', unit='rad')
    duration: float = param(0.1, 'duration of the push', unit='s', above=0.0)


@dataclass(frozen=True)
class Seeds(ParameterSet):
    """The seeds of a scenario."""

    first: int = param(0, 'smallest seed', low=0, high=2**63 - 1)
    count: int = param(1, 'number of seeds', low=1, high=100_000)


@dataclass(frozen=True)
class Event:
    """An event at one time.

    Attributes:
        time: [s].
        where: its name in messages.
        gait: to set, or None.
        cmd_vel: (3,) command, or None.
        push: to apply, or None.
    """

    time: float
    where: str
    gait: str | None = None
    cmd_vel: Vector3 | None = None
    push: Push | None = None


@dataclass(frozen=True)
class Scenario:
    """A scenario of one seed, with all random values drawn.

    Attributes:
        name: of the scenario.
        seed: from which it was drawn.
        robot: the controller's model: a Model, or a source for `load_model`.
        truth: how the simulated robot differs from it.
        simulator: settings, with the seed.
        control: settings of `Walker` by name.
        faults: between controller and drives.
        foot_sensors: whether the controller receives foot forces.
        duration: [s].
        measure_from: start time of the measurements [s].
        settle: time after a change of the command in which velocities are not measured [s].
        events: in the order of time.
    """

    name: str
    seed: int
    robot: Model | str
    truth: Truth
    simulator: SimulatorSettings
    control: Mapping[str, Any]
    faults: Faults
    foot_sensors: bool
    duration: float
    measure_from: float
    settle: float
    events: tuple[Event, ...]
