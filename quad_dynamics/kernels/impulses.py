# SPDX-License-Identifier: Apache-2.0
"""Impulses of contacts and stops: a few sweeps of projected Gauss-Seidel, then Newton's method.

From the impulses of the last step, one or two sweeps are often all that it takes; how they treat one contact
is in `one_contact`. They are slow where contacts pull at each other through stiff legs, and where joints are
stuck or several contacts share a body. So after a few sweeps a Newton method takes over (`smoothing_newton`).
The residual of the natural map (`natural_map`) decides when it is done, whoever found the impulses.

Neither sees what adds energy to the whole, which no contact may do: restitution is taken back where it would.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, load_int, routine, subroutine
from quad_dynamics.compiler.types import Address, Bool, Int, Number
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import (
    contact_velocity,
    row3,
    settle_stop,
    start,
    stop_velocity,
    write3,
)
from quad_dynamics.kernels.drives import any_stuck
from quad_dynamics.kernels.natural_map import residual
from quad_dynamics.kernels.one_contact import settle_contact
from quad_dynamics.kernels.smoothing_newton import newton, refine
from quad_dynamics.kernels.spatial import add, dot, scale
from quad_dynamics.kernels.stops import has_friction_rows

_FEW = 2  # sweeps before Newton's method takes over
_ONE = 1  # the same where joint friction is among the constraints: sweeps are slow with it
_FAR = 1e-3  # a sweep that changes velocities by more is followed by Newton's method at once [m/s]
_MORE = 50  # sweeps after a quick try of Newton's method that failed, before a thorough one
_SLOW, _ROUNDING = 1e-3, 1e-13  # of velocities [m/s] and of products, to be sure that impulses take energy
_FINE = 1e-12  # velocity of a contact, beside its target, that is rounding [m/s]


@subroutine
def find_impulses(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> Bool:
    """Find the impulses, which together add no energy; whether they meet the tolerance."""
    apart(A)
    bounces = aim(S, n_contacts, True)
    converged = solve(A, S, n_contacts, n_stops)
    if bounces and work(S, n_contacts, n_stops) > 0.0:
        converged = temper(A, S, n_contacts, n_stops)
    if not converged:
        start(A, S, n_contacts, n_stops)  # impulses that grew large and small again left their rounding in y
        if not is_loss(S, n_contacts, n_stops):
            leave_out_friction(A, S, n_contacts, n_stops)
    return converged


@routine
def is_loss(S: Address, n_contacts: Int, n_stops: Int) -> Bool:
    """Whether the impulses take energy for certain, whatever is lost by rounding."""
    size = 0.0
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        for k in range(3):
            size += abs(S[c + S_.A_IMPULSE + k]) * (abs(S[c + S_.A_FREE + k]) + _SLOW)
    return work(S, n_contacts, n_stops) + _ROUNDING * size <= 0.0


@subroutine
def leave_out_friction(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Impulses without friction: these always exist, are found, and add no energy."""
    apart(A)
    aim(S, n_contacts, False)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        S[c + S_.A_KEPT] = S[c + S_.A_MU]
        S[c + S_.A_MU] = 0.0
        write3(S, c + S_.A_IMPULSE, (0.0, 0.0, 0.0))
    for i in range(n_stops):
        S[load_int(S, S_.STOPS) + i * S_.STOP_WORDS + S_.L_IMPULSE] = 0.0
    solve(A, S, n_contacts, n_stops)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        S[c + S_.A_MU] = S[c + S_.A_KEPT]
    S[load_int(S, S_.STATE) + S_.RESIDUAL] = residual(A, S, n_contacts, n_stops)  # with friction


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
    """Find the impulses for given targets; whether they meet the tolerance.

    The residual goes to the state, and the number of sweeps where it is the largest of this step.
    """
    apart(A)
    tolerance = S[S_.TOLERANCE]
    start(A, S, n_contacts, n_stops)
    most = load_int(S, S_.MAX_SWEEPS)
    few = min(_ONE if has_friction_rows(S, n_stops) else _FEW, most)
    sweeps = sweep_until(S, n_contacts, n_stops, few, _FAR)
    r = residual(A, S, n_contacts, n_stops)
    if not r <= tolerance:
        newton(A, S, n_contacts, n_stops, False)
        r = residual(A, S, n_contacts, n_stops)
        if not r <= tolerance:
            sweeps += sweep_until(S, n_contacts, n_stops, min(_MORE, most - sweeps), math.inf)
            newton(A, S, n_contacts, n_stops, True)
            r = residual(A, S, n_contacts, n_stops)
    if _FINE < r <= tolerance and n_contacts + n_stops > 1 and any_stuck(A, S):
        refine(A, S, n_contacts, n_stops)
        r = residual(A, S, n_contacts, n_stops)
    state = load_int(S, S_.STATE)
    S[state + S_.SWEEPS] = max(S[state + S_.SWEEPS], 1.0 * sweeps)
    S[state + S_.RESIDUAL] = max(S[state + S_.RESIDUAL], r)
    return r <= tolerance


@routine
def sweep_until(S: Address, n_contacts: Int, n_stops: Int, most: Int, far: Number) -> Int:
    """Sweep until changes are within the tolerance, or above `far`; returns how often."""
    contacts, stops, y = load_int(S, S_.ACTIVE), load_int(S, S_.STOPS), load_int(S, S_.Y)
    tolerance, cone = S[S_.TOLERANCE], load_int(S, S_.CONE)
    for sweeps in range(most):
        change = 0.0
        for i in range(n_contacts):
            change = max(change, settle_contact(S, contacts + i * S_.ACTIVE_WORDS, y, cone))
        for i in range(n_stops):
            change = max(change, settle_stop(S, stops + i * S_.STOP_WORDS, y))
        if change <= tolerance or change > far:
            return sweeps + 1
    return most
