# SPDX-License-Identifier: Apache-2.0
"""Keeps a robot safe whatever its control law does: guards, latches faults, and fades from law to law.

    supervision = Supervision(model, walker)
    setpoint = supervision.update(state)     # in place of walker.update(state)

It has no clock and knows nothing of ROS: states come with their times, and silence is told to it. So the same
states give the same setpoints.
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

# In this time the torque that a new law would change at once fades out [s].
FADE_TIME = 0.1
# A fade is over when so little is left of it.
_FADED = 1e-3


class Supervision:
    """Asks a law for setpoints, and damps the joints when something is wrong.

    Attributes:
        faults: what went wrong.
        guard: limits; another one when settings change.
        waiting_for: what input is missing, '' if none is.
        is_damping: whether the last setpoint was the safe one.
        jumps: how often the robot was put elsewhere, or time began anew.
        last_jump: in words.
    """

    def __init__(
        self,
        model: Model,
        law: Law | None = None,
        settings: ControlSettings | None = None,
        on_fault: FaultHandler | None = None,
    ) -> None:
        """Begin with damping.

        Args:
            model: robot.
            law: begins at the first state; None: the joints are damped.
            settings: margins and limits; None for the defaults.
            on_fault: gets kind and text of each fault.

        Raises:
            ArgumentError: settings that do not suit the robot.
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
        self._fade: tuple[float, Floats] | None = None  # since when, and by which torque
        self._bad = ''
        self.waiting_for, self.is_damping = 'no state yet', True

    @property
    def law(self) -> Law | None:
        """Which law controls the robot, None for damping; another one begins at the next state."""
        return self._law

    @law.setter
    def law(self, law: Law | None) -> None:
        self._law, self._must_start = law, True

    # ---------------------------------------------------------------- states

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state; whatever goes wrong, it is a safe one."""
        try:
            self._last = self._answer(state)
        except Exception as error:  # of a law, whatever it is: the robot must not be left alone
            self.faults.exception(error, state.time)
            self._must_start = True
            self._last = self._safe(state)
        self._before, self.waiting_for = state, ''
        return self._last

    def lacks(self, what: str) -> Setpoint:
        """Damping, because input is missing; the law begins anew when it is back.

        Args:
            what: is missing, in words.
        """
        if not self.waiting_for:
            self.faults.note('stale', what)
        self.waiting_for = what
        self._must_start, self._fade, self._before = True, None, None
        self._last = self._safe(None)
        return self._last

    def damped(self) -> Setpoint:
        """The safe setpoint, which needs no state."""
        return self._damping.update(None)

    def recover(self) -> tuple[bool, str]:
        """Forget what has latched, unless it is still so; whether the robot goes on, and what was wrong."""
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
                return self._last  # of a simulation that is paused
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
        """Called with each new state, before it is checked; for classes that observe more."""

    def _restart(self) -> None:
        """Begin anew: the robot is elsewhere, or time is."""
        self._must_start, self._fade, self._before = True, None, None

    def _safe(self, state: RobotState | None) -> Setpoint:
        self.is_damping = True
        self._fade = None
        return self._damping.update(state)

    # ---------------------------------------------------------------- from law to law

    def _begin_fade(self, setpoint: Setpoint, state: RobotState) -> None:
        """Remember the difference of the torques that the last setpoint and this one cause in a state."""
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
        """(nj,) what drives with the gains of the settings make of a setpoint in a state."""
        nj = self._model.nj
        drives = self.guard.drive_torque(setpoint.q, setpoint.qd, state.q[-nj:], state.u[-nj:])
        return setpoint.tau + drives

    def as_torque(self, setpoint: Setpoint, state: RobotState | None) -> Setpoint:
        """A setpoint of torques alone; none in an unknown state, for what would damp it is unknown too."""
        nj = self._model.nj
        if state is None:
            return Setpoint(np.zeros(nj))
        total = self.total_torque(setpoint, state)
        return Setpoint(self.guard.limited_torque(total, state.q[-nj:], state.u[-nj:]))
