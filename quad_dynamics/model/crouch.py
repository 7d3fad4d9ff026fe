# SPDX-License-Identifier: Apache-2.0
"""Finds a standing pose for a legged robot without one: feet below the hips, knees bent.

Each leg is solved separately by damped least squares from a pose with a bent knee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.crouch_search import find_starts
from quad_dynamics.model.leg_kinematics import body_poses, foot_balls, frame_in_base, moving_joints, sole

if TYPE_CHECKING:
    from quad_dynamics.model.legs import Leg
    from quad_dynamics.model.model import Model

_EXTENSION = 0.8  # distance from hip to foot when standing, as a fraction of the stretched leg's length
_TOLERANCE = 1e-3  # fraction of that length; a leg that misses its target by more cannot stand there
_SWEEPS = 40
_SOLES = 4  # maximum searches for the lowest part of a foot
_DAMPING = 1e-8  # relative to the trace of J J^T, so that it does not depend on the size of the robot


@dataclass(frozen=True)
class _Stance:
    """Target of one leg, in the base's frame.

    Attributes:
        leg: the leg.
        joints: its joints that move the foot.
        tip: (3,) point of its last body that touches the ground, in the body's frame [m].
        radius: radius of the sphere about the tip [m].
        hip: index of the first of the leg's joints that swings fore and aft.
        swing: direction (+1 or -1) in which that joint and the next one rotate forward about +y.
        place: (3,) target of the tip [m].
        start: (k,) initial angles; None: bend the knees from the current angles.
        anywhere: only the height of the target matters.
    """

    leg: Leg
    joints: tuple[int, ...]
    tip: Floats
    radius: float
    hip: int
    swing: tuple[float, float]
    place: Floats
    start: Floats | None = None
    anywhere: bool = False

    def miss(self, tip: Floats) -> Floats:
        """(3,) vector from a tip to the target [m]."""
        return (self.place - tip) * ((0.0, 0.0, 1.0) if self.anywhere else 1.0)


def find_crouch(model: Model) -> Floats | None:
    """Standing pose (nq,), the feet on the ground z = 0; None if none is found.

    There is none without feet, with a fixed base, or if a leg cannot reach its target.
    """
    if not model.floating_base or not model.legs:
        return None
    q = model.neutral
    found = _stand_on(model, [_stance(model, leg) for leg in model.legs], q)
    if found is not None:
        return found
    for alike in (True, False):
        starts = find_starts(model, alike)
        if starts is None:
            return None
        stances = []
        for leg, start in zip(model.legs, starts, strict=True):
            stance = replace(_stance(model, leg), place=start.place, start=start.angles, anywhere=not alike)
            q[7 + np.array(stance.joints)] = start.angles
            stances.append(stance)
        found = _stand_on(model, stances, q)
        if found is not None:
            return found
    return None


def _stand_on(model: Model, stances: list[_Stance], q: Floats) -> Floats | None:
    """The pose with all feet at their targets, on one ground plane; None if a leg cannot reach its target."""
    q = q.copy()
    ground = max(float(stance.place[2]) - stance.radius for stance in stances)
    for stance in stances:
        angles = _stand_leg(model, stance, ground, q)
        if angles is None:
            return None
        q[7:] = angles
    return put_on_ground(model, q)


def _stand_leg(model: Model, stance: _Stance, ground: float, q: Floats) -> Floats | None:
    """All joint angles, with those of the leg changed so that its foot is on the ground; None if it cannot.

    A foot of several balls stands on those that are lowest in the result.
    """
    for _ in range(_SOLES):
        stance.place[2] = ground + stance.radius
        angles = _solve(model, stance, q[7:])
        if angles is None:
            return None
        before, stance = stance, _on_sole(model, stance, np.concatenate([q[:7], angles]))
        if np.array_equal(before.tip, stance.tip):
            break
    return angles


def put_on_ground(model: Model, q: Floats) -> Floats:
    """The pose with the base level, at the height at which the lowest foot touches the ground z = 0.

    Without feet, the lowest contact point touches it.
    """
    lowest = list(foot_heights(model, q))
    if not lowest:
        for point in model._find_points().points:
            R, p = frame_in_base(model, q[7:], point.link)
            lowest.append(float((p + R @ np.array(point.position))[2]) - point.radius)
    q = q.copy()
    q[2] = -min(lowest, default=0.0)
    return q


def foot_heights(model: Model, q: Floats) -> Floats:
    """(feet,) height of the lowest point of each foot above the base's frame, the base level [m]."""
    lowest = []
    for foot in model.foot_names:
        balls = foot_balls(model, foot)
        R, p = frame_in_base(model, q[7:], foot)
        lowest.append(float((p[2] + balls[:, :3] @ R[2] - balls[:, 3]).min()))
    return np.array(lowest)


