# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics by the articulated-body algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 7.1 and section 9.4 for the floating base, in one
frame for all bodies. U = I^A S, d = S . U, u = tau - S . p^A; gravity is added at the end, as an acceleration
of the whole. A geared rotor (section 9.6) adds gear^2 J to d, and couples the joint to the rotation of its
parent: U becomes I^A S + [0; gear J r].
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, lane_sum, load, load_int, routine, store
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Mat3, Number, Object, Sym3, Vec3, Vec6
from quad_dynamics.kernels.door import good_configuration, good_vector, has_shape
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
from quad_dynamics.kernels.rnea import FRICTION
from quad_dynamics.kernels.spatial import (
    add,
    add_to6,
    cross,
    dot,
    load3,
    load6,
    load9,
    rotate,
    scale,
    store6,
    store9,
    sym_mul,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    accelerate_pack,
    base_rotation,
    base_rows,
    friction,
    gather,
    inertia_in_A,
    lane_of,
    move_bodies,
    pack_at,
    parent_of,
    place_bodies,
    take,
    velocity_wrench,
)
from quad_dynamics.model import layout as L


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, INT, OBJECT)
def forward_dynamics(
    A: Address,
    n: Int,
    q: Object,
    u: Object,
    tau: Object,
    links: Object,
    wrenches: Object,
    flags: Int,
    du: Object,
) -> Int:
    """Accelerations of n states.

    Args:
        A: arena.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        tau: (n, nv) generalised forces, or (n, nj) joint torques.
        links, wrenches: external wrenches, see `external`.
        flags: FRICTION takes joint friction into account.
        du: (n, nv) out.
    """
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    if not good_configuration(A, n, q):
        return 1
    if not good_vector(A, n, nv, u):
        return 2
    nt = nv if has_shape(A, n, nv, tau) else load_int(A, L.NJ)
    if not good_vector(A, n, nt, tau):
        return 3
    if not good_wrenches(A, n, links, wrenches):
        return 4
    q, u, tau, du = data(q), data(u), data(tau), data(du)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        move_bodies(A, u, i * nv)
        for k in range(load_int(A, L.PACKS)):
            start_pack(A, pack_at(A, k))
        subtract_wrenches(A, links, wrenches, i)
        apply_torques(A, u, i * nv, tau, (i + 1) * nt - load_int(A, L.NJ), flags)
        solve_articulated(A, tau, i * nt, nt == nv, du, i * nv)
    return 0


@routine
def solve_articulated(A: Address, tau: Address, i: Int, has_base_rows: Bool, du: Address, to: Int) -> None:
    """du[to : to + nv], after `start_pack` and with the row TAU; tau[i] is read for the base alone."""
    for k in range(load_int(A, L.PACKS) - 1, 0, -1):
        reduce_inertia(A, pack_at(A, k), parent_of(A, k))
        reduce_bias(A, pack_at(A, k), parent_of(A, k))
    solve_base(A, tau, i, has_base_rows)
    for k in range(1, load_int(A, L.PACKS)):
        release_pack(A, pack_at(A, k), parent_of(A, k))
    write_accelerations(A, du, to)


@formula
def start_pack(A: Address, at: Int) -> None:
    """Articulated inertia and bias wrench of the bodies of a pack, before anything is attached to them."""
    m, h, J = inertia_in_A(A, at)
    store_rigid(A, at, m, h, J)
    f, n = velocity_wrench(m, h, J, load3(A, at + L.VEL_V), load3(A, at + L.VEL_W))
    store6(A, at + L.FORCE_F, f + n)


@formula
def store_rigid(A: Address, at: Int, m: Number, h: Vec3, J: Sym3) -> None:
    """Write a rigid inertia as an articulated one: M = m 1, H = -[h]."""
    store6(A, at + L.ART_M, (m, 0.0, m, 0.0, 0.0, m))
    store9(A, at + L.ART_H, (0.0, h[2], -h[1], -h[2], 0.0, h[0], h[1], -h[0], 0.0))
    store6(A, at + L.ART_J, J)


@routine
def apply_torques(A: Address, u: Address, iu: Int, tau: Address, it: Int, flags: Int) -> None:
    """Put the joint torques tau[it : it + nj], less friction, into the row TAU."""
    if flags & FRICTION:
        for j in range(load_int(A, L.NJ)):
            A[lane_of(A, j) + L.TAU] = tau[it + j] - friction(A, j, u[iu + base_rows(A) + j])
    else:
        for k in range(1, load_int(A, L.PACKS)):
            store(A, pack_at(A, k) + L.TAU, take(A, pack_at(A, k), tau, it))


