# SPDX-License-Identifier: Apache-2.0
"""The way of the smoothing Newton method (see `smoothing_newton`) from a start to e = 0, for one working set.

Newton steps, each as far as it makes |F_e| smaller, while e shrinks. Impulses and velocities are in the
vectors of `delassus`.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, fill_zero, formula, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number, Vec3
from quad_dynamics.kernels.contact.natural_map import contact_residual, mean_inertia, stop_residual
from quad_dynamics.kernels.contact.newton_step import newton_step, stop_all
from quad_dynamics.kernels.contact.smooth_projection import contact_defect, stop_defect
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.memory.layout import Robot

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
def begin(scene: Scene, n: Int, kind: Int, soft: Number, dense: Bool) -> None:
    """impulse = those to start from; those that stop all contacts need G, and give way by `soft`."""
    newton = scene.newton
    if kind == FROM_BEST:
        copy(newton.best, n, newton.impulse)
    elif kind == FROM_ZERO or not dense or not stop_all(scene, n, soft):
        fill_zero(newton.impulse, 0, n)


@subroutine
def follow(
    robot: Robot,
    scene: Scene,
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
        r: residual of the impulses [m/s].
        best: that of the impulses in `best` [m/s].
        goal: residual that is needed [m/s].
        enough: residual at which to end [m/s]; between both it goes on as long as it converges fast.
        most: Newton steps.
        soft: share of D by which contacts give way in the Jacobian.
        e: to begin with [m/s].
        shrink: factor of e after a step.
        dense: how the Newton steps are found (see `newton_step`).
    """
    apart(robot)
    newton = scene.newton
    failures, last = 0, math.inf
    for k in range(most):
        if r <= goal and (r <= enough or r > _FAST * last):
            break
        last = r
        count_iteration(scene)
        before = newton_step(robot, scene, n_contacts, n_stops, n, e, soft, dense)
        if before < 0.0:
            break
        far, after = search_line(scene, n_contacts, n_stops, e, before, k % 2 == 1)
        go(scene, n, far)
        r = working_residual(scene, n_contacts, n_stops)
        if not r < math.inf:
            break
        if r < best:
            best = r
            copy(newton.impulse, n, newton.best)
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
    scene: Scene, n_contacts: Int, n_stops: Int, e: Number, before: Number, bold: Bool
) -> tuple[Number, Number]:
    """How far to go along the Newton step, and |F_e| there; where nothing makes it smaller, hardly anywhere.

    Now and then a full step is taken though it does not make F smaller: narrow valleys of |F| are left so.
    """
    far, after = 1.0, before
    for _ in range(_HALVINGS):
        after = defect_norm(scene, n_contacts, n_stops, far, e)
        if after <= (1.0 - 1e-3 * far) * before or (bold and far == 1.0 and after < _GROWTH * before):
            return far, after
        far *= 0.5
    return 0.5 * far, after


@routine
def count_iteration(scene: Scene) -> None:
    """Count one Newton step."""
    scene.state.iterations += 1.0


@routine
def go(scene: Scene, n: Int, far: Number) -> None:
    """Take a part of the Newton step."""
    newton = scene.newton
    p, v, step, change = newton.impulse, newton.velocity, newton.step, newton.change
    for i in range(n):
        p[i] += far * step[i]
        v[i] += far * change[i]


@routine
def copy(x: Numbers, n: Int, to: Numbers) -> None:
    """Copy n numbers."""
    for i in range(n):
        to[i] = x[i]


@subroutine
def working_residual(scene: Scene, n_contacts: Int, n_stops: Int) -> Number:
    """The largest residual in the working set (see `natural_map`) [m/s]."""
    apart(scene)
    newton = scene.newton
    p, v, cone = newton.impulse, newton.velocity, scene.settings.cone
    largest = 0.0
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            mu, D = contact.mu, mean_inertia(contact)
            x = contact_residual((p[k], p[k + 1], p[k + 2]), (v[k], v[k + 1], v[k + 2]), D, mu, cone)
            if not x <= largest:  # NaN too
                largest = x
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            x = stop_residual(p[k], v[k], stop.inertia, stop.lowest, stop.highest)
            if not x <= largest:
                largest = x
    return largest


@subroutine
def defect_norm(scene: Scene, n_contacts: Int, n_stops: Int, far: Number, e: Number) -> Number:
    """|F_e| after a part of the Newton step."""
    apart(scene)
    newton = scene.newton
    p, v, step, change = newton.impulse, newton.velocity, newton.step, newton.change
    total = 0.0
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            x = moved(p, step, k, far)
            w = moved(v, change, k, far)
            F = contact_defect(scene, contact, x, w, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            F0, _ = stop_defect(stop, p[k] + far * step[k], v[k] + far * change[k], e)
            total += F0 * F0
    return math.sqrt(total)


@formula
def moved(x: Numbers, step: Numbers, at: Int, far: Number) -> Vec3:
    """Three numbers plus a share of three others."""
    return tuple(x[at + k] + step[at + k] * far for k in range(3))
