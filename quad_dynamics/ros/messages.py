# SPDX-License-Identifier: Apache-2.0
"""The messages that nodes publish many times a second, as templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from geometry_msgs.msg import Point, Quaternion, Vector3, Wrench, WrenchStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState

from quad_dynamics.array_types import Floats
from quad_dynamics.ros.cdr import FIELDS, Template

Numbers = Mapping[str, Floats]


def joint_state(joint_names: Sequence[str], fields: Sequence[str] = FIELDS) -> Template:
    """sensor_msgs/JointState with some of the fields 'position', 'velocity', 'effort'."""

    def make(numbers: Numbers) -> Any:
        return JointState(name=list(joint_names), **{name: x.tolist() for name, x in numbers.items()})

    return Template(make, dict.fromkeys(fields, len(joint_names)))


def odometry(frame: str, child_frame: str) -> Template:
    """nav_msgs/Odometry: 'pose' is position and quaternion, 'twist' is linear and angular velocity.

    'pose_covariance' and 'twist_covariance' have 36 numbers each.
    """

    def make(numbers: Numbers) -> Any:
        message = Odometry(child_frame_id=child_frame)
        message.header.frame_id = frame
        pose, twist = numbers['pose'].tolist(), numbers['twist'].tolist()
        message.pose.pose.position = Point(**_axes('xyz', pose[:3]))
        message.pose.pose.orientation = Quaternion(**_axes('xyzw', pose[3:]))
        message.twist.twist.linear = Vector3(**_axes('xyz', twist[:3]))
        message.twist.twist.angular = Vector3(**_axes('xyz', twist[3:]))
        message.pose.covariance = numbers['pose_covariance']
        message.twist.covariance = numbers['twist_covariance']
        return message

    return Template(make, {'pose': 7, 'twist': 6, 'pose_covariance': 36, 'twist_covariance': 36})


def imu(frame: str, orientation_noise: float, velocity_noise: float, acceleration_noise: float) -> Template:
    """sensor_msgs/Imu with 'orientation', 'angular_velocity' and 'acceleration'.

    Args:
        frame: link that carries the IMU.
        orientation_noise: standard deviation of each axis [rad]; likewise for the others.
        velocity_noise: [rad/s].
        acceleration_noise: [m/s^2].
    """

    def make(numbers: Numbers) -> Any:
        message = Imu()
        message.header.frame_id = frame
        message.orientation = Quaternion(**_axes('xyzw', numbers['orientation'].tolist()))
        message.angular_velocity = Vector3(**_axes('xyz', numbers['angular_velocity'].tolist()))
        message.linear_acceleration = Vector3(**_axes('xyz', numbers['acceleration'].tolist()))
        message.orientation_covariance = _diagonal(orientation_noise)
        message.angular_velocity_covariance = _diagonal(velocity_noise)
        message.linear_acceleration_covariance = _diagonal(acceleration_noise)
        return message

    return Template(make, {'orientation': 4, 'angular_velocity': 3, 'acceleration': 3})


def wrench(frame: str) -> Template:
    """geometry_msgs/WrenchStamped: 'wrench' is force and torque."""

    def make(numbers: Numbers) -> Any:
        x = numbers['wrench'].tolist()
        both = Wrench(force=Vector3(**_axes('xyz', x[:3])), torque=Vector3(**_axes('xyz', x[3:])))
        message = WrenchStamped(wrench=both)
        message.header.frame_id = frame
        return message

    return Template(make, {'wrench': 6})


def clock() -> Template:
    """rosgraph_msgs/Clock: nothing but a stamp."""
    return Template(lambda numbers: Clock(), {})


def _axes(letters: str, values: Sequence[float]) -> dict[str, float]:
    return dict(zip(letters, values, strict=True))


def _diagonal(deviation: float) -> list[float]:
    return [deviation**2 if i in (0, 4, 8) else 0.0 for i in range(9)]
