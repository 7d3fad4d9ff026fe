# SPDX-License-Identifier: Apache-2.0
"""Mass matrix by the composite-rigid-body algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 6.2, in one frame for all bodies: with F_j = I^c_j
S_j, the momentum of the subtree of joint j at unit speed, M_ij = S_i . F_j for every joint i on the way from
j to the base.
"""

from __future__ import annotations

from typing import cast

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.record_types import place
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, join, lane_sum, routine, split, store
from quad_dynamics.compiler.types import LANES, Address, Int, Number, Object, Sym3, Vec3
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
    if skip > 0:
        write_base_rows(robot, M, start)
    at = start + skip * nv + skip
    for k in range(robot.n_aligned - 1, 0, -1):
        write_couplings(robot, robot.packs[k], M, at)
    for i in range(robot.n_mixed):
        write_own_couplings(robot, robot.mixed[i].body, M, at)
    for j in range(nj):
        M[at + j * nv + j] = joints[j].body.M_jj


@routine
def write_couplings(robot: Robot, pack: Pack, M: Address, at: Int) -> None:
    """M_ij = M_ji of the joints j of an aligned pack and all joints i between them and the base.

    An empty lane writes zeros to the row and column of joint 0. Call this for the deepest packs first: the
    shallower ones then write what belongs there.
    """
    base, above = robot.packs[0], pack.parent
    while place(above) != place(base):
        couple(pack, above, M, at, robot.nv)
        above = above.parent


@formula
def couple(pack: Pack, above: Pack, M: Address, at: Int, nv: Int) -> None:
    """M_ij = S_i . F_j of the joints j of a pack and i of one above it."""
    m = dot(above.axis_v, pack.momentum_f) + dot(above.axis_w, pack.momentum_n)
    rows, columns = cast('tuple[Int, ...]', above.joint), cast('tuple[Int, ...]', pack.joint)
    for i, j, x in zip(rows, columns, split(m), strict=True):
        M[at + i * nv + j] = x
        M[at + j * nv + i] = x


@routine
def write_own_couplings(robot: Robot, body: Body, M: Address, at: Int) -> None:
    """The same for one body of a mixed pack."""
    nv, joints, j = robot.nv, robot.joints, body.own_joint
    f, n = body.momentum_f, body.momentum_n
    i = joints[j].parent
    while i >= 0:
        m = project(joints[i].body, f, n)
        M[at + i * nv + j] = m
        M[at + j * nv + i] = m
        i = joints[i].parent


@formula
def project(body: Body, f: Vec3, n: Vec3) -> Number:
    """S_i . F_j of the joint i of a body, and F_j = [f; n]."""
    return dot(body.axis_v, f) + dot(body.axis_w, n)


@routine
def write_base_rows(robot: Robot, M: Address, start: Int) -> None:
    """Write the rows of the base and their transpose; columns of joints four at a time."""
    nj, nv, joints = robot.nj, robot.nv, robot.joints
    if nj < LANES:
        for j in range(nj):
            write_base_column(joints[j].body, M, start + 6 + j, start + (6 + j) * nv, nv)
    else:
        for k in range(0, nj, LANES):
            j = min(k, nj - LANES)  # the last four joints may overlap with those before
            a, b, c, d = joints[j].body, joints[j + 1].body, joints[j + 2].body, joints[j + 3].body
            write_base_columns(a, b, c, d, M, start + 6 + j, start + (6 + j) * nv, nv)
    write_base_block(robot, M, start, nv)


@formula
def base_momentum(body: Body) -> tuple[Number, ...]:
    """The column of a joint in the rows of the base: angular part in body axes."""
    return body.momentum_f + body.momentum_n_B


@formula
def write_base_column(body: Body, M: Address, column: Int, row: Int, nv: Int) -> None:
    """The base rows of one joint's column, and the base columns of its row."""
    for i, x in enumerate(base_momentum(body)):
        M[column + i * nv] = x
        M[row + i] = x


@formula
def write_base_columns(
    a: Body, b: Body, c: Body, d: Body, M: Address, column: Int, row: Int, nv: Int
) -> None:
    """The same for four consecutive joints, with fewer stores."""
    columns = [base_momentum(body) for body in (a, b, c, d)]
    for i, numbers in enumerate(zip(*columns, strict=True)):
        store(M, column + i * nv, join(*numbers))
    for k, numbers in enumerate(columns):
        store(M, row + k * nv, join(*numbers[:LANES]))
        for i in range(LANES, 6):
            M[row + k * nv + i] = numbers[i]


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
