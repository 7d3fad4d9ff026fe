# SPDX-License-Identifier: Apache-2.0
"""The way of the smoothing Newton method (see `smoothing_newton`) from a start to e = 0, for one working set.

Newton steps, each as far as it makes |F_e| smaller, while e shrinks. Impulses and velocities are in the
vectors of `delassus`.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, fill_zero, formula, load_int, routine, subroutine
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Vec3
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.delassus import (
    BEST,
    CHANGE,
    STEP,
    P,
    V,
    vector,
)
from quad_dynamics.kernels.natural_map import contact_residual, mean_inertia, stop_residual
from quad_dynamics.kernels.newton_step import newton_step, stop_all
from quad_dynamics.kernels.scene import contact_at, stop_at
from quad_dynamics.kernels.smooth_projection import contact_defect, stop_defect

# Impulses to start from: the best so far, none, or those that stop all contacts. A leg that all but jams
# needs twenty times the impulse that it needs without friction: only the last start is near.
FROM_BEST, FROM_ZERO, FROM_STICKING = 0, 1, 2

_SHRINK_FAST = 0.1  # the factor of e after a step that all but solved F_e = 0
_SOLVED, _SOLVED_WELL = 10.0, 0.3  # |F_e| in units of e that lets e shrink, and shrink fast
_HALVINGS = 10  # of a step, until it makes F smaller
_SHORT = 0.1  # a step that had to be shorter than this enlarges e
_GROWTH = 10.0  # every other full step is taken if it makes F larger by no more than this factor
_MOST_FAILURES = 6  # steps that do not make F smaller
_SMALLEST, _LARGEST = 1e-3, 1.0  # e: in units of the goal; [m/s]
_FAST = 0.1  # a factor of the residual in one step that is fast


@routine
def begin(S: Address, n: Int, kind: Int, soft: Number, dense: Bool) -> None:
    """P = the impulses to start from; those that stop all contacts need G, and give way by `soft`."""
    if kind == FROM_BEST:
        copy(S, vector(S, BEST), n, vector(S, P))
    elif kind == FROM_ZERO or not dense or not stop_all(S, n, soft):
        fill_zero(S, vector(S, P), n)


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
    enough: Number,
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
        goal: residual that is needed [m/s].
        enough: residual at which to end [m/s]; between both it goes on as long as it converges fast.
        most: Newton steps.
        soft: share of D by which contacts give way in the Jacobian.
        e: to begin with [m/s].
        shrink: factor of e after a step.
        dense: how the Newton steps are found (see `newton_step`).
    """
    apart(A)
    failures, last = 0, math.inf
    for k in range(most):
        if r <= goal and (r <= enough or r > _FAST * last):
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
            mu, D = S[c + S_.A_MU], mean_inertia(contact_at(S, c))
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
            F = contact_defect(S, contact_at(S, c), x, w, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            F0, _ = stop_defect(
                stop_at(S, s), S[p + k] + far * S[step + k], S[v + k] + far * S[change + k], e
            )
            total += F0 * F0
    return math.sqrt(total)


@formula
def moved(S: Address, at: Int, step: Int, far: Number) -> Vec3:
    """Three numbers plus a share of three others."""
    return tuple(S[at + k] + S[step + k] * far for k in range(3))
