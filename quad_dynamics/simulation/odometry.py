# SPDX-License-Identifier: Apache-2.0
"""Odometry of the base: pose in the world, twist in base axes, and their covariances."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.simulation.imu import rotated_back, turned
from quad_dynamics.simulation.settings import OdometrySettings


def true_odometry(q: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Pose (..., 7) [m, x y z w] and twist (..., 6) [m/s, rad/s] of a floating base.

    Args:
        q: (..., nq) configuration.
        u: (..., nv) velocity; its linear part is in world axes, that of the twist in base axes.
    """
    linear = rotated_back(q[..., 3:7], u[..., :3])
    return np.array(q[..., :7]), np.concatenate([linear, u[..., 3:6]], axis=-1)


def turned_about_vertical(orientation: Floats, angle: float) -> Floats:
    """The orientation (4,) x y z w after a rotation about the vertical of the world [rad]."""
    return turned(orientation, rotated_back(orientation, np.array([0.0, 0.0, angle])))


def odometry_covariance(settings: OdometrySettings, time: float) -> tuple[Floats, Floats]:
    """Covariances of pose and twist, each (36,) row by row: x, y, z, rotations about x, y, z.

    The covariance of the pose is in the axes of odom and grows with drift; that of the twist is in base axes.

    Args:
        settings: errors of the odometry.
        time: since the reset [s].
    """
    turn = settings.orientation_noise**2
    position = settings.position_noise**2 + settings.position_walk**2 * time
    yaw = turn + settings.yaw_walk**2 * time
    linear, angular = settings.linear_velocity_noise**2, settings.angular_velocity_noise**2
    pose = np.diag([position, position, position, turn, turn, yaw]).ravel()
    return pose, np.diag([linear] * 3 + [angular] * 3).ravel()
