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
    """Parameters of force_node."""

    output: str = param(
        'joint_state',
        'joint_state: publish joint_torques; float64_multi_array: publish effort_controller/commands, for an '
        'effort controller of ros2_control',
        choices=('joint_state', 'float64_multi_array'),
    )
    feedback: str = param(
        'drive',
        'where kp (q - q_j) + kd (qd - qd_j) is computed: in the drives, which receive the targets, or in '
        'the node, which sends torques only',
        choices=('drive', 'node'),
    )
    frame_prefix: str = param('', 'prefix of link names in published messages')
    foot_force_frame: str = param(
        'foot',
        'frame and axes of foot_forces_estimated; foot: the link of each foot, where RViz draws them; odom: '
        'world axes, in world_frame. For foot_forces, frame_id decides',
        choices=('foot', 'odom'),
    )
    estimate_rate: float = param(
        100.0, 'rate of foot_forces_estimated', unit='Hz', above=0.0, high=1000.0, dynamic=True
    )

    def _across(self) -> list[str]:
        problems = super()._across() + frame_problems(self, ('world_frame', 'base_frame', 'frame_prefix'))
        if self.output == 'float64_multi_array':
            if self.feedback != 'node':
                problems.append(
                    f"feedback is {self.feedback!r}; expected 'node', since output float64_multi_array has "
                    'no targets'
                )
            if self.lock_step:
                problems.append(
                    'lock_step is true; expected false, since output float64_multi_array has no stamps'
                )
        return problems
