# SPDX-License-Identifier: Apache-2.0
"""Positions of legs and feet in plain NumPy, for the model itself, which must not call kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.stance import rotation_about

if TYPE_CHECKING:
    from quad_dynamics.model.legs import Leg
    from quad_dynamics.model.model import Model

# Relative to the size of a leg's last body: a foot this close to the last axis is not moved by it.
_ON_THE_AXIS = 0.01
_LOWEST = 0.02  # balls of a foot above the lowest one by less than this fraction of its size carry load, too


def body_poses(model: Model, angles: Floats, joint: int) -> dict[int, tuple[Floats, Floats]]:
    """Pose (R, p) in the base's frame of each body from the base (-1) to that of a joint, by joint."""
    joints: list[int] = []
    while joint >= 0:
        joints.append(joint)
        joint = int(model.parents[joint])
    R, p = np.eye(3), np.zeros(3)
    poses: dict[int, tuple[Floats, Floats]] = {-1: (R, p)}
    for j in reversed(joints):
        p, R = p + R @ model.joint_p[j], R @ model.joint_R[j]
        if model.is_prismatic[j]:
            p = p + R @ model.joint_axis[j] * angles[j]
        else:
            R = R @ rotation_about(model.joint_axis[j], float(angles[j]))
        poses[j] = R, p
    return poses


def frame_in_base(model: Model, angles: Floats, link: str) -> tuple[Floats, Floats]:
    """Pose (R, p) of a link of a floating robot in the base's frame."""
    frame = model.frames[link]
    R, p = body_poses(model, angles, frame.body - 1)[frame.body - 1]
    return R @ frame.R, p + R @ frame.p


def foot_balls(model: Model, foot: str) -> Floats:
    """(n, 4) contact balls of a foot in its own frame, n > 0; the origin if it has no contact point."""
    rows = [[*c.position, c.radius] for c in model._find_points().points if c.link == foot]
    return np.array(rows or [[0.0, 0.0, 0.0, 0.0]])


def sole(model: Model, foot: str, q: Floats) -> tuple[Floats, float]:
    """Centre (3,) in the foot's frame and radius of the ball on which a foot stands on level ground.

    A foot of several balls stands on those that are lowest in the pose; the ball is their mean.

    Args:
        model: a robot with a floating base.
        foot: name of the foot link.
        q: (nq,) the pose.
    """
    balls = foot_balls(model, foot)
    if len(balls) == 1 or not model.floating_base:
        return balls[0, :3], float(balls[0, 3])
    x, y, z, w = q[3:7]
    up = np.array([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])
    R, _ = frame_in_base(model, q[7:], foot)
    low = balls[:, :3] @ (R.T @ up) - balls[:, 3]
    size = float(np.ptp(balls[:, :3], axis=0).max()) + float(balls[:, 3].max())
    mean = balls[low <= low.min() + _LOWEST * size].mean(axis=0)
    return mean[:3], float(mean[3])


def contact_ball(model: Model, foot: str) -> tuple[Floats, float]:
    """Centre (3,) in the foot's frame and radius of the contact ball of a foot [m].

    It is the ball on which the foot stands in the standing pose, or in the neutral pose of a robot without
    one; its lowest point touches the ground. Control, planning and identification all use it.
    """
    return sole(model, foot, np.asarray(model.neutral if model.standing is None else model.standing))


def moving_joints(model: Model, leg: Leg) -> tuple[int, ...]:
    """The joints of a leg that move the foot: all except that of a wheel, whose axis passes through it."""
    joints = leg.joint_indices
    frame = model.frames[leg.foot]
    if len(joints) < 2 or frame.body - int(model.floating_base) != joints[-1]:
        return joints
    if model.is_prismatic[joints[-1]]:
        return joints
    balls = foot_balls(model, leg.foot)
    if len(balls) > 1:
        return joints
    p = frame.p + frame.R @ balls[0, :3]
    axis = model.joint_axis[joints[-1]]
    off = float(np.linalg.norm(p - (p @ axis) * axis))
    size = float(np.linalg.norm(p)) + float(balls[0, 3]) + float(np.linalg.norm(model.joint_p[joints[-1]]))
    return joints[:-1] if off <= _ON_THE_AXIS * size else joints


def support_margin(com: Floats, feet: Floats) -> float:
    """Distance of the centre of mass to the nearest edge of the support polygon [m], negative outside.

    Args:
        com: (2,) on the ground.
        feet: (n, 2) on the ground.
    """
    from scipy.spatial import ConvexHull, QhullError  # imported only when needed

    if len(feet) < 3:
        return -float(np.linalg.norm(feet - com, axis=1).min(initial=np.inf))
    try:
        edges = ConvexHull(feet).equations  # a x + b y + c <= 0 inside
    except QhullError:  # all on one line
        return -float(np.linalg.norm(feet - com, axis=1).min())
    return -float((edges[:, :2] @ com + edges[:, 2]).max())
