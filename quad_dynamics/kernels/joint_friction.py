# SPDX-License-Identifier: Apache-2.0
"""Viscous and Coulomb friction of the joints."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.types import Int, Object
from quad_dynamics.kernels.tree import base_rows, friction
from quad_dynamics.kernels.validation import good_vector
from quad_dynamics.memory.layout import Robot


@kernel(Robot, INT, OBJECT, array(lambda states, nj: states * nj))
def joint_friction(robot: Robot, n: Int, u: Object, torque: Object) -> Int:
    """Friction torques of n states.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        u: (n, nv) velocities.
        torque: (n, nj) out.
    """
    nv, nj, skip = robot.nv, robot.nj, base_rows(robot)
    if not good_vector(robot, n, nv, u):
        return 1
    u, torque = data(u), data(torque)
    for i in range(max(n, 1)):
        for j in range(nj):
            torque[i * nj + j] = friction(robot, j, u[i * nv + skip + j])
    return 0
