# SPDX-License-Identifier: Apache-2.0
"""The consistent least-squares problem as a conic programme for Clarabel, written without our own solver.

log det P = max of sum log D_kk over lower triangular D with [[P, D], [D^T, diag(D)]] >= 0: a semidefinite
cone and four exponential cones for each body.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from quad_dynamics.array_types import Floats


def pseudo_inertia(pi: Floats) -> Floats:
    """(4, 4) from the definition: Sigma = tr(I) / 2 - I, h, m."""
    m, x, y, z, xx, xy, yy, xz, yz, zz = pi
    half = 0.5 * (xx + yy + zz)
    return np.array(
        [[half - xx, -xy, -xz, x], [-xy, half - yy, -yz, y], [-xz, -yz, half - zz, z], [x, y, z, m]]
    )


def solve_conic(H: Floats, g: Floats, x0: Floats, bodies: int, weight: float, bounded: Floats) -> Floats:
    """Minimise z^T H z / 2 - g^T z + weight * sum D(P_i, P0_i), x = x0 + z, with x >= 0 where bounded.

    Args:
        H: (n, n); the first 10 * bodies unknowns are inertial.
        g: (n,).
        x0: (n,) prior.
        bodies: number of bodies.
        weight: of the divergences; 0 leaves the constraint P >= 0.
        bounded: (n,) which unknowns cannot be negative.

    Returns:
        (n,) x.
    """
    n = len(g)
    size = n + 14 * bodies  # z, then for each body 10 entries of D and 4 logarithms
    q = np.concatenate([-g, np.zeros(14 * bodies)])
    A, b, cones = [], [], []
    lower = [(i, j) for i in range(4) for j in range(i + 1)]
    for i in range(bodies):
        P0 = pseudo_inertia(x0[10 * i : 10 * i + 10])
        L = np.linalg.inv(np.linalg.cholesky(P0))
        E = [L @ pseudo_inertia(unit) @ L.T for unit in np.eye(10)]
        own, logs = n + 14 * i, n + 14 * i + 10
        q[10 * i : 10 * i + 10] += weight * np.array([np.trace(e) for e in E])
        q[logs : logs + 4] = -weight
        blocks = np.zeros((8, 8, size))
        for a in range(10):
            blocks[:4, :4, 10 * i + a] = E[a]
        for k, (r, c) in enumerate(lower):
            blocks[r, 4 + c, own + k] = blocks[4 + c, r, own + k] = 1.0
            if r == c:
                blocks[4 + r, 4 + r, own + k] = 1.0
        fixed = np.zeros((8, 8))
        fixed[:4, :4] = np.eye(4)
        A.append(-_svec(blocks))
        b.append(_svec(fixed))
        cones.append(clarabel.PSDTriangleConeT(8))
        for k in range(4):
            rows = np.zeros((3, size))
            rows[0, logs + k] = -1.0
            rows[2, own + lower.index((k, k))] = -1.0
            A.append(rows)
            b.append(np.array([0.0, 1.0, 0.0]))
            cones.append(clarabel.ExponentialConeT())
    bound = np.flatnonzero(bounded)
    rows = np.zeros((len(bound), size))
    rows[np.arange(len(bound)), bound] = -1.0
    A.append(rows)
    b.append(x0[bound])
    cones.append(clarabel.NonnegativeConeT(len(bound)))
    full = np.zeros((size, size))
    full[:n, :n] = H
    settings: Any = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(full)),
        q,
        sparse.csc_matrix(np.concatenate(A)),
        np.concatenate(b),
        cones,
        settings,
    )
    solution = solver.solve()
    assert str(solution.status) in ('Solved', 'AlmostSolved'), solution.status
    return np.asarray(x0 + np.array(solution.x)[:n])


def _svec(matrix: Floats) -> Floats:
    """Upper triangle column by column, off-diagonal entries times sqrt(2)."""
    size = matrix.shape[0]
    rows = [matrix[i, j] * (1.0 if i == j else np.sqrt(2.0)) for j in range(size) for i in range(j + 1)]
    return np.array(rows)
