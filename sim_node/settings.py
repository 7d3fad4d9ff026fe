# SPDX-License-Identifier: Apache-2.0
"""Parameters of sim_node: those of the simulator, and these."""

from __future__ import annotations

from dataclasses import dataclass, fields

from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param
from quad_dynamics.simulation.settings import SimulatorSettings


@dataclass(frozen=True)
class SimNodeSettings(SimulatorSettings):
    """Everything that can be set about sim_node."""

    robot: str = param('mini_cheetah', 'bundled robot, or the path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    initial_pose: str = param('lying', 'how the robot begins', choices=('lying', 'standing'))
    real_time_factor: float = param(
        1.0,
        'simulated time over wall time, at least 0.05; 0: as fast as possible',
        unit='-',
        low=0.0,
        high=1000.0,
        dynamic=True,
    )
    start_paused: bool = param(False, 'wait for ~/pause or ~/step before time begins')
    wait_for_commands: bool = param(False, 'time begins with the first command')
    lock_step: bool = param(False, 'advance one control period for each command, and never without one')
    lock_step_partners: tuple[str, ...] = param(
        (),
        'nodes that must hear joint_states, and hear or give commands, or give plans, before lock-step '
        'begins; none: any',
        kind='texts',
    )
    control_period: float = param(2e-3, 'what lock-step and ~/step advance by', unit='s', above=0.0, high=1.0)
    command_timeout: float = param(
        0.25, 'drives damp when no command came for so long', unit='s', low=0.01, high=10.0, dynamic=True
    )
    command_type: str = param(
        'joint_state',
        'joint_state: joint_torques; float64_multi_array: effort_controller/commands, in place of an effort '
        'controller of ros2_control',
        choices=('joint_state', 'float64_multi_array'),
    )
    kp: tuple[float, ...] = param(
        (),
        'gain of the drives on positions: for each joint, or one for all; none: by the weight of the robot',
        kind='numbers',
        unit='N m/rad',
        low=0.0,
        dynamic=True,
    )
    kd: tuple[float, ...] = param(
        (),
        'gain of the drives on velocities, likewise',
        kind='numbers',
        unit='N m s/rad',
        low=0.0,
        dynamic=True,
    )
    push_duration: float = param(
        0.1, 'for how long a wrench on `push` acts', unit='s', above=0.0, high=10.0, dynamic=True
    )
    joint_states_rate: float = param(500.0, 'of joint_states', unit='Hz', above=0.0, high=10_000.0)
    imu_rate: float = param(500.0, 'of imu/data', unit='Hz', above=0.0, high=10_000.0)
    odom_rate: float = param(250.0, 'of odom', unit='Hz', above=0.0, high=10_000.0)
    foot_forces_rate: float = param(250.0, 'of foot_forces', unit='Hz', above=0.0, high=10_000.0)
    clock_rate: float = param(250.0, 'of /clock', unit='Hz', above=0.0, high=10_000.0)
    tf_rate: float = param(50.0, 'of /tf', unit='Hz', above=0.0, high=10_000.0)
    markers_rate: float = param(20.0, 'of markers, in simulated time', unit='Hz', above=0.0, high=1000.0)
    publish_clock: bool = param(True, 'whether to publish /clock')
    publish_description: bool = param(True, 'whether to publish robot_description')
    publish_odom: bool = param(
        True, 'whether to publish odom; false leaves that to an estimator: there is ground_truth/odom then'
    )
    publish_tf: bool = param(True, 'whether to publish odom_frame to base_frame on /tf')
    odom_frame: str = param('odom', 'frame in which the robot moves; of odom, /tf and markers')
    base_frame: str = param('', 'child frame of odom and /tf; none: the base link, with frame_prefix')
    frame_prefix: str = param(
        '', "before the names of links in messages, as of robot_state_publisher; such as 'robot1/'"
    )
    foot_force_frame: str = param(
        'foot',
        'frame and axes of foot_forces; foot: of each foot, so that RViz draws them there; odom: world axes, '
        'in odom_frame',
        choices=('foot', 'odom'),
    )
    real_time_priority: bool = param(
        True,
        'ask for real-time priority, where the system allows it, the loop keeps real time, and enough of the '
        'machine is left to others',
    )
    force_scale: float = param(
        0.0,
        'length of the arrow for 1 N; 0: the weight is as long as the robot is high',
        unit='m/N',
        low=0.0,
        high=1.0,
    )

    def _across(self) -> list[str]:
        problems = super()._across()
        if 0.0 < self.real_time_factor < 0.05:
            problems.append(
                f'real_time_factor is {self.real_time_factor:g}; expected 0 (as fast as possible) or at '
                'least 0.05: a controller takes longer silence for death'
            )
        return problems + frame_problems(self, ('odom_frame', 'base_frame', 'frame_prefix'))

    def simulator(self) -> SimulatorSettings:
        """The part that is the simulator's."""
        return SimulatorSettings(
            **{item.name: getattr(self, item.name) for item in fields(SimulatorSettings)}
        )
