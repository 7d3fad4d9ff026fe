# SPDX-License-Identifier: Apache-2.0
"""The pose in which a robot lies on its belly with its legs folded, ready to get up.

The last two joints of each leg, hip and knee, are searched on a grid. The cost is high for points of the leg
below the belly. It increases with the height of the foot above the ground, its distance from its standing
position, and the height of the centre of mass of the leg.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.centroidal import center_of_mass
from quad_dynamics.api.drives import foot_position, resting_pose
from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.contact_forces import foot_points
from quad_dynamics.control.leg_path import LegPath, lowest_crouch
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.description import ContactPoint
from quad_dynamics.model.leg_kinematics import moving_joints, support_margin
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model

_CELLS = 33  # of the grid, in each direction
_ROUNDS = 4  # number of grids; each covers three cells of the previous one
_HIP_RANGE = 2.2  # to both sides of the standing pose [rad]
_KNEE_RANGE = 3.0  # largest rotation of the knee from the standing pose [rad]
_TIGHTEST = 0.2  # smallest distance from hip to foot, relative to the sum of thigh and shin
# Costs per metre: of the height of a foot above the ground, of its distance from its standing position, of
# the height of the centre of mass of a leg; and of a leg below the belly, which is reduced until the robot
# can rise from the pose.
_ABOVE, _BESIDE, _HIGH = 3.0, 1.0, 0.3
_BELOW = (20.0, 2.0, 0.5)
_BALANCED = 0.3  # required balance margin of the folded robot, relative to that of standing


def lying_pose(model: Model) -> Floats:
    """(nq,) the base level, the legs folded, the lowest contact points on the ground z = 0.

    Raises:
        ArgumentError: the base is fixed, or the robot has no contact points.
    """
    q = resting_pose(model)
    if not model.floating_base or not model._find_points().points:
        raise ArgumentError(f'{model.name} cannot lie; expected a floating base and contact points')
    q[:7] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    q[7:] = folded_joints(model)
    q[2] = -float(_lowest(model, q[None], model._find_points().points)[0])
    return q


def folded_joints(model: Model) -> Floats:
    """(nj,) joint positions with all legs folded, from which the robot can rise.

    The feet can move straight to their standing positions, with the centre of mass above them. If this is
    impossible with the belly on the ground, legs may be lower than the belly. If that does not suffice
    either, the pose is the lowest crouch. A leg with fewer than two joints stays in its standing pose.
    """
    standing = resting_pose(model)[7:]
    if not model.floating_base or not model.legs:
        return standing
    for below in _BELOW:
        joints = _search(model, below)
        if can_rise(model, joints, standing):
            return joints
    return lowest_crouch(model, standing)


def can_rise(model: Model, joints: Floats, standing: Floats) -> bool:
    """Whether the feet can move straight from joint positions to the standing pose, with the robot balanced.

    Args:
        model: robot.
        joints: (nj,) to rise from.
        standing: (nj,) to rise to.
    """
    margin, at_end = (_balance(model, x) for x in (joints, standing))
    return margin >= _BALANCED * at_end and LegPath(model, joints, standing).straight


def _balance(model: Model, joints: Floats) -> float:
    """Distance of the centre of mass to the edge of the support polygon [m], negative outside."""
    q = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], joints])
    return support_margin(center_of_mass(model, q)[:2], foot_points(model).positions(q)[:, :2])


def _search(model: Model, below: float) -> Floats:
    """(nj,) joint positions with the lowest cost, for a given cost of a leg below the belly."""
    q = resting_pose(model)
    q[:7] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    searches = [_Search.of(model, q, leg, below) for leg in model.legs if len(moving_joints(model, leg)) > 1]
    for _ in range(_ROUNDS):
        for search in searches:
            search.narrow(model, q)
    for search in searches:
        q[7 + search.joints] = search.best
    return q[7:].copy()


@dataclass
class _Search:
    """The search for the two angles of one leg.

    Attributes:
        leg: the leg.
        points: contact points that hip and knee move.
        joints: (2,) hip and knee.
        low, high: (2,) where the angles are searched next.
        bottom: height of the belly in the base's frame [m].
        place: (3,) of the foot when standing, in the base's frame [m].
        best: (2,) angles.
        below: cost of a leg below the belly [1/m].
    """

    leg: Leg
    points: Sequence[ContactPoint]
    joints: npt.NDArray[np.int64]
    low: Floats
    high: Floats
    bottom: float
    place: Floats
    best: Floats
    below: float

    @staticmethod
    def of(model: Model, q: Floats, leg: Leg, below: float) -> _Search:
        joints = np.array(moving_joints(model, leg)[-2:])
        stand = q[7 + joints]
        knee = stand[1] + _knee_turns(model, q, leg)
        low = np.maximum([stand[0] - _HIP_RANGE, min(stand[1], knee)], model.q_min[joints])
        high = np.minimum([stand[0] + _HIP_RANGE, max(stand[1], knee)], model.q_max[joints])
        trunk, own = _points_of(model, leg)
        bottom = _lowest(model, q[None], trunk)[0] if trunk else min(0.0, float(model.joint_p[:, 2].min()))
        place = foot_position(model, q, leg.foot)
        return _Search(leg, own, joints, low, high, bottom, place, stand, below)

    def narrow(self, model: Model, q: Floats) -> None:
        """Search the grid, and shrink it to 1.5 cells on each side of the best angles."""
        axes = [np.linspace(self.low[i], self.high[i], _CELLS) for i in range(2)]
        hip, knee = (x.ravel() for x in np.meshgrid(*axes, indexing='ij'))
        trial = np.repeat(q[None], hip.size, axis=0)
        trial[:, 7 + self.joints[0]], trial[:, 7 + self.joints[1]] = hip, knee
        i = int(np.argmin(self._cost(model, trial)))
        self.best = np.array([hip[i], knee[i]])
        cell = 1.5 * (self.high - self.low) / (_CELLS - 1)
        self.low = np.maximum(self.best - cell, self.low)
        self.high = np.minimum(self.best + cell, self.high)

    def _cost(self, model: Model, trial: Floats) -> Floats:
        lowest = _lowest(model, trial, self.points)
        foot = foot_position(model, trial, self.leg.foot)
        feet = [point for point in self.points if point.link == self.leg.foot]
        above = _lowest(model, trial, feet) - np.minimum(lowest, self.bottom) if feet else 0.0
        below = np.maximum(self.bottom - lowest, 0.0)
        beside = np.linalg.norm(foot[:, :2] - self.place[:2], axis=1)
        mass = model.pi[10 * (1 + self.joints)].sum() / model.total_mass
        high = center_of_mass(model, trial)[:, 2] / mass
        return np.asarray(self.below * below + _ABOVE * above + _BESIDE * beside + _HIGH * high)


def _knee_turns(model: Model, q: Floats, leg: Leg) -> float:
    """How far the knee turns from the standing pose until its leg is folded as far as allowed [rad]."""
    hip, knee = moving_joints(model, leg)[-2:]
    turns = np.linspace(-_KNEE_RANGE, _KNEE_RANGE, 601)
    trial = np.repeat(q[None], turns.size, axis=0)
    trial[:, 7 + knee] += turns
    foot = foot_position(model, trial, leg.foot)
    p_hip, p_knee = (frame_pose(model, trial, model.body_names[1 + j])[1] for j in (hip, knee))
    span = np.linalg.norm(foot - p_hip, axis=1)
    longest = np.linalg.norm(p_knee - p_hip, axis=1) + np.linalg.norm(foot - p_knee, axis=1)
    middle = turns.size // 2
    step = -1 if span[middle - 1] < span[middle + 1] else 1
    i = middle
    while 0 < i < turns.size - 1 and span[i + step] < span[i] and span[i + step] > _TIGHTEST * longest[i]:
        i += step
    return float(turns[i])


def _points_of(model: Model, leg: Leg) -> tuple[list[ContactPoint], list[ContactPoint]]:
    """Contact points of the trunk and what legs do not move, and of a leg from its last two joints on."""
    moved = {joint for other in model.legs for joint in moving_joints(model, other)[-2:]}
    trunk, own = [], []
    for point in model._find_points().points:
        joint = model.frames[point.link].body - 1
        while joint >= 0 and joint not in moved:
            joint = int(model.parents[joint])
        if joint < 0:
            trunk.append(point)
        elif joint in leg.joint_indices:
            own.append(point)
    return trunk, own


def _lowest(model: Model, q: Floats, points: Sequence[ContactPoint]) -> Floats:
    """(N,) height of the lowest of the points in N configurations [m]."""
    heights = np.full(len(q), np.inf)
    for point in points:
        R, p = frame_pose(model, q, point.link)
        heights = np.minimum(heights, p[:, 2] + R[:, 2] @ np.array(point.position) - point.radius)
    return heights
