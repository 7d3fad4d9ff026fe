# SPDX-License-Identifier: Apache-2.0
"""One time step of the classical fourth-order Runge-Kutta method, for motion without contact.

The quaternion is integrated as four numbers, q' = q w / 2, and normalised at the end. Motor torques are
constant during the step; friction and gravity depend on the state.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, subroutine
from quad_dynamics.compiler.types import Number
from quad_dynamics.kernels.simulation.drives import guess_modes, load_joints
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.kernels.simulation.unconstrained_motion import accelerate, place_and_move, start_bodies
from quad_dynamics.memory.layout import Robot


@subroutine
def step_runge_kutta(robot: Robot, scene: Scene, h: Number) -> Number:
    """Advance q and u by h; returns the kinetic energy before the step."""
    apart(robot)
    nq, nv = robot.nq, robot.nv
    q, u, last_q, last_u = (
        scene.q,
        scene.u,
        scene.last_q,
        scene.last_u,
    )
    rate, total = scene.rates, scene.rate_sum
    guess_modes(robot, scene, h)  # no joint sticks here
    energy = 0.0
    for stage in range(4):
        kinetic = slopes(robot, scene, rate)
        if stage == 0:
            energy = kinetic
        weight = 2.0 if 0 < stage < 3 else 1.0
        for i in range(nq + nv):
            total[i] = weight * rate[i] + (total[i] if stage > 0 else 0.0)
        reach = 0.5 * h if stage < 2 else h
        at = rate
        if stage == 3:
            reach = h / 6.0
            at = total
        for i in range(nq):
            q[i] = last_q[i] + reach * at[i]
        for i in range(nv):
            u[i] = last_u[i] + reach * at[nq + i]
    if nv > robot.nj:
        s = 1.0 / math.sqrt(q[3] ** 2 + q[4] ** 2 + q[5] ** 2 + q[6] ** 2)
        for k in range(3, 7):
            q[k] *= s
    return energy


@subroutine
def slopes(robot: Robot, scene: Scene, to: Numbers) -> Number:
    """to = time derivatives of q and u (nq + nv); returns the kinetic energy."""
    apart(robot)
    nq, nv, nj = robot.nq, robot.nv, robot.nj
    q, u = scene.q, scene.u
    place_and_move(robot, scene)
    energy = start_bodies(robot, scene)
    load_joints(robot, scene, 0.0, False)
    accelerate(robot, scene, part(to, nq))
    if nv > nj:
        for k in range(3):
            to[k] = u[k]
        x, y, z, w = q[3], q[4], q[5], q[6]
        a, b, c = 0.5 * u[3], 0.5 * u[4], 0.5 * u[5]
        to[3] = w * a + y * c - z * b
        to[4] = w * b + z * a - x * c
        to[5] = w * c + x * b - y * a
        to[6] = -(x * a + y * b + z * c)
    for j in range(nj):
        to[nq - nj + j] = u[nv - nj + j]
    return energy
