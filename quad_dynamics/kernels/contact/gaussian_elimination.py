# SPDX-License-Identifier: Apache-2.0
"""Gaussian elimination for linear equations, with or without partial pivoting, four columns at a time.

The matrix is stored by rows of `length` numbers, a multiple of four. Each row contains n columns, then its
right-hand side. Elimination updates whole rows, so no factors are kept; afterwards only the entries right of
the diagonal are meaningful.
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, fill_zero, formula, load, routine, store, subroutine
from quad_dynamics.compiler.types import LANES, Bool, Int, Number
from quad_dynamics.kernels.contact.constraints import add_block, block_product

_SINGULAR = 1e-200  # smaller pivots make the matrix singular
_SMALL = 1e-3  # the same without pivoting, where the diagonal starts at 1


@subroutine
def solve_equations(matrix: Numbers, n: Int, length: Int, x: Numbers, pivoting: Bool) -> Bool:
    """Solve for x, padded with zeros from n to length; returns whether it succeeded. Overwrites the matrix.

    Without pivoting the diagonal must not become small. That is for matrices like 1 + B with B nearly
    positive.
    """
    apart(matrix)
    blocks = length // LANES
    for k in range(n):
        first, top = k // LANES, part(matrix, k * length)
        if pivoting:
            exchange_rows(matrix, n, length, k)
        elif abs(top[k]) < _SMALL:
            return False
        if not abs(top[k]) > _SINGULAR:
            return False
        inverse = -1.0 / top[k]
        for i in range(k + 1, n):
            row = part(matrix, i * length)
            factor = row[k] * inverse
            if factor != 0.0:
                for b in range(first, blocks):
                    add_block(part(top, LANES * b), factor, part(row, LANES * b))
    fill_zero(x, 0, length)
    for k in range(n - 1, -1, -1):
        row = part(matrix, k * length)
        x[k] = (row[n] - product(row, x, k // LANES, blocks)) / row[k]
    return True


@routine
def exchange_rows(matrix: Numbers, n: Int, length: Int, k: Int) -> None:
    """Exchange row k with the row below it that has the largest element in column k."""
    top = part(matrix, k * length)
    pivot, largest = k, abs(top[k])
    for i in range(k + 1, n):
        size = abs(matrix[i * length + k])
        if size > largest:
            pivot, largest = i, size
    if pivot != k:
        other = part(matrix, pivot * length)
        for b in range(k // LANES, length // LANES):
            exchange(part(top, LANES * b), part(other, LANES * b))


@formula
def exchange(a: Numbers, b: Numbers) -> None:
    """Exchange four numbers."""
    x, y = load(a, 0), load(b, 0)
    store(a, 0, y)
    store(b, 0, x)


@routine
def product(row: Numbers, x: Numbers, first: Int, blocks: Int) -> Number:
    """The product of a row and x, starting at a block of four columns."""
    total = 0.0
    for b in range(first, blocks):
        total += block_product(part(row, LANES * b), part(x, LANES * b))
    return total
