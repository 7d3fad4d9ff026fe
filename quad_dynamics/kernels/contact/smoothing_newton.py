# SPDX-License-Identifier: Apache-2.0
"""Impulses of contacts and joint constraints by Newton's method, when sweeps converge slowly.

It solves the same problem as the sweeps: Signorini's condition and Coulomb's law without any convex
relaxation. Full steps of `semismooth_newton` come first; if they fail, a smoothing Newton method follows.
With s = (v_n / mu + |v_t|, v_t), q = (mu p_n, p_t), D the mean diagonal of the contact's own
Delassus block, and P the projection onto the self-dual cone |x_t| <= x_n, a contact is solved if

    F = D q - P(D q - s) = 0

(the natural map of `natural_map`, scaled so that the cone becomes self-dual). F has kinks. They are smoothed:
|v_t| becomes sqrt(|v_t|^2 + e^2), and P becomes the smooth P_e with (l + sqrt(l^2 + 4 e^2)) / 2 in place of
max(l, 0) for each spectral value l = x_n -+ |x_t|. Newton's method solves F_e = 0 while e goes to zero. For
constraints with bounds, and for each tangent of a pyramid, max and min are smoothed in the same way.

G is singular if a body has redundant contacts. The Jacobian is therefore regularised by a small fraction of D
for each contact; this has no effect on the solution. No method for Coulomb friction is guaranteed to
converge. If this one fails, it restarts from another point with another regularisation, and finally becomes
the inner solver of other methods (`sliding_speeds`, `proximal_point`). The remaining residual is reported.

Chen, Qi and Sun, Global and superlinear convergence of the smoothing Newton method (1998). Fukushima, Luo and
Tseng, Smoothing functions for second-order-cone complementarity problems (2002). On methods for Coulomb
friction: Acary, Bremond and Huber, On solving contact problems with Coulomb friction: formulations and
numerical comparisons (2018).
"""

from __future__ import annotations

from typing import TypeAlias

from quad_dynamics.compiler.trace import apart, fill_zero, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number
from quad_dynamics.kernels.contact.constraints import start
from quad_dynamics.kernels.contact.delassus import (
    MOST_DENSE,
    count_unknowns,
    fill_delassus,
    forget_unknowns,
    list_inertias,
    list_unknowns,
    row_length,
    take_impulses,
)
from quad_dynamics.kernels.contact.newton_step import newton_step, set_velocities
from quad_dynamics.kernels.contact.proximal_point import SERIES, move_centres
from quad_dynamics.kernels.contact.semismooth_newton import take_full_steps
from quad_dynamics.kernels.contact.sliding_speeds import iterate_speeds
from quad_dynamics.kernels.contact.smoothing_path import (
    FROM_BEST,
    FROM_STICKING,
    FROM_ZERO,
    begin,
    copy,
    count_iteration,
    follow,
    go,
    working_residual,
)
from quad_dynamics.kernels.simulation.drives import has_dry_friction
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.memory.layout import Robot

Try: TypeAlias = 'tuple[Int, Number, Number, Number, Number, Int]'  # see _SECOND

# One attempt: Newton steps; regularisation of the Jacobian as a fraction of D; initial e: maximum [m/s],
# fraction of the residual; factor of e after a step; starting point (see `begin`).
_SECOND = ((40, 1e-3, 0.1, 0.01, 0.1, FROM_STICKING), (20, 1e-3, 0.1, 0.003, 0.1, FROM_BEST))
_THIRD = (
    (30, 1e-3, 0.1, 0.1, 0.3, FROM_BEST),
    (30, 1e-3, 0.1, 0.1, 0.3, FROM_STICKING),
    (40, 1e-6, 0.01, 1e9, 0.3, FROM_STICKING),
    (30, 1e-2, 0.1, 0.1, 0.3, FROM_BEST),
    (40, 1e-3, 0.1, 1e9, 0.3, FROM_ZERO),
    (60, 1e-4, 1.0, 1e9, 0.3, FROM_ZERO),
    (99, 1e-3, 0.1, 1e9, 0.7, FROM_STICKING),
    (99, 1e-4, 1.0, 1e9, 0.7, FROM_ZERO),
)
# What `newton` does: full steps; the two attempts of _SECOND; all others, and the methods around them.
FULL_STEPS, FEW_ATTEMPTS, ALL_ATTEMPTS = 0, 1, 2
_FEW_UNKNOWNS = 24  # up to this number, dense Newton steps are faster than reduced ones
# The signs of small speeds decide which joints stick, so dry friction needs a finer tolerance.
_FINE = 1e-4  # fraction of the goal
_GOAL = 0.99  # fraction of the tolerance: rounding must not bring the residual above it
# Regularisation of the Jacobian in `refine`, as a fraction of D. The first value is below the compliance of
# sticking joints, 1e-8, which makes forces unique. The others are for several contacts of one body, whose
# forces
# are not unique: rounding may spoil the first value there.
_SOFT_REFINED = (1e-11, 1e-9, 1e-7)
_SHARP = 1e-3  # e in `refine`, as a fraction of the residual
_ROUNDING = 1e-12  # smaller residuals are only rounding [m/s]