@formula
def load_articulated(A: Address, at: Int) -> tuple[Sym3, Mat3, Sym3]:
    """The articulated inertia M (6), H (9), J (6) of the bodies of a pack."""
    return load6(A, at + L.ART_M), load9(A, at + L.ART_H), load6(A, at + L.ART_J)


@formula
def articulated_mul(M: Sym3, H: Mat3, J: Sym3, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
    """I^A [v; w]."""
    return add(sym_mul(M, v), rotate(H, w)), add(unrotate(H, v), sym_mul(J, w))


@formula
def reduce_inertia(A: Address, at: Int, up: Int) -> None:
    """U, 1/d, and what the parents feel of the inertia: I^A - U U^T / d."""
    M, H, J = load_articulated(A, at)
    S_v, S_w = load3(A, at + L.AXIS_V), load3(A, at + L.AXIS_W)
    f, n = articulated_mul(M, H, J, S_v, S_w)
    d_inv = 1.0 / (dot(S_v, f) + dot(S_w, n) + load(A, at + L.ROTOR_KK))
    r = rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS))
    n = add(n, scale(r, load(A, at + L.ROTOR_K)))
    store(A, at + L.D_INV, d_inv)
    store6(A, at + L.U_F, f + n)
    add_articulated(A, up, M, H, J, f, n, d_inv)


