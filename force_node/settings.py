# SPDX-License-Identifier: Apache-2.0
"""Parameters of force_node: those of the modes, of nodes that work on states, and these."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param
from quad_dynamics.ros.state_settings import StateNodeSettings


@dataclass(frozen=True)
class ForceSettings(StateNodeSettings, ModeSettings):
    """Everything that can be set about force_node."""

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
    frame_prefix: str = param('', 'before the names of links in messages that are published')
    foot_force_frame: str = param(
        'foot',
        'frame and axes of foot_forces_estimated; foot: of each foot, so that RViz draws them there; odom: '
        'world axes, in world_frame. Of foot_forces both are understood, by their frame_id',
        choices=('foot', 'odom'),
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
