# SPDX-License-Identifier: Apache-2.0
"""Parameters that force_node and planner_node share."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.modes.settings import CommandedSettings
from quad_dynamics.parameters.parameter import param


@dataclass(frozen=True)
class StateNodeSettings(CommandedSettings):
    """Settings of how a node receives robot states and commands."""

    robot: str = param('mini_cheetah', 'bundled robot, or path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    lock_step: bool = param(
        False,
        'process every state, once odom and foot_forces with the stamp of joint_states have arrived; '
        'independent of any clock',
    )
    state_timeout: float = param(
        0.1,
        'time without joint_states after which force_node damps the joints and planner_node stops planning; '
        'also how much older odom may be than joint_states',
        unit='s',
        low=0.01,
        high=10.0,
        dynamic=True,
    )
    cmd_vel_stamped: bool = param(False, 'cmd_vel is a TwistStamped instead of a Twist; its stamp is ignored')
    world_frame: str = param('odom', 'frame_id of odom, and of messages published in world axes')
    base_frame: str = param('', 'child_frame_id of odom; empty: the base link, with any prefix')
    real_time_priority: bool = param(
        True,
        'request real-time priority, if the system allows it and enough CPU time is left for others; '
        'never in lock-step',
    )
