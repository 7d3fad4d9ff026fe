# SPDX-License-Identifier: Apache-2.0
"""LDLT factorisation of a symmetric matrix that need not be positive definite: M = P L D L^T P^T.

Bunch and Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems (1977):
D has 1 x 1 and 2 x 2 blocks, and rows and columns are exchanged to bound the growth of elements. The factor
is stored in the lower triangle. `pivots` has, for each row k, the row p that it was exchanged with: p for a
1 x 1 block, and -1 - p in both rows of a 2 x 2 block, whose second row was exchanged.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number

_GROWTH = (1.0 + math.sqrt(17.0)) / 8.0  # minimises the bound on the growth of elements


@subroutine
def factor_ldlt(M: Numbers, n: Int, pivots: Numbers) -> Bool:
    """Factor the n x n matrix M in place, and write the pivots; returns whether it is regular."""
    apart(M)
    k = 0
    while k < n:
        p, size = choose_pivot(M, n, k)
        if size == 0:
            return False
        last = k + size - 1
        if p != last:
            exchange(M, n, k, last, p)
        if size == 1:
            pivots[k] = p
            reduce_by_one(M, n, k)
        else:
            pivots[k] = -1.0 - p
            pivots[k + 1] = -1.0 - p
            reduce_by_two(M, n, k)
        k += size
    return True


@routine
def choose_pivot(M: Numbers, n: Int, k: Int) -> tuple[Int, Int]:
    """The row to move to the next block of D, and the size of that block; 0 if the matrix is singular."""
    own = abs(M[k * n + k])
    other, largest = k, 0.0
    for i in range(k + 1, n):
        if abs(M[i * n + k]) > largest:
            other, largest = i, abs(M[i * n + k])
    if not max(own, largest) > 0.0:
        return k, 0
    if own >= _GROWTH * largest:
        return k, 1
    across = 0.0  # largest off-diagonal element of the other row
    for j in range(k, other):
        across = max(across, abs(M[other * n + j]))
    for i in range(other + 1, n):
        across = max(across, abs(M[i * n + other]))
    if own * across >= _GROWTH * largest * largest:
        return k, 1
    if abs(M[other * n + other]) >= _GROWTH * across:
        return other, 1
    return other, 2


@routine
def exchange(M: Numbers, n: Int, k: Int, a: Int, b: Int) -> None:
    """Exchange rows and columns a < b of the remaining matrix from row k on."""
    for i in range(b + 1, n):
        swap(M, i * n + a, i * n + b)
    for i in range(a + 1, b):
        swap(M, i * n + a, b * n + i)
    swap(M, a * n + a, b * n + b)
    if a > k:
        swap(M, a * n + k, b * n + k)


@routine
def swap(M: Numbers, a: Int, b: Int) -> None:
    """Exchange two numbers."""
    other = M[a]
    M[a] = M[b]
    M[b] = other


@routine
def reduce_by_one(M: Numbers, n: Int, k: Int) -> None:
    """Eliminate row k, a 1 x 1 block of D."""
    inverse = 1.0 / M[k * n + k]
    for j in range(k + 1, n):
        factor = M[j * n + k] * inverse
        for i in range(j, n):
            M[i * n + j] -= M[i * n + k] * factor
    for j in range(k + 1, n):
        M[j * n + k] *= inverse


@routine
def reduce_by_two(M: Numbers, n: Int, k: Int) -> None:
    """Eliminate rows k and k + 1, a 2 x 2 block [a b; b c] of D."""
    for j in range(k + 2, n):
        # the two factors of row j: (M_jk, M_jk+1) times the inverse of the block
        first, second = solve_block(M, n, k, M[j * n + k], M[j * n + k + 1])
        for i in range(j, n):
            M[i * n + j] -= M[i * n + k] * first + M[i * n + k + 1] * second
        M[j * n + k] = first
        M[j * n + k + 1] = second


@routine
def solve_block(M: Numbers, n: Int, k: Int, x: Number, y: Number) -> tuple[Number, Number]:
    """The inverse of the block [a b; b c] of rows k and k + 1, times (x, y); b is its largest element."""
    b = M[(k + 1) * n + k]
    a, c = M[k * n + k] / b, M[(k + 1) * n + k + 1] / b
    scale = 1.0 / ((a * c - 1.0) * b)
    return (c * x - y) * scale, (a * y - x) * scale


@subroutine
def solve_ldlt(M: Numbers, n: Int, pivots: Numbers, x: Numbers) -> None:
    """Solve with the factor M for x, in place."""
    apart(M)
    k = 0
    while k < n:
        p = pivots[k]
        if p >= 0.0:
            swap(x, k, int(p))
            for i in range(k + 1, n):
                x[i] -= M[i * n + k] * x[k]
            x[k] /= M[k * n + k]
            k += 1
        else:
            swap(x, k + 1, int(-1.0 - p))
            for i in range(k + 2, n):
                x[i] -= M[i * n + k] * x[k] + M[i * n + k + 1] * x[k + 1]
            first, second = solve_block(M, n, k, x[k], x[k + 1])
            x[k] = first
            x[k + 1] = second
            k += 2
    k = n - 1
    while k >= 0:
        p = pivots[k]
        size = 1 if p >= 0.0 else 2
        for row in range(k - size + 1, k + 1):
            for i in range(k + 1, n):
                x[row] -= M[i * n + row] * x[i]
        swap(x, k, int(p if p >= 0.0 else -1.0 - p))
        k -= size