def _stance(model: Model, leg: Leg) -> _Stance:
    frame = model.frames[leg.foot]
    joints = moving_joints(model, leg)
    balls = foot_balls(model, leg.foot)
    centre = frame.p + frame.R @ balls[:, :3].mean(axis=0)
    stance = _Stance(leg, joints, centre, float(balls[:, 3].mean()), 0, (1.0, 1.0), np.zeros(3))
    tip, p, axes = _tip_and_joints(model, stance, np.zeros(model.nj))
    if len(p) < 2:
        return replace(stance, place=tip)
    hip = next((k for k, axis in enumerate(axes[:-1]) if abs(axis[1]) > 0.7), 0)
    reach = float(np.linalg.norm(np.diff(np.vstack([p[hip:], tip]), axis=0), axis=1).sum())
    place = np.array([p[hip][0], tip[1], p[hip][2] - _EXTENSION * reach])
    swing = (float(np.sign(axes[hip][1] or 1.0)), float(np.sign(axes[hip + 1][1] or 1.0)))
    return replace(stance, hip=hip, swing=swing, place=place)


def _on_sole(model: Model, stance: _Stance, q: Floats) -> _Stance:
    """The stance on the lowest part of the foot in a pose."""
    frame = model.frames[stance.leg.foot]
    position, radius = sole(model, stance.leg.foot, q)
    found = replace(stance, tip=frame.p + frame.R @ position, radius=radius, place=stance.place.copy())
    if len(stance.joints) < 3:  # such a leg moves in a plane
        found.place[1] = _tip_and_joints(model, found, q[7:])[0][1]
    return found


def _solve(model: Model, stance: _Stance, angles: Floats) -> Floats | None:
    """All joint angles, with those of the leg changed so that it reaches its target; None if it cannot.

    A leg of one joint has no knee to bend and is not changed.
    """
    index = np.array(stance.joints, dtype=np.int64)
    allowed = _TOLERANCE * _EXTENSION * float(np.linalg.norm(stance.place))
    if stance.start is not None:
        trial = angles.copy()
        trial[index] = stance.start
        if _descend(model, stance, trial) >= allowed:
            return None
        return None if stance.anywhere and not _below_hip(model, stance, trial) else trial
    if len(index) < 2:
        return angles
    for bend in (1.0, -1.0):  # knee backwards first
        trial = angles.copy()
        trial[index[stance.hip]] += 0.6 * bend * stance.swing[0]
        trial[index[stance.hip + 1]] -= 1.2 * bend * stance.swing[1]
        trial = np.clip(trial, model.q_min, model.q_max)
        if _descend(model, stance, trial) < allowed:
            return trial
    return None


def _below_hip(model: Model, stance: _Stance, angles: Floats) -> bool:
    """Whether the foot is farther below the hip than beside it."""
    tip, p, _ = _tip_and_joints(model, stance, angles)
    beside, below = np.linalg.norm((tip - p[0])[:2]), p[0][2] - tip[2]
    return bool(beside < below)


def _descend(model: Model, stance: _Stance, angles: Floats) -> float:
    """Move the leg's angles (in place) until the tip is at its target; returns the remaining distance [m]."""
    index = np.array(stance.joints)
    low, high, slides = model.q_min[index], model.q_max[index], model.is_prismatic[index]
    for _ in range(_SWEEPS):
        tip, p, axes = _tip_and_joints(model, stance, angles)
        miss = stance.miss(tip)
        if float(np.linalg.norm(miss)) < 1e-9:
            break
        J = np.where(slides[:, None], axes, np.cross(axes, tip - p)).T
        if stance.anywhere:
            J[:2] = 0.0
        square = J @ J.T
        damping = _DAMPING * float(np.trace(square))
        if not damping > 0.0:  # no joint moves the tip
            break
        step = J.T @ np.linalg.solve(square + damping * np.eye(3), miss)
        angles[index] = np.clip(angles[index] + np.clip(step, -0.5, 0.5), low, high)
    return float(np.linalg.norm(stance.miss(_tip_and_joints(model, stance, angles)[0])))


def _tip_and_joints(model: Model, stance: _Stance, angles: Floats) -> tuple[Floats, Floats, Floats]:
    """Tip (3,) of a leg, and its joints' origins (n, 3) and axes (n, 3), all in the base's frame."""
    body = model.frames[stance.leg.foot].body
    poses = body_poses(model, angles, body - 1)
    R, end = poses[body - 1]
    p = np.array([poses[j][1] for j in stance.joints]).reshape(-1, 3)
    axes = np.array([poses[j][0] @ model.joint_axis[j] for j in stance.joints]).reshape(-1, 3)
    return end + R @ stance.tip, p, axes
