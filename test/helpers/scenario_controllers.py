# SPDX-License-Identifier: Apache-2.0
"""Controllers for tests of scenarios; other processes import them by name."""

from __future__ import annotations

from typing import Any

from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.stand import StandUp
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

GAITS = ('stand', 'trot')


class Standing:
    """Stands, whatever is commanded, and notes what it is told."""

    def __init__(self, model: Model) -> None:
        self._law = StandUp(model)
        self.settings = self._law.settings
        self.counts = {'failures': 0}
        self.states: list[RobotState] = []
        self.commands: list[tuple[float, tuple[float, ...]]] = []
        self.gaits: list[tuple[float, str]] = []
        self._gait, self._time = 'stand', 0.0

    @property
    def gait(self) -> str:
        return self._gait

    @gait.setter
    def gait(self, name: str) -> None:
        if name not in GAITS:
            raise ArgumentError(f'gait is {name!r}; expected one of {", ".join(GAITS)}')
        self._gait = name
        self.gaits.append((self._time, name))

    def reset(self, state: RobotState) -> None:
        self._law.start(state)

    def command(self, vx: float, vy: float, wz: float) -> None:
        self.commands.append((self._time, (vx, vy, wz)))

    def update(self, state: RobotState) -> Setpoint:
        self.states.append(state)
        self._time = state.time
        return self._law.update(state)


class Failing(Standing):
    """A solve in ten fails."""

    def update(self, state: RobotState) -> Setpoint:
        self.counts['failures'] += int(len(self.states) % 10 == 9)
        return super().update(state)


def standing(model: Model, control: Any) -> Standing:
    """In place of Walker."""
    return Standing(model)
