# SPDX-License-Identifier: Apache-2.0
"""Whole-body control in all its unknowns, x = [du; f], level by level: Pinocchio, numpy and Clarabel.

Nothing is eliminated by hand. The equation of motion of the base, the contact constraint and the posture of
redundant joints are the rows of one matrix, and its null space comes from a singular value decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from quad_dynamics.array_types import Floats

_RANK = 1e-9  # singular values below this share of the largest are zero
_TOLERANCE = 1e-10  # below it Clarabel may give up on small programs


@dataclass(frozen=True, eq=False)
class Problem:
    """All levels: E x = e, low <= C x <= high, least |W x - b|, least |F x - f0|.

    Attributes:
        contact: the rows of E that are the contact constraint.
        torques: (T, t), tau = T x + t.
    """

    E: Floats
    e: Floats
    C: Floats
    low: Floats
    high: Floats
    W: Floats
    b: Floats
    F: Floats
    f0: Floats
    contact: slice
    torques: tuple[Floats, Floats]

    def residual(self, x: Floats) -> float:
        """Of the tasks."""
        return float(np.linalg.norm(self.W @ x - self.b))


@dataclass(frozen=True, eq=False)
class Answer:
    """Solutions of the levels: the tasks alone, and the forces below them; None where there is none."""

    tasks: Floats | None
    forces: Floats | None


def foot_rows(
    pin: Any, q: Floats, u: Floats, foot: str, offset: Floats, arm: Floats
) -> tuple[Floats, Floats]:
    """Jacobian (3, nv) and bias (3,) of a point that is a constant `arm` away from the centre of a foot.

    Args:
        pin: reference.
        q: configuration.
        u: velocity.
        foot: its link.
        offset: (3,) of its centre, in the link's frame [m].
        arm: (3,) from the centre to the point, constant in the world [m].
    """
    J, bias = pin.frame_jacobian(q, foot), pin.frame_bias_acceleration(q, u, foot)
    w, r = pin.frame_velocity(q, u, foot)[3:], pin.frame_pose(q, foot)[0] @ offset
    rows = J[:3] - np.cross(r + arm, J[3:], axisb=0).T
    return rows, bias[:3] + np.cross(w, np.cross(w, r)) + np.cross(bias[3:], r + arm)


def build(
    model: Any, pin: Any, feet: Any, state: tuple[Floats, Floats], tasks: Any, mu: float, weights: Any
) -> Problem:
    """The problem of some tasks.

    Args:
        model: robot.
        pin: the same in Pinocchio.
        feet: of each leg, the centre (3,) of its foot in the link's frame, and its radius.
        state: (q, u).
        tasks: as WholeBodyControl takes them.
        mu: friction.
        weights: of the tasks.
    """
    q, u = state
    nv, normal = model.nv, tasks.axes[:, 2]
    down = [k for k in range(len(model.legs)) if tasks.down[k]]
    n = nv + 3 * len(down)
    unit = model.total_mass / len(model.legs)
    M, h = pin.mass_matrix(q), pin.nonlinear_effects(q, u)
    points = [
        foot_rows(pin, q, u, leg.foot, offset, -radius * normal * tasks.down[k])
        for k, (leg, (offset, radius)) in enumerate(zip(model.legs, feet, strict=True))
    ]
    motion = np.zeros((nv, n))  # M du - J^T f
    motion[:, :nv] = M
    contact, aims = np.zeros((3 * len(down), n)), np.zeros(3 * len(down))
    C, high = [], []
    for i, k in enumerate(down):
        own = slice(nv + 3 * i, nv + 3 * i + 3)
        motion[:, own] = -points[k][0].T
        contact[3 * i : 3 * i + 3, :nv] = points[k][0]
        aims[3 * i : 3 * i + 3] = tasks.feet[k] - points[k][1]
        along, across = tasks.axes[:, 0], tasks.axes[:, 1]
        for side in (along, -along, across, -across):
            C.append(_row(n, own, side - mu / np.sqrt(2.0) * normal))
            high.append(0.0)
        C += [_row(n, own, normal), _row(n, own, -normal)]
        high += [tasks.most_force[k], 0.0]
    T, t = motion[6:], h[6:]
    posture, rest = _posture_rows(model, [J for J, _ in points], tasks, n)
    E, e = np.vstack([motion[:6], contact, posture]), np.concatenate([-h[:6], aims, rest])
    C_all = np.vstack([T, *C]) if C else T
    W, b = _task_rows(pin, q, u, tasks, weights, points, n)
    F = np.zeros((3 * len(down), n))
    F[:, nv:] = np.eye(3 * len(down)) / unit
    f0 = tasks.forces[down].ravel() / unit
    low = np.concatenate([tasks.low - t, np.full(len(high), -np.inf)])
    upper = np.concatenate([tasks.high - t, high])
    return Problem(E, e, C_all, low, upper, W, b, F, f0, slice(6, 6 + 3 * len(down)), (T, t))


def _row(n: int, where: slice, values: Floats) -> Floats:
    row = np.zeros(n)
    row[where] = values
    return row


def _posture_rows(model: Any, jacobians: list[Floats], tasks: Any, n: int) -> tuple[Floats, Floats]:
    """Joints outside of legs, and motions of a leg that leave its foot at rest, accelerate as given."""
    rows = []
    others = set(range(model.nj))
    for leg, J in zip(model.legs, jacobians, strict=True):
        joints = list(leg.joint_indices)
        others -= set(joints)
        for direction in _null_space(J[:, 6 + np.array(joints)]).T:
            row = np.zeros(n)
            row[6 + np.array(joints)] = direction
            rows.append(row)
    for j in sorted(others):
        rows.append(_row(n, slice(6 + j, 7 + j), np.ones(1)))
    matrix = np.array(rows).reshape(-1, n)
    return matrix, matrix[:, 6 : model.nv] @ tasks.free


def _task_rows(
    pin: Any, q: Floats, u: Floats, tasks: Any, weights: Any, points: Any, n: int
) -> tuple[Floats, Floats]:
    """Weighted rows W x = b of centre of mass, base and swing feet, along the axes of the ground."""
    nv = len(u)
    mass = pin.mass_matrix(q)[0, 0]
    W, b = [], []

    def add(rows: Floats, wanted: Floats, weight: Any) -> None:
        scale = np.sqrt(np.broadcast_to(weight, (3,)))
        W.append(np.hstack([tasks.axes.T @ rows, np.zeros((3, n - nv))]) * scale[:, None])
        b.append(scale * (tasks.axes.T @ wanted))

    add(pin.com_jacobian(q), tasks.com - pin.centroidal_bias(q, u)[:3] / mass, weights.com)
    turn = np.zeros((3, nv))
    turn[:, 3:6] = pin.R_WB(q)
    add(turn, tasks.angular, weights.angular)
    for k, (J, bias) in enumerate(points):
        if not tasks.down[k]:
            add(J, tasks.feet[k] - bias, weights.swing)
    return np.vstack(W), np.concatenate(b)


# ---------------------------------------------------------------- levels


def lexicographic(problem: Problem, torque_limits: bool = True) -> Answer:
    """Every level within what the levels above have left."""
    p = problem
    first = 0 if torque_limits else len(p.torques[1])
    C, low, high = p.C[first:], p.low[first:], p.high[first:]
    x, N = _equalities(p.E, p.e)
    y = quadratic(p.W @ N, p.b - p.W @ x, C @ N, low - C @ x, high - C @ x)
    if y is None:
        return Answer(None, None)
    tasks = x + N @ y
    N = N @ _null_space(p.W @ N)
    y = quadratic(p.F @ N, p.f0 - p.F @ tasks, C @ N, low - C @ tasks, high - C @ tasks)
    return Answer(tasks, None if y is None else tasks + N @ y)


def weighted(problem: Problem, weight: float) -> Floats | None:
    """Tasks, and forces with a small weight, as one problem."""
    p = problem
    x, N = _equalities(p.E, p.e)
    A = np.vstack([p.W, np.sqrt(weight) * p.F]) @ N
    b = np.concatenate([p.b - p.W @ x, np.sqrt(weight) * (p.f0 - p.F @ x)])
    y = quadratic(A, b, p.C @ N, p.low - p.C @ x, p.high - p.C @ x)
    return None if y is None else x + N @ y


def _equalities(E: Floats, e: Floats) -> tuple[Floats, Floats]:
    """Solutions x + N y of E x = e."""
    return np.linalg.lstsq(E, e, rcond=None)[0], _null_space(E)


def _null_space(A: Floats) -> Floats:
    """(n, k) orthonormal columns."""
    _, values, V = np.linalg.svd(A)
    rank = int((values > _RANK * values.max(initial=0.0)).sum())
    return V[rank:].T


def quadratic(A: Floats, b: Floats, C: Floats, low: Floats, high: Floats) -> Floats | None:
    """The y with the least |A y - b| within low <= C y <= high; None if there is none."""
    n = A.shape[1]
    if not n:
        return np.zeros(0)
    G = np.vstack([C[np.isfinite(high)], -C[np.isfinite(low)]])
    g = np.concatenate([high[np.isfinite(high)], -low[np.isfinite(low)]])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 200
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = _TOLERANCE
    P = sparse.csc_matrix(np.triu(A.T @ A))
    solver = clarabel.DefaultSolver(
        P, -A.T @ b, sparse.csc_matrix(G), g, [clarabel.NonnegativeConeT(len(g))], settings
    )
    found = solver.solve()
    if 'PrimalInfeasible' in str(found.status):
        return None
    assert str(found.status) in ('Solved', 'AlmostSolved'), f'Clarabel: {found.status}'
    return np.array(found.x)
