# SPDX-License-Identifier: Apache-2.0
"""A motion optimisation as a program in the ground frame, its merit, and its convex models.

Lengths are in heights h, times in sqrt(h / g). The factor L of the cost turns it into half the square of
y = L^T (u - best), so that the Hessian of the quadratic programs is the identity.

The merit of a motion is its cost plus that of the smallest slacks with which it satisfies all inequalities. A
quadratic program is a model of the merit: zero-moment points are linearised, and the Hessian of (17), which
is indefinite, is omitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import daqp
import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.planning.com_cost import FactorisedCost, factorise, motion_cost
from quad_dynamics.planning.com_problem import ComProblem, ComSettings, SupportPhase
from quad_dynamics.planning.com_rows import HARD, LinearRows, Rows, make_rows
from quad_dynamics.planning.com_segments import KNOWN, Segments, Tables, hermite_data, make_segments
from quad_dynamics.planning.motion_plan import HERMITE
from quad_dynamics.planning.support_region import support_edges

_SOLVED = 1  # exit flag of daqp
_QP_ITERATIONS = 500  # walking takes 20 to 100, the worst random states about 400
_FAR = 1e30  # no bound
_NEAR = 0.1  # value below which a row is included initially, in heights or in g
_MISSED = 1e-6  # violation above which an omitted row is added
_HARD_WEIGHT = 1e3  # weight of rows without slack in the merit


@dataclass(frozen=True, eq=False)
class GroundFrame:
    """The frame G below the start, with its z axis along the normal of the ground, and units h and g.

    Attributes:
        origin: (3,) [m].
        R: (3, 3) R_GW.
        length: h [m].
        g: [m/s^2].
    """

    origin: Floats
    R: Floats
    length: float
    g: float

    @property
    def unit(self) -> float:
        """Unit of time, sqrt(h / g) [s]."""
        return math.sqrt(self.length / self.g)

    def state(self, p: Floats, v: Floats, a: Floats) -> Floats:
        """(3, 3) or (3, n, 3) p, v and a in the frame and its units."""
        R, h, g = self.R.T, self.length, self.g
        return np.stack([(p - self.origin) @ R / h, v @ R / math.sqrt(h * g), a @ R / g])


@dataclass(frozen=True, eq=False)
class Point:
    """A motion.

    Attributes:
        y: (3, unknowns).
        p: (samples, 3) positions.
        w: (samples, 3) accelerations minus gravity.
        c: (rows,) values of the inequalities.
        cost: without slacks.
        merit: with them.
    """

    y: Floats
    p: Floats
    w: Floats
    c: Floats
    cost: float
    merit: float


@dataclass(frozen=True, eq=False)
class Program:
    """A problem in the frame of the ground.

    Attributes:
        frame: of the ground.
        segments: of the motion.
        cost: factorised.
        rows: its inequalities.
        known: (KNOWN, 3) position, velocity and gravity.
        p_path: (samples, 3) of the path.
        p_best: (samples, 3) of the motion with the least cost.
        w_best: (samples, 3) its accelerations minus gravity.
        P: (3, samples, unknowns) derivatives of positions with respect to y of each axis.
        A: (3, samples, unknowns) those of accelerations.
    """

    frame: GroundFrame
    segments: Segments
    cost: FactorisedCost
    rows: Rows
    known: Floats
    p_path: Floats
    p_best: Floats
    w_best: Floats
    P: Floats
    A: Floats

    @property
    def unknowns(self) -> int:
        """Number of unknowns of each axis."""
        return len(self.cost.best)

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are finite."""
        arrays = (self.p_path, self.p_best, self.w_best, self.P, self.A, self.rows.r)
        return math.isfinite(self.cost.value + sum(float(array.sum()) for array in arrays))

    def evaluate(self, y: Floats) -> Point:
        """Samples, cost and merit of a motion y (3, unknowns)."""
        p, w = self._samples(y)
        c = self.rows.values(p, w)
        cost = self.cost.value + 0.5 * float(np.vdot(y, y))
        penalty, hard = self.rows.penalty(c)
        return Point(y, p, w, c, cost, cost + penalty + _HARD_WEIGHT * hard)

    def solve_model(self, at: Point | None) -> tuple[Floats, float] | None:
        """(3, unknowns) minimiser y of the model at a motion, and its merit; None if it was not found.

        Without a motion, and at samples where it does not push the ground, the model is that of a body at
        rest on the path.
        """
        stands = -self.known[2]
        if at is None:
            p, w = self.p_path, np.broadcast_to(stands, self.w_best.shape)
        else:
            p, w = at.p, np.where(at.w[:, 2:] > 0.0, at.w, stands)
        linear = self.rows.linearised(p, w)
        c = linear.values(self.p_best, self.w_best)
        if not math.isfinite(float(c.sum()) + float(linear.on_p.sum()) + float(linear.on_w.sum())):
            return None
        # Few rows are active. The program is solved with some of them, and again with the violated ones
        # added, until the solution satisfies all rows.
        chosen = c < _NEAR if at is None else np.minimum(c, at.c) < _NEAR
        while True:
            found = self._solve_rows(linear, c, np.flatnonzero(chosen))
            if found is None:
                return None
            y, slacks, merit = found
            p, w = self._samples(y)
            missed = (linear.values(p, w) + np.append(slacks, 0.0)[self.rows.slack] < -_MISSED) & ~chosen
            if not missed.any():
                return y, merit
            chosen |= missed

    def _solve_rows(self, linear: LinearRows, c: Floats, chosen: Ints) -> tuple[Floats, Floats, float] | None:
        """Solution y, slacks and merit of the quadratic program with some rows; None if it was not solved.

        Args:
            linear: all rows.
            c: (rows,) their values at best.
            chosen: indices of the rows to use.
        """
        rows, slack = self.rows, self.rows.slack[chosen]
        soft = np.flatnonzero(slack != HARD)
        used, column = np.unique(slack[soft], return_inverse=True)
        # slacks are scaled so that their quadratic cost is 1/2 as well
        scale, n = 1.0 / np.sqrt(2.0 * rows.slack_quad[used]), len(used)
        G = np.zeros((len(chosen), n + 3 * self.unknowns))
        G[:, n:] = linear.matrix(chosen, self.P, self.A).reshape(len(chosen), -1)
        G[soft, column] = scale[column]
        f, low = np.zeros(G.shape[1]), np.concatenate([np.zeros(n), -c[chosen]])
        f[:n] = rows.slack_lin[used] * scale
        high = np.full(len(low), _FAR)
        x, _, flag, _ = daqp.solve(np.eye(len(f)), f, G, high, low, iter_limit=_QP_ITERATIONS)
        if flag != _SOLVED or not np.isfinite(x).all():
            return None
        slacks = np.zeros(len(rows.slack_lin))
        slacks[used] = scale * x[:n]
        return x[n:].reshape(3, -1), slacks, self.cost.value + 0.5 * float(x @ x) + float(f @ x)

    def _samples(self, y: Floats) -> tuple[Floats, Floats]:
        """(samples, 3) positions p and ground forces w of a motion."""
        p = self.p_best + np.matmul(self.P, y[:, :, None])[:, :, 0].T
        return p, self.w_best + np.matmul(self.A, y[:, :, None])[:, :, 0].T

    def coefficients(self, y: Floats) -> Floats:
        """(n, 6, 3) of a motion in world axes and normalised time, lowest power first [m]."""
        X = self.segments.E @ np.concatenate([self.known, self.cost.unknowns(y)])
        c = self.frame.length * ((HERMITE @ X) @ self.frame.R)
        c[:, 0] += self.frame.origin
        return np.asarray(c)


