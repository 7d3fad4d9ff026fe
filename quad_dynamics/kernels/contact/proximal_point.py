# SPDX-License-Identifier: Apache-2.0
"""The proximal point algorithm around the smoothing Newton method: the last resort for contact impulses.

Near jamming, |F_e| of `smoothing_newton` has local minima with F_e != 0 in which Newton's method ends.
Each constraint is then given a true compliance, a fraction `give` of its D, about a centre p_c,

    v = G p + give D (p - p_c) + free velocity,

which makes G regular and the problem easier. Its solution becomes the next centre. When the centres converge,
the compliance has no effect any more, and the solution solves the original problem. `give` decreases from
centre to centre, so the last iterations converge fast.

Rockafellar, Monotone operators and the proximal point algorithm (1976). Coulomb friction is not monotone, so
convergence is not guaranteed.
"""

from __future__ import annotations

from typing import TypeAlias

from quad_dynamics.compiler.trace import apart, routine, subroutine
from quad_dynamics.compiler.types import Int, Number
from quad_dynamics.kernels.contact.delassus import (
    row_length,
)
from quad_dynamics.kernels.contact.newton_step import set_velocities
from quad_dynamics.kernels.contact.smoothing_path import (
    FROM_BEST,
    FROM_STICKING,
    FROM_ZERO,
    begin,
    copy,
    solve_from_here,
    working_residual,
)
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.memory.layout import Robot

Series: TypeAlias = 'tuple[Number, Number, Number, Int]'  # see SERIES

# A series of centres: the initial `give`; its factor from centre to centre; the fraction of D that
# regularises the Jacobian only; the starting point (see `begin`).
SERIES = (
    (1.0, 0.5, 1e-8, FROM_STICKING),
    (0.1, 0.3, 1e-4, FROM_STICKING),
    (1.0, 0.5, 1e-8, FROM_ZERO),
    (1.0, 0.3, 1e-8, FROM_BEST),
    (1e-2, 1.0, 1e-8, FROM_BEST),
    (1e-3, 1.0, 1e-4, FROM_BEST),
)
_CENTRES = 20  # maximum number of centres in a series
_SOFT_START = 1e-3  # regularisation, as a fraction of D, when computing a start with all contacts sticking
_PRECISION = 0.1  # tolerance for one centre, as a fraction of the goal


@subroutine
def move_centres(
    robot: Robot,
    scene: Scene,
    n_contacts: Int,
    n_stops: Int,
    n: Int,
    best: Number,
    goal: Number,
    series: Series,
) -> Number:
    """Iterate over a series of centres, unless the goal is met; returns the residual of the best impulses."""
    apart(robot)
    newton = scene.newton
    give, shrink, soft, kind = series
    if best <= goal:
        return best
    copy(newton.best, n, newton.kept)
    begin(scene, n, kind, _SOFT_START, True)
    for _ in range(_CENTRES):
        copy(newton.impulse, n, newton.centre)
        give_way(scene, n, give)
        solve_from_here(robot, scene, n_contacts, n_stops, n, _PRECISION * goal, soft, True)
        give_way(scene, n, -give)
        set_velocities(robot, scene, n_contacts, n_stops, n, True)
        r = working_residual(scene, n_contacts, n_stops)
        if r < best:
            best = r
            copy(newton.impulse, n, newton.kept)
        if not r > goal:  # NaN too
            break
        give *= shrink
    copy(newton.kept, n, newton.best)
    return best


@routine
def give_way(scene: Scene, n: Int, give: Number) -> None:
    """Add the compliance about `centre` to G and to the free velocities; a negative `give` removes it."""
    newton = scene.newton
    G, free, length = newton.delassus, newton.free_velocity, row_length(n)
    for i in range(n):
        x = give * newton.inertia[i]
        G[i * length + i] += x
        free[i] -= x * newton.centre[i]
