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
converge. Where this one does not, it starts anew, elsewhere and with another share, and in the end becomes
part of another method (`proximal_point`); what is left then is reported.

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

Try: TypeAlias = 'tuple[Int, Number, Number, Number, Number, Int]'  # see _QUICK

# A try: Newton steps; the share of D by which contacts give way in the Jacobian; the largest e to begin with
# [m/s], and e as a share of the residual; the factor of e after a step; where it starts (see `begin`).
_QUICK = ((20, 1e-4, 0.1, 0.003, 0.1, FROM_BEST),)
_THOROUGH = (
    (30, 1e-3, 0.1, 0.1, 0.3, FROM_BEST),
    (30, 1e-3, 0.1, 0.1, 0.3, FROM_STICKING),
    (40, 1e-6, 0.01, 1e9, 0.3, FROM_STICKING),
    (30, 1e-2, 0.1, 0.1, 0.3, FROM_BEST),
    (40, 1e-3, 0.1, 1e9, 0.3, FROM_ZERO),
    (60, 1e-4, 1.0, 1e9, 0.3, FROM_ZERO),
    (99, 1e-3, 0.1, 1e9, 0.7, FROM_STICKING),
    (99, 1e-4, 1.0, 1e9, 0.7, FROM_ZERO),
)
_FEW_UNKNOWNS = 24  # up to so many, dense Newton steps are faster than reduced ones
# Signs of small speeds decide which joints are stuck: with dry friction, more digits are worth some steps.
_FINE = 1e-4  # of the goal
_GOAL = 0.99  # of the tolerance: rounding must not bring the residual above it
# The share of D by which contacts give way in the steps of `refine`. The first is less than the compliance of
# stuck joints, 1e-8, which makes forces unique. The others are for several contacts of one body, whose forces
# are not: rounding may spoil the first one there.
_SOFT_REFINED = (1e-11, 1e-9, 1e-7)
_SHARP = 1e-3  # e of these steps, in units of the residual
_ROUNDING = 1e-12  # a residual that is nothing else [m/s]


@subroutine
def newton(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, thorough: Bool) -> None:
    """Solve for all impulses, from those that there are, with one try or with many; `y` follows them."""
    apart(robot)
    if scene.indefinite != 0 or count_unknowns(n_contacts, n_stops) >= scene.capacity:
        return
    forget_unknowns(scene, n_contacts, n_stops)
    n, added = list_unknowns(robot, scene, n_contacts, n_stops)
    while added:
        solve_working_set(robot, scene, n_contacts, n_stops, n, thorough)
        start(robot, scene, n_contacts, n_stops)
        n, added = list_unknowns(robot, scene, n_contacts, n_stops)


@subroutine
def refine(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Newton steps from impulses that meet the tolerance, where stuck joints make others all but as good.

    The large inertia of a stuck joint is in G, which makes the solution unique: it is the one with the least
    joint friction, and has the symmetry of the robot.
    """
    apart(robot)
    if scene.indefinite != 0 or count_unknowns(n_contacts, n_stops) >= scene.capacity:
        return
    forget_unknowns(scene, n_contacts, n_stops)
    n, _ = list_unknowns(robot, scene, n_contacts, n_stops)
    if n == 0 or n > MOST_DENSE:
        return
    newton = scene.newton
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
def solve_working_set(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, thorough: Bool
) -> None:
    """Solve for the impulses of the working set; the best that were found are taken."""
    apart(robot)
    dense = n <= (MOST_DENSE if thorough else _FEW_UNKNOWNS)
    newton = scene.newton
    prepare(robot, scene, n_contacts, n_stops, n, dense)
    best = working_residual(scene, n_contacts, n_stops)
    copy(newton.impulse, n, newton.best)
    if thorough:
        list_inertias(scene, n_contacts, n_stops)
        for choice in _THOROUGH:
            best = attempt(robot, scene, n_contacts, n_stops, n, best, choice, dense)
        if dense:
            for series in SERIES:
                best = move_centres(
                    robot, scene, n_contacts, n_stops, n, best, _GOAL * scene.settings.tolerance, series
                )
    else:
        for choice in _QUICK:
            best = attempt(robot, scene, n_contacts, n_stops, n, best, choice, dense)
    take_impulses(scene, n_contacts, n_stops, newton.best)


@routine
def attempt(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, best: Number, choice: Try, dense: Bool
) -> Number:
    """One try, if it is still needed; returns the residual of the best impulses."""
    most, soft, largest, share, shrink, kind = choice
    goal = _GOAL * scene.settings.tolerance
    if best <= goal:
        return best
    begin(scene, n, kind, soft, dense)
    set_velocities(robot, scene, n_contacts, n_stops, n, dense)
    r = working_residual(scene, n_contacts, n_stops)
    e = min(largest, max(share * r, goal))
    enough = _FINE * goal if has_dry_friction(robot, scene) else goal
    return follow(robot, scene, n_contacts, n_stops, n, r, best, goal, enough, most, soft, e, shrink, dense)


@routine
def prepare(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, dense: Bool) -> None:
    """G where it is needed, and velocities from the impulses of a new working set."""
    if dense:
        fill_delassus(robot, scene, n)
    fill_zero(scene.newton.impulse, n, row_length(n) - n)
    set_velocities(robot, scene, n_contacts, n_stops, n, dense)
