# SPDX-License-Identifier: Apache-2.0
"""Searches the joint ranges of legs for a crouch, if bending the knees from the zero pose fails.

This happens if the zero pose of a robot is arbitrary, as after an export from CAD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.leg_kinematics import foot_balls, moving_joints

if TYPE_CHECKING:
    from quad_dynamics.model.legs import Leg
    from quad_dynamics.model.model import Model

_SAMPLES = 3000  # poses evaluated per leg
_EXTENSION = 0.8  # standing depth of the foot below the hip, as a fraction of the largest
_KNEE_LOW, _KNEE_FORWARD = 1.0, 0.05  # cost of a low knee, and of a knee that bends forward
_LOW = 0.2  # a knee is low if it is above the foot by less than this fraction of the depth
_ALIKE = 2.0  # cost of different legs, for squared distances relative to the depth


@dataclass(frozen=True, eq=False)
class LegStart:
    """The initial pose of a leg.

    Attributes:
        angles: (k,) of the joints that move its foot.
        place: (3,) of its foot in the base's frame [m].
    """

    angles: Floats
    place: Floats


def find_starts(model: Model, alike: bool = True) -> list[LegStart] | None:
    """For each leg a pose with the foot approximately below the hip; None if there is none.

    Args:
        model: the robot.
        alike: legs have the same pose, mirrored, with the feet right below the hips; otherwise each leg has
            its own best pose, for limits that are not mirrored.
    """
    starts: list[LegStart] = []
    reference: Floats | None = None
    for leg in model.legs:
        joints = moving_joints(model, leg)
        if not joints:
            return None
        angles = _grid(model, joints)
        hip, knee, tip = _leg_points(model, leg, joints, angles)
        depth = hip[2] - tip[:, 2]
        deepest = float(depth.max())
        if not deepest > 0.0:
            return None
        mirror = np.array([1.0, 1.0 if hip[1] > 0.0 else -1.0, 1.0])
        knees, feet = (knee - hip) * mirror / deepest, (tip - hip) * mirror / deepest
        cost = np.square(depth / deepest - _EXTENSION) + np.square(feet[:, :2]).sum(axis=1)
        cost += _KNEE_LOW * (knees[:, 2] < feet[:, 2] + _LOW) + _KNEE_FORWARD * (knees[:, 0] > 0.0)
        both = np.hstack([knees, feet])
        if reference is not None and alike:
            cost += _ALIKE * np.square(both - reference).sum(axis=1)
        best = int(np.argmin(cost))
        reference = both[best] if reference is None else reference
        # a leg of two joints moves in a plane
        y = tip[best, 1] if len(joints) < 3 else hip[1] + mirror[1] * reference[4] * deepest
        place = np.array([hip[0], y, hip[2] - _EXTENSION * deepest])
        starts.append(LegStart(angles[best], place))
    return starts


def _grid(model: Model, joints: tuple[int, ...]) -> Floats:
    """(n, k) grid of positions over the ranges of some joints; a full turn for those without limits."""
    index = np.array(joints)
    low, high = np.maximum(model.q_min[index], -np.pi), np.minimum(model.q_max[index], np.pi)
    each = max(3, int(_SAMPLES ** (1.0 / len(joints))))
    axes = [np.linspace(a, b, each) for a, b in zip(low, np.maximum(low, high), strict=True)]
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing='ij')], axis=1)


def _leg_points(
    model: Model, leg: Leg, joints: tuple[int, ...], angles: Floats
) -> tuple[Floats, Floats, Floats]:
    """Hip (3,), knees (n, 3) and foot centres (n, 3) in the base's frame; other joints are neutral."""
    chain: list[int] = []
    j = model.frames[leg.foot].body - 1
    while j >= 0:
        chain.append(j)
        j = int(model.parents[j])
    neutral = np.clip(np.zeros(model.nj), model.q_min, model.q_max)
    R, p = np.repeat(np.eye(3)[None], len(angles), axis=0), np.zeros((len(angles), 3))
    origins: dict[int, Floats] = {}
    for j in reversed(chain):
        p, R = p + R @ model.joint_p[j], R @ model.joint_R[j]
        origins[j] = p
        position = angles[:, joints.index(j)] if j in joints else np.full(len(angles), neutral[j])
        if model.is_prismatic[j]:
            p = p + (R @ model.joint_axis[j]) * position[:, None]
        else:
            R = R @ _rotations(model.joint_axis[j], position)
    frame, balls = model.frames[leg.foot], foot_balls(model, leg.foot)
    tip = p + R @ (frame.p + frame.R @ balls[:, :3].mean(axis=0))
    return origins[joints[0]][0], origins[joints[-1]], tip


def _rotations(axis: Floats, angles: Floats) -> Floats:
    """(n, 3, 3) rotations by n angles about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angles)[:, None, None], np.cos(angles)[:, None, None]
    return np.asarray(np.eye(3) + s * K + (1.0 - c) * (K @ K))
