# SPDX-License-Identifier: Apache-2.0
"""Motion of the base from odometry or an IMU; quaternions are filtered like any other signal.

A quaternion, its first and its second derivative give the angular velocity and acceleration exactly:
w = 2 vec(q^-1 q'), dw = 2 vec(q^-1 q'' - (q^-1 q')^2), in body axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.model.model import Model


def continuous(quaternions: Floats, before: Floats | None) -> Floats:
    """Unit quaternions with the sign that is closest to the previous one.

    Args:
        quaternions: (n, 4) x y z w.
        before: (4,) the previous one; None: there is none.

    Raises:
        ArgumentError: the norm of one of them is far from 1.
    """
    length = np.linalg.norm(quaternions, axis=1)
    bad = np.flatnonzero(np.abs(length - 1.0) > 1e-2)
    if len(bad):
        raise ArgumentError(f'a quaternion has the length {length[bad[0]]:.3g}; expected 1')
    unit = quaternions / length[:, None]
    first = unit[:1] if before is None else before[None]
    products = np.sum(unit * np.concatenate([first, unit[:-1]]), axis=1)
    signs = np.cumprod(np.where(products < 0.0, -1.0, 1.0))
    signed: Floats = unit * signs[:, None]
    return signed


def multiply(a: Floats, b: Floats) -> Floats:
    """(n, 4) products of quaternions x y z w."""
    ax, ay, az, aw = a.T
    bx, by, bz, bw = b.T
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=1,
    )


def rotate(q: Floats, v: Floats) -> Floats:
    """(n, 3) vectors rotated from body to world axes by unit quaternions (n, 4): R_WB v_B."""
    r, w = q[:, :3], q[:, 3:]
    rotated: Floats = v + 2.0 * np.cross(r, np.cross(r, v) + w * v)
    return rotated


def rate_of(q: Floats, w: Floats) -> Floats:
    """(n, 4) derivative of quaternions, from angular velocities (n, 3) in body axes."""
    return 0.5 * multiply(q, np.concatenate([w, np.zeros((len(w), 1))], axis=1))


def angular_motion(q: Floats, dq: Floats, ddq: Floats) -> tuple[Floats, Floats, Floats]:
    """Orientation, angular velocity and acceleration in body axes, from quaternions with a norm of about 1.

    Args:
        q: (n, 4).
        dq: (n, 4) first derivative.
        ddq: (n, 4) second derivative.

    Returns:
        (n, 4) unit quaternions, (n, 3) and (n, 3).
    """
    square = np.sum(q * q, axis=1, keepdims=True)
    inverse = q * np.array([-1.0, -1.0, -1.0, 1.0]) / square
    half = multiply(inverse, dq)
    second = multiply(inverse, ddq) - multiply(half, half)
    return q / np.sqrt(square), 2.0 * half[:, :3], 2.0 * second[:, :3]


@dataclass(frozen=True, eq=False)
class ImuPlace:
    """Pose of the IMU on the base.

    Attributes:
        turn: (4,) quaternion of the base in IMU axes.
        R_BI: (3, 3).
        p: (3,) in the base's frame [m].
    """

    turn: Floats
    R_BI: Floats
    p: Floats

    def in_base_axes(self, imu: Floats) -> Floats:
        """(n, 10) orientation, angular velocity and specific force of the base, from those of the IMU."""
        quaternion = multiply(imu[:, :4], np.broadcast_to(self.turn, (len(imu), 4)))
        return np.hstack([quaternion, imu[:, 4:7] @ self.R_BI.T, imu[:, 7:10] @ self.R_BI.T])


def imu_place(model: Model, settings: SignalSettings) -> ImuPlace:
    """Pose of the IMU according to the settings.

    Raises:
        ArgumentError: there is no such link, or it moves relative to the base.
    """
    from scipy.spatial.transform import Rotation

    link = settings.imu_link or model.base_name
    if link not in model.frames or model.frames[link].body != 0:
        found = [name for name, frame in model.frames.items() if frame.body == 0]
        raise ArgumentError(f'imu_link is {link!r}; expected a link that is fixed to the base: {found}')
    frame = model.frames[link]
    turn = Rotation.from_matrix(frame.R.T).as_quat()
    return ImuPlace(turn, np.array(frame.R), frame.p + frame.R @ np.array(settings.imu_position))
