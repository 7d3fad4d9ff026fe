# SPDX-License-Identifier: Apache-2.0
"""Parameters that force_node and planner_node share."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.modes.settings import CommandedSettings
from quad_dynamics.parameters.parameter import param


@dataclass(frozen=True)
class StateNodeSettings(CommandedSettings):
    """Everything that can be set about how a node gets the states of a robot, and commands."""

    robot: str = param('mini_cheetah', 'bundled robot, or the path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    lock_step: bool = param(
        False,
        'answer every state, when odom and foot_forces with the stamp of joint_states are there, and let no '
        'clock decide anything',
    )
    state_timeout: float = param(
        0.1,
        'without joint_states after which the state is unknown: force_node damps the joints, planner_node '
        'makes no plans; also how much older odom may be',
        unit='s',
        low=0.01,
        high=10.0,
        dynamic=True,
    )
    cmd_vel_stamped: bool = param(
        False, 'cmd_vel is a TwistStamped, and not a Twist; its stamp is not looked at'
    )
    world_frame: str = param('odom', 'frame_id of odom, and of what is published in world axes')
    base_frame: str = param('', 'child_frame_id of odom; none: the base link, with any prefix')
    real_time_priority: bool = param(
        True,
        'ask for real-time priority, where the system allows it and enough of the machine is left to others; '
        'never in lock-step',
    )
