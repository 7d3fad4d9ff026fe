# SPDX-License-Identifier: Apache-2.0
"""Error-free measurements of an inertial measurement unit (IMU) on a link."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.kinematics import (
    frame_bias_acceleration,
    frame_jacobian,
    frame_pose,
    frame_velocity,
)
from quad_dynamics.array_types import Floats
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.settings import ImuSettings


def imu_truth(
    model: Model, imu: ImuSettings, q: Floats, u: Floats, du: Floats, gravity: npt.ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Specific force, angular velocity and orientation at the IMU, of one state or of several.

    The specific force is R_WF^T (a_P - g), with the acceleration of the IMU's point P on the link F:
    a_P = a_F + alpha x p + w x (w x p).

    Args:
        model: robot.
        imu: placement of the IMU.
        q: (nq,) configuration.
        u: (nv,) velocity.
        du: (nv,) acceleration.
        gravity: (3,) in world axes [m/s^2].

    Returns:
        Specific force (3,) [m/s^2] and angular velocity (3,) [rad/s] in IMU axes, quaternion (4,) x y z w.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    link = imu.link or model.base_name
    R_WF, _ = frame_pose(model, q, link)
    motion = frame_jacobian(model, q, link) @ du[..., None]
    acceleration = motion[..., 0] + frame_bias_acceleration(model, q, u, link)
    w = frame_velocity(model, q, u, link)[..., 3:]
    a = acceleration[..., :3] - np.asarray(gravity, dtype=np.float64)
    if any(imu.position):
        p = R_WF @ np.array(imu.position)
        a = a + _cross(acceleration[..., 3:], p) + _cross(w, _cross(w, p))
    R_FW = np.swapaxes(R_WF, -1, -2)
    specific_force: Floats = (R_FW @ a[..., None])[..., 0]
    angular_velocity: Floats = (R_FW @ w[..., None])[..., 0]
    return specific_force, angular_velocity, _orientation(model, link, q, R_WF)


def _orientation(model: Model, link: str, q: Floats, R_WF: Floats) -> Floats:
    """(4,) x y z w: for the base that in q; for another link with w >= 0."""
    if model.floating_base and link == model.base_name:
        quaternion = np.array(q[..., 3:7])
        quaternion /= np.sqrt(np.sum(quaternion * quaternion, axis=-1, keepdims=True))
        return quaternion
    return _quaternion(R_WF)


def _quaternion(R: Floats) -> Floats:
    """(4,) x y z w with w >= 0 of a rotation matrix.

    The outer product 4 q q^T is linear in R. Its row with the largest diagonal element is a multiple of q,
    and not small.
    """
    x, y, z = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    xw, yw, zw = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    diagonal = np.stack([1.0 + x - y - z, 1.0 - x + y - z, 1.0 - x - y + z, 1.0 + x + y + z], axis=-1)
    rows = np.stack(
        [
            np.stack([diagonal[..., 0], xy, xz, xw], axis=-1),
            np.stack([xy, diagonal[..., 1], yz, yw], axis=-1),
            np.stack([xz, yz, diagonal[..., 2], zw], axis=-1),
            np.stack([xw, yw, zw, diagonal[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(diagonal, axis=-1)[..., None, None]
    q = np.take_along_axis(rows, best, axis=-2)[..., 0, :]
    q = q * np.where(q[..., 3:] < 0.0, -1.0, 1.0)
    quaternion: Floats = q / np.sqrt(np.sum(q * q, axis=-1, keepdims=True))
    return quaternion


def turned(orientation: Floats, turn: Floats) -> Floats:
    """The orientation (4,) x y z w after a rotation in its own axes.

    Args:
        orientation: (4,) quaternion.
        turn: (3,) rotation vector [rad].
    """
    half = 0.5 * math.sqrt(turn @ turn)
    b = 0.5 * turn * float(np.sinc(half / math.pi))
    w = math.cos(half)
    v = orientation[3] * b + w * orientation[:3] + _cross(orientation[:3], b)
    product = np.array([*v, orientation[3] * w - orientation[:3] @ b])
    return product / math.sqrt(product @ product)


def _cross(a: Floats, b: Floats) -> Floats:
    """a x b; NumPy's function takes several times as long for one pair."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    i, j, k = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * k - z * j, z * i - x * k, x * j - y * i], axis=-1)


def rotated_back(orientation: Floats, v_W: Floats) -> Floats:
    """Transform vectors from world axes to body axes.

    Args:
        orientation: (..., 4) quaternion x y z w of the body; it is normalised.
        v_W: (..., 3).

    Returns:
        (..., 3) R_WB^T v_W.
    """
    if orientation.ndim == 1 and v_W.ndim == 1:
        return _rotated_back(orientation.tolist(), v_W.tolist())
    r, w = orientation[..., :3], orientation[..., 3:]
    square = np.sum(orientation * orientation, axis=-1, keepdims=True)
    components: Floats = v_W + 2.0 / square * _cross(r, _cross(r, v_W) - w * v_W)
    return components


def _rotated_back(orientation: list[float], v: list[float]) -> Floats:
    """As `rotated_back`, for one pair, for which NumPy would take ten times as long."""
    x, y, z, w = orientation
    a, b, c = v
    # r x v - w v, then v + 2 / |q|^2 r x (that)
    i, j, k = y * c - z * b - w * a, z * a - x * c - w * b, x * b - y * a - w * c
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return np.array([a + s * (y * k - z * j), b + s * (z * i - x * k), c + s * (x * j - y * i)])
