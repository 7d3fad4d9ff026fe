# SPDX-License-Identifier: Apache-2.0
"""The Delassus operator of the constraints that may act: G = J M^-1 J^T, as a dense matrix.

Sweeps never need it (see `constraints`), Newton's method does. It is built for the *working set* only: the
contacts and stops that push, or would be violated without an impulse. The others get none. Once the working
set is solved, `list_unknowns` adds what it violates; nothing is ever taken off, so this ends.

The workspace S[NEWTON] has `capacity` unknowns: tables of the rows, vectors, then G and one more matrix, or
what the reduced equations need. A contact has three unknowns (normal, first and second tangent), a stop has
one.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import apart, fill_zero, load_int, routine, store_int, subroutine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Number
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import (
    block_product,
    contact_velocity,
    row3,
    short_product,
    stop_velocity,
    write3,
)
from quad_dynamics.kernels.natural_map import mean_inertia
from quad_dynamics.kernels.scene import BASE_COLUMNS, contact_at
from quad_dynamics.model import layout as L

# Vectors of the workspace: impulses, velocities (less targets), the same without impulses, the Newton step
# and what it does to the velocities, the best impulses so far; D of each unknown, and what `proximal_point`
# needs beside.
P, V, FREE, STEP, CHANGE, BEST, INERTIA, CENTRE, KEPT = range(9)
_TABLES, _VECTORS, _PER_UNKNOWN = 3, 9, 6
# More unknowns than this are never solved for with G, but in the reduced way (see `newton_step`).
MOST_DENSE = 64
_ROW, _FIRST, _BLOCKS = range(3)  # ints: of each unknown, its row and the limb of that (see `constraints`)


@routine
def vector(S: Address, which: Int) -> Int:
    """Where a vector of the workspace stands."""
    return load_int(S, S_.NEWTON) + (_TABLES + which) * load_int(S, S_.CAPACITY)


@routine
def table(S: Address, which: Int) -> Int:
    """Where a table of the workspace stands."""
    return load_int(S, S_.NEWTON) + which * load_int(S, S_.CAPACITY)


@routine
def delassus(S: Address) -> Int:
    """Where G stands; its rows have `row_length(n)` numbers."""
    return load_int(S, S_.NEWTON) + (_TABLES + _VECTORS) * load_int(S, S_.CAPACITY)


@routine
def jacobian(S: Address, n: Int) -> Int:
    """Where the other matrix stands, behind G."""
    return delassus(S) + n * row_length(n)


@routine
def row_length(n: Int) -> Int:
    """Numbers in a row of a matrix of n columns and a right-hand side: a multiple of LANES."""
    return (n // LANES + 1) * LANES


@routine
def blocks_at(S: Address) -> Int:
    """Where the blocks of the reduced equations stand: six numbers for each unknown, in place of G."""
    return delassus(S)


@routine
def reduced_matrix(S: Address) -> Int:
    """Where the matrix of the reduced equations stands, behind the blocks."""
    return blocks_at(S) + _PER_UNKNOWN * load_int(S, S_.CAPACITY)


@routine
def reduced_size(A: Address) -> Int:
    """Unknowns of the reduced equations: the columns of a row (see `constraints`)."""
    return BASE_COLUMNS + load_int(A, L.NJ)


@routine
def reduced_length(m: Int) -> Int:
    """Numbers in a row of the reduced equations: a block of four joints may begin with the last one."""
    return row_length(m + LANES)


@routine
def reduced_vector(A: Address, S: Address) -> Int:
    """Where the solution of the reduced equations stands, behind their matrix; it has the columns of y."""
    m = reduced_size(A)
    return reduced_matrix(S) + m * reduced_length(m)


def workspace_size(capacity: int, nj: int) -> int:
    """Numbers that the workspace needs for a capacity, which is a multiple of LANES, and so many joints."""
    dense = min(capacity, MOST_DENSE + LANES)
    columns = BASE_COLUMNS + nj + 3 * LANES
    reduced = _PER_UNKNOWN * capacity + columns * (columns + 1)
    return (_TABLES + _VECTORS) * capacity + max(2 * dense * (dense + LANES), reduced)


# ---------------------------------------------------------------- working set


@routine
def forget_unknowns(S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Empty the working set."""
    for i in range(n_contacts):
        store_int(S, load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS + S_.A_UNKNOWN, -1)
    for i in range(n_stops):
        store_int(S, load_int(S, S_.STOPS) + i * S_.STOP_WORDS + S_.L_UNKNOWN, -1)


