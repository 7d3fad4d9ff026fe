# SPDX-License-Identifier: Apache-2.0
"""Linear equations by Gaussian elimination, with or without partial pivoting, four columns at a time.

The matrix stands row by row, `length` numbers to a row, a multiple of four. Behind its n columns each row has
its right-hand side. Elimination goes over the rows whole, so no factor is kept; only right of the diagonal
are its numbers meant.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import apart, fill_zero, formula, load, routine, store, subroutine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Number
from quad_dynamics.kernels.constraints import add_block, block_product

_SINGULAR = 1e-200  # a pivot below this is none
_SMALL = 1e-3  # the same without pivoting, beside the 1 that it was


@subroutine
def solve_equations(S: Address, matrix: Int, n: Int, length: Int, x: Int, pivoting: Bool) -> Bool:
    """S[x : x + n] = the solution; zeros up to x + length. Whether there is one; the matrix is used up.

    Without pivoting the diagonal must not become small: it is for matrices like 1 + B with B about positive.
    """
    apart(S)
    blocks = length // LANES
    for k in range(n):
        first, top = k // LANES, matrix + k * length
        if pivoting:
            exchange_rows(S, matrix, n, length, k)
        elif abs(S[top + k]) < _SMALL:
            return False
        if not abs(S[top + k]) > _SINGULAR:
            return False
        inverse = -1.0 / S[top + k]
        for i in range(k + 1, n):
            row = matrix + i * length
            factor = S[row + k] * inverse
            if factor != 0.0:
                for b in range(first, blocks):
                    add_block(S, top + LANES * b, factor, row + LANES * b)
    fill_zero(S, x, length)
    for k in range(n - 1, -1, -1):
        row = matrix + k * length
        S[x + k] = (S[row + n] - product(S, row, x, k // LANES, blocks)) / S[row + k]
    return True


@routine
def exchange_rows(S: Address, matrix: Int, n: Int, length: Int, k: Int) -> None:
    """Bring the row with the largest number in column k, from row k on, to row k."""
    top = matrix + k * length
    pivot, largest = k, abs(S[top + k])
    for i in range(k + 1, n):
        size = abs(S[matrix + i * length + k])
        if size > largest:
            pivot, largest = i, size
    if pivot != k:
        other = matrix + pivot * length
        for b in range(k // LANES, length // LANES):
            exchange(S, top + LANES * b, other + LANES * b)


@formula
def exchange(S: Address, a: Int, b: Int) -> None:
    """Exchange four numbers with four others."""
    x, y = load(S, a), load(S, b)
    store(S, a, y)
    store(S, b, x)


@routine
def product(S: Address, row: Int, x: Int, first: Int, blocks: Int) -> Number:
    """The product of a row and x, from a block of four columns on."""
    total = 0.0
    for b in range(first, blocks):
        total += block_product(S, row + LANES * b, x + LANES * b)
    return total
