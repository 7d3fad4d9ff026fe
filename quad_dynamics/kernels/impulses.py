# SPDX-License-Identifier: Apache-2.0
"""Impulses of contacts and stops: sweeps of projected Gauss-Seidel, now and then a direct solution.

Sweeps are slow where contacts pull at each other through stiff legs, and where joints are stuck there are
many impulses with all but the same effect: sweeps then find one that depends on the order of the contacts. So
the rows of contacts that stick, and of stops that push, are also solved for all at once, G x = target -
velocity, by Cholesky's method. The large inertia of a stuck joint is in G, which makes the solution unique:
it is the one with the least joint friction, and has the symmetry of the robot. Contacts go only as far
towards it as all friction cones allow; what remains is left to the sweeps, which alone decide when it is
done.
"""

from __future__ import annotations

import math

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import (
    add_contact,
    add_stop,
    block_product,
    contact_velocity,
    row3,
    row_velocity,
    settle_stop,
    short_product,
    start,
    write3,
)
from quad_dynamics.kernels.drives import any_stuck
from quad_dynamics.kernels.one_contact import settle_contact
from quad_dynamics.kernels.scene import BASE_COLUMNS
from quad_dynamics.kernels.spatial import add, dot, scale
from quad_dynamics.kernels.trace import apart, load_int, routine, store_int, subroutine
from quad_dynamics.kernels.types import Address, Bool, Int, Number, Vec3
from quad_dynamics.model.layout import LANES

_FIRST_POLISH, _NEXT_POLISH = 3, 8  # sweeps before the first direct solution, and from one to the next
_FINE = 1e-12  # velocity of a contact, beside its target, that is rounding [m/s]
_HALVINGS = 6  # of the way to the direct solution, until all cones allow it
_INSIDE = 1.0 - 1e-9  # a contact sticks if friction is below this share of its limit
_FLAT = 1e-13  # a pivot below this share of its diagonal is none


