# SPDX-License-Identifier: Apache-2.0
"""Parameters of planner_node: those of walking, and these."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.modes.settings import CommandedSettings
from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param


@dataclass(frozen=True)
class PlannerSettings(CommandedSettings):
    """Everything that can be set about planner_node."""

    robot: str = param('mini_cheetah', 'bundled robot, or the path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    plan_time_limit: float = param(
        0.015,
        'wall-clock time after which no further quadratic program of a plan begins; 0: none; not used in '
        'lock-step',
        unit='s',
        low=0.0,
        high=1.0,
    )
    lock_step: bool = param(
        False, 'plan for every state of a run in lock-step, and let no clock decide anything'
    )
    state_timeout: float = param(
        0.1,
        'without joint_states after which there are no plans; also how much older odom may be',
        unit='s',
        low=0.01,
        high=10.0,
        dynamic=True,
    )
    cmd_vel_stamped: bool = param(
        False, 'cmd_vel is a TwistStamped, and not a Twist; its stamp is not looked at'
    )
    world_frame: str = param('odom', 'frame_id of odom, and of plans and markers')
    base_frame: str = param('', 'child_frame_id of odom; none: the base link, with any prefix')
    markers_rate: float = param(
        20.0, 'of plan_markers, in the time of joint_states', unit='Hz', above=0.0, high=1000.0, dynamic=True
    )

    real_time_priority: bool = param(
        True,
        'ask for real-time priority, below that of sim_node and force_node, where the system allows it and '
        'enough of the machine is left to others; never in lock-step',
    )

    def _across(self) -> list[str]:
        problems = super()._across() + frame_problems(self, ('world_frame', 'base_frame'))
        if self.planner != 'com_splines':
            problems.append(
                f"planner is {self.planner!r}; expected 'com_splines': others make no plans to send"
            )
        return problems
