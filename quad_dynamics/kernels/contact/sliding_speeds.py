# SPDX-License-Identifier: Apache-2.0
"""A fixed point over convex problems, around the smoothing Newton method: for contacts near jamming.

Coulomb's law is not a convex problem, because the natural map contains mu |v_t| (see `natural_map`). With a
speed s_i held in place of |v_t| of each contact,

    K* contains v + mu s n,    K contains p,    p . (v + mu s n) = 0,

it is: the optimality conditions of min p G p / 2 + p (free velocity + mu s n) over the friction cones K, with
one velocity as its solution. Newton's method solves that reliably. Its speeds |v_t| are the next s. Where
they no longer change, it is Coulomb's law that is solved. Such a fixed point exists wherever some motion
separates all contacts.

Cadoux, Methodes d'optimisation pour la dynamique non-reguliere (thesis, Grenoble, 2009). Acary, Cadoux,
Lemarechal and Malick, A formulation of the linear discrete Coulomb friction problem via convex optimization
(2011).
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, fill_zero, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number
from quad_dynamics.kernels.contact.newton_step import set_velocities
from quad_dynamics.kernels.contact.smoothing_path import (
    FROM_ZERO,
    begin,
    copy,
    solve_from_here,
    working_residual,
)
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.memory.layout import Robot

_PROBLEMS = 40  # at most
_SOFT = 1e-6  # the share of D by which contacts give way in the Jacobian
_PRECISION = 0.1  # of a convex problem, in units of the goal
_LESS = 0.5  # the factor of a change of speeds after one that did not make the residual smaller


@subroutine
def iterate_speeds(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, best: Number, goal: Number, dense: Bool
) -> Number:
    """Iterate over speeds, if it is still needed; returns the residual of the impulses in `best` [m/s].

    A pyramid has no such speeds: its tangents have a limit each.
    """
    apart(robot)
    newton = scene.newton
    if best <= goal or scene.settings.cone == 0:
        return best
    copy(newton.best, n, newton.kept)
    begin(scene, n, FROM_ZERO, _SOFT, dense)
    fill_zero(newton.sliding, 0, n)
    share, last = 1.0, math.inf
    for _ in range(_PROBLEMS):
        hold_speeds(scene, n_contacts, 1.0)
        solve_from_here(robot, scene, n_contacts, n_stops, n, _PRECISION * goal, _SOFT, dense)
        hold_speeds(scene, n_contacts, -1.0)
        set_velocities(robot, scene, n_contacts, n_stops, n, dense)
        r = working_residual(scene, n_contacts, n_stops)
        if r < best:
            best = r
            copy(newton.impulse, n, newton.kept)
        if not r > goal:  # NaN too
            break
        if r > last:
            share *= _LESS
        last = r
        change_speeds(scene, n_contacts, share)
    copy(newton.kept, n, newton.best)
    return best


@routine
def hold_speeds(scene: Scene, n_contacts: Int, sign: Number) -> None:
    """Make the speeds that are held part of the normal velocities; with sign -1, no longer."""
    newton = scene.newton
    newton.holds_speeds = 1 if sign > 0.0 else 0
    for i in range(n_contacts):
        k = scene.contacts[i].unknown
        if k >= 0:
            newton.free_velocity[k] += sign * newton.sliding[k]


@routine
def change_speeds(scene: Scene, n_contacts: Int, share: Number) -> None:
    """Take a share of the way to the speeds of the last solution."""
    newton = scene.newton
    v = newton.velocity
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            now = contact.mu * math.sqrt(v[k + 1] * v[k + 1] + v[k + 2] * v[k + 2])
            newton.sliding[k] += share * (now - newton.sliding[k])
