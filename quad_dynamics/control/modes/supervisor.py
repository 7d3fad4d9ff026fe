# SPDX-License-Identifier: Apache-2.0
"""Computes setpoints of the joints: by the law of the mode, or damping if there is a fault.

`Supervision` guards the law; `Supervisor` adds modes and their commands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.control.faults import FaultHandler
from quad_dynamics.control.foot_force_estimator import FootForceEstimator
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.law import ModeLaw
from quad_dynamics.control.modes.commanded_walker import CommandedWalker
from quad_dynamics.control.modes.joint_targets import read_targets
from quad_dynamics.control.modes.laws import make_laws
from quad_dynamics.control.modes.names import COMPUTED_TORQUE, DAMPING, PASSTHROUGH, WHOLE_BODY
from quad_dynamics.control.modes.passthrough import Passthrough
from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.supervision import Supervision
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan


class Supervisor(Supervision):
    """The laws of all modes, with supervision.

    Attributes:
        estimator: of the forces on the feet.
    """

    def __init__(self, model: Model, settings: ModeSettings, on_fault: FaultHandler | None = None) -> None:
        """Make all laws, and run each once to compile its kernels.

        Args:
            model: robot.
            settings: of control and modes.
            on_fault: called with kind and text of each fault.

        Raises:
            ArgumentError: the settings are invalid for the robot.
        """
        super().__init__(model, None, settings, on_fault)
        self._laws, self._refused = make_laws(model, settings)
        self._check_mode(settings.mode)
        self.estimator = FootForceEstimator(model, settings.observer_gain)
        self._set_mode(settings.mode)
        self._warm_up()

    # ---------------------------------------------------------------- settings

    @property
    def mode(self) -> str:
        """The mode, which selects the law that controls the robot."""
        return self._mode

    def _set_mode(self, mode: str) -> None:
        self._mode = mode
        self.law = None if mode == DAMPING else self._laws[mode]

    @property
    def phase(self) -> str:
        """The phase of the law, or why it is not running."""
        if self.faults.latched:
            return 'latched'
        if self.waiting_for:
            return 'waiting'
        return self._laws[self._mode].phase

    def details(self) -> dict[str, Any]:
        """Diagnostic values of the law, by name."""
        law = self._laws[self._mode]
        return law.details() if isinstance(law, CommandedWalker) else {}

    def change(self, settings: ModeSettings) -> None:
        """Change settings; another mode starts at the next state.

        Raises:
            ArgumentError: the settings are invalid for the robot; nothing has changed.
        """
        self._check_mode(settings.mode)
        guard = Guard(self._model, settings)
        for law in self._laws.values():
            law.change(settings)
        self.guard = guard
        self.estimator.observer.gain = settings.observer_gain
        if settings.mode != self._mode:
            self._set_mode(settings.mode)

    def _check_mode(self, mode: str) -> None:
        if mode not in self._laws:
            raise ArgumentError(
                f'parameter mode is {mode!r}: {self._refused[mode]}; available modes: {", ".join(self._laws)}'
            )

    # ---------------------------------------------------------------- states

    def _notice(self, state: RobotState) -> None:
        """Update the observer; its errors must not make the robot fall."""
        try:
            self.estimator.update(state)
        except Exception as error:  # whatever it is
            self.faults.note('estimator', f'{type(error).__name__}: {error}')
            self.estimator.restart()

    def _forget(self) -> None:
        super()._forget()
        self.waiting_for = 'no joint_states yet'

    def _restart(self) -> None:
        super()._restart()
        self.estimator.restart()

    # ---------------------------------------------------------------- commands

    def targets(self, message: object) -> None:
        """Take joint targets.

        Args:
            message: a JointTrajectory.

        Raises:
            ArgumentError: they are invalid, or the robot is not ready for them.
        """
        law = self._expecting('joint_targets', COMPUTED_TORQUE)
        assert isinstance(law, ComputedTorque)
        assert self._before is not None
        here = self._before.q[-self._model.nj :]
        targets = read_targets(message, self._model, self._before.time, here)
        law.set_trajectory(targets.times, targets.q, targets.qd, targets.qdd, targets.start)

    def command(self, tau: Floats | None, q: Floats | None, qd: Floats | None) -> None:
        """Take a command for passthrough: torques and targets, each (nj,) or None.

        Raises:
            ArgumentError: the robot is not ready for it.
        """
        law = self._expecting('joint_commands', PASSTHROUGH)
        assert isinstance(law, Passthrough)
        law.command(Setpoint(np.zeros(self._model.nj) if tau is None else tau, q, qd))

    def velocity(self, vx: float, vy: float, wz: float) -> None:
        """Take a walking velocity [m/s, m/s, rad/s]; zero is ignored by a robot that does not walk.

        Raises:
            ArgumentError: a value is not finite, or the robot is not ready for it.
        """
        if vx == vy == wz == 0.0 and (self._mode != WHOLE_BODY or self._must_start):
            return
        law = self._expecting('cmd_vel', WHOLE_BODY)
        assert isinstance(law, CommandedWalker)
        limited = law.command(vx, vy, wz)
        if limited:
            self.faults.note('limited_cmd_vel', limited)

    def follow(self, plan: MotionPlan) -> None:
        """Take a motion plan for mode whole_body; in another mode it may be needed later."""
        law = self._laws.get(WHOLE_BODY)
        if isinstance(law, CommandedWalker):
            law.follow(plan)

    def _expecting(self, topic: str, mode: str) -> ModeLaw:
        if self._mode != mode:
            raise ArgumentError(f"{topic} received in mode '{self._mode}'; expected mode '{mode}'")
        if self._must_start:
            reason = self.faults.latched or self.waiting_for or 'the mode has not started'
            raise ArgumentError(f'{topic} rejected ({reason}); expected a robot that is under control')
        return self._laws[mode]

    # ---------------------------------------------------------------- warm-up

    def _warm_up(self) -> None:
        """Run everything once, so that the first state takes no longer than later ones."""
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
