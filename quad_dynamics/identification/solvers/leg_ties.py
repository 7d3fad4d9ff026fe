# SPDX-License-Identifier: Apache-2.0
"""Legs of the same design: maps from the parameters of one leg to those of another.

A leg may be a mirrored, rotated or shifted copy of another. With an orthogonal S between the two places on
the trunk, the frames of each pair of bodies are related by M = R_B^T S_parent R_A, and M must also map the
axis and the position of the next joint. Then m is the same, h becomes M h, and the inertia M I M^T.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.inertia import flat_inertia, full_inertia
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model

_SAME_PLACE = 1e-4  # tolerance of joint positions [m]
_SAME_AXIS = 1e-4  # tolerance of joint axes [rad]


@dataclass(frozen=True, eq=False)
class Pair:
    """A body of the first leg and the corresponding one of the other leg, each with its joint.

    Attributes:
        bodies: indices of both bodies.
        joints: of both joints.
        map: (10, 10) from inertial parameters of the first body to those of the second.
        sign: whether corresponding motions have equal (1) or opposite (-1) signs.
        mirror: (3, 3) S, in the trunk's frame.
        mismatch: relative difference of the CAD values.
    """

    bodies: tuple[int, int]
    joints: tuple[int, int]
    map: Floats
    sign: int
    mirror: Floats
    mismatch: float


@dataclass(frozen=True, eq=False)
class LegTie:
    """Map from the first leg to another one.

    Attributes:
        leg: index of the leg.
        pairs: of its bodies, from the trunk to the foot. Each may be mirrored in its own way, as far as the
            kinematics allow: hind hips are often mirrored front hips, while the thighs are the same.
    """

    leg: int
    pairs: tuple[Pair, ...]

    @property
    def mismatch(self) -> float:
        """Relative difference of the CAD values of the two legs."""
        return max(pair.mismatch for pair in self.pairs)


def pi_map(M: Floats) -> Floats:
    """(10, 10) map of the parameters of a body that is rotated or mirrored by the orthogonal M (3, 3)."""
    result = np.zeros((10, 10))
    result[0, 0] = 1.0
    result[1:4, 1:4] = M
    for a, unit in enumerate(np.eye(6)):
        result[4:, 4 + a] = flat_inertia(M @ full_inertia(unit) @ M.T)
    return result


def find_leg_ties(model: Model) -> list[LegTie]:
    """Ties of all other legs to the first one.

    Raises:
        ArgumentError: fewer than two legs, or a leg that is not a copy of the first; the message names it.
    """
    if len(model.legs) < 2:
        raise ArgumentError(
            f"legs cannot be tied: '{model.name}' has {len(model.legs)} legs; expected 2 or more"
        )
    return [_tie(model, index) for index in range(1, len(model.legs))]


def _tie(model: Model, index: int) -> LegTie:
    first, other = model.legs[0], model.legs[index]
    if len(first.joint_indices) != len(other.joint_indices):
        raise ArgumentError(
            f"legs cannot be tied: '{other.name}' has {len(other.joint_indices)} joints, '{first.name}' has "
            f'{len(first.joint_indices)}'
        )
    found, faults = [], []
    for signs in itertools.product((1.0, -1.0), repeat=3):
        pairs = _try(model, first, other, np.diag(signs))
        if isinstance(pairs, str):
            faults.append(pairs)
        else:
            found.append(pairs)
    if not found:
        # Report the mismatch that is farthest along the leg: it belongs to the best attempt.
        raise ArgumentError(
            f"legs cannot be tied: '{other.name}' is no copy of '{first.name}': {max(faults)[2:]}"
        )
    ranked = sorted(found, key=lambda pairs: _rank(model, first, other, pairs))
    best = [min(choices, key=lambda pair: round(pair.mismatch, 4)) for choices in zip(*ranked, strict=True)]
    return LegTie(index, tuple(best))


def _rank(model: Model, first: Leg, other: Leg, pairs: list[Pair]) -> tuple[float, int, int]:
    """Order of maps that fit one body equally well: fit of the whole leg, then the positions of the hips."""
    S = pairs[0].mirror
    place = [model.joint_p[leg.joint_indices[0]] for leg in (first, other)]
    moved = np.sign(np.round(S @ place[0], 4)) != np.sign(np.round(place[1], 4))
    mismatch = round(sum(pair.mismatch for pair in pairs), 4)
    return mismatch, int(moved.sum()), int((np.diag(S) < 0).sum())


def _try(model: Model, first: Leg, other: Leg, S: Floats) -> list[Pair] | str:
    """The pairs for S, or the reason why there are none (a digit: how far along the leg, then the text)."""
    offset = 1 if model.floating_base else 0
    M, pairs = S, []
    for k, (a, b) in enumerate(zip(first.joint_indices, other.joint_indices, strict=True)):
        names = f"'{model.joint_names[a]}' and '{model.joint_names[b]}'"
        if model.is_prismatic[a] != model.is_prismatic[b]:
            return f'{k} joints {names} are of different kinds'
        if k and np.linalg.norm(M @ model.joint_p[a] - model.joint_p[b]) > _SAME_PLACE:
            return f'{k} joints {names} are in different places of their links'
        M = model.joint_R[b].T @ M @ model.joint_R[a]
        along = float(model.joint_axis[b] @ M @ model.joint_axis[a])
        if abs(along) < 1.0 - 0.5 * _SAME_AXIS**2:
            return f'{k} joints {names} have axes that are no images of each other'
        # Rotations are mirrored like pseudo-vectors, translations like vectors.
        turn = 1.0 if model.is_prismatic[a] else float(np.linalg.det(M))
        bodies, carried = (a + offset, b + offset), pi_map(M)
        sign = 1 if along * turn > 0.0 else -1
        pairs.append(Pair(bodies, (a, b), carried, sign, S, _mismatch(model, bodies, carried)))
    foot = [model.frames[leg.foot] for leg in (first, other)]
    if np.linalg.norm(M @ foot[0].p - foot[1].p) > 10.0 * _SAME_PLACE:
        return (
            f"{len(pairs)} the feet '{first.foot}' and '{other.foot}' are in different places of their links"
        )
    return pairs


def _mismatch(model: Model, bodies: tuple[int, int], carried: Floats) -> float:
    """Relative difference between the second body and the image of the first."""
    a, b = (model.pi.reshape(-1, 10)[i] for i in bodies)
    scale = np.repeat([a[0], np.linalg.norm(a[1:4]), np.abs(a[4:]).max()], [1, 3, 6]) + 1e-12
    return float(np.sqrt(np.mean(((carried @ a - b) / scale) ** 2)))
