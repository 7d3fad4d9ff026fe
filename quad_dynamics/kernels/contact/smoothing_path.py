# SPDX-License-Identifier: Apache-2.0
"""Path following of the smoothing Newton method (see `smoothing_newton`), from a start to e = 0.

Newton steps with a line search on |F_e|, while e decreases, for one working set. Impulses and velocities are
in the vectors of `delassus`.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, fill_zero, formula, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number, Vec3
from quad_dynamics.kernels.contact.natural_map import contact_residual, mean_inertia, stop_residual
from quad_dynamics.kernels.contact.newton_step import newton_step, set_velocities, stop_all
from quad_dynamics.kernels.contact.smooth_projection import contact_defect, stop_defect
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.memory.layout import Robot

# Impulses to start from: the best so far, none, or those that make all contacts stick. A leg that almost jams
# needs twenty times the impulse that it needs without friction: only the last start is close.
FROM_BEST, FROM_ZERO, FROM_STICKING = 0, 1, 2

_SHRINK_FAST = 0.1  # factor of e after a step that almost solved F_e = 0
_SOLVED, _SOLVED_WELL = 10.0, 0.3  # |F_e| in units of e at which e is decreased, and decreased fast
# Steps that the line search tries, and the one that it takes if none of them decreases |F_e|: shorter ones
# hardly ever leave a kink.
_FULL, _HALF, _LEAST = 1.0, 0.5, 0.125
_GROWTH = 10.0  # every other full step is accepted if it increases F by no more than this factor
_SMALLEST = 1e-3  # e, in units of the goal
_FAST = 0.1  # the residual decreases fast if one step multiplies it by less than this
# As the inner solver of another method: Newton steps; initial e, as a fraction of the residual, and its
# maximum [m/s]; factor of e after a step.
_STEPS, _SHARE, _FIRST, _SHRINK = 20, 0.1, 0.1, 0.3


@routine
def begin(scene: Scene, n: Int, kind: Int, soft: Number, dense: Bool) -> None:
    """Set the impulses to start from; FROM_STICKING needs G, and regularises by `soft`."""
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
        r: residual of the current impulses [m/s].
        best: residual of the impulses in `best` [m/s].
        goal: required residual [m/s].
        enough: residual at which to stop [m/s]; between `goal` and `enough` it continues while it converges
            fast.
        most: maximum number of Newton steps.
        soft: regularisation of the Jacobian as a fraction of D.
        e: initial value [m/s].
        shrink: factor of e after a step.
        dense: how the Newton steps are computed (see `newton_step`).
    """
    apart(robot)
    newton = scene.newton
    last = math.inf
    for k in range(most):
        if is_enough(r, last, goal, enough):
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
        if far >= _HALF and after <= _SOLVED * e:
            if far == _FULL and after <= _SOLVED_WELL * e:
                e = min(_SHRINK_FAST * e, r * r)
            else:
                e *= shrink
            e = max(e, _SMALLEST * goal)
    return best


@routine
def is_enough(r: Number, last: Number, goal: Number, enough: Number) -> Bool:
    """Whether a residual r ends an iteration: at `goal`, or at `enough` while it decreases fast."""
    return r <= goal and (r <= enough or r > _FAST * last)


@routine
def solve_from_here(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, goal: Number, soft: Number, dense: Bool
) -> None:
    """impulse = the solution, as far as Newton's method finds it from there; `best` is overwritten."""
    newton = scene.newton
    set_velocities(robot, scene, n_contacts, n_stops, n, dense)
    r = working_residual(scene, n_contacts, n_stops)
    e = min(_FIRST, max(_SHARE * r, goal))
    copy(newton.impulse, n, newton.best)
    follow(robot, scene, n_contacts, n_stops, n, r, r, goal, goal, _STEPS, soft, e, _SHRINK, dense)
    copy(newton.best, n, newton.impulse)


@routine
def search_line(
    scene: Scene, n_contacts: Int, n_stops: Int, e: Number, before: Number, bold: Bool
) -> tuple[Number, Number]:
    """Line search: the fraction of the Newton step to take, and |F_e| there, or after the last step tried.

    If `bold`, a full step may increase F: this leaves narrow valleys of |F|.
    """
    after = before
    for far in (_FULL, _HALF):
        after = defect_norm(scene, n_contacts, n_stops, far, e)
        if after <= (1.0 - 1e-3 * far) * before or (bold and far == _FULL and after < _GROWTH * before):
            return far, after
    return _LEAST, after


@routine
def count_iteration(scene: Scene) -> None:
    """Count one Newton step."""
    scene.state.iterations += 1.0


@routine
def go(scene: Scene, n: Int, far: Number) -> None:
    """Take a fraction of the Newton step."""
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
    held = newton.holds_speeds != 0
    largest = 0.0
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            mu, D = contact.mu, mean_inertia(contact)
            p_c, v_c = (p[k], p[k + 1], p[k + 2]), (v[k], v[k + 1], v[k + 2])
            x = contact_residual(p_c, v_c, D, mu, cone, held)
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
    """|F_e| after a fraction of the Newton step."""
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
    """x + far * step, for three numbers."""
    return tuple(x[at + k] + step[at + k] * far for k in range(3))
