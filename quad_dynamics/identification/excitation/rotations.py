# SPDX-License-Identifier: Apache-2.0
"""Rotations by roll, pitch and yaw, many at once: R = Rz(yaw) Ry(pitch) Rx(roll)."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats


def quaternion(angles: Floats) -> Floats:
    """(n, 4) x y z w of Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, cp, cy = np.cos(0.5 * angles).T
    sr, sp, sy = np.sin(0.5 * angles).T
    return np.stack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ],
        axis=1,
    )


def angular_motion(angles: Floats, rates: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Angular velocity and acceleration in the body's axes, each (n, 3)."""
    roll, pitch = angles[:, 0], angles[:, 1]
    dr, dp, dy = rates.T
    sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)

    def turned(a: Floats, b: Floats, c: Floats) -> Floats:
        return np.stack([a - c * sp, b * cr + c * sr * cp, -b * sr + c * cr * cp], axis=1)

    change = np.stack(
        [
            -dy * cp * dp,
            -dp * sr * dr + dy * (cr * cp * dr - sr * sp * dp),
            -dp * cr * dr + dy * (-sr * cp * dr - cr * sp * dp),
        ],
        axis=1,
    )
    return turned(dr, dp, dy), turned(*second.T) + change


def rotation_vector(R: Floats) -> Floats:
    """(n, 3) rotation vectors of rotations by less than half a turn."""
    axis = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=1)
    sine = 0.5 * np.linalg.norm(axis, axis=1)
    angle = np.arctan2(sine, 0.5 * (np.trace(R, axis1=1, axis2=2) - 1.0))
    factor = np.where(sine > 1e-9, angle / np.maximum(2.0 * sine, 1e-12), 0.5)
    return np.asarray(axis * factor[:, None])
