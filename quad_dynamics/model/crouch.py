# SPDX-License-Identifier: Apache-2.0
"""Finds a pose to stand in for a legged robot that nobody gave one: feet below the hips, knees bent.

Each leg is solved for itself by damped least squares (Levenberg-Marquardt) from a pose with bent knees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.model.inertia import Floats
from quad_dynamics.model.stance import rotation_about

if TYPE_CHECKING:
    from quad_dynamics.model.legs import Leg
    from quad_dynamics.model.model import Model

_EXTENSION = 0.8  # part of the stretched leg's length from hip to foot when standing
_TOLERANCE = 0.01  # of that length; a leg that misses its place by more stays at neutral
_SWEEPS = 40


def find_crouch(model: Model) -> Floats | None:
    """Standing pose (nq,), the feet on the ground z = 0; None without feet or with a fixed base."""
    if not model.floating_base or not model.legs:
        return None
    q = model.neutral
    for leg in model.legs:
        angles = _solve(model, leg)
        if angles is not None:
            q[7 + np.array(leg.joint_indices)] = angles
    feet = [point for point in model.description.contact_points if point.link in model.foot_names]
    lowest = (
        [0.0]
        if not feet
        else [
            float(_point(model, q[7:], point.link, np.array(point.position))[2]) - point.radius
            for point in feet
        ]
    )
    q[2] = -min(lowest)
    return q


def _solve(model: Model, leg: Leg) -> Floats | None:
    """Angles of a leg's joints, None if the foot cannot come below the hip."""
    if len(leg.joint_indices) < 2:
        return None
    index = np.array(leg.joint_indices)
    zero = np.clip(np.zeros(model.nj), model.q_min, model.q_max)
    p, axes, foot = _leg_kinematics(model, leg, zero * 0.0)
    hip = next(
        (k for k, axis in enumerate(axes) if abs(axis[1]) > 0.7), 0
    )  # the first joint that swings fore and aft
    lengths = np.linalg.norm(np.diff(np.vstack([p[hip:], foot]), axis=0), axis=1)
    reach = _EXTENSION * float(lengths.sum())
    target = np.array([p[hip][0], foot[1], p[hip][2] - reach])
    for bend in (-1.0, 1.0):
        q = zero.copy()
        # Turning forward about +y, whatever the sign of the joint's own axis.
        q[index[hip]] -= 0.6 * bend * np.sign(axes[hip][1] or 1.0)
        if hip + 1 < len(index):
            q[index[hip + 1]] += 1.2 * bend * np.sign(axes[hip + 1][1] or 1.0)
        q = np.clip(q, model.q_min, model.q_max)
        if _descend(model, leg, q, target) < _TOLERANCE * reach:
            return np.asarray(q[index])
    return None


def _descend(model: Model, leg: Leg, q: Floats, target: Floats) -> float:
    """Move the leg's angles in q towards the target; return the distance left [m]."""
    index = np.array(leg.joint_indices)
    for _ in range(_SWEEPS):
        p, axes, foot = _leg_kinematics(model, leg, q)
        miss = target - foot
        if float(np.linalg.norm(miss)) < 1e-6:
            break
        slides = model.is_prismatic[index]
        J = np.where(slides[:, None], axes, np.cross(axes, foot - p)).T
        damped = J @ J.T + 1e-6 * np.eye(3)
        q[index] = np.clip(
            q[index] + J.T @ np.linalg.solve(damped, miss), model.q_min[index], model.q_max[index]
        )
    return float(np.linalg.norm(target - _leg_kinematics(model, leg, q)[2]))


def _leg_kinematics(model: Model, leg: Leg, angles: Floats) -> tuple[Floats, Floats, Floats]:
    """Joint origins (n, 3) and axes (n, 3) of a leg, and its foot (3,), all in the base's frame."""
    poses = _chain(model, angles, leg.joint_indices[-1])
    p = np.array([poses[j][1] for j in leg.joint_indices])
    axes = np.array([poses[j][0] @ model.joint_axis[j] for j in leg.joint_indices])
    R, end = poses[leg.joint_indices[-1]]
    return p, axes, end + R @ model.frames[leg.foot].p


def _point(model: Model, angles: Floats, link: str, position: Floats) -> Floats:
    frame = model.frames[link]
    R, p = np.eye(3), np.zeros(3)
    if frame.body > 0:
        R, p = _chain(model, angles, frame.body - 1)[frame.body - 1]
    return np.asarray(p + R @ (frame.p + frame.R @ position))


def _chain(model: Model, angles: Floats, last: int) -> dict[int, tuple[Floats, Floats]]:
    """Pose (R, p) in the base's frame of each body from the base to that of joint `last`, by joint."""
    joints: list[int] = []
    while last >= 0:
        joints.append(last)
        last = int(model.parents[last])
    poses: dict[int, tuple[Floats, Floats]] = {}
    R, p = np.eye(3), np.zeros(3)
    for j in reversed(joints):
        p, R = p + R @ model.joint_p[j], R @ model.joint_R[j]
        if model.is_prismatic[j]:
            p = p + R @ model.joint_axis[j] * angles[j]
        else:
            R = R @ rotation_about(model.joint_axis[j], float(angles[j]))
        poses[j] = R, p
    return poses
