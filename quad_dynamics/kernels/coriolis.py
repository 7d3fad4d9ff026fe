# SPDX-License-Identifier: Apache-2.0
"""Coriolis matrix C(q, u) with dM/dt - 2 C skew-symmetric, exact.

C = sum over the bodies of J^T (I dJ/dt + B J), with the factor B of Echeandia and Wensing (Numerical methods
to compute the Coriolis matrix and Christoffel symbols for rigid-body systems, 2021), for which C is the
matrix of the Christoffel symbols. In one frame for all bodies, B = [0 -[p]; 0 D] has twelve numbers: p is the
linear momentum, and D = tr(P) 1 - P, where P = integral of (dr/dt) r^T dm = v h^T + [w] Sigma, with the
second moment Sigma = tr(J)/2 1 - J. They are summed from the tips to the base like inertias.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, lane_sum, routine
from quad_dynamics.compiler.types import Address, Int, Number, Object, Vec3
from quad_dynamics.kernels.argument_kinds import MATRICES
from quad_dynamics.kernels.crba import sum_base_inertia
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    inertia_mul,
    mat_sum,
    rotate,
    scale,
    sub,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    add_composite,
    base_body,
    base_rotation,
    base_rows,
    composite_inertia,
    move_pack,
    pick,
    place_bodies,
    store_own_inertia,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Body, Pack, Robot


@kernel(Robot, INT, OBJECT, OBJECT, MATRICES)
def coriolis_matrix(robot: Robot, n: Int, q: Object, u: Object, C: Object) -> Int:
    """Coriolis matrices of n states.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        C: (n, nv, nv) out.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    q, u, C = data(q), data(u), data(C)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        move_all(robot, u, i * nv)
        compose_factors(robot)
        write_coriolis(robot, C, i * nv * nv)
    return 0


@routine
def move_all(robot: Robot, u: Address, i: Int) -> None:
    """True velocities: unlike C u, C depends on the linear velocity of the base."""
    if robot.floating != 0:
        move_base_truly(robot, (u[i], u[i + 1], u[i + 2]), (u[i + 3], u[i + 4], u[i + 5]))
    for k in range(1, robot.n_packs):
        move_pack(robot.packs[k], pick(robot.packs[k], u, i + base_rows(robot)))


@formula
def move_base_truly(robot: Robot, v: Vec3, w_B: Vec3) -> None:
    """Velocity of the base: [v_WB_W; w_WB_W]."""
    base = robot.packs[0]
    base.v, base.w = v, rotate(base_rotation(robot), w_B)


@routine
def compose_factors(robot: Robot) -> None:
    """Inertia and Coriolis factor of every subtree, and the forces of every joint."""
    for k in range(robot.n_packs):
        store_own_inertia(robot.packs[k])
        store_factor(robot.packs[k])
    for k in range(robot.n_packs - 1, 0, -1):
        compose_pack(robot.packs[k])


@formula
def store_factor(pack: Pack) -> None:
    """p and D of the single bodies of a pack, and dS/dt = v x S."""
    m, h, J = composite_inertia(pack)
    v, w = pack.v, pack.w
    pack.coriolis_p = add(scale(v, m), cross(w, h))
    half = (J[0] + J[2] + J[5]) * 0.5
    sigma = ((half - J[0], -J[1], -J[3]), (-J[1], half - J[2], -J[4]), (-J[3], -J[4], half - J[5]))  # columns
    turned = [cross(w, column) for column in sigma]
    trace = dot(v, h)  # of P: the trace of [w] Sigma is zero
    pack.coriolis_D = tuple(
        (trace if i == j else 0.0) - (v[i] * h[j] + turned[j][i]) for i in range(3) for j in range(3)
    )
    S_v, S_w = pack.axis_v, pack.axis_w
    pack.axis_rate_v, pack.axis_rate_w = add(cross(w, S_v), cross(v, S_w)), cross(w, S_w)


