# SPDX-License-Identifier: Apache-2.0
"""The topics of the robot's sensors: measurements or ground truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.ros import messages
from quad_dynamics.ros.qos import STREAM
from quad_dynamics.simulation.bag import topic_names
from quad_dynamics.simulation.odometry import odometry_covariance
from quad_dynamics.simulation.sensors import Readings
from quad_dynamics.simulation.settings import ImuSettings, OdometrySettings
from sim_node.world import World

GROUND_TRUTH = 'ground_truth/'

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # part of a ROS installation; there is no wheel
    TFMessage = None


class SensorTopics:
    """joint_states, imu/data and foot_forces.

    Attributes:
        joint_states: publisher.
        feet: publishers, in the order of the model's feet.
    """

    def __init__(self, node: Node, world: World, prefix: str = '') -> None:
        """Make the publishers.

        Args:
            node: of rclpy.
            world: the robot.
            prefix: of the topics; `GROUND_TRUTH` for readings without errors.
        """
        self._world, self._is_truth = world, bool(prefix)
        model, settings = world.model, world.settings
        self.joint_states = node.create_publisher(JointState, f'{prefix}joint_states', STREAM)
        self._joint_template = messages.joint_state(model.joint_names)
        self.feet = [
            node.create_publisher(WrenchStamped, f'{prefix}foot_forces/{name}', STREAM)
            for name in topic_names(model.foot_names)
        ]
        self._in_foot_axes = settings.foot_force_frame == 'foot'
        around = settings.odom_frame if model.floating_base else world.frame(model.base_name)
        self._foot_templates = [
            messages.wrench(world.frame(foot) if self._in_foot_axes else around) for foot in model.foot_names
        ]
        if model.floating_base:
            self._imu = node.create_publisher(Imu, f'{prefix}imu/data', STREAM)
            self.describe_errors()

    def describe_errors(self) -> None:
        """Write the errors of the IMU into its messages."""
        if not self._world.model.floating_base:
            return
        imu = self._world.settings.sensors.imu
        errors = ImuSettings() if self._is_truth else imu
        self._imu_template = messages.imu(
            self._world.frame(imu.link) if imu.link else self._world.base_frame,
            errors.orientation_noise,
            errors.angular_velocity_noise,
            errors.acceleration_noise,
        )

    def publish_joint_states(self, stamp: int, readings: Readings) -> None:
        """Publish positions, velocities and torques."""
        numbers = self._joint_template.numbers
        numbers['position'][:] = readings.joint_position
        numbers['velocity'][:] = readings.joint_velocity
        numbers['effort'][:] = readings.joint_torque
        self.joint_states.publish(self._joint_template.bytes(stamp))

    def publish_imu(self, stamp: int, readings: Readings) -> None:
        """Publish the readings of the IMU."""
        numbers = self._imu_template.numbers
        numbers['orientation'][:] = readings.imu_orientation
        numbers['angular_velocity'][:] = readings.imu_angular_velocity
        numbers['acceleration'][:] = readings.imu_acceleration
        self._imu.publish(self._imu_template.bytes(stamp))

    def publish_feet(self, stamp: int, readings: Readings) -> None:
        """Publish the forces on the feet, in the axes of `foot_force_frame`."""
        forces = np.asarray(readings.foot_forces)
        if self._in_foot_axes:
            forces = self._in_axes_of_feet(forces)
        for publisher, template, force in zip(self.feet, self._foot_templates, forces, strict=True):
            template.numbers['wrench'][:3] = force
            publisher.publish(template.bytes(stamp))

    def _in_axes_of_feet(self, forces: Floats) -> Floats:
        """(feet, 3) R_WF^T f of each foot F."""
        model, q = self._world.model, self._world.sim.q
        turned = np.zeros_like(forces)
        for i, foot in enumerate(model.foot_names):
            if forces[i].any():
                R_WF, _ = frame_pose(model, q, foot)
                turned[i] = forces[i] @ R_WF
        return turned


class OdometryTopic:
    """odom, with the covariances of its errors."""

    def __init__(self, node: Node, world: World, prefix: str = '') -> None:
        """Make the publisher; see `SensorTopics`."""
        self._world, self._is_truth = world, bool(prefix)
        self.publisher: Any = node.create_publisher(Odometry, f'{prefix}odom', STREAM)
        self._template = messages.odometry(world.settings.odom_frame, world.base_frame)

    def publish(self, stamp: int, readings: Readings) -> None:
        """Publish pose and twist of the base."""
        numbers = self._template.numbers
        numbers['pose'][:] = readings.base_pose
        numbers['twist'][:] = readings.base_twist
        if not self._is_truth:
            errors = self._world.settings.sensors.odometry
            if errors != OdometrySettings() or numbers['pose_covariance'].any():
                covariances = odometry_covariance(errors, float(self._world.sim.time))
                numbers['pose_covariance'][:], numbers['twist_covariance'][:] = covariances
        self.publisher.publish(self._template.bytes(stamp))


class Transforms:
    """odom to base on /tf: the pose of `odom`, with its errors (REP-105).

    Feet without a link in the file are published too, as children of the links whose ends they are.

    Attributes:
        exist: whether tf2_msgs is installed.
    """

    exist = TFMessage is not None

    def __init__(self, node: Node, world: World) -> None:
        """Make the publisher."""
        self._publisher = node.create_publisher(TFMessage, '/tf', STREAM)
        self._transform = TransformStamped(child_frame_id=world.base_frame)
        self._transform.header.frame_id = world.settings.odom_frame
        self._feet = [self._of_foot(world, foot) for foot in world.model.description.foot_sources]

    @staticmethod
    def _of_foot(world: World, foot: str) -> Any:
        frame = world.model.frames[foot]
        transform = TransformStamped(child_frame_id=world.frame(foot))
        transform.header.frame_id = world.frame(world.model.body_names[frame.body])
        place = transform.transform.translation
        place.x, place.y, place.z = frame.p.tolist()
        return transform

    def publish(self, stamp: int, readings: Readings) -> None:
        """Publish the pose of the base."""
        transform, pose = self._transform, readings.base_pose.tolist()
        transform.header.stamp.sec, transform.header.stamp.nanosec = divmod(stamp, 10**9)
        place, turn = transform.transform.translation, transform.transform.rotation
        place.x, place.y, place.z = pose[:3]
        turn.x, turn.y, turn.z, turn.w = pose[3:]
        for foot in self._feet:
            foot.header.stamp = transform.header.stamp
        self._publisher.publish(TFMessage(transforms=[transform, *self._feet]))
