# SPDX-License-Identifier: Apache-2.0
"""Approximate self-collision: collision shapes of links as capsules, and their distances.

A capsule lies along the longest side of a shape; a flat shape gets several, side by side. They miss its
corners by up to 0.4 of its thickness, so some clearance is necessary. Neighbours in the tree are not checked,
because they touch at their joint; nor are pairs that overlap in the rest pose.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.contact_bodies import Piece, pieces_of_bodies
from quad_dynamics.model.model import Model

_MOST_BESIDE = 4  # capsules of one shape
_ROUGH = 1e-9  # length below which a segment is a point [m]


class Capsules:
    """The capsules of a robot.

    Attributes:
        names: of the body of each capsule.
        pairs: (k, 2) those that are checked.
        wanted: (k,) required distance of each pair [m].
        left_out: pairs of bodies that already overlap in the rest pose.
        ground: indices of the capsules that must not touch the ground.
        ground_wanted: (ground,) required height of each above the ground [m].
    """

    def __init__(self, model: Model, rest: Floats, clearance: float, height: float | None) -> None:
        """Create the capsules.

        Args:
            model: robot.
            rest: (nq,) pose that limits the required distances.
            clearance: required distance if the rest pose has twice as much; otherwise half of that in the
                rest pose [m].
            height: of the ground [m]; None: there is none.
        """
        self._model = model
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)  # reported when the robot is loaded
            pieces = pieces_of_bodies(model, with_root=True)
        parts = [(body, one) for body, own in enumerate(pieces) for piece in own for one in _capsules(piece)]
        self._body = np.array([body for body, _ in parts], dtype=np.int64)
        self._ends = np.array([one[0] for _, one in parts]).reshape(-1, 2, 3)
        self._radius = np.array([one[1] for _, one in parts])
        frames = [*model.body_names, model.base_name]
        self.names = [frames[body] for body in self._body]
        self._frames, self._height = frames, 0.0
        self.ground, self.ground_wanted = np.empty(0, dtype=np.int64), np.empty(0)
        self._choose_pairs(rest, clearance)
        if height is not None:
            self._choose_ground(rest, clearance, height)

    def _choose_pairs(self, rest: Floats, clearance: float) -> None:
        above = _parents(self._model)
        i, j = np.triu_indices(len(self._body), 1)
        a, b = self._body[i], self._body[j]
        far = (a != b) & (above[a] != b) & (above[b] != a)
        self.pairs = np.stack([i[far], j[far]], axis=1)
        at_rest = self.distances(self._place(rest[None]))[0]
        bad = at_rest <= 0.0
        self.left_out = sorted({f'{self.names[i]} and {self.names[j]}' for i, j in self.pairs[bad]})
        self.pairs, at_rest = self.pairs[~bad], at_rest[~bad]
        self.wanted = np.minimum(clearance, 0.5 * at_rest)

    def _choose_ground(self, rest: Floats, clearance: float, height: float) -> None:
        self._height = height
        model = self._model
        stands = [model.frames[foot].body for foot in model.foot_names] if model.floating_base else []
        self.ground = np.flatnonzero(~np.isin(self._body, [*stands, model.nb]))
        at_rest = self.heights(self._place(rest[None]))[0]
        good = at_rest > 0.0
        self.ground, at_rest = self.ground[good], at_rest[good]
        self.ground_wanted = np.minimum(clearance, 0.5 * at_rest)

    def nearest(self, q: Floats, count: int) -> Capsules:
        """The same with only the pairs that come closest to each other, for long searches.

        Args:
            q: (n, nq) representative configurations of the search.
            count: number of pairs.
        """
        left = (self.distances(self._place(q)) - self.wanted).min(axis=0)
        few = copy.copy(self)
        chosen = np.sort(np.argsort(left, kind='stable')[:count])
        few.pairs, few.wanted = self.pairs[chosen], self.wanted[chosen]
        return few

    def gaps(self, q: Floats) -> tuple[Floats, Floats]:
        """(n, k) and (n, ground) distances minus the required distances; negative: too close [m].

        Args:
            q: (n, nq) configurations.
        """
        ends = self._place(q)
        return self.distances(ends) - self.wanted, self.heights(ends) - self.ground_wanted

    def _place(self, q: Floats) -> Floats:
        """(n, capsules, 2, 3) ends of the segments in the world."""
        placed = np.zeros((len(q), len(self._body), 2, 3))
        needed = np.zeros(len(self._body), dtype=np.bool_)
        needed[self.pairs.ravel()] = needed[self.ground] = True
        for body in np.unique(self._body[needed]):
            own = needed & (self._body == body)
            R, p = frame_pose(self._model, q, self._frames[body])
            placed[:, own] = np.einsum('nij,kej->nkei', R, self._ends[own]) + p[:, None, None]
        return placed

    def distances(self, ends: Floats) -> Floats:
        """(n, k) distances between the surfaces of the pairs [m]; negative: overlap."""
        i, j = self.pairs[:, 0], self.pairs[:, 1]
        between = segment_distance(ends[:, i, 0], ends[:, i, 1], ends[:, j, 0], ends[:, j, 1])
        return np.asarray(between - self._radius[i] - self._radius[j])

    def heights(self, ends: Floats) -> Floats:
        """(n, ground) heights of the lowest points above the ground [m]."""
        lowest = ends[:, self.ground][..., 2].min(axis=2)
        return np.asarray(lowest - self._radius[self.ground] - self._height)


def segment_distance(a0: Floats, a1: Floats, b0: Floats, b1: Floats) -> Floats:
    """Distance of segments from a0 to a1 and from b0 to b1, each (..., 3) (Ericson 2005, section 5.1.9)."""
    d, e, r = a1 - a0, b1 - b0, a0 - b0

    def dot(x: Floats, y: Floats) -> Floats:
        return np.asarray(np.einsum('...i,...i->...', x, y))

    dd, ee, de = np.maximum(dot(d, d), _ROUGH**2), np.maximum(dot(e, e), _ROUGH**2), dot(d, e)
    dr, er = dot(d, r), dot(e, r)
    square = dd * ee - de * de
    s = np.where(square > 1e-12 * dd * ee, (de * er - dr * ee) / np.maximum(square, 1e-300), 0.0)
    s = np.clip(s, 0.0, 1.0)
    t = (de * s + er) / ee
    # if t is clamped to its segment, the closest point of the other one changes
    s = np.where(t < 0.0, -dr / dd, np.where(t > 1.0, (de - dr) / dd, s))
    s, t = np.clip(s, 0.0, 1.0), np.clip(t, 0.0, 1.0)
    return np.asarray(np.linalg.norm(r + s[..., None] * d - t[..., None] * e, axis=-1))


def _capsules(piece: Piece) -> list[tuple[Floats, float]]:
    """Ends (2, 3) and radius of the capsules of a shape, in the body's frame."""
    centres, radii = piece.balls[:, :3], piece.balls[:, 3]
    middle = centres.mean(axis=0)
    axes = np.eye(3)
    if len(centres) > 2:
        axes = np.linalg.svd(centres - middle, full_matrices=False)[2]
    elif len(centres) == 2:
        axes[0] = (centres[1] - centres[0]) / max(float(np.linalg.norm(centres[1] - centres[0])), _ROUGH)
        axes[1:] = np.linalg.svd(axes[:1])[2][1:]
    along = (centres - middle) @ axes.T
    high, low = (along + radii[:, None]).max(axis=0), (along - radii[:, None]).min(axis=0)
    size = high - low
    order = np.argsort(-size, kind='stable')
    axes, size, centre = axes[order], size[order], (0.5 * (high + low))[order]
    count = int(np.clip(round(size[1] / max(size[2], _ROUGH)), 1, _MOST_BESIDE))
    radius = 0.5 * max(float(size[1]) / count, float(size[2])) if count > 1 else 0.5 * float(size[1])
    half = max(0.5 * float(size[0]) - radius, 0.0)
    made = []
    for k in range(count):
        beside = ((k + 0.5) / count - 0.5) * size[1]
        at = middle + (centre + np.array([0.0, beside, 0.0])) @ axes
        made.append((np.array([at - half * axes[0], at + half * axes[0]]), radius))
    return made


def _parents(model: Model) -> npt.NDArray[np.int64]:
    """(nb + 1,) index of the parent of each body; nb is the immobile root, which is its own parent."""
    root = model.nb
    if model.floating_base:
        return np.array([0, *(model.parents + 1), root])
    return np.array([*np.where(model.parents < 0, root, model.parents), root])