@subroutine
def find_impulses(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Find the impulses, of which none may add energy."""
    apart(A)
    bounces = aim(S, n_contacts, True)
    converged = solve(A, S, n_contacts, n_stops)
    if bounces and work(S, n_contacts, n_stops) > 0.0:
        converged = temper(A, S, n_contacts, n_stops)
    if not converged and work(S, n_contacts, n_stops) > 0.0:
        shrink(A, S, n_contacts, n_stops)


@routine
def aim(S: Address, n_contacts: Int, bounce: Bool) -> Bool:
    """Give the contacts their targets, with or without restitution; whether any has a restitution."""
    found = False
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        found |= S[c + S_.A_BOUNCE] > 0.0
        S[c + S_.A_TARGET] = S[c + S_.A_BOUNCE] if bounce and S[c + S_.A_BOUNCE] > 0.0 else S[c + S_.A_CALM]
    return found


@routine
def work(S: Address, n_contacts: Int, n_stops: Int) -> Number:
    """What the impulses add to the kinetic energy: each times the mean of the velocities before and after."""
    y = load_int(S, S_.Y)
    total = 0.0
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        total += dot(row3(S, c + S_.A_IMPULSE), add(row3(S, c + S_.A_FREE), contact_velocity(S, c, y)))
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        total += S[s + S_.L_IMPULSE] * (S[s + S_.L_FREE] + stop_velocity(S, s, y))
    return 0.5 * total


@subroutine
def temper(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> Bool:
    """Take back so much of the restitution that the impulses add no energy; as `solve`.

    Points that leave the ground each with its own restitution can add energy to a robot of many bodies.
    Without any, impulses never do. The work along the straight line between both solutions is a parabola.
    """
    apart(A)
    keep_impulses(S, n_contacts, n_stops, 1)
    aim(S, n_contacts, False)
    converged = solve(A, S, n_contacts, n_stops)
    keep_impulses(S, n_contacts, n_stops, 0)
    none = work(S, n_contacts, n_stops)
    mix_impulses(A, S, n_contacts, n_stops, 0.5)
    half = work(S, n_contacts, n_stops)
    mix_impulses(A, S, n_contacts, n_stops, 1.0)
    full = work(S, n_contacts, n_stops)
    mix_impulses(A, S, n_contacts, n_stops, last_root(none, half, full) if none <= 0.0 else 0.0)
    return converged


@subroutine
def shrink(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Make impulses that the sweeps did not finish so small that they add no energy."""
    apart(A)
    keep_impulses(S, n_contacts, n_stops, 1)
    full = work(S, n_contacts, n_stops)
    mix_with_none(A, S, n_contacts, n_stops, 0.5)
    half = work(S, n_contacts, n_stops)
    mix_with_none(A, S, n_contacts, n_stops, last_root(0.0, half, full))


@routine
def mix_with_none(A: Address, S: Address, n_contacts: Int, n_stops: Int, share: Number) -> None:
    """A share of the impulses that are kept as the second ones."""
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        write3(S, c + S_.A_IMPULSE, scale(row3(S, c + S_.A_KEPT + 3), share))
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        S[s + S_.L_IMPULSE] = share * S[s + S_.L_KEPT + 1]
    start(A, S, n_contacts, n_stops)


@routine
def last_root(none: Number, half: Number, full: Number) -> Number:
    """Where a parabola with these values at 0, 1/2 and 1 is zero, below the end 1 at which it is positive."""
    a, b = 2.0 * none - 4.0 * half + 2.0 * full, 4.0 * half - 3.0 * none - full
    below, above = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (below + above)
        if (a * middle + b) * middle + none > 0.0:
            above = middle
        else:
            below = middle
    return below


@routine
def keep_impulses(S: Address, n_contacts: Int, n_stops: Int, which: Int) -> None:
    """Keep the impulses while others are tried, as the first or the second that are kept."""
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        write3(S, c + S_.A_KEPT + 3 * which, row3(S, c + S_.A_IMPULSE))
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        S[s + S_.L_KEPT + which] = S[s + S_.L_IMPULSE]


@routine
def mix_impulses(A: Address, S: Address, n_contacts: Int, n_stops: Int, share: Number) -> None:
    """Mix the impulses that are kept: 0 gives the first, 1 the second."""
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        one, other = row3(S, c + S_.A_KEPT), row3(S, c + S_.A_KEPT + 3)
        write3(S, c + S_.A_IMPULSE, add(scale(one, 1.0 - share), scale(other, share)))
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        S[s + S_.L_IMPULSE] = (1.0 - share) * S[s + S_.L_KEPT] + share * S[s + S_.L_KEPT + 1]
    start(A, S, n_contacts, n_stops)


@subroutine
def solve(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> Bool:
    """Find the impulses for given targets; whether the sweeps met the tolerance.

    The number of sweeps and the last change go to the state.
    """
    apart(A)
    contacts, stops, y = load_int(S, S_.ACTIVE), load_int(S, S_.STOPS), load_int(S, S_.Y)
    tolerance, cone = S[S_.TOLERANCE], load_int(S, S_.CONE)
    start(A, S, n_contacts, n_stops)
    change = 0.0
    sweeps, polish_at = 0, _FIRST_POLISH
    for _ in range(load_int(S, S_.MAX_SWEEPS)):
        if sweeps == polish_at:
            polish(A, S, n_contacts, n_stops)
            polish_at += _NEXT_POLISH
        change = 0.0
        for i in range(n_contacts):
            change = max(change, settle_contact(S, contacts + i * S_.ACTIVE_WORDS, y, cone))
        for i in range(n_stops):
            change = max(change, settle_stop(S, stops + i * S_.STOP_WORDS, y))
        sweeps += 1
        if change <= tolerance:
            break
    if change <= tolerance and change > _FINE and n_contacts + n_stops > 1 and any_stuck(A, S):
        polish(A, S, n_contacts, n_stops)
    state = load_int(S, S_.STATE)
    S[state + S_.SWEEPS] += sweeps
    S[state + S_.RESIDUAL] = max(S[state + S_.RESIDUAL], change)
    if not change <= tolerance:
        S[state + S_.CONVERGED] = 0.0
        return False
    return True


@subroutine
def polish(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Go towards the impulses that give sticking contacts, and stops that push, their target velocities."""
    apart(A)
    listed = list_rows(S, n_contacts, n_stops)
    if listed < 2 or not factor_and_solve(S, listed):
        return
    far = find_way(S, listed)
    y, at = load_int(S, S_.Y), load_int(S, S_.POLISH)
    x = at + S_.MAX_POLISHED * (3 + S_.MAX_POLISHED)
    i = 0
    while i < listed and far > 0.0:
        owner = load_int(S, at + 3 * i + 1)
        if load_int(S, at + 3 * i + 2) == 0:
            change = scale(row3(S, x + i), far)
            write3(S, owner + S_.A_IMPULSE, add(row3(S, owner + S_.A_IMPULSE), change))
            add_contact(S, owner, change, y)
            i += 3
        else:
            S[owner + S_.L_IMPULSE] += far * S[x + i]
            add_stop(S, owner, far * S[x + i], y)
            i += 1


@routine
def list_rows(S: Address, n_contacts: Int, n_stops: Int) -> Int:
    """List the rows to solve for, and what their velocities lack; returns how many, 0 if too many."""
    at, length = load_int(S, S_.POLISH), load_int(S, S_.ROW_LENGTH)
    b = at + S_.MAX_POLISHED * (3 + S_.MAX_POLISHED)
    y, cone = load_int(S, S_.Y), load_int(S, S_.CONE)
    n = 0
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        if fits(row3(S, c + S_.A_IMPULSE), S[c + S_.A_MU] * _INSIDE, cone):
            if n + 3 > S_.MAX_POLISHED:
                return 0
            v = contact_velocity(S, c, y)
            write3(S, b + n, (S[c + S_.A_TARGET] - v[0], -v[1], -v[2]))
            for k in range(3):
                list_row(S, at + 3 * (n + k), load_int(S, c + S_.A_ROW) + k * length, c, 0)
            n += 3
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        if S[s + S_.L_IMPULSE] > 0.0:
            if n + 1 > S_.MAX_POLISHED:
                return 0
            S[b + n] = S[s + S_.L_TARGET] - stop_velocity(S, s, y)
            list_row(S, at + 3 * n, load_int(S, s + S_.L_ROW), s, 1)
            n += 1
    return n


@routine
def list_row(S: Address, at: Int, row: Int, owner: Int, kind: Int) -> None:
    """One row: where it stands, whose it is, and whether that is a stop."""
    store_int(S, at, row)
    store_int(S, at + 1, owner)
    store_int(S, at + 2, kind)


@routine
def stop_velocity(S: Address, s: Int, y: Int) -> Number:
    """Velocity of a stop."""
    entry = load_int(S, S_.JOINTS) + load_int(S, s + S_.L_JOINT) * S_.JOINT_WORDS
    first, blocks = load_int(S, entry + S_.J_FIRST), load_int(S, entry + S_.J_BLOCKS)
    return S[s + S_.L_FREE] + row_velocity(S, load_int(S, s + S_.L_ROW), y, first, blocks)


@routine
def limb_of(S: Address, owner: Int, is_stop: Int) -> tuple[Int, Int]:
    """First joint and blocks of the limb of a constraint."""
    if is_stop != 0:
        entry = load_int(S, S_.JOINTS) + load_int(S, owner + S_.L_JOINT) * S_.JOINT_WORDS
        return load_int(S, entry + S_.J_FIRST), load_int(S, entry + S_.J_BLOCKS)
    return load_int(S, owner + S_.A_FIRST), load_int(S, owner + S_.A_BLOCKS)


@routine
def factor_and_solve(S: Address, n: Int) -> Bool:
    """Solve G x = b in place, G = L L^T; whether G is regular enough."""
    at = load_int(S, S_.POLISH)
    G, x = at + 3 * S_.MAX_POLISHED, at + S_.MAX_POLISHED * (3 + S_.MAX_POLISHED)
    for i in range(n):
        row_i, first_i, blocks_i = listed_row(S, at + 3 * i)
        for j in range(i + 1):
            row_j, first_j, blocks_j = listed_row(S, at + 3 * j)
            total = row_product(S, row_i, row_j, min(blocks_i, blocks_j) if first_i == first_j else 0)
            diagonal = total
            for k in range(j):
                total -= S[G + i * n + k] * S[G + j * n + k]
            if i == j:
                if not total > _FLAT * diagonal:
                    return False
                S[G + i * n + i] = 1.0 / math.sqrt(total)
            else:
                S[G + i * n + j] = total * S[G + j * n + j]
    for i in range(n):
        for k in range(i):
            S[x + i] -= S[G + i * n + k] * S[x + k]
        S[x + i] *= S[G + i * n + i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            S[x + i] -= S[G + k * n + i] * S[x + k]
        S[x + i] *= S[G + i * n + i]
    return True


@routine
def listed_row(S: Address, at: Int) -> tuple[Int, Int, Int]:
    """Where a listed row stands, and its limb."""
    first, blocks = limb_of(S, load_int(S, at + 1), load_int(S, at + 2))
    return load_int(S, at), first, blocks


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
def find_way(S: Address, n: Int) -> Number:
    """How far all listed impulses can go towards the solution: 1 is all the way."""
    at, cone = load_int(S, S_.POLISH), load_int(S, S_.CONE)
    x = at + S_.MAX_POLISHED * (3 + S_.MAX_POLISHED)
    far = 1.0
    for _ in range(_HALVINGS):
        good = True
        i = 0
        while i < n:
            owner = load_int(S, at + 3 * i + 1)
            if load_int(S, at + 3 * i + 2) == 0:
                there = add(row3(S, owner + S_.A_IMPULSE), scale(row3(S, x + i), far))
                good = good and fits(there, S[owner + S_.A_MU] * _INSIDE, cone)
                i += 3
            else:
                good = good and S[owner + S_.L_IMPULSE] + far * S[x + i] > 0.0
                i += 1
        if good:
            return far
        far *= 0.5
    return 0.0


@routine
def fits(impulse: Vec3, mu: Number, cone: Int) -> Bool:
    """Whether an impulse pushes, and its friction is below mu times the normal part."""
    largest = mu * impulse[0]
    if impulse[0] <= 0.0:
        return False
    if cone != 0:
        return impulse[1] * impulse[1] + impulse[2] * impulse[2] < largest * largest
    return abs(impulse[1]) < largest and abs(impulse[2]) < largest
