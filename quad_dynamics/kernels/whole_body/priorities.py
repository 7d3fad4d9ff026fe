# SPDX-License-Identifier: Apache-2.0
"""Strict priorities: the level below the tasks works in their null space (Escande, Mansard, Wieber 2014)."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array, table
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.registry import INT, kernel
from quad_dynamics.compiler.trace import fill_zero, routine, square_root
from quad_dynamics.compiler.types import Address, Int, Number, Object
from quad_dynamics.kernels.whole_body.base import exchange
from quad_dynamics.kernels.whole_body.records import WholeBody, whole_body_at
from quad_dynamics.memory.layout import Robot

# Task rows that are shorter than this fraction of the longest, after projection, count as zero.
_RANK = 1e-7


@kernel(Robot, INT, INT, table(lambda n: 3 * n), array(lambda: WholeBody.words))
def next_level(robot: Robot, n: Int, rows: Int, z: Object, memory: Object) -> Int:
    """The problem of the level below the tasks, in unknowns y that do not affect them: z + N^T y.

    N has orthonormal rows that span the null space of W. The cost of the level is |z + N^T y - z0|^2 / 2.

    Args:
        robot: its memory.
        n: number of legs.
        rows: number of rows of C in use.
        z: (3 n,) solution of the level above.
        memory: of `WholeBody`, filled by `whole_body`.

    Returns:
        The number of unknowns y.
    """
    m, problem, z = 3 * n, whole_body_at(data(memory), 0), data(z)
    N, c, C = problem.N, problem.level_c, problem.level_C
    k = null_space(m, problem)
    for i in range(k):
        c[i] = product(part(N, i * m), z, m) - product(part(N, i * m), problem.z0, m)
    for r in range(rows):
        row = part(problem.C, r * m)
        total = product(row, z, m)
        # z may violate a bound by a rounding error
        problem.level_low[r] = min(problem.low[r] - total, 0.0)
        problem.level_high[r] = max(problem.high[r] - total, 0.0)
        for i in range(k):
            C[r * k + i] = product(row, part(N, i * m), m)
    return k


@routine
def product(a: Numbers, b: Address, m: Int) -> Number:
    """a^T b of m numbers."""
    total = 0.0
    for j in range(m):
        total += a[j] * b[j]
    return total


@routine
def null_space(m: Int, problem: WholeBody) -> Int:
    """Orthonormal rows N that span the null space of W (6 + m, m); returns their number.

    Uses the Householder QR factorisation of W^T with column pivoting (Golub and Van Loan, section 5.4.2);
    each row of W in turn is replaced by its reflector.
    """
    rows, Q, scales, N = 6 + m, problem.reflections, problem.reflection_scales, problem.N
    rank, first = 0, 0.0
    for i in range(rows * m):
        Q[i] = problem.W[i]
    for step in range(min(m, rows)):
        norm = bring_longest(Q, rows, m, step)
        first = max(first, norm)
        if norm <= _RANK * first or norm == 0.0:
            break
        # the reflection 1 - v v^T scale maps the row to -+norm e_step; v replaces the row
        v = part(Q, step * m)
        head = v[step]
        v[step] = head + norm if head >= 0.0 else head - norm
        scales[step] = 1.0 / (norm * (norm + abs(head)))
        for r in range(step + 1, rows):
            reflect(v, scales[step], part(Q, r * m), step, m)
        rank = step + 1
    for i in range(m - rank):
        row = part(N, i * m)
        fill_zero(row, 0, m)
        row[rank + i] = 1.0
        for back in range(rank):
            step = rank - 1 - back
            reflect(part(Q, step * m), scales[step], row, step, m)
    return m - rank


@routine
def bring_longest(Q: Numbers, rows: Int, m: Int, step: Int) -> Number:
    """Exchange the row of this step with the longest remaining one, from column `step` on; its length."""
    best, largest = step, -1.0
    for r in range(step, rows):
        norm = 0.0
        for j in range(step, m):
            norm += Q[r * m + j] * Q[r * m + j]
        if norm > largest:
            best, largest = r, norm
    if best != step:
        exchange(part(Q, best * m), part(Q, step * m), m)
    return square_root(largest)


@routine
def reflect(v: Numbers, scale: Number, x: Numbers, first: Int, m: Int) -> None:
    """x -= v (v^T x) scale, from component `first` on."""
    total = 0.0
    for j in range(first, m):
        total += v[j] * x[j]
    total *= scale
    for j in range(first, m):
        x[j] -= total * v[j]
