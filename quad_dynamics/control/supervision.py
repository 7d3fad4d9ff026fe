# SPDX-License-Identifier: Apache-2.0
"""Keeps a robot safe whatever its control law does: guards, latches faults, and blends between laws.

    supervision = Supervision(model, walker)
    setpoint = supervision.update(state)     # instead of walker.update(state)

It has no clock and does not need ROS: states come with their times, and the caller reports missing input. So
the same states give the same setpoints.
"""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.damping import Damping
from quad_dynamics.control.faults import FaultHandler, Faults
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.jumps import JumpDetector
from quad_dynamics.control.law import Law
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model

# Time in which the torque difference between two laws falls to 5 % [s].
FADE_TIME = 0.1
# Remaining share at which a fade ends.
_FADED = 1e-3


class Supervision:
    """Runs a law, and damps the joints when something is wrong.

    Attributes:
        faults: reported faults.
        guard: limits; replaced when settings change.
        waiting_for: missing input, '' if there is none.
        is_damping: whether the last setpoint was the safe one.
        jumps: how often the robot was teleported, or time was reset.
        last_jump: description.
    """

    def __init__(
        self,
        model: Model,
        law: Law | None = None,
        settings: ControlSettings | None = None,
        on_fault: FaultHandler | None = None,
    ) -> None:
        """Start with damping.

        Args:
            model: robot.
            law: starts at the first state; None: the joints are damped.
            settings: margins and limits; None for the defaults.
            on_fault: called with kind and text of each fault.

        Raises:
            ArgumentError: the settings are invalid for the robot.
        """
        self._model = model
        self.guard = Guard(model, settings)
        self._law = law
        self._damping = Damping(model)
        self.faults = Faults(on_fault)
        self._jumps = JumpDetector(model)
        self.jumps, self.last_jump = 0, ''
        self._forget()

    def _forget(self) -> None:
        self._before: RobotState | None = None
        self._last = self._damping.update(None)
        self._must_start = True
        self._fade: tuple[float, Floats] | None = None  # start time, and torque difference
        self._bad = ''
        self.waiting_for, self.is_damping = 'no state yet', True

    @property
    def law(self) -> Law | None:
        """The law that controls the robot, None for damping; a new one starts at the next state."""
        return self._law

    @law.setter
    def law(self, law: Law | None) -> None:
        self._law, self._must_start = law, True

    # ---------------------------------------------------------------- states

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state; it is always safe."""
        try:
            self._last = self._answer(state)
        except Exception as error:  # any error of a law: the robot must stay under control
            self.faults.exception(error, state.time)
            self._must_start = True
            self._last = self._safe(state)
        self._before, self.waiting_for = state, ''
        return self._last

    def lacks(self, what: str) -> Setpoint:
        """Damping, because input is missing; the law restarts when it is back.

        Args:
            what: description of the missing input.
        """
        if not self.waiting_for:
            self.faults.note('stale', what)
        self.waiting_for = what
        self._must_start, self._fade, self._before = True, None, None
        self._last = self._safe(None)
        return self._last

    def damped(self) -> Setpoint:
        """The safe setpoint, which does not need a state."""
        return self._damping.update(None)

    def recover(self) -> tuple[bool, str]:
        """Clear the latched fault, unless it persists; returns whether the robot continues, and the fault."""
        if self.waiting_for:
            return False, f'{self.faults.latched or "nothing was wrong"}; waiting: {self.waiting_for}'
        if self.faults.latched and self._bad:
            return False, f'still: {self._bad}'
        was = self.faults.recover()
        if not was:
            return True, 'nothing was wrong'
        self._must_start = True
        return True, f'recovered from: {was}'

    def _answer(self, state: RobotState) -> Setpoint:
        before = self._before
        if before is not None:
            jump = self._jumps.check(before, state)
            if jump:
                self.jumps, self.last_jump = self.jumps + 1, jump
                self._restart()
            elif state.time == before.time:
                return self._last  # the simulation is paused
        self._notice(state)
        self._bad = self.guard.check_state(state)
        if self._bad and not self.faults.latched and self._law is not None:
            self.faults.latch('fall' if self._bad.startswith('fallen') else 'limit', self._bad)
        if self.faults.latched or self._law is None:
            self._must_start = True
            return self._safe(state)
        starts = self._must_start
        if starts:
            self._law.start(state)
        setpoint = self._law.update(state)
        if starts:
            self._begin_fade(setpoint, state)
            self._must_start = False
        setpoint = self.guard.limit(self._faded(setpoint, state), state)
        self.is_damping = False
        return setpoint

    def _notice(self, state: RobotState) -> None:
        """Called with each new state, before it is checked; for subclasses with an observer."""

    def _restart(self) -> None:
        """Restart after the robot was teleported or time was reset."""
        self._must_start, self._fade, self._before = True, None, None

    def _safe(self, state: RobotState | None) -> Setpoint:
        self.is_damping = True
        self._fade = None
        return self._damping.update(state)

    # ---------------------------------------------------------------- blending between laws

    def _begin_fade(self, setpoint: Setpoint, state: RobotState) -> None:
        """Store the difference between the torques of the last setpoint and of this one in a state."""
        self._fade = None
        if self._before is None:
            return
        difference = self.total_torque(self._last, state) - self.total_torque(setpoint, state)
        if np.isfinite(difference).all():
            self._fade = state.time, difference

    def _faded(self, setpoint: Setpoint, state: RobotState) -> Setpoint:
        if self._fade is None:
            return setpoint
        since, difference = self._fade
        share = math.exp(-3.0 * (state.time - since) / FADE_TIME)
        if share < _FADED:
            self._fade = None
        return Setpoint(setpoint.tau + share * difference, setpoint.q, setpoint.qd, setpoint.feet_down)

    def total_torque(self, setpoint: Setpoint, state: RobotState) -> Floats:
        """(nj,) torque of the drives for a setpoint in a state, with the gains of the settings."""
        nj = self._model.nj
        drives = self.guard.drive_torque(setpoint.q, setpoint.qd, state.q[-nj:], state.u[-nj:])
        return setpoint.tau + drives

    def as_torque(self, setpoint: Setpoint, state: RobotState | None) -> Setpoint:
        """A setpoint with torques only; zero in an unknown state, whose damping torque is unknown."""
        nj = self._model.nj
        if state is None:
            return Setpoint(np.zeros(nj))
        total = self.total_torque(setpoint, state)
        return Setpoint(self.guard.limited_torque(total, state.q[-nj:], state.u[-nj:]))
