# SPDX-License-Identifier: Apache-2.0
"""What a force on a link does to the whole robot, from the articulated inertias alone.

A force F on a body is felt by its parent as chi^T F, with the propagator chi = 1 - S U^T / d (in one frame
for all bodies, transforms between them are the identity). On its way to the base it leaves S . F at each
joint, and F_b at the base. Then, for forces a and b,

    a^T J M^-1 J^T b = sum over joints (S . F^a) (S . F^b) / d + F^a_b . (I^A_b)^-1 F^b_b,

which is 1/Lambda for a single direction. The acceleration of every joint is

    qdd_i = sum over joints Q_ij (S_j . F) / d_j + W_i a_b,

where Q_ii = 1, and the rest of row i follows from F = -U_i / d_i, that is (chi_i - 1)^T s with S_i . s = 1:
Q_ij = S_j . F, then F <- chi_j^T F, up to the base; what remains there is W_i.

A force comes as FORCE_WORDS numbers: the address of its body's lane and the index of its joint (whole
numbers, -1 for the base), the point p_K in the frame of the body, and [force; moment] in world axes.
"""

from __future__ import annotations

from quad_dynamics.kernels.aba import factor_base, reduce_inertia, solve_factored_base, store_rigid
from quad_dynamics.kernels.arrays import data, extent
from quad_dynamics.kernels.door import good_configuration
from quad_dynamics.kernels.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.kernels.spatial import add, cross, dot, read3, scale, sub, unrotate
from quad_dynamics.kernels.trace import fill_zero, formula, load_int, routine
from quad_dynamics.kernels.tree import (
    base_rotation,
    base_rows,
    inertia_in_A,
    joint_entry,
    lane_of,
    pack_at,
    parent_of,
    place_bodies,
    point_of_body,
)
from quad_dynamics.kernels.types import Address, Int, Number, Object, Vec3, Vec6
from quad_dynamics.model import layout as L
from quad_dynamics.model.layout import LANES

FORCE_WORDS = 11


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, OBJECT)
def contact_inertia(A: Address, n: Int, q: Object, forces: Object, T: Object, G: Object) -> Int:
    """J M^-1 J^T for given forces, in n configurations.

    Args:
        A: arena.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        forces: (r, FORCE_WORDS) forces on links.
        T: (r, nv) room to work in: what each force leaves at the base and the joints.
        G: (n, r, r) out.
    """
    if not good_configuration(A, n, q):
        return 1
    nv, skip = load_int(A, L.NV), base_rows(A)
    r = extent(forces, 0)
    q, forces, T, G = data(q), data(forces), data(T), data(G)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * load_int(A, L.NQ))
        articulate(A)
        for a in range(r):
            propagate(A, forces, a * FORCE_WORDS, T, a * nv)
            if skip > 0:
                halfway_base(A, T, a * nv)
        for a in range(r):
            for b in range(a + 1):
                g = 0.0
                for c in range(skip):
                    g += T[a * nv + c] * T[b * nv + c] * A[load_int(A, L.SCRATCH) + L.BASE_D_INV + c]
                for j in range(load_int(A, L.NJ)):
                    c = skip + j
                    g += T[a * nv + c] * T[b * nv + c] * A[lane_of(A, j) + L.D_INV]
                G[(i * r + a) * r + b] = g
                G[(i * r + b) * r + a] = g
    return 0


@routine
def articulate(A: Address) -> None:
    """U and 1/d of all joints, and the factored system of the base; after `place_bodies`."""
    for k in range(load_int(A, L.PACKS)):
        start_rigid(A, pack_at(A, k))
    for k in range(load_int(A, L.PACKS) - 1, 0, -1):
        reduce_inertia(A, pack_at(A, k), parent_of(A, k))
    if load_int(A, L.FLOATING) != 0:
        factor_base(A)


@formula
def start_rigid(A: Address, at: Int) -> None:
    """The inertia of the bodies of a pack alone, as an articulated inertia."""
    store_rigid(A, at, *inertia_in_A(A, at))


@routine
def propagate(A: Address, forces: Address, at: Int, T: Address, to: Int) -> None:
    """Write what the force at forces[at] leaves at the base (6) and at each joint to T[to : to + nv]."""
    nv, skip = load_int(A, L.NV), base_rows(A)
    fill_zero(T, to, nv)
    x = forces
    p_K, force = (x[at + 2], x[at + 3], x[at + 4]), (x[at + 5], x[at + 6], x[at + 7])
    f, n = place_force(A, int(x[at]), p_K, force, (x[at + 8], x[at + 9], x[at + 10]))
    j = int(x[at + 1])
    while j >= 0:
        lane = lane_of(A, j)
        left, f, n = pass_joint(A, lane, f, n)
        T[to + skip + j] = left
        j = load_int(A, joint_entry(A, j) + L.J_PARENT)
    if skip > 0:
        write_wrench(T, to, f, n)


@formula
def place_force(A: Address, lane: Int, p_K: Vec3, force: Vec3, moment: Vec3) -> tuple[Vec3, Vec3]:
    """The force as a wrench about the origin of A."""
    return force, add(moment, cross(point_of_body(A, lane, p_K), force))


