# SPDX-License-Identifier: Apache-2.0
"""Mass matrix by the composite-rigid-body algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 6.2, in one frame for all bodies: with F_j = I^c_j
S_j, the momentum of the subtree of joint j at unit speed, M_ij = S_i . F_j for every joint i on the way from
j to the base.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, lane_sum, load, load_int, routine, store
from quad_dynamics.compiler.types import Address, Int, Number, Object, Sym3, Vec3
from quad_dynamics.kernels.argument_kinds import MATRICES
from quad_dynamics.kernels.door import good_configuration
from quad_dynamics.kernels.spatial import (
    add,
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
    sym_rotate,
    transpose,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    add_inertia,
    base_rotation,
    inertia_in_A,
    load_inertia,
    pack_at,
    parent_of,
    place_bodies,
    store_inertia,
)
from quad_dynamics.model import layout as L


@kernel(ARENA, INT, OBJECT, MATRICES)
def mass_matrix(A: Address, n: Int, q: Object, M: Object) -> Int:
    """Mass matrices of n configurations.

    Args:
        A: arena.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        M: (n, nv, nv) out.
    """
    if not good_configuration(A, n, q):
        return 1
    nv = load_int(A, L.NV)
    q, M = data(q), data(M)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * load_int(A, L.NQ))
        composite_inertias(A)
        write_mass_matrix(A, M, i * nv * nv)
    return 0


@routine
def composite_inertias(A: Address) -> None:
    """Inertia of every body with all that it carries (rows I_M, I_H, I_J), and F_j = I^c_j S_j.

    FORCE_F, FORCE_N hold F_j with the momentum of joint j's rotor, U_N its angular part in the axes of the
    base, and TAU holds M_jj.
    """
    for k in range(load_int(A, L.PACKS)):
        store_own_inertia(A, pack_at(A, k))
    for k in range(load_int(A, L.PACKS) - 1, 0, -1):
        compose_pack(A, pack_at(A, k), parent_of(A, k))


@formula
def store_own_inertia(A: Address, at: Int) -> None:
    """The inertia of the bodies of a pack alone."""
    store_inertia(A, at, *inertia_in_A(A, at))


@formula
def compose_pack(A: Address, at: Int, up: Int) -> None:
    """Add the composite inertia to the parent's; momentum F at unit joint speed."""
    m, h, J = load_inertia(A, at)
    add_inertia(A, up, m, h, J)
    S_v, S_w = load3(A, at + L.AXIS_V), load3(A, at + L.AXIS_W)
    f, n = inertia_mul(m, h, J, S_v, S_w)
    store(A, at + L.TAU, dot(S_v, f) + dot(S_w, n) + load(A, at + L.ROTOR_KK))
    r = rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS))
    n = add(n, scale(r, load(A, at + L.ROTOR_K)))
    store6(A, at + L.FORCE_F, f + n)
    store3(A, at + L.U_N, unrotate(load9(A, pack_at(A, 0) + L.ROT), n))


@routine
def write_mass_matrix(A: Address, M: Address, start: Int) -> None:
    """Write M[start : start + nv nv] from the composite inertias."""
    # In local variables, or they would be read again after every number that is written.
    nj, nv, table = load_int(A, L.NJ), load_int(A, L.NV), load_int(A, L.JOINTS)
    skip = nv - nj
    fill_zero(M, start, nv * nv)
    for j in range(nj):
        entry = table + j * L.JOINT_WORDS
        lane = load_int(A, entry + L.J_LANE)
        row, column = start + (skip + j) * nv, start + skip + j
        M[row + skip + j] = A[lane + L.TAU]
        if skip > 0:
            write_base_column(A, lane, M, column, nv, row)
        i = load_int(A, entry + L.J_PARENT)
        while i >= 0:
            above = table + i * L.JOINT_WORDS
            m = project(A, load_int(A, above + L.J_LANE), lane)
            M[row + skip + i] = m
            M[column + (skip + i) * nv] = m
            i = load_int(A, above + L.J_PARENT)
    if skip > 0:
        write_base_block(A, M, start, nv)


@formula
def project(A: Address, lane_i: Int, lane_j: Int) -> Number:
    """S_i . F_j of two bodies given by their lanes."""
    linear = dot(read3(A, lane_i + L.AXIS_V), read3(A, lane_j + L.FORCE_F))
    return linear + dot(read3(A, lane_i + L.AXIS_W), read3(A, lane_j + L.FORCE_N))


@formula
def write_base_column(A: Address, lane: Int, M: Address, column: Int, nv: Int, row: Int) -> None:
    """The base rows of one joint's column and the base columns of its row; angular part in body axes."""
    for i, x in enumerate(read3(A, lane + L.FORCE_F) + read3(A, lane + L.U_N)):
        M[column + i * nv] = x
        M[row + i] = x


@formula
def sum_base_inertia(A: Address) -> tuple[Number, Vec3, Sym3]:
    """Mass, first moment and inertia of the whole robot about the base's origin, summed over the lanes."""
    m, h, J = load_inertia(A, pack_at(A, 0))
    return lane_sum(m), tuple(lane_sum(x) for x in h), tuple(lane_sum(x) for x in J)


@formula
def write_base_block(A: Address, M: Address, start: Int, nv: Int) -> None:
    """The 6 x 6 block of the base: linear velocity in world axes, angular velocity in body axes."""
    m, h, J = sum_base_inertia(A)
    R = base_rotation(A)
    J_B = sym_rotate(transpose(R), J)
    for i in range(3):
        M[start + i * nv + i] = m
        f = cross((R[i], R[3 + i], R[6 + i]), h)  # momentum when the base turns about its axis i
        for k in range(3):
            M[start + k * nv + 3 + i] = f[k]
            M[start + (3 + i) * nv + k] = f[k]
            M[start + (3 + k) * nv + 3 + i] = J_B[((0, 1, 3), (1, 2, 4), (3, 4, 5))[k][i]]
