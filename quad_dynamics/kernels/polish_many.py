# SPDX-License-Identifier: Apache-2.0
"""A direct solution for many contacts that stick, and for contacts that a rigid body has too many of.

Contacts on one body, or with stuck joints between them, cannot all be given what they lack independently:
`polish` fails, or would take long. But all that impulses do is in y, which has as many numbers as the robot
has degrees of freedom. With T the rows of all sticking contacts and b what their velocities lack, the
impulses that come nearest to b, and of those the smallest, are x = T K^-1 K^-1 T^T b with K = T^T T: the work
grows with the number of contacts and with the cube of the degrees of freedom.
"""

from __future__ import annotations

import math

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import add_contact, contact_velocity, row3, write3
from quad_dynamics.kernels.scene import BASE_COLUMNS
from quad_dynamics.kernels.spatial import add, scale
from quad_dynamics.kernels.trace import apart, fill_zero, load_int, routine, subroutine
from quad_dynamics.kernels.types import Address, Bool, Int, Number, Vec3
from quad_dynamics.model import layout as L
from quad_dynamics.model.layout import LANES

_SOFT = 1e-10  # added to the diagonal of K, as a share of its trace: what no contact moves is singular
_HALVINGS = 6  # of the way to the solution, until all cones allow it
_INSIDE = 1.0 - 1e-9  # a contact sticks if friction is below this share of its limit


@subroutine
def polish_many(A: Address, S: Address, n_contacts: Int) -> None:
    """Go towards the impulses that come nearest to stopping all contacts that stick."""
    apart(A)
    size = BASE_COLUMNS + load_int(A, L.NJ) + LANES
    K = load_int(S, S_.MANY)
    z = K + size * size
    fill_zero(S, K, size * size + size)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        if sticks(S, c, row3(S, c + S_.A_IMPULSE)):
            add_rows(S, c, K, z, size)
    if not factor(S, K, size):
        return
    solve_factored(S, K, z, size)
    solve_factored(S, K, z, size)
    far = 1.0
    for _ in range(_HALVINGS):
        if all_stick(S, n_contacts, z, far):
            take_share(S, n_contacts, z, far)
            return
        far *= 0.5


@routine
def sticks(S: Address, c: Int, p: Vec3) -> Bool:
    """Whether a contact with impulse p pushes, and its friction is below the limit."""
    largest = S[c + S_.A_MU] * p[0] * _INSIDE
    if p[0] <= 0.0:
        return False
    if load_int(S, S_.CONE) != 0:
        return p[1] * p[1] + p[2] * p[2] < largest * largest
    return abs(p[1]) < largest and abs(p[2]) < largest


@routine
def column_of(c_first: Int, i: Int) -> Int:
    """Where column i of a row stands in y."""
    return i if i < BASE_COLUMNS else i + c_first


@routine
def add_rows(S: Address, c: Int, K: Int, z: Int, size: Int) -> None:
    """Add the part of one contact to K (its lower half) and to T^T b."""
    length, row, first = load_int(S, S_.ROW_LENGTH), load_int(S, c + S_.A_ROW), load_int(S, c + S_.A_FIRST)
    v = contact_velocity(S, c, load_int(S, S_.Y))
    b0, b1, b2 = S[c + S_.A_TARGET] - v[0], -v[1], -v[2]
    for i in range(BASE_COLUMNS + LANES * load_int(S, c + S_.A_BLOCKS)):
        to = column_of(first, i)
        r0, r1, r2 = S[row + i], S[row + length + i], S[row + 2 * length + i]
        S[z + to] += r0 * b0 + r1 * b1 + r2 * b2
        for k in range(i + 1):
            at = K + to * size + column_of(first, k)
            S[at] += r0 * S[row + k] + r1 * S[row + length + k] + r2 * S[row + 2 * length + k]


@routine
def factor(S: Address, K: Int, size: Int) -> Bool:
    """K = L L^T in place, with the inverse of L's diagonal; whether there is anything in K."""
    trace = 0.0
    for i in range(size):
        trace += S[K + i * size + i]
    if not trace > 0.0:
        return False
    for i in range(size):
        S[K + i * size + i] += _SOFT * trace
        for j in range(i + 1):
            total = S[K + i * size + j]
            for k in range(j):
                total -= S[K + i * size + k] * S[K + j * size + k]
            if i == j:
                if not total > 0.0:
                    return False
                S[K + i * size + i] = 1.0 / math.sqrt(total)
            else:
                S[K + i * size + j] = total * S[K + j * size + j]
    return True


@routine
def solve_factored(S: Address, K: Int, z: Int, size: Int) -> None:
    """z = K^-1 z."""
    for i in range(size):
        total = S[z + i]
        for k in range(i):
            total -= S[K + i * size + k] * S[z + k]
        S[z + i] = total * S[K + i * size + i]
    for i in range(size - 1, -1, -1):
        total = S[z + i]
        for k in range(i + 1, size):
            total -= S[K + k * size + i] * S[z + k]
        S[z + i] = total * S[K + i * size + i]


@routine
def rows_times(S: Address, c: Int, z: Int) -> Vec3:
    """The three rows of a contact times z."""
    length, row, first = load_int(S, S_.ROW_LENGTH), load_int(S, c + S_.A_ROW), load_int(S, c + S_.A_FIRST)
    total = (0.0, 0.0, 0.0)
    for i in range(BASE_COLUMNS + LANES * load_int(S, c + S_.A_BLOCKS)):
        x = S[z + column_of(first, i)]
        total = add(total, scale((S[row + i], S[row + length + i], S[row + 2 * length + i]), x))
    return total


@routine
def all_stick(S: Address, n_contacts: Int, z: Int, far: Number) -> Bool:
    """Whether all contacts that stick still do if they go so far."""
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        p = row3(S, c + S_.A_IMPULSE)
        if sticks(S, c, p) and not sticks(S, c, add(p, scale(rows_times(S, c, z), far))):
            return False
    return True


@routine
def take_share(S: Address, n_contacts: Int, z: Int, far: Number) -> None:
    """Let the contacts that stick go so far."""
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        p = row3(S, c + S_.A_IMPULSE)
        if sticks(S, c, p):
            change = scale(rows_times(S, c, z), far)
            write3(S, c + S_.A_IMPULSE, add(p, change))
            add_contact(S, c, change, load_int(S, S_.Y))
