# SPDX-License-Identifier: Apache-2.0
"""Impulses of contacts and stops by a smoothing Newton method, for the steps in which sweeps are slow.

What is solved is the same as by the sweeps: Signorini's condition and Coulomb's law as they are, no convex
relaxation of them. With s = (v_n / mu + |v_t|, v_t), q = (mu p_n, p_t), D the mean of a contact's own inverse
inertias and P the projection onto the cone |x_t| <= x_n, which is its own dual, a contact is solved if

    F = D q - P(D q - s) = 0

(the natural map of `natural_map`, scaled so that the cone becomes self-dual). F has kinks. So |v_t| becomes
sqrt(|v_t|^2 + e^2), and P the smooth P_e that has (l + sqrt(l^2 + 4 e^2)) / 2 in place of max(l, 0) for each
spectral value l = x_n -+ |x_t|. Newton's method solves F_e = 0 while e goes to zero. A constraint with
bounds, and each tangent of a pyramid, has the smooth form of max and min in the same way.

G is singular where one body has more contacts than it needs. In the Jacobian alone, and so without any effect
on the solution, each contact gives way by a small share of D. No method for Coulomb friction is certain to
converge. Where this one does not, it starts anew with another share; what is left then is reported.

Chen, Qi and Sun, Global and superlinear convergence of the smoothing Newton method (1998). Fukushima, Luo and
Tseng, Smoothing functions for second-order-cone complementarity problems (2002). On methods for Coulomb
friction: Acary, Bremond and Huber, On solving contact problems with Coulomb friction: formulations and
numerical comparisons (2018).
"""

from __future__ import annotations

import math
from typing import TypeAlias

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import start
from quad_dynamics.kernels.delassus import (
    BEST,
    CHANGE,
    MOST_DENSE,
    STEP,
    P,
    V,
    count_unknowns,
    fill_delassus,
    forget_unknowns,
    list_unknowns,
    row_length,
    take_impulses,
    vector,
)
from quad_dynamics.kernels.natural_map import contact_residual, mean_inertia, stop_residual
from quad_dynamics.kernels.newton_step import newton_step, set_velocities
from quad_dynamics.kernels.smooth_projection import contact_defect, stop_defect
from quad_dynamics.kernels.trace import apart, fill_zero, formula, load_int, routine, subroutine
from quad_dynamics.kernels.types import Address, Bool, Int, Number, Vec3

Try: TypeAlias = 'tuple[Int, Number, Number, Number, Number, Bool]'  # see _QUICK

# A try: Newton steps; the share of D by which contacts give way in the Jacobian; the largest e to begin with
# [m/s], and e as a share of the residual; the factor of e after a step; whether it starts from the best
# impulses so far, or from none.
_QUICK = ((20, 1e-4, 0.1, 0.003, 0.1, True),)
_THOROUGH = (
    (30, 1e-3, 0.1, 0.1, 0.3, True),
    (30, 1e-2, 0.1, 0.1, 0.3, True),
    (40, 1e-3, 0.1, 1e9, 0.3, False),
    (40, 1e-2, 0.1, 1e9, 0.3, False),
    (60, 1e-4, 1.0, 1e9, 0.3, False),
    (60, 1e-4, 0.1, 1e9, 0.3, False),
    (60, 1e-6, 0.1, 1e9, 0.3, False),
    (60, 1e-3, 1.0, 1e9, 0.3, False),
)
_FEW_UNKNOWNS = 24  # up to so many, dense Newton steps are faster than reduced ones
_SHRINK_FAST = 0.1  # the factor of e after a step that all but solved F_e = 0
_SOLVED, _SOLVED_WELL = 10.0, 0.3  # |F_e| in units of e that lets e shrink, and shrink fast
_HALVINGS = 10  # of a step, until it makes F smaller
_SHORT = 0.1  # a step that had to be shorter than this enlarges e
_GROWTH = 10.0  # every other full step is taken if it makes F larger by no more than this factor
_MOST_FAILURES = 6  # steps that do not make F smaller
_SMALLEST, _LARGEST = 1e-3, 1.0  # e: in units of the goal; [m/s]
_FINE, _FAST = 1e-4, 0.1  # a residual that is small beside the goal; a factor in one step that is fast
_GOAL = 0.99  # of the tolerance: rounding must not bring the residual above it
# The share of D by which contacts give way in the steps of `refine`. The first is less than the compliance of
# stuck joints, 1e-8, which makes forces unique. The others are for several contacts of one body, whose forces
# are not: rounding may spoil the first one there.
_SOFT_REFINED = (1e-11, 1e-9, 1e-7)
_SHARP = 1e-3  # e of these steps, in units of the residual
_ROUNDING = 1e-12  # a residual that is nothing else [m/s]


