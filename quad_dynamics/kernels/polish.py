# SPDX-License-Identifier: Apache-2.0
"""A direct solution for the contacts that stick or slide as they do now.

The sweeps of Gauss-Seidel are slow where contacts pull at each other through stiff legs. And where joints
are stuck there are many impulses with all but the same effect: sweeps then find one that depends on the order
of the contacts. So all contacts that stick, or slide in the direction in which they slide now, and all stops
that push, are also solved for at once: a system of linear equations in their impulses. The large inertia of a
stuck joint is in it, which makes the solution unique: it is the one with the least joint friction, and has
the symmetry of the robot. The impulses go only as far towards it as all friction cones allow; what remains is
left to the sweeps. Where the equations are too many, or not independent, see `polish_many`.

An unknown is a normal impulse with the friction that is at its limit and grows with it, a tangential impulse
that is not at its limit, or the impulse of a stop. Its equation is that its own velocity reaches the target.
The friction of a contact that slides may also turn, about the point of the cone: its equation is that it
stays opposite to the sliding velocity.
"""

from __future__ import annotations

import math

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import (
    add_block,
    add_contact,
    add_stop,
    block_product,
    contact_velocity,
    row3,
    short_product,
    stop_velocity,
    write3,
)
from quad_dynamics.kernels.ldlt import swap
from quad_dynamics.kernels.polish_many import polish_many
from quad_dynamics.kernels.scene import BASE_COLUMNS
from quad_dynamics.kernels.trace import apart, load_int, routine, store_int, subroutine
from quad_dynamics.kernels.types import Address, Bool, Int, Number, Vec3
from quad_dynamics.model.layout import LANES

_NORMAL, _STOP, _ACROSS = 0, 3, 4  # parts of an unknown; 1 and 2 are the tangents
_HALVINGS = 6  # of the way to the solution, until all cones allow it
_INSIDE = 1.0 - 1e-9  # friction below this share of its limit is not at it
_FLAT = 1e-13  # a pivot below this share of the largest number on the diagonal is none


