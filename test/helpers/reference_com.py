# SPDX-License-Identifier: Apache-2.0
"""The motion optimisation as the document writes it: polynomials in seconds, equality rows, world axes.

Nothing is eliminated or whitened. The unknowns are the coefficients of all quintics, highest power first, and
the slacks. Quadratic programs are solved by Clarabel, and steps are full. Rows of the zero-moment point are
(15) with its sign turned round, and (16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from scipy.spatial import ConvexHull

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.com_problem import ComProblem, ComSettings

_POWERS = np.arange(5, -1, -1)


def eta(t: float, order: int = 0) -> Floats:
    """(6,) of (2) to (4): derivative of [t^5, ..., 1]."""
    factor, power = np.ones(6), _POWERS.copy()
    for _ in range(order):
        factor *= power
        power = np.maximum(power - 1, 0)
    return np.asarray(factor * t**power)


def square_matrix(T: float, order: int) -> Floats:
    """(6, 6) integral of squared derivatives by Gauss quadrature, which is exact for polynomials."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    rows = np.array([eta(0.5 * T * (node + 1.0), order) for node in nodes])
    return np.asarray(rows.T @ (0.5 * T * weights[:, None] * rows))


def skew(a: Floats) -> Floats:
    """S(a) b = a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def written_edge(p: Floats, a: Floats, d: Floats, r: float, n: Floats, g: Floats) -> float:
    """(15) as it is written, without the mass."""
    return float(d @ skew(n) @ skew(p) @ (g - a) + r * n @ (g - a))


def written_gradient(
    p: Floats, a: Floats, d: Floats, r: float, n: Floats, g: Floats
) -> tuple[Floats, Floats]:
    """(16) as it is written."""
    gamma = skew(skew(n).T @ d)
    return gamma @ (a - g), -gamma @ p - r * n


def region(feet: Floats, normal: Floats, margin: float, width: float) -> list[tuple[Floats, float]]:
    """Edges (d, r) of the region of the zero-moment point, in world axes about the origin [m]."""
    if len(feet) == 2:
        along = feet[1] - feet[0]
        length = float(np.linalg.norm(along))
        along = along / length
        aside, middle = np.cross(normal, along), feet.mean(axis=0)
        half = 0.5 * length - margin
        sides = ((aside, width), (-aside, width), (along, half), (-along, half))
        return [(d, float(size - d @ middle)) for d, size in sides]
    x = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    x /= np.linalg.norm(x)
    axes = np.stack([x, np.cross(normal, x)])
    return [(-line[:2] @ axes, float(-line[2] - margin)) for line in ConvexHull(feet @ axes.T).equations]


@dataclass(frozen=True, eq=False)
class Motion:
    """Coefficients (n, 3, 6) of all quintics in seconds, highest power first, and slacks (3 n,)."""

    alpha: Floats
    slacks: Floats
    merit: float

    def at(self, segment: int, t: float, order: int) -> Floats:
        """(3,) derivative in one segment, at a time from its begin."""
        return np.asarray(self.alpha[segment] @ eta(t, order))


class Reference:
    """One problem, in SI units; costs are made dimensionless as the settings say."""

    def __init__(self, problem: ComProblem, settings: ComSettings) -> None:
        self.problem, self.settings = problem, settings
        self.T = [phase.duration for phase in problem.phases]
        self.n = len(self.T)
        self.h, self.g = problem.height, problem.g
        self.normal = problem.normal / np.linalg.norm(problem.normal)
        self.gravity = np.array([0.0, 0.0, -self.g])
        self.size = 18 * self.n + 3 * self.n
        self.path = self._path()

    def _path(self) -> Floats:
        """(3, 6) coefficients of the path over the horizon."""
        total, ends = sum(self.T), (self.problem.path.start, self.problem.path.end)
        rows = [eta(t, order) for t in (0.0, total) for order in range(3)]
        values = [getattr(state, part) for state in ends for part in 'pva']
        return np.asarray(np.linalg.solve(np.array(rows), np.array(values)).T)

    def _segment_path(self, k: int) -> Floats:
        """(3, 6) coefficients of the path in the time of a segment."""
        begin = sum(self.T[:k])
        taylor = [self.path @ eta(begin, order) / math.factorial(order) for order in _POWERS]
        return np.asarray(np.array(taylor).T)

    def cost(self) -> tuple[Floats, Floats, float]:
        """(Q, c, constant) of x^T Q x + c^T x + constant with all unknowns."""
        w, h, g, unit = self.settings.weights, self.h, self.g, np.sqrt(self.h / self.g)
        Q, c, constant = np.zeros((self.size, self.size)), np.zeros(self.size), 0.0
        x = np.array([1.0, 0.0, 0.0]) - self.normal[0] * self.normal
        x /= np.linalg.norm(x)
        R = np.stack([x, np.cross(self.normal, x), self.normal])

        def add(rows: Floats, wanted: Floats, weight: float) -> None:
            """weight |rows x - wanted|^2."""
            nonlocal Q, c, constant
            Q += weight * rows.T @ rows
            c -= 2.0 * weight * rows.T @ wanted
            constant += weight * float(wanted @ wanted)

        nodes, weights = np.polynomial.legendre.leggauss(6)
        for k, T in enumerate(self.T):
            path = self._segment_path(k)
            for node, part in zip(nodes, weights, strict=True):
                t, share = 0.5 * T * (node + 1.0), 0.5 * T * part / unit
                add(self.row(k, t, 2) / g, np.zeros(3), w.acceleration * share)
                for axis, weight in ((0, w.path_position), (1, w.path_position), (2, w.path_height)):
                    rows = R[axis] @ self.row(k, t, 0) / h
                    add(rows[None], np.array([R[axis] @ path @ eta(t)]) / h, weight * share)
                speed = np.sqrt(g * h)
                add(self.row(k, t, 1) / speed, path @ eta(t, 1) / speed, w.path_velocity * share)
        end, T = self.problem.path.end, self.T[-1]
        add(self.row(self.n - 1, T, 0) / h, end.p / h, w.final_position)
        add(self.row(self.n - 1, T, 1) / np.sqrt(g * h), end.v / np.sqrt(g * h), w.final_velocity)
        if not self.problem.phases[0].is_flight:
            add(self.row(0, 0.0, 2) / g, self.problem.start.a / g, w.start_acceleration)
        s = self.settings
        lin = np.repeat([s.lambda_lin, s.lambda_lin, s.height_lin], self.n)
        quad = np.repeat([s.lambda_quad, s.lambda_quad, s.height_quad], self.n)
        c[18 * self.n :] += lin
        Q[range(18 * self.n, self.size), range(18 * self.n, self.size)] += quad
        return Q, c, constant

    def row(self, k: int, t: float, order: int) -> Floats:
        """(3, unknowns) T(t) of (5) and its derivatives."""
        rows = np.zeros((3, self.size))
        for axis in range(3):
            rows[axis, 18 * k + 6 * axis : 18 * k + 6 * axis + 6] = eta(t, order)
        return rows

    def equalities(self) -> tuple[Floats, Floats]:
        """(A, b): the start, (9), and (10) with a = g at take-off, in flight and at landing."""
        rows, values, T = [], [], self.T
        phases, start = self.problem.phases, self.problem.start

        def add(row: Floats, value: Floats) -> None:
            rows.append(row)
            values.append(value)

        add(self.row(0, 0.0, 0), start.p)
        add(self.row(0, 0.0, 1), start.v)
        for k in range(self.n - 1):
            for order in range(2):
                add(self.row(k, T[k], order) - self.row(k + 1, 0.0, order), np.zeros(3))
        for k, phase in enumerate(phases):
            if phase.is_flight:
                for t in (0.0, T[k] / 3.0, T[k] / 1.5, T[k]):
                    add(self.row(k, t, 2), self.gravity)
            else:
                if T[k] < self.settings.shortest * np.sqrt(self.h / self.g):  # a cubic
                    for order in (5, 4):
                        add(self.row(k, 0.0, order) * T[k] ** order, np.zeros(3))
                if k and phases[k - 1].is_flight:
                    add(self.row(k, 0.0, 2), self.gravity)
                if k + 1 < self.n and phases[k + 1].is_flight:
                    add(self.row(k, T[k], 2), self.gravity)
        return np.concatenate(rows), np.concatenate(values)

    def inequalities(self, motion: Motion | None) -> tuple[Floats, Floats]:
        """(G, low), G x >= low, linearised at a motion, or at the path of a body that stands still."""
        s, phases, h, g = self.settings, self.problem.phases, self.h, self.g
        rows, low = [], []
        mu, x = s.mu / np.sqrt(2.0), np.array([1.0, 0.0, 0.0]) - self.normal[0] * self.normal
        x /= np.linalg.norm(x)
        tangents = (x, -x, np.cross(self.normal, x), -np.cross(self.normal, x))

        def add(row: Floats, value: float, slack: int | None) -> None:
            row = row.copy()
            if slack is not None:
                row[18 * self.n + slack] = 1.0
            rows.append(row)
            low.append(value)

        steady, standing = (
            not any(phase.is_flight for phase in phases),
            -float(self.normal @ self.gravity) / g,
        )
        for k, phase in enumerate(phases):
            path = self._segment_path(k)
            for i in range(s.samples):
                t = self.T[k] * i / (s.samples - 1)
                P, A = self.row(k, t, 0), self.row(k, t, 2)
                height = float(self.normal @ path @ eta(t))
                if i in {s.samples // 2, s.samples - 1}:
                    add(-self.normal @ P / h, -height / h - s.height_band, 2 * self.n + k)
                    add(self.normal @ P / h, height / h - s.height_band, 2 * self.n + k)
                least = s.steady_load * standing if steady else s.least_load
                if k > 0 and phases[k - 1].is_flight:
                    least *= i / (s.samples - 1)
                if k + 1 < self.n and phases[k + 1].is_flight:
                    least *= 1.0 - i / (s.samples - 1)
                if phase.is_flight or least == 0.0:
                    continue
                load = self.normal @ A / g
                add(load, least - standing, None)
                for along in tangents:
                    push = along + mu * self.normal
                    add(push @ A / g, float(push @ self.gravity) / g, self.n + k)
                if motion is None:
                    p, a = path @ eta(t), np.zeros(3)
                else:
                    p, a = motion.at(k, t, 0), motion.at(k, t, 2)
                o = self.problem.ground_point
                for d, r in region(phase.polygon - o, self.normal, s.margin * h, s.line_width * h):
                    value = -written_edge(p - o, a, d, r, self.normal, self.gravity)
                    on_p, on_a = written_gradient(p - o, a, d, r, self.normal, self.gravity)
                    row = -(on_p @ P + on_a @ A)
                    add(row / (g * h), (-on_p @ p - on_a @ a - value) / (g * h), k)
        return np.array(rows), np.array(low)

    def solve(self, iterations: int) -> list[Motion]:
        """The motions after each of some iterations."""
        found: list[Motion] = []
        for _ in range(iterations):
            x, value = self.quadratic_program(found[-1] if found else None)
            found.append(Motion(x[: 18 * self.n].reshape(self.n, 3, 6), x[18 * self.n :], value))
        return found

    def quadratic_program(self, motion: Motion | None) -> tuple[Floats, float]:
        """Solution and value of the model at a motion."""
        Q, c, constant = self.cost()
        # coefficients in normalised time, for the solver's sake: a factor each
        unit = np.ones(self.size)
        for k, T in enumerate(self.T):
            unit[18 * k : 18 * k + 18] = np.tile(T ** (-_POWERS.astype(float)), 3)
        A, b = self.equalities()
        G, low = self.inequalities(motion)
        bounds = np.eye(self.size)[18 * self.n :]
        settings: Any = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        rows = np.concatenate([A, -G, -bounds]) * unit
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(2.0 * unit[:, None] * Q * unit)),
            c * unit,
            sparse.csc_matrix(rows),
            np.concatenate([b, -low, np.zeros(len(bounds))]),
            [clarabel.ZeroConeT(len(b)), clarabel.NonnegativeConeT(len(low) + len(bounds))],
            settings,
        )
        solution = solver.solve()
        assert str(solution.status) in {'Solved', 'AlmostSolved'}, solution.status
        x = np.array(solution.x) * unit
        return x, float(x @ Q @ x + c @ x) + constant
