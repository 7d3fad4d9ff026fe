# SPDX-License-Identifier: Apache-2.0
"""Parameters of force_node: those of the modes, and these."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param


@dataclass(frozen=True)
class ForceSettings(ModeSettings):
    """Everything that can be set about force_node."""

    robot: str = param('mini_cheetah', 'bundled robot, or the path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    lock_step: bool = param(
        False, 'wait for odom and foot_forces of the stamp of joint_states, and let no clock decide anything'
    )
    state_timeout: float = param(
        0.1,
        'without joint_states after which the joints are damped; also how much older odom may be',
        unit='s',
        low=0.01,
        high=10.0,
        dynamic=True,
    )
    cmd_vel_stamped: bool = param(
        False, 'cmd_vel is a TwistStamped, and not a Twist; its stamp is not looked at'
    )
    output: str = param(
        'joint_state',
        'joint_state: joint_torques; float64_multi_array: effort_controller/commands, for an effort '
        'controller of ros2_control',
        choices=('joint_state', 'float64_multi_array'),
    )
    feedback: str = param(
        'drive',
        'who adds kp (q - q_j) + kd (qd - qd_j): the drives, which get the targets, or the node, which sends '
        'torques alone',
        choices=('drive', 'node'),
    )
    world_frame: str = param('odom', 'frame_id of odom, and of foot_forces in world axes')
    base_frame: str = param('', 'child_frame_id of odom; none: the base link, with any prefix')
    frame_prefix: str = param('', 'before the names of links in messages that are published')
    foot_force_frame: str = param(
        'foot',
        'frame and axes of foot_forces_estimated; foot: of each foot, so that RViz draws them there; odom: '
        'world axes, in world_frame. Of foot_forces both are understood, by their frame_id',
        choices=('foot', 'odom'),
    )
    real_time_priority: bool = param(
        True,
        'ask for real-time priority, where the system allows it and enough of the machine is left to others; '
        'never in lock-step',
    )
    estimate_rate: float = param(
        100.0, 'of foot_forces_estimated', unit='Hz', above=0.0, high=1000.0, dynamic=True
    )

    def _across(self) -> list[str]:
        problems = super()._across() + frame_problems(self, ('world_frame', 'base_frame', 'frame_prefix'))
        if self.output == 'float64_multi_array':
            if self.feedback != 'node':
                problems.append(
                    f"feedback is {self.feedback!r}; expected 'node', for output float64_multi_array has no "
                    'targets'
                )
            if self.lock_step:
                problems.append(
                    'lock_step is true; expected false, for output float64_multi_array has no stamps'
                )
        return problems
