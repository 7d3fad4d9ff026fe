# SPDX-License-Identifier: Apache-2.0
"""A semismooth Newton method: few and cheap iterations where the previous time step is a good start.

It solves the equations of `alart_curnier`: in each iteration every contact is open, sticks or slides as the
last one left it. Unlike the natural map in De Saxce's form, on which `smoothing_newton` works, they have no
kink where the sliding velocity of a sticking contact is zero. Joint constraints, and contacts with a friction
pyramid or without friction, keep the natural map: it has no such kink.

Full steps are taken, without a line search: a step that increases F often leads to the right modes. The
method gives up after a few steps without a smaller residual. It does not converge from everywhere;
`smoothing_newton` takes over then.

Acary, Bremond and Huber (2018), cited in `smoothing_newton`, compare such methods.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number
from quad_dynamics.kernels.contact.newton_step import LEAST_SOFT, newton_step
from quad_dynamics.kernels.contact.smoothing_path import (
    copy,
    count_iteration,
    go,
    is_enough,
    working_residual,
)
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.memory.layout import Robot

_STEPS = 20  # at most
_PATIENCE = 6  # steps in a row without a smaller residual after which it gives up
_SHARP = 1e-150  # e for constraints with bounds: their map is hardly smoothed, and 0 / 0 does not occur [m/s]


@subroutine
def take_full_steps(
    robot: Robot,
    scene: Scene,
    n_contacts: Int,
    n_stops: Int,
    n: Int,
    best: Number,
    goal: Number,
    enough: Number,
    dense: Bool,
) -> Number:
    """Iterate from the current impulses, with residual `best`; returns the residual of the best impulses.

    It ends when the residual meets `goal`; until it meets `enough`, it continues while it converges fast.
    """
    apart(robot)
    newton = scene.newton
    newton.semismooth = 1
    r, last, waited = best, math.inf, 0
    for _ in range(_STEPS):
        if waited == _PATIENCE or is_enough(r, last, goal, enough):
            break
        last = r
        count_iteration(scene)
        if newton_step(robot, scene, n_contacts, n_stops, n, _SHARP, LEAST_SOFT, dense) < 0.0:
            break
        go(scene, n, 1.0)
        r = working_residual(scene, n_contacts, n_stops)
        if not r < math.inf:
            break
        waited += 1
        if r < best:
            waited = 0
            best = r
            copy(newton.impulse, n, newton.best)
    newton.semismooth = 0
    return best
