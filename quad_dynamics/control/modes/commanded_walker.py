# SPDX-License-Identifier: Apache-2.0
"""A walker that follows velocities or external plans, and stops when they cease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.velocity_command import VelocityCommand
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan

if TYPE_CHECKING:
    from quad_dynamics.control.walker import Walker


class CommandedWalker:
    """Stands up, stands, and walks at the velocity of the last command; stops when it is too old.

    All times, including the age of a command, are in the time of the states.
    """

    def __init__(self, model: Model, settings: ModeSettings) -> None:
        self._walker = _make_walker(model, settings)
        self._velocity = VelocityCommand(self._walker, settings.cmd_timeout)
        self._is_led = settings.planner == 'external'

    @property
    def phase(self) -> str:
        """See `Walker`."""
        return self._walker.phase

    def start(self, state: RobotState) -> None:
        """Get up from the current pose, or stand; earlier commands are discarded."""
        self._velocity.stop()
        self._walker.start(state)
        self._velocity.watch(state.time)

    def command(self, vx: float, vy: float, wz: float) -> str:
        """Take a velocity; its time is that of the last state.

        With external plans, velocities are for the other node: without plans the robot stands.

        Returns:
            '' for a velocity that is within limits, else what was limited.

        Raises:
            ArgumentError: a value is not finite; the command is unchanged.
        """
        return '' if self._is_led else self._velocity.take(vx, vy, wz)

    def follow(self, plan: MotionPlan) -> None:
        """Follow a plan of another node; see `Walker`."""
        self._walker.follow(plan)

    def update(self, state: RobotState) -> Setpoint:
        """See `Walker`."""
        self._velocity.watch(state.time)
        return self._walker.update(state)

    def change(self, settings: ModeSettings) -> None:
        """Change the settings of walking, and the timeout."""
        self._walker.change(settings)
        self._velocity.timeout = settings.cmd_timeout

    def details(self) -> dict[str, Any]:
        """Diagnostic values of walking, by name."""
        walker, counts, plan = self._walker, self._walker.counts, self._walker.plan
        command = (0.0, 0.0, 0.0) if plan is None else plan.command
        return {
            'gait': walker.gait,
            **self._velocity.details(command),
            'solver_failures': counts.failures,
            'solver_limited': counts.limited,
            'late_feet': counts.late,
            'lost_feet': counts.lost,
            'stale_plans': counts.stale_plans,
            'ignored_forces': counts.ignored_forces,
            'update_us': 1e6 * walker.times.total,
        }


def _make_walker(model: Model, settings: ModeSettings) -> Walker:
    # Imported here, because all other modes work without a solver.
    try:
        from quad_dynamics.control.walker import Walker
    except ImportError as error:
        raise ArgumentError(f'{error}; install the solver of whole-body control') from error
    return Walker(model, settings)
