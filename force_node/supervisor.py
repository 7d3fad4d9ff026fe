# SPDX-License-Identifier: Apache-2.0
"""Decides what the joints are to do: by the law of the mode, or by damping when something is wrong.

It knows nothing of ROS and has no clock: states come with their times, and silence is told to it. So the same
states give the same setpoints.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from force_node.estimator import FootForceEstimator
from force_node.faults import FaultHandler, Faults
from force_node.jumps import JumpDetector
from force_node.laws import Law, PassthroughLaw, TrackingLaw, make_laws
from force_node.settings import ForceSettings
from force_node.targets import read_targets
from quad_dynamics.control.damping import Damping
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]

# In this time the torque that a new law would change at once fades out [s].
FADE_TIME = 0.1
# A fade is over when so little is left of it.
_FADED = 1e-3


class Supervisor:
    """The laws of all modes, and what keeps them safe.

    Attributes:
        faults: what went wrong.
        estimator: of the forces on the feet.
        guard: limits; another one when settings change.
        waiting_for: what input is missing, '' if none is.
        is_damping: whether the last setpoint was the safe one.
        jumps: how often the robot was put elsewhere, or time began anew.
        last_jump: in words.
    """

    def __init__(self, model: Model, settings: ForceSettings, on_fault: FaultHandler | None = None) -> None:
        """Make all laws, and run each once, which compiles what it needs.

        Args:
            model: robot.
            settings: all that can be set.
            on_fault: gets kind and text of each fault.

        Raises:
            ArgumentError: settings that do not suit the robot.
        """
        self._model, self._settings = model, settings
        self.guard = Guard(model, settings)
        self._laws, self._refused = make_laws(model, settings)
        self._check_mode(settings.mode)
        self._mode = settings.mode
        self._damping = Damping(model)
        self.faults = Faults(on_fault)
        self.estimator = FootForceEstimator(model, settings.observer_gain)
        self._jumps = JumpDetector(model)
        self.jumps, self.last_jump = 0, ''
        self._forget()
        self._warm_up()

    def _forget(self) -> None:
        self._before: RobotState | None = None
        self._last = self._damping.update(None)
        self._must_start = True
        self._fade: tuple[float, Floats] | None = None  # since when, and by which torque
        self._bad = ''
        self.waiting_for, self.is_damping = 'no joint_states yet', True

    # ---------------------------------------------------------------- settings

    @property
    def mode(self) -> str:
        """Which law controls the robot."""
        return self._mode

    @property
    def phase(self) -> str:
        """What the law is doing, or why it is not asked."""
        if self.faults.latched:
            return 'latched'
        if self.waiting_for:
            return 'waiting'
        return self._laws[self._mode].phase

    def change(self, settings: ForceSettings) -> None:
        """Take other settings; another mode begins at the next state.

        Raises:
            ArgumentError: they do not suit the robot; nothing has changed then.
        """
        self._check_mode(settings.mode)
        guard = Guard(self._model, settings)
        for law in self._laws.values():
            law.change(settings)
        self.guard, self._settings = guard, settings
        self.estimator.observer.gain = settings.observer_gain
        if settings.mode != self._mode:
            self._mode, self._must_start = settings.mode, True

    def _check_mode(self, mode: str) -> None:
        if mode not in self._laws:
            raise ArgumentError(
                f'parameter mode is {mode!r}: {self._refused[mode]}, or one of the modes '
                f'{", ".join(self._laws)}'
            )

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
        self._estimate(state)
        self._bad = self.guard.check_state(state)
        if self._bad and not self.faults.latched and self._mode != 'damping':
            self.faults.latch('fall' if self._bad.startswith('fallen') else 'limit', self._bad)
        if self.faults.latched or self._mode == 'damping':
            self._must_start = True
            return self._safe(state)
        law = self._laws[self._mode]
        starts = self._must_start
        if starts:
            law.start(state)
        setpoint = law.update(state)
        if starts:
            self._begin_fade(setpoint, state)
            self._must_start = False
        setpoint = self.guard.limit(self._faded(setpoint, state), state)
        self.is_damping = False
        return setpoint

    def _estimate(self, state: RobotState) -> None:
        """Feed the observer; what goes wrong with it is no reason to let the robot fall."""
        try:
            self.estimator.update(state)
        except Exception as error:  # whatever it is
            self.faults.note('estimator', f'{type(error).__name__}: {error}')
            self.estimator.restart()

    def _restart(self) -> None:
        """Begin anew: the robot is elsewhere, or time is."""
        self._must_start, self._fade, self._before = True, None, None
        self.estimator.restart()

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

    # ---------------------------------------------------------------- commands

    def targets(self, message: object) -> None:
        """Take joint targets.

        Args:
            message: a JointTrajectory.

        Raises:
            ArgumentError: what is wrong with them, or that this is not the time for them.
        """
        law = self._expecting('joint_targets', 'computed_torque')
        assert isinstance(law, TrackingLaw)
        assert self._before is not None
        here = self._before.q[-self._model.nj :]
        law.follow(read_targets(message, self._model, self._before.time, here))

    def command(self, tau: Floats | None, q: Floats | None, qd: Floats | None) -> None:
        """Take a command for passthrough: torques and targets, each (nj,) or None.

        Raises:
            ArgumentError: this is not the time for it.
        """
        law = self._expecting('joint_commands', 'passthrough')
        assert isinstance(law, PassthroughLaw)
        law.command(Setpoint(np.zeros(self._model.nj) if tau is None else tau, q, qd))

    def _expecting(self, topic: str, mode: str) -> Law:
        if self._mode != mode:
            raise ArgumentError(f"{topic} came in mode '{self._mode}'; expected mode '{mode}'")
        if self._must_start:
            reason = self.faults.latched or self.waiting_for or 'the mode has not begun'
            raise ArgumentError(f'{topic} came too early ({reason}); expected a robot that is under control')
        return self._laws[mode]

    # ---------------------------------------------------------------- warm-up

    def _warm_up(self) -> None:
        """Run everything once, so that the first state takes no longer than the thousandth."""
        model = self._model
        q = np.array(model.neutral if model.standing is None else model.standing)
        feet = np.tile(model.total_mass * 9.81 / 4.0 * np.array([0.0, 0.0, 1.0]), (len(model.foot_names), 1))
        for time in (0.0, 0.002, 0.004):
            state = RobotState(time, q, np.zeros(model.nv), feet, np.zeros(model.nj))
            self.estimator.update(state)
            self.estimator.forces()
            self.guard.check_state(state)
            for law in self._laws.values():
                if time == 0.0:
                    law.start(state)
                self.guard.limit(law.update(state), state)
        self._jumps.check(state, state)
        self.estimator.restart()
        self._forget()
