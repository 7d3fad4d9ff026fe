# SPDX-License-Identifier: Apache-2.0
"""Friction of the joints: viscous and Coulomb."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import load_int
from quad_dynamics.compiler.types import Address, Int, Object
from quad_dynamics.kernels.door import good_vector
from quad_dynamics.kernels.tree import base_rows, friction
from quad_dynamics.model import layout as L


@kernel(ARENA, INT, OBJECT, array(lambda states, nj: states * nj))
def joint_friction(A: Address, n: Int, u: Object, torque: Object) -> Int:
    """Friction torques of n states.

    Args:
        A: arena.
        n: number of states, 0 for a single one without leading axis.
        u: (n, nv) velocities.
        torque: (n, nj) out.
    """
    nv, nj, skip = load_int(A, L.NV), load_int(A, L.NJ), base_rows(A)
    if not good_vector(A, n, nv, u):
        return 1
    u, torque = data(u), data(torque)
    for i in range(max(n, 1)):
        for j in range(nj):
            torque[i * nj + j] = friction(A, j, u[i * nv + skip + j])
    return 0