@formula
def pass_joint(A: Address, lane: Int, f: Vec3, n: Vec3) -> tuple[Number, Vec3, Vec3]:
    """S . F, and chi^T F = F - U (S . F) / d."""
    left = dot(read3(A, lane + L.AXIS_V), f) + dot(read3(A, lane + L.AXIS_W), n)
    x = left * A[lane + L.D_INV]
    return left, sub(f, scale(read3(A, lane + L.U_F), x)), sub(n, scale(read3(A, lane + L.U_N), x))


@formula
def write_wrench(T: Address, to: Int, f: Vec3, n: Vec3) -> None:
    """Write [f; n] to T[to : to + 6]."""
    for k, x in enumerate(f + n):
        T[to + k] = x


@formula
def halfway_base(A: Address, T: Address, to: Int) -> None:
    """L^-1 F_b in place, so that F_a . (I^A)^-1 F_b is a product of two of them with 1/D in between."""
    at = load_int(A, L.SCRATCH) + L.BASE_L
    x = [T[to + i] for i in range(6)]
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - A[at + 6 * i + k] * x[k]
        T[to + i] = x[i]


# ---------------------------------------------------------------- responses by Q and W


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT)
def contact_propagators(
    A: Address, n: Int, q: Object, S: Object, U: Object, d_inv: Object, Q: Object, W: Object
) -> Int:
    """Joint motions, propagators, Q and W of n configurations, in frame A.

    Args:
        A: arena.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        S: (n, nj, 6) out, joint motions [v; w].
        U: (n, nj, 6) out.
        d_inv: (n, nj) out.
        Q: (n, nj, nj) out.
        W: (n, nj, 6) out.
    """
    if not good_configuration(A, n, q):
        return 1
    nj = load_int(A, L.NJ)
    q, S, U, d_inv, Q, W = data(q), data(S), data(U), data(d_inv), data(Q), data(W)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * load_int(A, L.NQ))
        articulate(A)
        write_Q_W(A, Q, i * nj * nj, W, i * nj * 6)
        for j in range(nj):
            lane = lane_of(A, j)
            d_inv[i * nj + j] = A[lane + L.D_INV]
            for k in range(6):
                S[(i * nj + j) * 6 + k] = A[lane + L.AXIS_V + k * LANES]
                U[(i * nj + j) * 6 + k] = A[lane + L.U_F + k * LANES]
    return 0


@routine
def write_Q_W(A: Address, Q: Address, to_Q: Int, W: Address, to_W: Int) -> None:
    """Write Q (nj nj) and W (nj 6), after `articulate`."""
    nj = load_int(A, L.NJ)
    fill_zero(Q, to_Q, nj * nj)
    for i in range(nj):
        Q[to_Q + i * nj + i] = 1.0
        f, n = start_row(A, lane_of(A, i))
        j = load_int(A, joint_entry(A, i) + L.J_PARENT)
        while j >= 0:
            left, f, n = pass_joint(A, lane_of(A, j), f, n)
            Q[to_Q + i * nj + j] = left
            j = load_int(A, joint_entry(A, j) + L.J_PARENT)
        write_wrench(W, to_W + 6 * i, f, n)


@formula
def start_row(A: Address, lane: Int) -> tuple[Vec3, Vec3]:
    """F = -U / d."""
    x = -A[lane + L.D_INV]
    return scale(read3(A, lane + L.U_F), x), scale(read3(A, lane + L.U_N), x)


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT)
def unit_response(
    A: Address, n: Int, q: Object, forces: Object, Q: Object, W: Object, T: Object, du: Object
) -> Int:
    """Accelerations M^-1 J^T f that forces cause, each on its own, in n configurations.

    Args:
        A: arena.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        forces: (r, FORCE_WORDS) forces on links.
        Q, W, T: (nj, nj), (nj, 6), (nv,) room to work in.
        du: (n, r, nv) out.
    """
    if not good_configuration(A, n, q):
        return 1
    r = extent(forces, 0)
    q, forces, Q, W, T, du = data(q), data(forces), data(Q), data(W), data(T), data(du)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * load_int(A, L.NQ))
        articulate(A)
        write_Q_W(A, Q, 0, W, 0)
        for a in range(r):
            propagate(A, forces, a * FORCE_WORDS, T, 0)
            respond(A, Q, W, T, du, (i * r + a) * load_int(A, L.NV))
    return 0


@routine
def respond(A: Address, Q: Address, W: Address, T: Address, du: Address, to: Int) -> None:
    """qdd_i = sum_j Q_ij (S_j . F) / d_j + W_i a_b."""
    nj, skip = load_int(A, L.NJ), base_rows(A)
    a_b = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if skip > 0:
        a_b = solve_factored_base(A, (T[0], T[1], T[2], T[3], T[4], T[5]))
        write_base_response(A, a_b, du, to)
    for i in range(nj):
        qdd = 0.0
        for k in range(6):
            qdd += W[6 * i + k] * a_b[k]
        for j in range(nj):
            qdd += Q[i * nj + j] * T[skip + j] * A[lane_of(A, j) + L.D_INV]
        du[to + skip + i] = qdd


@formula
def write_base_response(A: Address, a_b: Vec6, du: Address, to: Int) -> None:
    """Acceleration of the base; angular part in body axes."""
    for k, x in enumerate(a_b[:3] + unrotate(base_rotation(A), a_b[3:])):
        du[to + k] = x
