# SPDX-License-Identifier: Apache-2.0
"""Makes plans for states: the planner, the age of the command, and fault handling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from quad_dynamics.api.drives import resting_pose
from quad_dynamics.control.faults import FaultHandler
from quad_dynamics.control.gait_planner import GaitPlanner
from quad_dynamics.control.jumps import LONGEST_GAP, JumpDetector
from quad_dynamics.control.modes.settings import CommandedSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.velocity_command import VelocityCommand
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan


class PlanMaker:
    """Plans for one state after the other.

    Attributes:
        plan: the last one; None before the first, and after the robot was teleported.
        plans: number of plans.
        jumps: how often the robot was teleported, or time was reset.
        last_jump: description.
    """

    def __init__(self, model: Model, settings: CommandedSettings, on_fault: FaultHandler) -> None:
        """Prepare everything.

        Args:
            model: a quadruped with a standing pose.
            settings: all settings.
            on_fault: called with kind and text of each fault.

        Raises:
            ArgumentError: the settings are invalid for the robot.
        """
        self._planner = GaitPlanner(model, settings)
        self._velocity = VelocityCommand(self._planner, settings.cmd_timeout)
        self._jumps = JumpDetector(model)
        self._on_fault = on_fault
        self.plans, self.jumps, self.last_jump = 0, 0, ''
        self._before: RobotState | None = None
        self.plan: MotionPlan | None = None
        self._warm_up(model, settings.plan_period)
        self._velocity.stop()

    def _warm_up(self, model: Model, period: float) -> None:
        """Stand and walk once, so that the first plan takes no longer than later ones."""
        at_rest = _at_rest(model)
        self._planner.reset(at_rest)
        for number, velocity in enumerate((0.0, 0.1 * self._planner.largest_command[0])):
            self._planner.command(velocity, 0.0, 0.0)
            self._planner.update(replace(at_rest, time=number * period))
        self._planner.reset(at_rest)

    def lacks_states(self) -> None:
        """Note that no states arrive; commands for an earlier time are discarded."""
        self.plan = None
        self._velocity.stop()

    def update(self, state: RobotState) -> MotionPlan | None:
        """A plan if one is due; errors are counted, and the planner restarts."""
        before, self._before = self._before, state
        jump = '' if before is None else self._jumps.check(before, state)
        if jump:
            self.jumps, self.last_jump = self.jumps + 1, jump
            self._velocity.stop()
        # After a gap, the planner itself waits until the robot has come to rest.
        if before is None or (jump and state.time - before.time <= LONGEST_GAP):
            self.plan = None
            self._planner.reset(state)
        self._velocity.watch(state.time)
        try:
            plan = self._planner.update(state)
        except Exception as error:  # any error: the next state may work
            self._on_fault('exception', f'{type(error).__name__}: {error}')
            self._before = None
            return None
        if plan is not None:
            self.plan = plan
            self.plans += 1
        return plan

    def velocity(self, vx: float, vy: float, wz: float) -> None:
        """Take a walking velocity [m/s, m/s, rad/s].

        Raises:
            ArgumentError: a value is not finite.
        """
        limited = self._velocity.take(vx, vy, wz)
        if limited:
            self._on_fault('limited_cmd_vel', limited)

    def change(self, settings: CommandedSettings) -> None:
        """Change settings.

        Raises:
            ArgumentError: the settings are invalid for the robot; nothing has changed.
        """
        self._planner.change(settings)
        self._velocity.timeout = settings.cmd_timeout

    @property
    def gait(self) -> str:
        """Name of the gait."""
        return self._planner.gait

    @property
    def phase(self) -> str:
        """'walk', 'stop' or 'stand'."""
        return self._planner.phase

    def details(self) -> dict[str, Any]:
        """Diagnostic values of planning, by name."""
        planner, plan = self._planner, self.plan
        command = (0.0, 0.0, 0.0) if plan is None else plan.command
        return {
            'gait': planner.gait,
            'phase': planner.phase,
            **self._velocity.details(command),
            'plans': self.plans,
            'failed_plans': planner.counts.plan_failures,
            'kept_plans': planner.counts.kept_plans,
            'zmp_slack': 0.0 if plan is None else plan.zmp_slack,
            'horizon': 0.0 if plan is None else plan.end - plan.time,
            'jumps': self.jumps,
            'last_jump': self.last_jump,
        }


def _at_rest(model: Model) -> RobotState:
    """The robot in its standing pose."""
    weight = model.total_mass * 9.81 / max(len(model.foot_names), 1)
    feet = np.tile([0.0, 0.0, weight], (len(model.foot_names), 1))
    return RobotState(0.0, resting_pose(model), np.zeros(model.nv), feet, np.zeros(model.nj))
