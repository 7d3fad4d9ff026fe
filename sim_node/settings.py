# SPDX-License-Identifier: Apache-2.0
"""Parameters of sim_node, in addition to those of the simulator."""

from __future__ import annotations

from dataclasses import dataclass, fields

from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param
from quad_dynamics.simulation.settings import SimulatorSettings


@dataclass(frozen=True)
class SimNodeSettings(SimulatorSettings):
    """Parameters of sim_node."""

    robot: str = param('mini_cheetah', 'bundled robot, or path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    initial_pose: str = param('lying', 'initial pose of the robot', choices=('lying', 'standing'))
    real_time_factor: float = param(
        1.0,
        'simulated time over wall time, at least 0.05; 0: as fast as possible',
        unit='-',
        low=0.0,
        high=1000.0,
        dynamic=True,
    )
    start_paused: bool = param(False, 'start paused; ~/pause or ~/step starts time')
    wait_for_commands: bool = param(False, 'start time with the first command')
    lock_step: bool = param(False, 'advance one control period per command, and never without one')
    lock_step_partners: tuple[str, ...] = param(
        (),
        'nodes that must be connected before lock-step starts: subscribed to joint_states, and connected to '
        'commands or publishing plans; empty: any node',
        kind='texts',
    )
    control_period: float = param(
        2e-3, 'time by which lock-step and ~/step advance', unit='s', above=0.0, high=1.0
    )
    command_timeout: float = param(
        0.25, 'time without commands after which drives damp', unit='s', low=0.01, high=10.0, dynamic=True
    )
    command_type: str = param(
        'joint_state',
        'joint_state: use joint_torques; float64_multi_array: use effort_controller/commands, like an effort '
        'controller of ros2_control',
        choices=('joint_state', 'float64_multi_array'),
    )
    kp: tuple[float, ...] = param(
        (),
        'position gain of the drives: one per joint, or one for all; empty: computed from the weight',
        kind='numbers',
        unit='N m/rad',
        low=0.0,
        dynamic=True,
    )
    kd: tuple[float, ...] = param(
        (),
        'velocity gain of the drives, likewise',
        kind='numbers',
        unit='N m s/rad',
        low=0.0,
        dynamic=True,
    )
    push_duration: float = param(
        0.1, 'duration of a wrench on `push`', unit='s', above=0.0, high=10.0, dynamic=True
    )
    joint_states_rate: float = param(500.0, 'rate of joint_states', unit='Hz', above=0.0, high=10_000.0)
    imu_rate: float = param(500.0, 'rate of imu/data', unit='Hz', above=0.0, high=10_000.0)
    odom_rate: float = param(250.0, 'rate of odom', unit='Hz', above=0.0, high=10_000.0)
    foot_forces_rate: float = param(250.0, 'rate of foot_forces', unit='Hz', above=0.0, high=10_000.0)
    clock_rate: float = param(250.0, 'rate of /clock', unit='Hz', above=0.0, high=10_000.0)
    tf_rate: float = param(50.0, 'rate of /tf', unit='Hz', above=0.0, high=10_000.0)
    markers_rate: float = param(20.0, 'rate of markers, in simulated time', unit='Hz', above=0.0, high=1000.0)
    publish_clock: bool = param(True, 'publish /clock')
    publish_description: bool = param(True, 'publish robot_description')
    publish_odom: bool = param(
        True, 'publish odom; false: leave it to a state estimator and publish ground_truth/odom'
    )
    publish_tf: bool = param(True, 'publish odom_frame to base_frame on /tf')
    odom_frame: str = param('odom', 'world frame of odom, /tf and markers')
    base_frame: str = param('', 'child frame of odom and /tf; empty: the base link, with frame_prefix')
    frame_prefix: str = param(
        '', "prefix of link names in messages, as in robot_state_publisher; for example 'robot1/'"
    )
    foot_force_frame: str = param(
        'foot',
        'frame and axes of foot_forces; foot: the link of each foot, where RViz draws them; odom: world '
        'axes, in odom_frame',
        choices=('foot', 'odom'),
    )
    real_time_priority: bool = param(
        True,
        'request real-time priority, if the system allows it, the loop keeps real time, and enough CPU time '
        'is left for others',
    )
    force_scale: float = param(
        0.0,
        'arrow length per newton; 0: the weight is drawn as long as the robot is tall',
        unit='m/N',
        low=0.0,
        high=1.0,
    )

    def _across(self) -> list[str]:
        problems = super()._across()
        if 0.0 < self.real_time_factor < 0.05:
            problems.append(
                f'real_time_factor is {self.real_time_factor:g}; expected 0 (as fast as possible) or at '
                'least 0.05: with longer pauses, controllers would time out'
            )
        return problems + frame_problems(self, ('odom_frame', 'base_frame', 'frame_prefix'))

    def simulator(self) -> SimulatorSettings:
        """The settings of the simulator."""
        return SimulatorSettings(
            **{item.name: getattr(self, item.name) for item in fields(SimulatorSettings)}
        )
