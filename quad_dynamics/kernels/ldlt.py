# SPDX-License-Identifier: Apache-2.0
"""Solving with a symmetric matrix that need not be positive definite: M = P L D L^T P^T.

Bunch and Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems (1977):
D has blocks of 1 x 1 and 2 x 2, and rows and columns are exchanged so that no element grows without bound.
The factor stands in the lower triangle. `pivots` holds, for each row k, the row p that it was exchanged with:
p for a block of 1 x 1, and -1 - p in both rows of a block of 2 x 2, whose second row was exchanged.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, routine, subroutine
from quad_dynamics.compiler.types import Address, Bool, Int, Number

_GROWTH = (1.0 + math.sqrt(17.0)) / 8.0  # bounds the growth of elements best


@subroutine
def factor_ldlt(M: Address, start: Int, n: Int, pivots: Int) -> Bool:
    """Factor the n x n matrix at M[start] in place, pivots to M[pivots]; whether it is regular."""
    apart(M)
    k = 0
    while k < n:
        p, size = choose_pivot(M, start, n, k)
        if size == 0:
            return False
        last = k + size - 1
        if p != last:
            exchange(M, start, n, k, last, p)
        if size == 1:
            M[pivots + k] = p
            reduce_by_one(M, start, n, k)
        else:
            M[pivots + k] = -1.0 - p
            M[pivots + k + 1] = -1.0 - p
            reduce_by_two(M, start, n, k)
        k += size
    return True


@routine
def choose_pivot(M: Address, start: Int, n: Int, k: Int) -> tuple[Int, Int]:
    """The row to bring to the next block of D, and the size of that block; 0 if the matrix is singular."""
    own = abs(M[start + k * n + k])
    other, largest = k, 0.0
    for i in range(k + 1, n):
        if abs(M[start + i * n + k]) > largest:
            other, largest = i, abs(M[start + i * n + k])
    if not max(own, largest) > 0.0:
        return k, 0
    if own >= _GROWTH * largest:
        return k, 1
    across = 0.0  # largest beside the diagonal in the other's row
    for j in range(k, other):
        across = max(across, abs(M[start + other * n + j]))
    for i in range(other + 1, n):
        across = max(across, abs(M[start + i * n + other]))
    if own * across >= _GROWTH * largest * largest:
        return k, 1
    if abs(M[start + other * n + other]) >= _GROWTH * across:
        return other, 1
    return other, 2


@routine
def exchange(M: Address, start: Int, n: Int, k: Int, a: Int, b: Int) -> None:
    """Exchange rows and columns a < b of what is left from row k on."""
    for i in range(b + 1, n):
        swap(M, start + i * n + a, start + i * n + b)
    for i in range(a + 1, b):
        swap(M, start + i * n + a, start + b * n + i)
    swap(M, start + a * n + a, start + b * n + b)
    if a > k:
        swap(M, start + a * n + k, start + b * n + k)


@routine
def swap(M: Address, a: Int, b: Int) -> None:
    """Exchange two numbers."""
    other = M[a]
    M[a] = M[b]
    M[b] = other


@routine
def reduce_by_one(M: Address, start: Int, n: Int, k: Int) -> None:
    """Eliminate row k, whose block of D is a single number."""
    inverse = 1.0 / M[start + k * n + k]
    for j in range(k + 1, n):
        factor = M[start + j * n + k] * inverse
        for i in range(j, n):
            M[start + i * n + j] -= M[start + i * n + k] * factor
    for j in range(k + 1, n):
        M[start + j * n + k] *= inverse


@routine
def reduce_by_two(M: Address, start: Int, n: Int, k: Int) -> None:
    """Eliminate rows k and k + 1, whose block of D is [a b; b c]."""
    for j in range(k + 2, n):
        # the two factors of row j: (M_jk, M_jk+1) times the inverse of the block
        first, second = solve_block(M, start, n, k, M[start + j * n + k], M[start + j * n + k + 1])
        for i in range(j, n):
            M[start + i * n + j] -= M[start + i * n + k] * first + M[start + i * n + k + 1] * second
        M[start + j * n + k] = first
        M[start + j * n + k + 1] = second


@routine
def solve_block(M: Address, start: Int, n: Int, k: Int, x: Number, y: Number) -> tuple[Number, Number]:
    """The inverse of the block [a b; b c] of rows k and k + 1, times (x, y); b is its largest number."""
    b = M[start + (k + 1) * n + k]
    a, c = M[start + k * n + k] / b, M[start + (k + 1) * n + k + 1] / b
    scale = 1.0 / ((a * c - 1.0) * b)
    return (c * x - y) * scale, (a * y - x) * scale


@subroutine
def solve_ldlt(M: Address, start: Int, n: Int, pivots: Int, x: Address, at: Int) -> None:
    """Solve with the factor at M[start] for x[at : at + n], in place."""
    apart(M)
    k = 0
    while k < n:
        p = M[pivots + k]
        if p >= 0.0:
            swap(x, at + k, at + int(p))
            for i in range(k + 1, n):
                x[at + i] -= M[start + i * n + k] * x[at + k]
            x[at + k] /= M[start + k * n + k]
            k += 1
        else:
            swap(x, at + k + 1, at + int(-1.0 - p))
            for i in range(k + 2, n):
                x[at + i] -= M[start + i * n + k] * x[at + k] + M[start + i * n + k + 1] * x[at + k + 1]
            first, second = solve_block(M, start, n, k, x[at + k], x[at + k + 1])
            x[at + k] = first
            x[at + k + 1] = second
            k += 2
    k = n - 1
    while k >= 0:
        p = M[pivots + k]
        size = 1 if p >= 0.0 else 2
        for row in range(k - size + 1, k + 1):
            for i in range(k + 1, n):
                x[at + row] -= M[start + i * n + row] * x[at + i]
        swap(x, at + k, at + int(p if p >= 0.0 else -1.0 - p))
        k -= size
