# SPDX-License-Identifier: Apache-2.0
"""Joint positions along straight paths of all feet, from one pose to another, by inverse kinematics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import CubicSpline

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.contact_forces import FootPoints, foot_points
from quad_dynamics.model.model import Model

_KNOTS = 25
_SWEEPS = 30
_DAMPING = 1e-6  # relative to the trace of J J^T
_LONGEST_STEP = 0.2  # largest motion of a joint in one sweep [rad or m]
_CROUCH_STEP, _DEEPEST_CROUCH = 0.04, 0.8  # of a leg's length
_LARGEST_BEND = 0.5  # of a joint in one such step; more is the other knee configuration [rad or m]
_MISS = 5e-3  # in leg lengths: feet with a larger error cannot follow their path


class LegPath:
    """The path s = 0 ... 1 between two sets of joint positions; feet move straight in the base frame.

    If a leg cannot follow, all joints move straight instead.

    Attributes:
        straight: whether the feet move straight.
    """

    def __init__(self, model: Model, start: Floats, end: Floats) -> None:
        share = np.linspace(0.0, 1.0, _KNOTS)
        points = foot_points(model)
        feet_0, feet_1 = (points.positions(_with_base(joints)) for joints in (start, end))
        # from the end, where the legs are far from singularities
        knots = [np.array(end)]
        self.straight = True
        for s in share[-2::-1]:
            joints, miss = solve_legs(model, points, knots[-1], (1.0 - s) * feet_0 + s * feet_1)
            self.straight = self.straight and miss < _MISS * points.length
            knots.append(joints)
        way = np.array(knots[::-1])
        # the other knee configuration, or a joint at its limit: it would jump at the start
        self.straight = self.straight and bool(np.abs(way[0] - start).max() < 0.1)
        if self.straight:
            bend = (way[0] - start)[None] * (1.0 - share[:, None])
            way = way - bend
        else:
            way = start + share[:, None] * (end - start)
        self._spline = CubicSpline(share, way)
        self._slope = self._spline.derivative()

    def __call__(self, s: float) -> tuple[Floats, Floats]:
        """Joint positions (nj,) at s, and their derivative with respect to s."""
        return self._spline(s), self._slope(s)


def lowest_crouch(model: Model, standing: Floats) -> Floats:
    """(nj,) joint positions with the base as low as the legs allow, straight down from a standing pose.

    The feet stay in place, and nothing else touches the ground.

    Args:
        model: robot.
        standing: (nj,) joint positions.
    """
    points = foot_points(model)
    feet, low = points.positions(_with_base(standing)), np.array(standing)
    for share in np.arange(_CROUCH_STEP, _DEEPEST_CROUCH, _CROUCH_STEP):
        raised = feet + np.array([0.0, 0.0, share * points.length])
        joints, miss = solve_legs(model, points, low, raised)
        if miss > _MISS * points.length or np.abs(joints - low).max() > _LARGEST_BEND:
            break
        if _lowest_height(model, joints, model.foot_names) > _lowest_height(model, joints):
            break
        low = joints
    return low


def _lowest_height(model: Model, joints: Floats, links: Sequence[str] | None = None) -> float:
    """Height of the lowest contact point above the base's frame [m], of some links or of all."""
    q, lowest = _with_base(joints), np.inf
    for point in model._find_points().points:
        if links is None or point.link in links:
            R, p = frame_pose(model, q, point.link)
            lowest = min(lowest, float(p[2] + R[2] @ np.array(point.position)) - point.radius)
    return lowest


def solve_legs(model: Model, points: FootPoints, joints: Floats, feet: Floats) -> tuple[Floats, float]:
    """Joint positions for given positions of the feet in the base frame, by damped least squares.

    Args:
        model: robot.
        points: of its feet.
        joints: (nj,) initial guess.
        feet: (feet, 3) positions of the feet in the base frame [m].

    Returns:
        (nj,) positions within the limits, and the largest position error of a foot [m].
    """
    q = _with_base(joints)
    index = [np.array(leg.joint_indices) for leg in model.legs]
    for _ in range(_SWEEPS):
        miss = feet - points.positions(q)
        if np.abs(miss).max() < 1e-8:
            break
        J = points.centre_jacobian(q)
        for leg, own in enumerate(index):
            J_leg = J[3 * leg : 3 * leg + 3, 6 + own]
            square = J_leg @ J_leg.T
            damped = square + _DAMPING * (np.trace(square) + 1e-12) * np.eye(3)
            step = J_leg.T @ np.linalg.solve(damped, miss[leg])
            moved = q[7 + own] + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            q[7 + own] = np.clip(moved, model.q_min[own], model.q_max[own])
    return q[7:].copy(), float(np.linalg.norm(feet - points.positions(q), axis=1).max())


def _with_base(joints: Floats) -> Floats:
    return np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], joints])