@subroutine
def newton(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, effort: Int) -> None:
    """Solve for all impulses from the current ones, with FULL_STEPS or more effort; updates `y`."""
    apart(robot)
    if scene.indefinite != 0 or count_unknowns(n_contacts, n_stops) >= scene.capacity:
        return
    forget_unknowns(scene, n_contacts, n_stops)
    n, added = list_unknowns(robot, scene, n_contacts, n_stops)
    while added:
        solve_working_set(robot, scene, n_contacts, n_stops, n, effort)
        start(robot, scene, n_contacts, n_stops)
        n, added = list_unknowns(robot, scene, n_contacts, n_stops)


@subroutine
def refine(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Newton steps from impulses that meet the tolerance, if sticking joints allow nearly equal ones.

    G includes the large inertia of a sticking joint, which makes the solution unique: it is the one with the
    least joint friction, and has the symmetry of the robot.
    """
    apart(robot)
    if scene.indefinite != 0 or count_unknowns(n_contacts, n_stops) >= scene.capacity:
        return
    forget_unknowns(scene, n_contacts, n_stops)
    n, _ = list_unknowns(robot, scene, n_contacts, n_stops)
    if n == 0 or n > MOST_DENSE:
        return
    newton = scene.newton
    newton.semismooth = newton.holds_speeds = 0
    prepare(robot, scene, n_contacts, n_stops, n, True)
    best = working_residual(scene, n_contacts, n_stops)
    copy(newton.impulse, n, newton.best)
    for soft in _SOFT_REFINED:
        if best <= _ROUNDING:
            break
        count_iteration(scene)
        if newton_step(robot, scene, n_contacts, n_stops, n, _SHARP * best, soft, True) >= 0.0:
            go(scene, n, 1.0)
        r = working_residual(scene, n_contacts, n_stops)
        if r <= best:
            best = r
            copy(newton.impulse, n, newton.best)
        else:
            copy(newton.best, n, newton.impulse)
            set_velocities(robot, scene, n_contacts, n_stops, n, True)
    take_impulses(scene, n_contacts, n_stops, newton.best)
    start(robot, scene, n_contacts, n_stops)


@subroutine
def solve_working_set(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, effort: Int) -> None:
    """Solve for the impulses of the working set; keeps the best that were found."""
    apart(robot)
    dense = n <= (_FEW_UNKNOWNS if effort == FULL_STEPS else MOST_DENSE)
    newton = scene.newton
    newton.semismooth = newton.holds_speeds = 0
    prepare(robot, scene, n_contacts, n_stops, n, dense)
    best = working_residual(scene, n_contacts, n_stops)
    copy(newton.impulse, n, newton.best)
    goal = _GOAL * scene.settings.tolerance
    enough = _FINE * goal if has_dry_friction(robot, scene) else goal
    if effort == FULL_STEPS:
        best = take_full_steps(robot, scene, n_contacts, n_stops, n, best, goal, enough, dense)
    else:
        list_inertias(scene, n_contacts, n_stops)
        if effort == FEW_ATTEMPTS:
            for choice in _SECOND:
                best = attempt(robot, scene, n_contacts, n_stops, n, best, goal, enough, choice, dense)
        else:
            for choice in _THIRD:
                best = attempt(robot, scene, n_contacts, n_stops, n, best, goal, enough, choice, dense)
            best = iterate_speeds(robot, scene, n_contacts, n_stops, n, best, goal, dense)
            if dense:
                for series in SERIES:
                    best = move_centres(robot, scene, n_contacts, n_stops, n, best, goal, series)
    take_impulses(scene, n_contacts, n_stops, newton.best)


@routine
def attempt(
    robot: Robot,
    scene: Scene,
    n_contacts: Int,
    n_stops: Int,
    n: Int,
    best: Number,
    goal: Number,
    enough: Number,
    choice: Try,
    dense: Bool,
) -> Number:
    """One attempt, unless `best` meets the goal; returns the residual of the best impulses."""
    most, soft, largest, share, shrink, kind = choice
    if best <= goal:
        return best
    begin(scene, n, kind, soft, dense)
    set_velocities(robot, scene, n_contacts, n_stops, n, dense)
    r = working_residual(scene, n_contacts, n_stops)
    e = min(largest, max(share * r, goal))
    return follow(robot, scene, n_contacts, n_stops, n, r, best, goal, enough, most, soft, e, shrink, dense)


@routine
def prepare(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, dense: Bool) -> None:
    """Compute G if it is needed, and the velocities from the impulses of a new working set."""
    if dense:
        fill_delassus(robot, scene, n)
    fill_zero(scene.newton.impulse, n, row_length(n) - n)
    set_velocities(robot, scene, n_contacts, n_stops, n, dense)
