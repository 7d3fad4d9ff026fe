# SPDX-License-Identifier: Apache-2.0
"""Mass matrix by the composite-rigid-body algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 6.2, in one frame for all bodies: with F_j = I^c_j
S_j, the momentum of the subtree of joint j at unit speed, M_ij = S_i . F_j for every joint i on the way from
j to the base.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, lane_sum, routine
from quad_dynamics.compiler.types import Address, Int, Number, Object, Sym3, Vec3
from quad_dynamics.kernels.argument_kinds import MATRICES
from quad_dynamics.kernels.mixed_packs import place_tree
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    inertia_mul,
    rotate,
    scale,
    sym_rotate,
    transpose,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    add_composite,
    base_rotation,
    composite_inertia,
    store_own_inertia,
)
from quad_dynamics.kernels.validation import good_configuration
from quad_dynamics.memory.layout import Body, MixedBody, Pack, Robot


@kernel(Robot, INT, OBJECT, MATRICES)
def mass_matrix(robot: Robot, n: Int, q: Object, M: Object) -> Int:
    """Mass matrices of n configurations.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        M: (n, nv, nv) out.
    """
    if not good_configuration(robot, n, q):
        return 1
    nv = robot.nv
    q, M = data(q), data(M)
    for i in range(max(n, 1)):
        place_tree(robot, q, i * robot.nq)
        own_inertias(robot)
        compose_mixed(robot)
        compose_aligned(robot)
        write_mass_matrix(robot, M, i * nv * nv)
    return 0


@routine
def composite_inertias(robot: Robot) -> None:
    """Composite inertia of every body with its subtree; F_j = I^c_j S_j and M_jj of every joint."""
    own_inertias(robot)
    compose_aligned(robot)


@routine
def own_inertias(robot: Robot) -> None:
    """Inertia of every single body."""
    for k in range(robot.n_packs):
        store_own_inertia(robot.packs[k])


@routine
def compose_aligned(robot: Robot) -> None:
    """From `own_inertias` to the results of `composite_inertias`, in aligned packs."""
    for k in range(robot.n_aligned - 1, 0, -1):
        compose_pack(robot, robot.packs[k])


@routine
def compose_mixed(robot: Robot) -> None:
    """The same in mixed packs; call before the aligned ones, which contain some of their parents."""
    for i in range(robot.n_mixed - 1, -1, -1):
        add_to_carrier(robot.mixed[i])
    for k in range(robot.n_aligned, robot.n_packs):
        find_momentum(robot.packs[k])
    if robot.has_rotors != 0:
        for i in range(robot.n_mixed):
            couple_rotor(robot.mixed[i])
    for k in range(robot.n_aligned, robot.n_packs):
        turn_momentum(robot, robot.packs[k])


@formula
def add_to_carrier(one: MixedBody) -> None:
    """Add the composite inertia of a body to that of its parent."""
    add_composite(one.carrier, *composite_inertia(one.body))


@formula
def find_momentum(pack: Pack) -> None:
    """Momentum F at unit joint speed, without rotors, and M_jj of the bodies of a mixed pack."""
    S_v, S_w = pack.axis_v, pack.axis_w
    f, n = inertia_mul(*composite_inertia(pack), S_v, S_w)
    pack.M_jj = dot(S_v, f) + dot(S_w, n) + pack.joint_inertia
    pack.momentum_f, pack.momentum_n = f, n


@formula
def couple_rotor(one: MixedBody) -> None:
    """Add the momentum of a body's rotor."""
    body = one.body
    r = rotate(one.carrier.rotation, body.rotor_axis)
    body.momentum_n = add(body.momentum_n, scale(r, body.rotor_coupling))


@formula
def turn_momentum(robot: Robot, pack: Pack) -> None:
    """Transform the angular momentum to base axes."""
    pack.momentum_n_B = unrotate(robot.packs[0].rotation, pack.momentum_n)


@formula
def compose_pack(robot: Robot, pack: Pack) -> None:
    """Add the composite inertia to the parents'; momentum F at unit joint speed."""
    m, h, J = composite_inertia(pack)
    add_composite(pack.parent, m, h, J)
    S_v, S_w = pack.axis_v, pack.axis_w
    f, n = inertia_mul(m, h, J, S_v, S_w)
    pack.M_jj = dot(S_v, f) + dot(S_w, n) + pack.joint_inertia
    r = rotate(pack.parent.rotation, pack.rotor_axis)
    n = add(n, scale(r, pack.rotor_coupling))
    pack.momentum_f, pack.momentum_n = f, n
    pack.momentum_n_B = unrotate(robot.packs[0].rotation, n)


@routine
def write_mass_matrix(robot: Robot, M: Address, start: Int) -> None:
    """Write M[start : start + nv nv] from the composite inertias."""
    # In local variables; otherwise they would be reloaded after every store.
    nj, nv, joints = robot.nj, robot.nv, robot.joints
    skip = nv - nj
    fill_zero(M, start + skip * nv, nj * nv)  # the rows of the base are written as a whole
    for j in range(nj):
        body = joints[j].body
        row, column = start + (skip + j) * nv, start + skip + j
        M[row + skip + j] = body.M_jj
        if skip > 0:
            write_base_column(body, M, column, nv, row)
        i = joints[j].parent
        f, n = body.momentum_f, body.momentum_n
        while i >= 0:
            m = project(joints[i].body, f, n)
            M[row + skip + i] = m
            M[column + (skip + i) * nv] = m
            i = joints[i].parent
    if skip > 0:
        write_base_block(robot, M, start, nv)


@formula
def project(body: Body, f: Vec3, n: Vec3) -> Number:
    """S_i . F_j of the joint i of a body, and F_j = [f; n]."""
    return dot(body.axis_v, f) + dot(body.axis_w, n)


@formula
def write_base_column(body: Body, M: Address, column: Int, nv: Int, row: Int) -> None:
    """The base rows of one joint's column and the base columns of its row; angular part in body axes."""
    for i, x in enumerate(body.momentum_f + body.momentum_n_B):
        M[column + i * nv] = x
        M[row + i] = x


@formula
def sum_base_inertia(robot: Robot) -> tuple[Number, Vec3, Sym3]:
    """Mass, first moment and inertia of the whole robot about the base's origin, summed over the lanes."""
    m, h, J = composite_inertia(robot.packs[0])
    return lane_sum(m), tuple(lane_sum(x) for x in h), tuple(lane_sum(x) for x in J)


@formula
def write_base_block(robot: Robot, M: Address, start: Int, nv: Int) -> None:
    """The 6 x 6 block of the base: linear velocity in world axes, angular velocity in body axes."""
    m, h, J = sum_base_inertia(robot)
    R = base_rotation(robot)
    J_B = sym_rotate(transpose(R), J)
    for i in range(3):
        for k in range(3):
            M[start + i * nv + k] = m if i == k else 0.0
        f = cross((R[i], R[3 + i], R[6 + i]), h)  # momentum when the base rotates about its axis i
        for k in range(3):
            M[start + k * nv + 3 + i] = f[k]
            M[start + (3 + i) * nv + k] = f[k]
            M[start + (3 + k) * nv + 3 + i] = J_B[((0, 1, 3), (1, 2, 4), (3, 4, 5))[k][i]]