@subroutine
def polish(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Go towards the impulses that give contacts that touch, and stops that push, their target velocities."""
    apart(A)
    if load_int(S, S_.INDEFINITE) != 0:
        return  # the product of rows has signs then, and there may be no least energy to find
    n = list_unknowns(S, n_contacts, n_stops)
    if n == 1:
        return
    if n > 1:
        fill_matrix(S, n)
    if n == 0 or not eliminate(S, n):
        polish_many(A, S, n_contacts)
        return
    far = 1.0
    for _ in range(_HALVINGS):
        if all_fit(S, n, far):
            take(S, n, far)
            return
        far *= 0.5


@routine
def list_unknowns(S: Address, n_contacts: Int, n_stops: Int) -> Int:
    """List the unknowns, and what their velocities lack; returns how many, 0 if they are too many."""
    y = load_int(S, S_.Y)
    n = load_int(S, S_.NONE)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        if S[c + S_.A_IMPULSE] > 0.0:
            if n + 3 > S_.MAX_POLISHED:
                return load_int(S, S_.NONE)
            behind = 3 * n_contacts + n_stops + 2 * i
            n = list_contact_unknowns(S, c, behind, n, contact_velocity(S, c, y))
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        if S[s + S_.L_IMPULSE] > 0.0:
            if n + 1 > S_.MAX_POLISHED:
                return load_int(S, S_.NONE)
            entry = load_int(S, S_.JOINTS) + load_int(S, s + S_.L_JOINT) * S_.JOINT_WORDS
            row, lack = load_int(S, s + S_.L_ROW), S[s + S_.L_TARGET] - stop_velocity(S, s, y)
            first, blocks = load_int(S, entry + S_.J_FIRST), load_int(S, entry + S_.J_BLOCKS)
            list_unknown(S, n, row, row, s, _STOP, first, blocks, lack)
            n += 1
    return n


@routine
def list_contact_unknowns(S: Address, c: Int, behind: Int, n: Int, v: Vec3) -> Int:
    """The unknowns of one contact: the normal impulse, and the tangents that are not at their limit."""
    length, row = load_int(S, S_.ROW_LENGTH), load_int(S, c + S_.A_ROW)
    first, blocks = load_int(S, c + S_.A_FIRST), load_int(S, c + S_.A_BLOCKS)
    limited1, limited2 = limited(S, c)
    column = row
    if limited1 or limited2:
        # behind all other rows: the normal row with the friction that grows with it
        column = load_int(S, S_.ROWS) + behind * length
        for k in range(length):
            S[column + k] = S[row + k]
        for b in range(length // LANES):
            if limited1:
                add_block(S, row + length + LANES * b, share_of(S, c, 1), column + LANES * b)
            if limited2:
                add_block(S, row + 2 * length + LANES * b, share_of(S, c, 2), column + LANES * b)
    list_unknown(S, n, row, column, c, _NORMAL, first, blocks, S[c + S_.A_TARGET] - v[0])
    n += 1
    if limited1 and turns(S, c):
        x, y = across(S, c)
        turned = column + length
        for k in range(length):
            S[turned + k] = 0.0
        for b in range(length // LANES):
            add_block(S, row + length + LANES * b, x, turned + LANES * b)
            add_block(S, row + 2 * length + LANES * b, y, turned + LANES * b)
        list_unknown(S, n, turned, turned, c, _ACROSS, first, blocks, -(x * v[1] + y * v[2]))
        # friction that turns stays opposite to the sliding velocity
        own = load_int(S, S_.POLISH) + n * S_.UNKNOWN_WORDS + S_.Z_OWN
        S[own] = math.hypot(v[1], v[2]) / (S[c + S_.A_MU] * S[c + S_.A_IMPULSE])
        return n + 1
    if not limited1:
        list_unknown(S, n, row + length, row + length, c, 1, first, blocks, -v[1])
        n += 1
    if not limited2:
        list_unknown(S, n, row + 2 * length, row + 2 * length, c, 2, first, blocks, -v[2])
        n += 1
    return n


@routine
def limited(S: Address, c: Int) -> tuple[Bool, Bool]:
    """Whether friction of a contact is at its limit, for each tangent."""
    p = row3(S, c + S_.A_IMPULSE)
    largest = S[c + S_.A_MU] * p[0] * _INSIDE
    if load_int(S, S_.CONE) != 0:
        slides = p[1] * p[1] + p[2] * p[2] >= largest * largest
        return slides, slides
    return abs(p[1]) >= largest, abs(p[2]) >= largest


@routine
def turns(S: Address, c: Int) -> Bool:
    """Whether friction at its limit has a direction that can turn: in a cone, and where there is friction."""
    return load_int(S, S_.CONE) != 0 and (S[c + S_.A_IMPULSE + 1] != 0.0 or S[c + S_.A_IMPULSE + 2] != 0.0)


@routine
def across(S: Address, c: Int) -> tuple[Number, Number]:
    """The unit vector across the friction of a contact that slides."""
    x, y = S[c + S_.A_IMPULSE + 1], S[c + S_.A_IMPULSE + 2]
    size = math.hypot(x, y)
    if size > 0.0:
        return -y / size, x / size
    return 0.0, 0.0


@routine
def share_of(S: Address, c: Int, tangent: Int) -> Number:
    """Tangential over normal impulse."""
    return S[c + S_.A_IMPULSE + tangent] / S[c + S_.A_IMPULSE]


@routine
def list_unknown(
    S: Address, n: Int, row: Int, column: Int, owner: Int, part: Int, first: Int, blocks: Int, lack: Number
) -> None:
    """One unknown: the row of its equation, the row of what it does, whose it is, and its limb."""
    at = load_int(S, S_.POLISH) + n * S_.UNKNOWN_WORDS
    store_int(S, at + S_.Z_ROW, row)
    store_int(S, at + S_.Z_COLUMN, column)
    store_int(S, at + S_.Z_OWNER, owner)
    store_int(S, at + S_.Z_PART, part)
    store_int(S, at + S_.Z_FIRST, first)
    store_int(S, at + S_.Z_BLOCKS, blocks)
    S[at + S_.Z_OWN] = 0.0
    S[solution_at(S) + n] = lack


@routine
def matrix_at(S: Address) -> Int:
    """Where the matrix stands."""
    return load_int(S, S_.POLISH) + S_.MAX_POLISHED * S_.UNKNOWN_WORDS


@routine
def solution_at(S: Address) -> Int:
    """Where the right side stands, and then the solution."""
    return load_int(S, S_.POLISH) + S_.MAX_POLISHED * (S_.UNKNOWN_WORDS + S_.MAX_POLISHED)


@routine
def fill_matrix(S: Address, n: Int) -> None:
    """What each unknown does to the velocity of each equation."""
    at, K = load_int(S, S_.POLISH), matrix_at(S)
    for i in range(n):
        a = at + i * S_.UNKNOWN_WORDS
        row, first = load_int(S, a + S_.Z_ROW), load_int(S, a + S_.Z_FIRST)
        blocks = load_int(S, a + S_.Z_BLOCKS)
        for j in range(n):
            b = at + j * S_.UNKNOWN_WORDS
            shared = 0
            if first == load_int(S, b + S_.Z_FIRST):
                shared = min(blocks, load_int(S, b + S_.Z_BLOCKS))
            S[K + i * n + j] = row_product(S, row, load_int(S, b + S_.Z_COLUMN), shared)
        S[K + i * n + i] += S[a + S_.Z_OWN]


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
def eliminate(S: Address, n: Int) -> Bool:
    """Solve the equations in place by Gaussian elimination with pivots; whether they have a solution."""
    K, x = matrix_at(S), solution_at(S)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(S[K + i * n + i]))
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(S[K + i * n + k]) > abs(S[K + pivot * n + k]):
                pivot = i
        if not abs(S[K + pivot * n + k]) > _FLAT * largest:
            return False
        if pivot != k:
            for j in range(k, n):
                swap(S, K + pivot * n + j, K + k * n + j)
            swap(S, x + pivot, x + k)
        inverse = 1.0 / S[K + k * n + k]
        for i in range(k + 1, n):
            factor = S[K + i * n + k] * inverse
            if factor != 0.0:
                for j in range(k + 1, n):
                    S[K + i * n + j] -= factor * S[K + k * n + j]
                S[x + i] -= factor * S[x + k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            S[x + i] -= S[K + i * n + j] * S[x + j]
        S[x + i] /= S[K + i * n + i]
    return True


@routine
def moved(S: Address, k: Int, far: Number) -> tuple[Int, Vec3]:
    """How many unknowns the contact has whose first one is k, and how far its impulse moves."""
    at, x = load_int(S, S_.POLISH), solution_at(S)
    c = load_int(S, at + k * S_.UNKNOWN_WORDS + S_.Z_OWNER)
    limited1, limited2 = limited(S, c)
    normal = far * S[x + k]
    if limited1 and turns(S, c):
        turn = far * S[x + k + 1]
        a, b = across(S, c)
        return 2, (normal, normal * share_of(S, c, 1) + turn * a, normal * share_of(S, c, 2) + turn * b)
    count = 1
    if limited1:
        first = normal * share_of(S, c, 1)
    else:
        first = far * S[x + k + count]
        count += 1
    if limited2:
        second = normal * share_of(S, c, 2)
    else:
        second = far * S[x + k + count]
        count += 1
    return count, (normal, first, second)


@routine
def all_fit(S: Address, n: Int, far: Number) -> Bool:
    """Whether all impulses still push, and friction stays within its limits, if they go so far."""
    at, x = load_int(S, S_.POLISH), solution_at(S)
    k = 0
    while k < n:
        owner = load_int(S, at + k * S_.UNKNOWN_WORDS + S_.Z_OWNER)
        if load_int(S, at + k * S_.UNKNOWN_WORDS + S_.Z_PART) == _STOP:
            if S[owner + S_.L_IMPULSE] + far * S[x + k] <= 0.0:
                return False
            k += 1
        else:
            count, change = moved(S, k, far)
            limited1, limited2 = limited(S, owner)
            p = row3(S, owner + S_.A_IMPULSE)
            normal, first, second = p[0] + change[0], p[1] + change[1], p[2] + change[2]
            largest = S[owner + S_.A_MU] * normal * _INSIDE
            if normal <= 0.0:
                return False
            if load_int(S, S_.CONE) != 0:
                if not limited1 and first * first + second * second >= largest * largest:
                    return False
            elif (not limited1 and abs(first) >= largest) or (not limited2 and abs(second) >= largest):
                return False
            k += count
    return True


@routine
def take(S: Address, n: Int, far: Number) -> None:
    """Let the impulses go so far."""
    at, x, y = load_int(S, S_.POLISH), solution_at(S), load_int(S, S_.Y)
    k = 0
    while k < n:
        owner = load_int(S, at + k * S_.UNKNOWN_WORDS + S_.Z_OWNER)
        if load_int(S, at + k * S_.UNKNOWN_WORDS + S_.Z_PART) == _STOP:
            S[owner + S_.L_IMPULSE] += far * S[x + k]
            add_stop(S, owner, far * S[x + k], y)
            k += 1
        else:
            count, change = moved(S, k, far)
            p = row3(S, owner + S_.A_IMPULSE)
            write3(S, owner + S_.A_IMPULSE, (p[0] + change[0], p[1] + change[1], p[2] + change[2]))
            add_contact(S, owner, change, y)
            k += count