@subroutine
def list_unknowns(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> tuple[Int, Bool]:
    """Add to the working set what acts or is violated; returns its unknowns, and whether any is new.

    Unknowns are numbered anew, their impulses and velocities without impulses are written.
    """
    apart(A)
    n, added = load_int(S, S_.NONE), False
    y = load_int(S, S_.Y)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        listed = load_int(S, c + S_.A_UNKNOWN) >= 0
        if not listed:
            v = contact_velocity(S, c, y)
            if S[c + S_.A_IMPULSE] > 0.0 or v[0] < S[c + S_.A_TARGET]:
                listed = added = True
        if listed:
            store_int(S, c + S_.A_UNKNOWN, n)
            list_contact(S, c, n)
            n += 3
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        listed = load_int(S, s + S_.L_UNKNOWN) >= 0
        if not listed:
            pushes = S[s + S_.L_IMPULSE] != 0.0 or S[s + S_.L_LOW] < 0.0
            if pushes or stop_velocity(S, s, y) < S[s + S_.L_TARGET]:
                listed = added = True
        if listed:
            store_int(S, s + S_.L_UNKNOWN, n)
            list_stop(S, s, n)
            n += 1
    return n, added


@routine
def count_unknowns(n_contacts: Int, n_stops: Int) -> Int:
    """The most unknowns that there can be."""
    return 3 * n_contacts + n_stops


@routine
def list_contact(S: Address, c: Int, n: Int) -> None:
    """The three unknowns of a contact, from n on."""
    row, length = load_int(S, c + S_.A_ROW), load_int(S, S_.ROW_LENGTH)
    for k in range(3):
        store_int(S, table(S, _ROW) + n + k, row + k * length)
        store_int(S, table(S, _FIRST) + n + k, load_int(S, c + S_.A_FIRST))
        store_int(S, table(S, _BLOCKS) + n + k, load_int(S, c + S_.A_BLOCKS))
    write3(S, vector(S, P) + n, row3(S, c + S_.A_IMPULSE))
    write3(S, vector(S, FREE) + n, row3(S, c + S_.A_FREE))
    S[vector(S, FREE) + n] -= S[c + S_.A_TARGET]


@routine
def list_stop(S: Address, s: Int, n: Int) -> None:
    """The unknown of a stop."""
    entry = load_int(S, S_.JOINTS) + load_int(S, s + S_.L_JOINT) * S_.JOINT_WORDS
    store_int(S, table(S, _ROW) + n, load_int(S, s + S_.L_ROW))
    store_int(S, table(S, _FIRST) + n, load_int(S, entry + S_.J_FIRST))
    store_int(S, table(S, _BLOCKS) + n, load_int(S, entry + S_.J_BLOCKS))
    S[vector(S, P) + n] = S[s + S_.L_IMPULSE]
    S[vector(S, FREE) + n] = S[s + S_.L_FREE] - S[s + S_.L_TARGET]


@routine
def list_inertias(S: Address, n_contacts: Int, n_stops: Int) -> None:
    """INERTIA = D of each unknown of the working set."""
    to = vector(S, INERTIA)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            D = mean_inertia(contact_at(S, c))
            write3(S, to + k, (D, D, D))
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            S[to + k] = S[s + S_.L_INERTIA]


@routine
def take_impulses(S: Address, n_contacts: Int, n_stops: Int, at: Int) -> None:
    """Let the constraints of the working set have the impulses of the vector at `at`."""
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        impulse = (0.0, 0.0, 0.0)
        if k >= 0:
            impulse = (S[at + k], S[at + k + 1], S[at + k + 2])
        write3(S, c + S_.A_IMPULSE, impulse)
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        S[s + S_.L_IMPULSE] = S[at + k] if k >= 0 else 0.0


# ---------------------------------------------------------------- the matrix


@subroutine
def fill_delassus(A: Address, S: Address, n: Int) -> None:
    """G = J M^-1 J^T of the n unknowns: the products of their rows."""
    apart(A)
    G, length = delassus(S), row_length(n)
    rows, firsts, sizes = table(S, _ROW), table(S, _FIRST), table(S, _BLOCKS)
    for i in range(n):
        row, first, blocks = load_int(S, rows + i), load_int(S, firsts + i), load_int(S, sizes + i)
        for j in range(i + 1):
            shared = 0
            if first == load_int(S, firsts + j):
                shared = min(blocks, load_int(S, sizes + j))
            x = row_product(S, row, load_int(S, rows + j), shared)
            S[G + i * length + j] = x
            S[G + j * length + i] = x
        fill_zero(S, G + i * length + n, length - n)


@routine
def row_product(S: Address, a: Int, b: Int, blocks: Int) -> Number:
    """The product of two rows: the base, and the joints that both have."""
    if blocks == 0:
        return block_product(S, a, b) + block_product(S, a + LANES, b + LANES)
    total = short_product(S, a, b, b + BASE_COLUMNS)
    for k in range(1, blocks):
        total += block_product(S, a + BASE_COLUMNS + LANES * k, b + BASE_COLUMNS + LANES * k)
    return total


@routine
def multiply(S: Address, n: Int, x: Int, to: Int) -> None:
    """S[to : to + n] = G times the vector at x, which is zero from n on up to a multiple of LANES."""
    G, length = delassus(S), row_length(n)
    for i in range(n):
        total = 0.0
        for b in range(length // LANES):
            total += block_product(S, G + i * length + LANES * b, x + LANES * b)
        S[to + i] = total