@subroutine
def newton(A: Address, S: Address, n_contacts: Int, n_stops: Int, thorough: Bool) -> None:
    """Solve for all impulses, from those that there are, with one try or with many; S[Y] follows them."""
    apart(A)
    if load_int(S, S_.INDEFINITE) != 0 or count_unknowns(n_contacts, n_stops) >= load_int(S, S_.CAPACITY):
        return
    forget_unknowns(S, n_contacts, n_stops)
    n, added = list_unknowns(A, S, n_contacts, n_stops)
    while added:
        solve_working_set(A, S, n_contacts, n_stops, n, thorough)
        start(A, S, n_contacts, n_stops)
        n, added = list_unknowns(A, S, n_contacts, n_stops)


@subroutine
def refine(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Newton steps from impulses that meet the tolerance, where stuck joints make others all but as good.

    The large inertia of a stuck joint is in G, which makes the solution unique: it is the one with the least
    joint friction, and has the symmetry of the robot.
    """
    apart(A)
    if load_int(S, S_.INDEFINITE) != 0 or count_unknowns(n_contacts, n_stops) >= load_int(S, S_.CAPACITY):
        return
    forget_unknowns(S, n_contacts, n_stops)
    n, _ = list_unknowns(A, S, n_contacts, n_stops)
    if n == 0 or n > MOST_DENSE:
        return
    prepare(A, S, n_contacts, n_stops, n, True)
    best = working_residual(S, n_contacts, n_stops)
    copy(S, vector(S, P), n, vector(S, BEST))
    for soft in _SOFT_REFINED:
        if best <= _ROUNDING:
            break
        count_iteration(S)
        if newton_step(A, S, n_contacts, n_stops, n, _SHARP * best, soft, True) >= 0.0:
            go(S, n, 1.0)
        r = working_residual(S, n_contacts, n_stops)
        if r <= best:
            best = r
            copy(S, vector(S, P), n, vector(S, BEST))
        else:
            copy(S, vector(S, BEST), n, vector(S, P))
            set_velocities(A, S, n_contacts, n_stops, n, True)
    take_impulses(S, n_contacts, n_stops, vector(S, BEST))
    start(A, S, n_contacts, n_stops)


@subroutine
def solve_working_set(A: Address, S: Address, n_contacts: Int, n_stops: Int, n: Int, thorough: Bool) -> None:
    """Solve for the impulses of the working set; the best that were found are taken."""
    apart(A)
    dense = n <= (MOST_DENSE if thorough else _FEW_UNKNOWNS)
    prepare(A, S, n_contacts, n_stops, n, dense)
    best = working_residual(S, n_contacts, n_stops)
    copy(S, vector(S, P), n, vector(S, BEST))
    if thorough:
        for choice in _THOROUGH:
            best = attempt(A, S, n_contacts, n_stops, n, best, choice, dense)
    else:
        for choice in _QUICK:
            best = attempt(A, S, n_contacts, n_stops, n, best, choice, dense)
    take_impulses(S, n_contacts, n_stops, vector(S, BEST))


@routine
def attempt(
    A: Address, S: Address, n_contacts: Int, n_stops: Int, n: Int, best: Number, choice: Try, dense: Bool
) -> Number:
    """One try, if it is still needed; returns the residual of the best impulses."""
    most, soft, largest, share, shrink, warm = choice
    goal = _GOAL * S[S_.TOLERANCE]
    if best <= goal:
        return best
    if warm:
        copy(S, vector(S, BEST), n, vector(S, P))
    else:
        fill_zero(S, vector(S, P), n)
    set_velocities(A, S, n_contacts, n_stops, n, dense)
    r = working_residual(S, n_contacts, n_stops)
    e = min(largest, max(share * r, goal))
    return follow(A, S, n_contacts, n_stops, n, r, best, goal, most, soft, e, shrink, dense)


@subroutine
def follow(
    A: Address,
    S: Address,
    n_contacts: Int,
    n_stops: Int,
    n: Int,
    r: Number,
    best: Number,
    goal: Number,
    most: Int,
    soft: Number,
    e: Number,
    shrink: Number,
    dense: Bool,
) -> Number:
    """Follow the solutions of F_e = 0 as e goes to zero; returns the residual of the best impulses.

    Args:
        r: residual of the impulses in P [m/s].
        best: that of the impulses in BEST [m/s].
        goal: residual at which to end [m/s].
        most: Newton steps.
        soft: share of D by which contacts give way in the Jacobian.
        e: to begin with [m/s].
        shrink: factor of e after a step.
        dense: how the Newton steps are found (see `newton_step`).
    """
    apart(A)
    failures, last = 0, math.inf
    for k in range(most):
        # once it is good enough, it goes on only as long as it converges fast
        if r <= goal and (r <= _FINE * goal or r > _FAST * last):
            break
        last = r
        count_iteration(S)
        before = newton_step(A, S, n_contacts, n_stops, n, e, soft, dense)
        if before < 0.0:
            break
        far, after = search_line(S, n_contacts, n_stops, e, before, k % 2 == 1)
        go(S, n, far)
        r = working_residual(S, n_contacts, n_stops)
        if not r < math.inf:
            break
        if r < best:
            best = r
            copy(S, vector(S, P), n, vector(S, BEST))
        if far < _SHORT:
            failures += 1 if far < 2.0**-_HALVINGS else 0
            if failures > _MOST_FAILURES:
                break
            e = min(10.0 * e, _LARGEST)
        elif far > 0.4 and after <= _SOLVED * e:
            if far == 1.0 and after <= _SOLVED_WELL * e:
                e = min(_SHRINK_FAST * e, r * r)
            else:
                e *= shrink
            e = max(e, _SMALLEST * goal)
    return best


@routine
def search_line(
    S: Address, n_contacts: Int, n_stops: Int, e: Number, before: Number, bold: Bool
) -> tuple[Number, Number]:
    """How far to go along the Newton step, and |F_e| there; where nothing makes it smaller, hardly anywhere.

    Now and then a full step is taken though it does not make F smaller: narrow valleys of |F| are left so.
    """
    far, after = 1.0, before
    for _ in range(_HALVINGS):
        after = defect_norm(S, n_contacts, n_stops, far, e)
        if after <= (1.0 - 1e-3 * far) * before or (bold and far == 1.0 and after < _GROWTH * before):
            return far, after
        far *= 0.5
    return 0.5 * far, after


@routine
def count_iteration(S: Address) -> None:
    """Count one Newton step."""
    S[load_int(S, S_.STATE) + S_.ITERATIONS] += 1.0


@routine
def prepare(A: Address, S: Address, n_contacts: Int, n_stops: Int, n: Int, dense: Bool) -> None:
    """G where it is needed, and velocities from the impulses of a new working set."""
    if dense:
        fill_delassus(A, S, n)
    fill_zero(S, vector(S, P) + n, row_length(n) - n)
    set_velocities(A, S, n_contacts, n_stops, n, dense)


@routine
def go(S: Address, n: Int, far: Number) -> None:
    """Take a part of the Newton step."""
    p, v, step, change = vector(S, P), vector(S, V), vector(S, STEP), vector(S, CHANGE)
    for i in range(n):
        S[p + i] += far * S[step + i]
        S[v + i] += far * S[change + i]


@routine
def copy(S: Address, start: Int, n: Int, to: Int) -> None:
    """Copy n numbers."""
    for i in range(n):
        S[to + i] = S[start + i]


@subroutine
def working_residual(S: Address, n_contacts: Int, n_stops: Int) -> Number:
    """The largest residual in the working set (see `natural_map`) [m/s]."""
    apart(S)
    p, v, cone = vector(S, P), vector(S, V), load_int(S, S_.CONE)
    largest = 0.0
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            mu, D = S[c + S_.A_MU], mean_inertia(S, c)
            x = contact_residual(
                (S[p + k], S[p + k + 1], S[p + k + 2]), (S[v + k], S[v + k + 1], S[v + k + 2]), D, mu, cone
            )
            if not x <= largest:  # NaN too
                largest = x
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            x = stop_residual(S[p + k], S[v + k], S[s + S_.L_INERTIA], S[s + S_.L_LOW], S[s + S_.L_HIGH])
            if not x <= largest:
                largest = x
    return largest


@subroutine
def defect_norm(S: Address, n_contacts: Int, n_stops: Int, far: Number, e: Number) -> Number:
    """|F_e| after a part of the Newton step."""
    apart(S)
    p, v, step, change = vector(S, P), vector(S, V), vector(S, STEP), vector(S, CHANGE)
    total = 0.0
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            x = moved(S, p + k, step + k, far)
            w = moved(S, v + k, change + k, far)
            F = contact_defect(S, c, x, w, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            F0, _ = stop_defect(S, s, S[p + k] + far * S[step + k], S[v + k] + far * S[change + k], e)
            total += F0 * F0
    return math.sqrt(total)


@formula
def moved(S: Address, at: Int, step: Int, far: Number) -> Vec3:
    """Three numbers plus a share of three others."""
    return tuple(S[at + k] + S[step + k] * far for k in range(3))
