# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics by factoring the mass matrix: M = L L^T.

Where M is not positive definite (inertial parameters that no body can have), LLT fails at a pivot, and LDLT
(`ldlt`) solves. The simulator factors in another order, see `joint_space`.
"""

from __future__ import annotations

import math

from quad_dynamics.kernels.arrays import data
from quad_dynamics.kernels.ldlt import factor_ldlt, solve_ldlt
from quad_dynamics.kernels.registry import INT, OBJECT, kernel
from quad_dynamics.kernels.trace import routine
from quad_dynamics.kernels.types import Address, Int, Object


@kernel(INT, OBJECT)
def factor_llt(n: Int, M: Object) -> Int:
    """Factor M (n, n) in place, L its lower triangle; returns 0, or 1 + the row whose pivot is not > 0."""
    return factor(data(M), 0, n)


@routine
def factor(M: Address, start: Int, n: Int) -> Int:
    """Factor the n x n matrix at M[start] in place, as `factor_llt`."""
    for i in range(n):
        row_i = start + i * n
        for j in range(i):
            row_j = start + j * n
            x = M[row_i + j]
            for k in range(j):
                x -= M[row_i + k] * M[row_j + k]
            M[row_i + j] = x / M[row_j + j]
        d = M[row_i + i]
        for k in range(i):
            d -= M[row_i + k] * M[row_i + k]
        if not d > 0.0:
            return 1 + i
        M[row_i + i] = math.sqrt(d)
    return 0


@kernel(INT, INT, OBJECT, OBJECT)
def solve_llt(n: Int, count: Int, M: Object, b: Object) -> Int:
    """Solve L L^T x = b in place, for `count` right-hand sides b (count, n)."""
    for i in range(count):
        solve(data(M), 0, n, data(b), i * n)
    return 0


@kernel(INT, INT, OBJECT, OBJECT, OBJECT, OBJECT)
def solve_symmetric(n: Int, count: Int, M: Object, b: Object, work: Object, failed: Object) -> Int:
    """Solve M x = b in place, for `count` matrices: by LLT, and by LDLT where LLT fails.

    Args:
        n: rows.
        count: number of matrices.
        M: (count, n, n) symmetric.
        b: (count, n) right-hand sides; the solutions out.
        work: (n + 1, n) workspace.
        failed: (count,) out, 0, or 1 + the row at which LLT failed.

    Returns:
        0, or 1 + the index of the first matrix that is singular.
    """
    M, b, work, failed = data(M), data(b), data(work), data(failed)
    for i in range(count):
        copy_matrix(M, i * n * n, n, work)
        row = factor(work, 0, n)
        failed[i] = row
        if row == 0:
            solve(work, 0, n, b, i * n)
            continue
        copy_matrix(M, i * n * n, n, work)
        if not factor_ldlt(work, 0, n, n * n):
            return 1 + i
        solve_ldlt(work, 0, n, n * n, b, i * n)
    return 0


@routine
def copy_matrix(M: Address, start: Int, n: Int, to: Address) -> None:
    """Copy the n x n matrix at M[start]."""
    for k in range(n * n):
        to[k] = M[start + k]


@routine
def solve(M: Address, start: Int, n: Int, b: Address, at: Int) -> None:
    """Solve with the factor at M[start] for b[at : at + n], in place."""
    for i in range(n):
        x = b[at + i]
        for k in range(i):
            x -= M[start + i * n + k] * b[at + k]
        b[at + i] = x / M[start + i * n + i]
    for i in range(n - 1, -1, -1):
        x = b[at + i]
        for k in range(i + 1, n):
            x -= M[start + k * n + i] * b[at + k]
        b[at + i] = x / M[start + i * n + i]
