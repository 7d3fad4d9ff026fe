# SPDX-License-Identifier: Apache-2.0
"""Inequalities c >= 0 of the motion optimisation at its samples, in the ground frame, whose z is the normal.

| inequality | where | slack |
|---|---|---|
| zero-moment point within the region of the feet, (15) with opposite sign | stance | one per segment |
| friction, the pyramid inside the cone: x, -x, y, -y | stance | one per segment |
| normal force of the ground above its lower bound | stance | none |
| height within a band around the path (8): above, below | middle and end of segments | one per segment |

Lengths are in heights h and accelerations in g, so that all slacks are comparable. w = a - g is the ground
force over the mass. The first row is bilinear in positions p and w, all others are linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.planning.com_problem import ComSettings
from quad_dynamics.planning.com_segments import Segments

HARD = -1  # slack of a row that has none
_LEAST = 0.01  # smallest load used to compute the distance of a zero-moment point


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Inequalities that are linear in position and ground force of one sample each.

    Attributes:
        sample: (rows,) index of the sample of each row, segment by segment.
        on_p: (rows, 3) gradients with respect to p.
        on_w: (rows, 3) gradients with respect to w.
        offset: (rows,) values at p = w = 0.
    """

    sample: Ints
    on_p: Floats
    on_w: Floats
    offset: Floats

    def values(self, p: Floats, w: Floats) -> Floats:
        """(rows,) c at samples (samples, 3) of p and w."""
        c = np.einsum('ij,ij->i', self.on_p, p[self.sample])
        c += np.einsum('ij,ij->i', self.on_w, w[self.sample])
        return np.asarray(c + self.offset)

    def matrix(self, chosen: Ints, P: Floats, A: Floats) -> Floats:
        """(chosen, 3, unknowns) derivatives of some rows with respect to the unknowns of each axis.

        Args:
            chosen: indices of the rows.
            P: (3, samples, unknowns) derivatives of p with respect to the unknowns of each axis.
            A: (3, samples, unknowns) those of w.
        """
        at, on_p, on_w = self.sample[chosen], self.on_p[chosen], self.on_w[chosen]
        G = np.empty((len(chosen), 3, P.shape[2]))
        for axis in range(3):
            np.multiply(P[axis][at], on_p[:, axis, None], out=G[:, axis])
            G[:, axis] += A[axis][at] * on_w[:, axis, None]
        return G


@dataclass(frozen=True, eq=False)
class Rows:
    """All inequalities, in the order of the table above.

    Attributes:
        d: (edge rows, 2) normals of the edges.
        r: (edge rows,) their offsets.
        linear: all rows; gradients of edges are those at p = w = 0.
        slack: (rows,) index of the slack of each row, or HARD.
        slack_lin: (slacks,) linear costs; slacks are three per segment: edges, friction, height.
        slack_quad: (slacks,) quadratic costs.
    """

    d: Floats
    r: Floats
    linear: LinearRows
    slack: Ints
    slack_lin: Floats
    slack_quad: Floats

    @property
    def edge_sample(self) -> Ints:
        """(edge rows,) index of the sample of each edge."""
        return self.linear.sample[: len(self.r)]

    def values(self, p: Floats, w: Floats) -> Floats:
        """(rows,) c at samples (samples, 3) of p and w; that of an edge is its distance times the load."""
        c = self.linear.values(p, w)
        d, place, push = self.d, p[self.edge_sample], w[self.edge_sample]
        inside = d[:, 0] * place[:, 0] + d[:, 1] * place[:, 1] + self.r
        along = d[:, 0] * push[:, 0] + d[:, 1] * push[:, 1]
        c[: len(inside)] = inside * push[:, 2] - along * place[:, 2]
        return c

    def linearised(self, p: Floats, w: Floats) -> LinearRows:
        """All rows, those of edges linearised at p and w: with minus (16)."""
        on_p, on_w, offset = self.linear.on_p.copy(), self.linear.on_w.copy(), self.linear.offset.copy()
        d, place, push, m = self.d, p[self.edge_sample], w[self.edge_sample], len(self.r)
        on_p[:m, :2] = d * push[:, 2:]
        on_p[:m, 2] = -(d[:, 0] * push[:, 0] + d[:, 1] * push[:, 1])
        on_w[:m, :2] = d * -place[:, 2:]
        on_w[:m, 2] = d[:, 0] * place[:, 0] + d[:, 1] * place[:, 1] + self.r
        # c is bilinear in [p; 1] and w: its value is the product of w and its gradient
        offset[:m] = -np.einsum('ij,ij->i', on_p[:m], place)
        return LinearRows(self.linear.sample, on_p, on_w, offset)

    def penalty(self, c: Floats) -> tuple[float, float]:
        """Cost of the smallest slacks that satisfy values c; largest violation of hard rows."""
        slacks = np.zeros(len(self.slack_lin) + 1)
        np.maximum.at(slacks, self.slack, -c)  # HARD is the last
        soft = slacks[:-1]
        return float(self.slack_lin @ soft + self.slack_quad @ (soft * soft)), float(slacks[-1])

    def zmp_outside(self, w: Floats, c: Floats) -> float:
        """Largest distance of a zero-moment point from its region, at ground forces w with values c."""
        load = np.maximum(w[self.edge_sample, 2], _LEAST)
        return max(float((-c[: len(load)] / load).max(initial=0.0)), 0.0)