def make_program(problem: ComProblem, settings: ComSettings, tables: Tables) -> Program:
    """Transform a problem to the ground frame, and factorise its cost.

    Raises:
        LinAlgError: the cost is numerically not convex.
    """
    frame, phases = ground_frame(problem), problem.phases
    start = frame.state(problem.start.p, problem.start.v, problem.start.a)
    known = np.stack([start[0], start[1], frame.R @ np.array([0.0, 0.0, -1.0])])
    segments = make_segments(
        [phase.duration / frame.unit for phase in phases],
        [phase.is_flight for phase in phases],
        [_same_feet(*pair) for pair in zip(phases, phases[:1] + phases[:-1], strict=True)],
        settings.shortest,
    )
    T, E = segments.durations, segments.E
    knots = np.concatenate([[0.0], np.cumsum(T)])
    ends = np.concatenate([frame.state(s.p, s.v, s.a) for s in (problem.path.start, problem.path.end)])
    X_path = hermite_data(ends, float(knots[-1]), knots)
    cost = factorise(motion_cost(segments, X_path, ends[3:5], start[2], settings.weights), known)

    samples, columns = len(T) * settings.samples, E.shape[2]
    P = (tables.position @ E).reshape(samples, columns)
    A = (tables.acceleration @ E / (T * T)[:, None, None]).reshape(samples, columns)
    p_path = (tables.position @ X_path).reshape(samples, 3)
    z = np.concatenate([known, cost.best])
    edges, standing = _edges(problem, frame, settings), -float(known[2, 2])
    rows = make_rows(segments, edges, p_path[:, 2], settings, standing)
    P_y, A_y = P[:, KNOWN:] @ cost.inverse, A[:, KNOWN:] @ cost.inverse
    return Program(frame, segments, cost, rows, known, p_path, P @ z, A @ z - known[2], P_y, A_y)


def ground_frame(problem: ComProblem) -> GroundFrame:
    """The ground frame, with its x axis towards x of the world."""
    normal = problem.normal / np.linalg.norm(problem.normal)
    a, b, c = normal.tolist()
    level = math.hypot(b, c)
    # x of the world minus its normal component, and the normal crossed with that
    R = np.array([[level, -a * b / level, -a * c / level], [0.0, c / level, -b / level], [a, b, c]])
    origin = problem.start.p - normal * float(normal @ (problem.start.p - problem.ground_point))
    return GroundFrame(origin, R, problem.height, problem.g)


def _edges(problem: ComProblem, frame: GroundFrame, settings: ComSettings) -> list[tuple[Floats, Floats]]:
    """Regions of the zero-moment point in each phase."""
    feet = np.concatenate([phase.polygon for phase in problem.phases]) - frame.origin
    places = [(x, y) for x, y in (feet @ (frame.R[:2].T / frame.length)).tolist()]
    found, first = [], 0
    for phase in problem.phases:
        last = first + len(phase.polygon)
        found.append(support_edges(places[first:last], settings.margin, settings.line_width))
        first = last
    return found


def _same_feet(phase: SupportPhase, before: SupportPhase) -> bool:
    """Whether two phases have the same feet in contact."""
    a, b = phase.polygon, before.polygon
    return a is b or (a.shape == b.shape and bool((a == b).all()))
