# SPDX-License-Identifier: Apache-2.0
"""Coriolis matrix C(q, u) with dM/dt - 2 C skew-symmetric, exact.

C = sum over the bodies of J^T (I dJ/dt + B J), with the factor B of Echeandia and Wensing (Numerical methods
to compute the Coriolis matrix and Christoffel symbols for rigid-body systems, 2021), which makes C the one of
the Christoffel symbols. In one frame for all bodies, B = [0 -[p]; 0 D] has twelve numbers: p is the linear
momentum, and D = tr(P) 1 - P, where P = integral of (dr/dt) r^T dm = v h^T + [w] Sigma, with the second
moment Sigma = tr(J)/2 1 - J. They add up from the tips to the base just as inertias do.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, lane_sum, load, load_int, routine, store
from quad_dynamics.compiler.types import LANES, Address, Int, Number, Object, Vec3
from quad_dynamics.kernels.crba import store_own_inertia, sum_base_inertia
from quad_dynamics.kernels.door import good_configuration, good_vector
from quad_dynamics.kernels.spatial import (
    add,
    add_to3,
    cross,
    dot,
    inertia_mul,
    load3,
    load9,
    read3,
    rotate,
    scale,
    store3,
    store6,
    store9,
    sub,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    add_inertia,
    base_rotation,
    base_rows,
    load_inertia,
    move_pack,
    pack_at,
    parent_of,
    place_bodies,
    take,
)
from quad_dynamics.model import layout as L


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT)
def coriolis_matrix(A: Address, n: Int, q: Object, u: Object, C: Object) -> Int:
    """Coriolis matrices of n states.

    Args:
        A: arena.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        C: (n, nv, nv) out.
    """
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    if not good_configuration(A, n, q):
        return 1
    if not good_vector(A, n, nv, u):
        return 2
    q, u, C = data(q), data(u), data(C)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        move_all(A, u, i * nv)
        compose_factors(A)
        write_coriolis(A, C, i * nv * nv)
    return 0


@routine
def move_all(A: Address, u: Address, i: Int) -> None:
    """True velocities: C, other than C u, does depend on the linear velocity of the base."""
    if load_int(A, L.FLOATING) != 0:
        move_base_truly(A, pack_at(A, 0), (u[i], u[i + 1], u[i + 2]), (u[i + 3], u[i + 4], u[i + 5]))
    for k in range(1, load_int(A, L.PACKS)):
        at = pack_at(A, k)
        move_pack(A, at, parent_of(A, k), take(A, at, u, i + base_rows(A)))


@formula
def move_base_truly(A: Address, at: Int, v: Vec3, w_B: Vec3) -> None:
    """Velocity of the base: [v_WB_W; w_WB_W]."""
    store6(A, at + L.VEL_V, v + rotate(base_rotation(A), w_B))


@routine
def compose_factors(A: Address) -> None:
    """Inertia and Coriolis factor of every subtree, and the forces of every joint."""
    for k in range(load_int(A, L.PACKS)):
        store_own_inertia(A, pack_at(A, k))
        store_factor(A, pack_at(A, k))
    for k in range(load_int(A, L.PACKS) - 1, 0, -1):
        compose_pack(A, pack_at(A, k), parent_of(A, k))


@formula
def store_factor(A: Address, at: Int) -> None:
    """p and D of the bodies of a pack alone, and dS/dt = v x S."""
    m, h, J = load_inertia(A, at)
    v, w = load3(A, at + L.VEL_V), load3(A, at + L.VEL_W)
    store3(A, at + L.CORIOLIS_P, add(scale(v, m), cross(w, h)))
    half = (J[0] + J[2] + J[5]) * 0.5
    sigma = ((half - J[0], -J[1], -J[3]), (-J[1], half - J[2], -J[4]), (-J[3], -J[4], half - J[5]))  # columns
    turned = [cross(w, column) for column in sigma]
    trace = dot(v, h)  # of P: that of [w] Sigma is zero
    D = [(trace if i == j else 0.0) - (v[i] * h[j] + turned[j][i]) for i in range(3) for j in range(3)]
    store9(A, at + L.CORIOLIS_D, tuple(D))
    S_v, S_w = load3(A, at + L.AXIS_V), load3(A, at + L.AXIS_W)
    store6(A, at + L.DAXIS_V, add(cross(w, S_v), cross(v, S_w)) + cross(w, S_w))


@formula
def compose_pack(A: Address, at: Int, up: Int) -> None:
    """Add inertia and factor to the parent's, and compute the joint's forces.

    F1 = I dS/dt + B S goes to FORCE, F2 = I S to U, the angular part of F3 = B^T S to BIAS_W (the linear one
    is zero). The spin of a geared rotor adds to the three for the bodies below the joint, and -[gear J qd
    r]/2 to the D of its parent.
    """
    m, h, J = load_inertia(A, at)
    p, D = load3(A, at + L.CORIOLIS_P), load9(A, at + L.CORIOLIS_D)
    S_v, S_w = load3(A, at + L.AXIS_V), load3(A, at + L.AXIS_W)
    dS_v, dS_w = load3(A, at + L.DAXIS_V), load3(A, at + L.DAXIS_W)

    f1, n1 = inertia_mul(m, h, J, dS_v, dS_w)
    f1, n1 = sub(f1, cross(p, S_w)), add(n1, rotate(D, S_w))
    f2, n2 = inertia_mul(m, h, J, S_v, S_w)
    n3 = add(cross(p, S_v), unrotate(D, S_w))
    store(A, at + L.TAU, dot(S_v, f1) + dot(S_w, n1))  # C_jj

    k = load(A, at + L.ROTOR_K)
    r = scale(rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS)), k)
    dr_half = scale(cross(load3(A, up + L.VEL_W), r), 0.5)
    store6(A, at + L.FORCE_F, f1 + add(n1, dr_half))
    store6(A, at + L.U_F, f2 + add(n2, r))
    store3(A, at + L.BIAS_W, add(n3, dr_half))

    s = scale(r, load(A, at + L.QD) * 0.5)
    spin = (0.0, -s[2], s[1], s[2], 0.0, -s[0], -s[1], s[0], 0.0)
    add_inertia(A, up, m, h, J)
    add_to3(A, up + L.CORIOLIS_P, p)
    for i in range(9):
        to = up + L.CORIOLIS_D + i * LANES
        store(A, to, load(A, to) + (D[i] - spin[i]))


@routine
def write_coriolis(A: Address, C: Address, start: Int) -> None:
    """Write C[start : start + nv nv]."""
    # In local variables, or they would be read again after every number that is written.
    nj, nv, table = load_int(A, L.NJ), load_int(A, L.NV), load_int(A, L.JOINTS)
    skip = nv - nj
    fill_zero(C, start, nv * nv)
    for j in range(nj):
        entry = table + j * L.JOINT_WORDS
        lane = load_int(A, entry + L.J_LANE)
        row, column = start + (skip + j) * nv, start + skip + j
        C[row + skip + j] = A[lane + L.TAU]
        i = load_int(A, entry + L.J_PARENT)
        while i >= 0:
            above = table + i * L.JOINT_WORDS
            C_ij, C_ji = project_both(A, load_int(A, above + L.J_LANE), lane)
            C[column + (skip + i) * nv] = C_ij
            C[row + skip + i] = C_ji
            i = load_int(A, above + L.J_PARENT)
        if skip > 0:
            write_base_entries(A, lane, C, column, nv, row)
    if skip > 0:
        write_base_block(A, C, start, nv)


@formula
def project_both(A: Address, lane_i: Int, lane_j: Int) -> tuple[Number, Number]:
    """C_ij = S_i . F1_j and C_ji = dS_i/dt . F2_j + S_i . F3_j, for joint i between j and the base."""
    S_v, S_w = read3(A, lane_i + L.AXIS_V), read3(A, lane_i + L.AXIS_W)
    dS_v, dS_w = read3(A, lane_i + L.DAXIS_V), read3(A, lane_i + L.DAXIS_W)
    above = dot(S_v, read3(A, lane_j + L.FORCE_F)) + dot(S_w, read3(A, lane_j + L.FORCE_N))
    below = dot(dS_v, read3(A, lane_j + L.U_F)) + dot(dS_w, read3(A, lane_j + L.U_N))
    return above, below + dot(S_w, read3(A, lane_j + L.BIAS_W))


@formula
def write_base_entries(A: Address, lane: Int, C: Address, column: Int, nv: Int, row: Int) -> None:
    """The base rows of one joint's column and the base columns of its row.

    The motion of the base is [1; 0] for v_WB_W, constant, and [0; R_WB] for w_WB_B, with the derivative [v x
    R_WB; w x R_WB].
    """
    base = pack_at(A, 0)
    R = base_rotation(A)
    v, w = read3(A, base + L.VEL_V), read3(A, base + L.VEL_W)
    f2, n2 = read3(A, lane + L.U_F), read3(A, lane + L.U_N)
    n = unrotate(R, add(add(cross(f2, v), cross(n2, w)), read3(A, lane + L.BIAS_W)))
    f1, n1 = read3(A, lane + L.FORCE_F), unrotate(R, read3(A, lane + L.FORCE_N))
    for i in range(3):
        C[column + i * nv] = f1[i]
        C[column + (3 + i) * nv] = n1[i]
        C[row + 3 + i] = n[i]


@formula
def write_base_block(A: Address, C: Address, start: Int, nv: Int) -> None:
    """The 6 x 6 block of the base; the columns of v_WB_W are zero."""
    base = pack_at(A, 0)
    R = base_rotation(A)
    m, h, J = sum_base_inertia(A)
    p = tuple(lane_sum(x) for x in load3(A, base + L.CORIOLIS_P))
    D = tuple(lane_sum(x) for x in load9(A, base + L.CORIOLIS_D))
    v, w = read3(A, base + L.VEL_V), read3(A, base + L.VEL_W)
    for i in range(3):
        r = (R[i], R[3 + i], R[6 + i])
        f, n = inertia_mul(m, h, J, cross(v, r), cross(w, r))
        f, n = sub(f, cross(p, r)), unrotate(R, add(n, rotate(D, r)))
        for k in range(3):
            C[start + k * nv + 3 + i] = f[k]
            C[start + (3 + k) * nv + 3 + i] = n[k]