@formula
def compose_pack(pack: Pack) -> None:
    """Add inertia and factor to the parent's, and compute the joint's forces.

    They are F1 = I dS/dt + B S, F2 = I S, and F3 = B^T S. The angular momentum of a geared rotor adds to all
    three for the bodies below the joint, and -[gear J qd r]/2 to the D of its parent.
    """
    m, h, J = composite_inertia(pack)
    p, D = pack.coriolis_p, pack.coriolis_D
    S_v, S_w = pack.axis_v, pack.axis_w
    dS_v, dS_w = pack.axis_rate_v, pack.axis_rate_w

    f1, n1 = inertia_mul(m, h, J, dS_v, dS_w)
    f1, n1 = sub(f1, cross(p, S_w)), add(n1, rotate(D, S_w))
    f2, n2 = inertia_mul(m, h, J, S_v, S_w)
    n3 = add(cross(p, S_v), unrotate(D, S_w))
    pack.C_jj = dot(S_v, f1) + dot(S_w, n1)

    k, parent = pack.rotor_coupling, pack.parent
    r = scale(rotate(parent.rotation, pack.rotor_axis), k)
    dr_half = scale(cross(parent.w, r), 0.5)
    pack.coriolis_f, pack.coriolis_n = f1, add(n1, dr_half)
    pack.momentum_f, pack.momentum_n = f2, add(n2, r)
    pack.coriolis_transposed_n = add(n3, dr_half)

    s = scale(r, pack.qd * 0.5)
    spin = (0.0, -s[2], s[1], s[2], 0.0, -s[0], -s[1], s[0], 0.0)
    add_composite(parent, m, h, J)
    parent.coriolis_p = add(parent.coriolis_p, p)
    parent.coriolis_D = mat_sum(parent.coriolis_D, tuple(D[i] - spin[i] for i in range(9)))


@routine
def write_coriolis(robot: Robot, C: Address, start: Int) -> None:
    """Write C[start : start + nv nv]."""
    # In local variables; otherwise they would be reloaded after every store.
    nj, nv, joints = robot.nj, robot.nv, robot.joints
    skip = nv - nj
    fill_zero(C, start, nv * nv)
    for j in range(nj):
        body = joints[j].body
        row, column = start + (skip + j) * nv, start + skip + j
        C[row + skip + j] = body.C_jj
        i = joints[j].parent
        while i >= 0:
            C_ij, C_ji = project_both(joints[i].body, body)
            C[column + (skip + i) * nv] = C_ij
            C[row + skip + i] = C_ji
            i = joints[i].parent
        if skip > 0:
            write_base_entries(robot, body, C, column, nv, row)
    if skip > 0:
        write_base_block(robot, C, start, nv)


@formula
def project_both(body_i: Body, body_j: Body) -> tuple[Number, Number]:
    """C_ij = S_i . F1_j and C_ji = dS_i/dt . F2_j + S_i . F3_j, for joint i between j and the base."""
    S_v, S_w = body_i.axis_v, body_i.axis_w
    dS_v, dS_w = body_i.axis_rate_v, body_i.axis_rate_w
    above = dot(S_v, body_j.coriolis_f) + dot(S_w, body_j.coriolis_n)
    below = dot(dS_v, body_j.momentum_f) + dot(dS_w, body_j.momentum_n)
    return above, below + dot(S_w, body_j.coriolis_transposed_n)


@formula
def write_base_entries(robot: Robot, body: Body, C: Address, column: Int, nv: Int, row: Int) -> None:
    """The base rows of one joint's column and the base columns of its row.

    The motion of the base is [1; 0] for v_WB_W, constant, and [0; R_WB] for w_WB_B, with the derivative [v x
    R_WB; w x R_WB].
    """
    base = base_body(robot)
    R, v, w = base.rotation, base.v, base.w
    f2, n2 = body.momentum_f, body.momentum_n
    n = unrotate(R, add(add(cross(f2, v), cross(n2, w)), body.coriolis_transposed_n))
    f1, n1 = body.coriolis_f, unrotate(R, body.coriolis_n)
    for i in range(3):
        C[column + i * nv] = f1[i]
        C[column + (3 + i) * nv] = n1[i]
        C[row + 3 + i] = n[i]


@formula
def write_base_block(robot: Robot, C: Address, start: Int, nv: Int) -> None:
    """The 6 x 6 block of the base; the columns of v_WB_W are zero."""
    base = base_body(robot)
    R = base.rotation
    m, h, J = sum_base_inertia(robot)
    p = tuple(lane_sum(x) for x in robot.packs[0].coriolis_p)
    D = tuple(lane_sum(x) for x in robot.packs[0].coriolis_D)
    v, w = base.v, base.w
    for i in range(3):
        r = (R[i], R[3 + i], R[6 + i])
        f, n = inertia_mul(m, h, J, cross(v, r), cross(w, r))
        f, n = sub(f, cross(p, r)), unrotate(R, add(n, rotate(D, r)))
        for k in range(3):
            C[start + k * nv + 3 + i] = f[k]
            C[start + (3 + k) * nv + 3 + i] = n[k]