def make_rows(
    segments: Segments,
    edges: list[tuple[Floats, Floats]],
    heights: Floats,
    settings: ComSettings,
    standing: float = 1.0,
) -> Rows:
    """Assemble all inequalities.

    Args:
        segments: of the motion.
        edges: of the region of the zero-moment point in each segment.
        heights: (all samples,) of the path above the ground.
        settings: margins, friction, costs of slacks, and which samples are soft.
        standing: normal force on a body at rest, in weights: less than 1 on a slope.
    """
    n, S = len(segments.durations), settings.samples
    every = np.arange(n * S)
    # there is no force, and so no constraint, where flight begins or ends
    loaded = np.repeat(~segments.flight, S).reshape(n, S)
    loaded[segments.starts_free, 0] = loaded[segments.ends_free, -1] = False
    carried = every[loaded.ravel()]
    # a smaller bound near flight; without flight phases, feet have no reason to leave the ground
    lightest = settings.least_load if segments.flight.any() else settings.steady_load * standing
    least, rise = np.full((n, S), lightest), np.linspace(0.0, 1.0, S)
    least[segments.starts_free] *= rise
    least[segments.ends_free] *= rise[::-1]
    high = (np.arange(n)[:, None] * S + np.array([S // 2, S - 1])).ravel()
    counts = [len(r) for _, r in edges]
    phase = np.repeat(np.arange(n), counts)
    chosen = loaded[phase].ravel()
    at = (phase[:, None] * S + np.arange(S)).ravel()[chosen]
    segment = at // S
    if settings.n_ineq is not None:
        segment = np.where(at % S < settings.n_ineq, segment, HARD)
    m, k, h = len(at), len(carried), len(high)
    sample = np.concatenate([at, carried, carried, carried, carried, carried, high, high])
    on_p, on_w, offset = np.zeros((len(sample), 3)), np.zeros((len(sample), 3)), np.zeros(len(sample))
    for i, (axis, sign) in enumerate(((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0))):
        on_w[m + i * k : m + (i + 1) * k, axis] = sign
    on_w[m : m + 4 * k, 2] = settings.mu / math.sqrt(2.0)
    load = slice(m + 4 * k, m + 5 * k)
    on_w[load, 2], offset[load] = 1.0, -least.ravel()[carried]
    above, below = slice(load.stop, load.stop + h), slice(load.stop + h, None)
    on_p[above, 2], offset[above] = -1.0, settings.height_band + heights[high]
    on_p[below, 2], offset[below] = 1.0, settings.height_band - heights[high]

    lin, quad = np.full(3 * n, settings.lambda_lin), np.full(3 * n, settings.lambda_quad)
    lin[2 * n :], quad[2 * n :] = settings.height_lin, settings.height_quad
    slack = sample // S
    slack[:m] = segment
    slack[m : m + 4 * k] += n
    slack[load] = HARD
    slack[load.stop :] += 2 * n
    return Rows(
        np.repeat(np.concatenate([d for d, _ in edges]), S, axis=0)[chosen],
        np.repeat(np.concatenate([r for _, r in edges]), S)[chosen],
        LinearRows(sample, on_p, on_w, offset),
        slack,
        lin,
        quad,
    )
