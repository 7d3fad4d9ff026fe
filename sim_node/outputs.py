# SPDX-License-Identifier: Apache-2.0
"""What sim_node publishes about the robot, each at its rate of simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from quad_dynamics.ros import messages
from quad_dynamics.ros.qos import LATCHED, STREAM
from quad_dynamics.simulation.bag import WORLD_FRAME, topic_names
from quad_dynamics.simulation.imu import rotated_back
from quad_dynamics.simulation.sensors import Readings
from quad_dynamics.simulation.settings import ImuSettings
from sim_node.world import World

GROUND_TRUTH = 'ground_truth/'

try:
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage
except ImportError:  # no wheel of it exists; with a ROS installation it is there
    TFMessage = None


class Outputs:
    """The topics of the robot's state.

    Attributes:
        before_joint_states: called when all else that is due has been published.
        on_joint_states: called with the stamp of joint states that were published [ns].
    """

    def __init__(self, node: Node, world: World) -> None:
        """Make the publishers.

        Raises:
            ArgumentError: a rate that is no whole fraction of that of the time steps.
        """
        self._node, self._world = node, world
        settings = world.settings
        self._measured = _Sensors(node, world, '')
        self._truth = _Sensors(node, world, GROUND_TRUTH) if world.has_noise else None
        control = world.control_steps
        rates = {
            'joint_states_rate': self._joint_states,
            'imu_rate': self._imu,
            'odom_rate': self._odom,
            'foot_forces_rate': self._foot_forces,
        }
        # In lock-step a controller gets all that it needs for each of its commands.
        self._due: list[tuple[int, Callable[[int], None]]] = [
            (control if settings.lock_step else world.every(getattr(settings, name), name), publish)
            for name, publish in rates.items()
        ]
        if settings.publish_clock:
            self._clock = node.create_publisher(Clock, '/clock', STREAM)
            self._clock_template = messages.clock()
            self._due.append((world.every(settings.clock_rate, 'clock_rate'), self._publish_clock))
        if TFMessage is not None and world.model.floating_base:
            self._tf = node.create_publisher(TFMessage, '/tf', STREAM)
            self._due.append((world.every(settings.tf_rate, 'tf_rate'), self._publish_tf))
        self._due.append(self._due.pop(0))  # who is woken by joint_states finds the rest there already
        if settings.publish_description:
            description = node.create_publisher(String, 'robot_description', LATCHED)
            description.publish(String(data=world.model.to_urdf()))
        self._readings: tuple[int, tuple[Readings, Readings | None]] | None = None
        self.before_joint_states: Callable[[], None] = lambda: None
        self.on_joint_states: Callable[[int], None] = lambda stamp_ns: None

    @property
    def state_topics(self) -> list[Any]:
        """The publishers of what a controller needs."""
        return [self._measured.joint_states, *filter(None, [self._measured.odom]), *self._measured.feet]

    def change_sensors(self) -> None:
        """The sensors have other errors: publish those, and the truth where they have any."""
        self._measured.describe_errors()
        if self._world.has_noise and self._truth is None:
            self._truth = _Sensors(self._node, self._world, GROUND_TRUTH)

    def publish(self, everything: bool = False) -> None:
        """Publish what is due after the time step that was made last.

        Args:
            everything: whether or not it is due.
        """
        step, stamp = self._world.sim.step_count, self._world.now_ns
        self._readings = None
        for every, publish in self._due:
            if everything or step % every == 0:
                publish(stamp)

    def _read(self) -> tuple[Readings, Readings | None]:
        """The readings of now, taken once."""
        step = self._world.sim.step_count
        if self._readings is None or self._readings[0] != step:
            self._readings = step, self._world.readings()
        return self._readings[1]

    def _of_both(self, stamp: int, publish: str) -> None:
        measured, truth = self._read()
        getattr(self._measured, publish)(stamp, measured)
        if truth is not None and self._truth is not None:
            getattr(self._truth, publish)(stamp, truth)

    def _joint_states(self, stamp: int) -> None:
        self.before_joint_states()
        self._of_both(stamp, 'publish_joint_states')
        self._world.torques.clear()
        self.on_joint_states(stamp)

    def _imu(self, stamp: int) -> None:
        if self._world.model.floating_base:
            self._of_both(stamp, 'publish_imu')

    def _odom(self, stamp: int) -> None:
        if self._world.model.floating_base:
            self._of_both(stamp, 'publish_odom')

    def _foot_forces(self, stamp: int) -> None:
        self._of_both(stamp, 'publish_feet')
        self._world.forces.clear()

    def _publish_clock(self, stamp: int) -> None:
        self._clock.publish(self._clock_template.bytes(stamp))

    def _publish_tf(self, stamp: int) -> None:
        q = self._world.sim.q.tolist()
        transform = TransformStamped(child_frame_id=self._world.model.base_name)
        transform.header.frame_id = WORLD_FRAME
        transform.header.stamp.sec, transform.header.stamp.nanosec = divmod(stamp, 10**9)
        place, turn = transform.transform.translation, transform.transform.rotation
        place.x, place.y, place.z = q[:3]
        turn.x, turn.y, turn.z, turn.w = q[3:7]
        self._tf.publish(TFMessage(transforms=[transform]))


class _Sensors:
    """The topics of one set of sensors: the measured ones, or the truth."""

    def __init__(self, node: Node, world: World, prefix: str) -> None:
        model = world.model
        self._world = world
        self.joint_states = node.create_publisher(JointState, f'{prefix}joint_states', STREAM)
        self._joint_template = messages.joint_state(model.joint_names)
        names = topic_names(model.foot_names)
        self.feet = [
            node.create_publisher(WrenchStamped, f'{prefix}foot_forces/{name}', STREAM) for name in names
        ]
        self._foot_template = messages.wrench(WORLD_FRAME if model.floating_base else model.base_name)
        self.odom: Any = None
        if model.floating_base:
            self.odom = node.create_publisher(Odometry, f'{prefix}odom', STREAM)
            self._odom_template = messages.odometry(WORLD_FRAME, model.base_name)
            self._imu = node.create_publisher(Imu, f'{prefix}imu/data', STREAM)
            self._is_truth = bool(prefix)
            self.describe_errors()

    def describe_errors(self) -> None:
        """Write the errors of the IMU into its messages."""
        imu = self._world.settings.sensors.imu
        errors = ImuSettings() if self._is_truth else imu
        self._imu_template = messages.imu(
            imu.link or self._world.model.base_name,
            errors.orientation_noise,
            errors.angular_velocity_noise,
            errors.acceleration_noise,
        )

    def publish_joint_states(self, stamp: int, readings: Readings) -> None:
        numbers = self._joint_template.numbers
        numbers['position'][:] = readings.joint_position
        numbers['velocity'][:] = readings.joint_velocity
        numbers['effort'][:] = readings.joint_torque
        self.joint_states.publish(self._joint_template.bytes(stamp))

    def publish_imu(self, stamp: int, readings: Readings) -> None:
        numbers = self._imu_template.numbers
        numbers['orientation'][:] = readings.imu_orientation
        numbers['angular_velocity'][:] = readings.imu_angular_velocity
        numbers['acceleration'][:] = readings.imu_acceleration
        self._imu.publish(self._imu_template.bytes(stamp))

    def publish_odom(self, stamp: int, readings: Readings) -> None:
        q, u = self._world.sim.q, self._world.sim.u
        numbers = self._odom_template.numbers
        numbers['pose'][:] = q[:7]
        numbers['twist'][:3] = rotated_back(q[3:7], u[:3])
        numbers['twist'][3:] = u[3:6]
        self.odom.publish(self._odom_template.bytes(stamp))

    def publish_feet(self, stamp: int, readings: Readings) -> None:
        force = self._foot_template.numbers['wrench'][:3]
        for publisher, value in zip(self.feet, np.asarray(readings.foot_forces), strict=True):
            force[:] = value
            publisher.publish(self._foot_template.bytes(stamp))