@formula
def add_articulated(A: Address, up: Int, M: Sym3, H: Mat3, J: Sym3, f: Vec3, n: Vec3, factor: Number) -> None:
    """Add I^A - [f; n] [f; n]^T factor to the articulated inertia of the parents."""
    g, k = scale(f, factor), scale(n, factor)
    add_to6(A, up + L.ART_M, (
        M[0] - f[0] * g[0], M[1] - f[0] * g[1], M[2] - f[1] * g[1],
        M[3] - f[0] * g[2], M[4] - f[1] * g[2], M[5] - f[2] * g[2],
    ))  # fmt: skip
    add_to6(A, up + L.ART_J, (
        J[0] - n[0] * k[0], J[1] - n[0] * k[1], J[2] - n[1] * k[1],
        J[3] - n[0] * k[2], J[4] - n[1] * k[2], J[5] - n[2] * k[2],
    ))  # fmt: skip
    for i in range(9):
        at = up + L.ART_H + i * LANES
        store(A, at, load(A, at) + (H[i] - f[i // 3] * k[i % 3]))


@formula
def reduce_bias(A: Address, at: Int, up: Int) -> None:
    """u = tau - S . (p^A + I^A c), and what the parents feel of the bias: p^A + I^A c + U u / d."""
    M, H, J = load_articulated(A, at)
    f, n = articulated_mul(M, H, J, load3(A, at + L.BIAS_V), load3(A, at + L.BIAS_W))
    f, n = add(f, load3(A, at + L.FORCE_F)), add(n, load3(A, at + L.FORCE_N))
    u = load(A, at + L.TAU) - dot(load3(A, at + L.AXIS_V), f) - dot(load3(A, at + L.AXIS_W), n)
    store(A, at + L.U_TAU, u)
    x = u * load(A, at + L.D_INV)
    f, n = add(f, scale(load3(A, at + L.U_F), x)), add(n, scale(load3(A, at + L.U_N), x))
    add_to6(A, up + L.FORCE_F, f + add(n, rotor_bias(A, at, up)))


@formula
def rotor_bias(A: Address, at: Int, up: Int) -> Vec3:
    """Moment on the parent that turns the spinning rotors with it: gear J qd (w x r)."""
    r = rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS))
    spin = load(A, at + L.ROTOR_K) * load(A, at + L.QD)
    return scale(cross(load3(A, up + L.VEL_W), r), spin)


# ---------------------------------------------------------------- the base


@routine
def solve_base(A: Address, tau: Address, i: Int, has_base_rows: Bool) -> None:
    """Acceleration of the base, gravity apart; that of a fixed base is against gravity."""
    if load_int(A, L.FLOATING) != 0:
        factor_base(A)
        if has_base_rows:
            f, n = (tau[i], tau[i + 1], tau[i + 2]), (tau[i + 3], tau[i + 4], tau[i + 5])
            accelerate_base(A, pack_at(A, 0), f, n)
        else:
            accelerate_base(A, pack_at(A, 0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    else:
        hold_root(A, pack_at(A, 0))


@formula
def factor_base(A: Address) -> None:
    """Factor the articulated inertia of the base, summed over the lanes, as L D L^T into the scratch."""
    M, H, J = load_articulated(A, pack_at(A, 0))
    M, H, J = (tuple(lane_sum(x) for x in block) for block in (M, H, J))
    symmetric = ((0, 1, 3), (1, 2, 4), (3, 4, 5))
    rows = [[M[i] for i in row] for row in symmetric]
    rows += [[H[j], H[3 + j], H[6 + j], *(J[i] for i in symmetric[j])] for j in range(3)]
    at = load_int(A, L.SCRATCH)
    lower: list[list[Number]] = []
    pivots: list[Number] = []
    for i in range(6):
        lower.append([])
        w: list[Number] = []  # row i of L D
        for j in range(i):
            x = rows[i][j]
            for k in range(j):
                x = x - w[k] * lower[j][k]
            w.append(x)
            lower[i].append(x * pivots[j])
        d = rows[i][i]
        for k in range(i):
            d = d - w[k] * lower[i][k]
        pivots.append(1.0 / d)
        for k in range(i):
            A[at + L.BASE_L + 6 * i + k] = lower[i][k]
        A[at + L.BASE_D_INV + i] = pivots[i]


@formula
def solve_factored_base(A: Address, b: Vec6) -> Vec6:
    """Solve the factored 6 x 6 system of the base for b (6)."""
    at = load_int(A, L.SCRATCH)
    x = list(b)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - A[at + L.BASE_L + 6 * i + k] * x[k]
    for i in range(6):
        x[i] = x[i] * A[at + L.BASE_D_INV + i]
    for i in reversed(range(6)):
        for k in range(i + 1, 6):
            x[i] = x[i] - A[at + L.BASE_L + 6 * k + i] * x[k]
    return tuple(x)


@formula
def accelerate_base(A: Address, at: Int, f: Vec3, n_B: Vec3) -> None:
    """a_0 = (I^A)^-1 (f - p^A), in all lanes."""
    bias = [lane_sum(x) for x in load6(A, at + L.FORCE_F)]
    wrench = f + rotate(base_rotation(A), n_B)
    store6(A, at + L.ACC_V, solve_factored_base(A, tuple(w - b for w, b in zip(wrench, bias))))


@formula
def hold_root(A: Address, at: Int) -> None:
    """The root of a fixed base accelerates against gravity."""
    store6(A, at + L.ACC_V, (-A[L.GRAVITY], -A[L.GRAVITY + 1], -A[L.GRAVITY + 2], 0.0, 0.0, 0.0))


# ---------------------------------------------------------------- outward


@formula
def release_pack(A: Address, at: Int, up: Int) -> None:
    """qdd = (u - U . a_parent) / d; the bodies accelerate with it."""
    a, alpha = load3(A, up + L.ACC_V), load3(A, up + L.ACC_W)
    u = load(A, at + L.U_TAU) - dot(load3(A, at + L.U_F), a) - dot(load3(A, at + L.U_N), alpha)
    accelerate_pack(A, at, up, u * load(A, at + L.D_INV))


@routine
def write_accelerations(A: Address, du: Address, i: Int) -> None:
    """Write du[i : i + nv]."""
    if load_int(A, L.FLOATING) != 0:
        write_base_acceleration(A, pack_at(A, 0), du, i)
    gather(A, L.QDD, du, i + base_rows(A))


@formula
def write_base_acceleration(A: Address, at: Int, du: Address, i: Int) -> None:
    """The base's acceleration with gravity; angular part in body axes."""
    a = (A[at + L.ACC_V], A[at + L.ACC_V + LANES], A[at + L.ACC_V + 2 * LANES])
    alpha = (A[at + L.ACC_W], A[at + L.ACC_W + LANES], A[at + L.ACC_W + 2 * LANES])
    alpha_B = unrotate(base_rotation(A), alpha)
    for k in range(3):
        du[i + k] = a[k] + A[L.GRAVITY + k]
        du[i + 3 + k] = alpha_B[k]
