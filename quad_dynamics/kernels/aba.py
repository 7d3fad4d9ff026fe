# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics by the articulated-body algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 7.1 and section 9.4 for the floating base, in one
frame for all bodies. U = I^A S, d = S . U, u = tau - S . p^A; gravity is added at the end, as an acceleration
of the whole robot. A geared rotor (section 9.6) adds gear^2 J to d, and couples the joint to the rotation of
its parent: U becomes I^A S + [0; gear J r].
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, lane_sum, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Mat3, Number, Object, Sym3, Vec3, Vec6
from quad_dynamics.kernels.argument_kinds import LINKS, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
from quad_dynamics.kernels.rnea import FRICTION
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    mat_sum,
    rotate,
    scale,
    sym_mul,
    sym_sum,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    ZERO3,
    accelerate_pack,
    base_body,
    base_rotation,
    base_rows,
    clear_torques,
    friction,
    move_bodies,
    pick,
    place_bodies,
    rigid_inertia,
    velocity_wrench,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector, has_shape
from quad_dynamics.memory.layout import Pack, Robot


@kernel(Robot, INT, OBJECT, OBJECT, OBJECT, LINKS, OPTIONAL_ITEMS, INT, VECTORS)
def forward_dynamics(
    robot: Robot,
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
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        tau: (n, nv) generalised forces, or (n, nj) joint torques.
        links, wrenches: external wrenches, see `external`.
        flags: FRICTION takes joint friction into account.
        du: (n, nv) out.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    nt = nv if has_shape(robot, n, nv, tau) else robot.nj
    if not good_vector(robot, n, nt, tau):
        return 3
    if not good_wrenches(robot, n, links, wrenches):
        return 4
    q, u, tau, du = data(q), data(u), data(tau), data(du)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        move_bodies(robot, u, i * nv)
        for k in range(robot.n_packs):
            start_pack(robot.packs[k])
        subtract_wrenches(robot, links, wrenches, i)
        apply_torques(robot, u, i * nv, tau, (i + 1) * nt - robot.nj, flags)
        solve_articulated(robot, tau, i * nt, nt == nv, du, i * nv)
    return 0


@routine
def solve_articulated(robot: Robot, tau: Address, i: Int, has_base_rows: Bool, du: Address, to: Int) -> None:
    """Write du[to : to + nv]; needs `start_pack` and the joint torques. tau[i] is only read for the base."""
    for k in range(robot.n_packs - 1, 0, -1):
        reduce_inertia(robot.packs[k])
        reduce_bias(robot.packs[k])
    solve_base(robot, tau, i, has_base_rows)
    for k in range(1, robot.n_packs):
        release_pack(robot.packs[k])
    write_accelerations(robot, du, to)


@formula
def start_pack(pack: Pack) -> None:
    """Articulated inertia and bias wrench of the bodies of a pack, before their children are added."""
    m, h, J = rigid_inertia(pack)
    articulate_rigid(pack, m, h, J)
    pack.f, pack.n = velocity_wrench(m, h, J, pack.v, pack.w)


@formula
def articulate_rigid(pack: Pack, m: Number, h: Vec3, J: Sym3) -> None:
    """Write a rigid inertia as an articulated one: M = m 1, H = -[h]."""
    pack.articulated_M = (m, 0.0, m, 0.0, 0.0, m)
    pack.articulated_H = (0.0, h[2], -h[1], -h[2], 0.0, h[0], h[1], -h[0], 0.0)
    pack.articulated_J = J


@routine
def apply_torques(robot: Robot, u: Address, iu: Int, tau: Address, it: Int, flags: Int) -> None:
    """Set the joint torques to tau[it : it + nj] minus friction."""
    if flags & FRICTION:
        clear_torques(robot)
        for j in range(robot.nj):
            body = robot.joints[j].body
            body.tau = tau[it + j] - friction(robot, j, u[iu + base_rows(robot) + j])
    else:
        for k in range(1, robot.n_packs):
            give_torques(robot.packs[k], tau, it)


@formula
def give_torques(pack: Pack, tau: Address, it: Int) -> None:
    """Set the joint torques of a pack to tau[it : it + nj]."""
    pack.tau = pick(pack, tau, it)


@formula
def articulated_inertia(pack: Pack) -> tuple[Sym3, Mat3, Sym3]:
    """The articulated inertia M (6), H (9), J (6) of the bodies of a pack."""
    return pack.articulated_M, pack.articulated_H, pack.articulated_J


@formula
def articulated_mul(M: Sym3, H: Mat3, J: Sym3, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
    """I^A [v; w]."""
    return add(sym_mul(M, v), rotate(H, w)), add(unrotate(H, v), sym_mul(J, w))


@formula
def reduce_inertia(pack: Pack) -> None:
    """U, 1/d, and the inertia seen by the parents: I^A - U U^T / d."""
    M, H, J = articulated_inertia(pack)
    S_v, S_w = pack.axis_v, pack.axis_w
    f, n = articulated_mul(M, H, J, S_v, S_w)
    d_inv = 1.0 / (dot(S_v, f) + dot(S_w, n) + pack.joint_inertia)
    r = rotate(pack.parent.rotation, pack.rotor_axis)
    n = add(n, scale(r, pack.rotor_coupling))
    pack.d_inv = d_inv
    pack.U_f, pack.U_n = f, n
    add_articulated(pack.parent, M, H, J, f, n, d_inv)


@formula
def add_articulated(parent: Pack, M: Sym3, H: Mat3, J: Sym3, f: Vec3, n: Vec3, factor: Number) -> None:
    """Add I^A - [f; n] [f; n]^T factor to the articulated inertia of the parents."""
    g, k = scale(f, factor), scale(n, factor)
    parent.articulated_M = sym_sum(parent.articulated_M, (
        M[0] - f[0] * g[0], M[1] - f[0] * g[1], M[2] - f[1] * g[1],
        M[3] - f[0] * g[2], M[4] - f[1] * g[2], M[5] - f[2] * g[2],
    ))  # fmt: skip
    parent.articulated_J = sym_sum(parent.articulated_J, (
        J[0] - n[0] * k[0], J[1] - n[0] * k[1], J[2] - n[1] * k[1],
        J[3] - n[0] * k[2], J[4] - n[1] * k[2], J[5] - n[2] * k[2],
    ))  # fmt: skip
    left = tuple(H[i] - f[i // 3] * k[i % 3] for i in range(9))
    parent.articulated_H = mat_sum(parent.articulated_H, left)


@formula
def reduce_bias(pack: Pack) -> None:
    """u = tau - S . (p^A + I^A c), and the bias seen by the parents: p^A + I^A c + U u / d."""
    M, H, J = articulated_inertia(pack)
    f, n = articulated_mul(M, H, J, pack.bias_v, pack.bias_w)
    f, n = add(f, pack.f), add(n, pack.n)
    u = pack.tau - dot(pack.axis_v, f) - dot(pack.axis_w, n)
    pack.u_tau = u
    x = u * pack.d_inv
    f, n = add(f, scale(pack.U_f, x)), add(n, scale(pack.U_n, x))
    n, parent = add(n, rotor_bias(pack)), pack.parent
    parent.f, parent.n = add(parent.f, f), add(parent.n, n)


@formula
def rotor_bias(pack: Pack) -> Vec3:
    """Moment on the parent that rotates the spinning rotors with it: gear J qd (w x r)."""
    r = rotate(pack.parent.rotation, pack.rotor_axis)
    spin = pack.rotor_coupling * pack.qd
    return scale(cross(pack.parent.w, r), spin)


# ---------------------------------------------------------------- base


@routine
def solve_base(robot: Robot, tau: Address, i: Int, has_base_rows: Bool) -> None:
    """Acceleration of the base without gravity; that of a fixed base is opposite to gravity."""
    if robot.floating != 0:
        factor_base(robot)
        if has_base_rows:
            f, n = (tau[i], tau[i + 1], tau[i + 2]), (tau[i + 3], tau[i + 4], tau[i + 5])
            accelerate_base(robot, f, n)
        else:
            accelerate_base(robot, ZERO3, ZERO3)
    else:
        hold_root(robot)


@formula
def factor_base(robot: Robot) -> None:
    """Factor the articulated inertia of the base, summed over the lanes, as L D L^T."""
    M, H, J = articulated_inertia(robot.packs[0])
    M, H, J = (tuple(lane_sum(x) for x in block) for block in (M, H, J))
    symmetric = ((0, 1, 3), (1, 2, 4), (3, 4, 5))
    rows = [[M[i] for i in row] for row in symmetric]
    rows += [[H[j], H[3 + j], H[6 + j], *(J[i] for i in symmetric[j])] for j in range(3)]
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
    base = robot.base
    base.lower = tuple(x for i, row in enumerate(lower) for x in (*row, 1.0, *[0.0] * (5 - i)))
    base.d_inv = tuple(pivots)


@formula
def solve_factored_base(robot: Robot, b: Vec6) -> Vec6:
    """Solve the factored 6 x 6 system of the base for b (6)."""
    lower, d_inv = robot.base.lower, robot.base.d_inv
    x = list(b)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - lower[6 * i + k] * x[k]
    for i in range(6):
        x[i] = x[i] * d_inv[i]
    for i in reversed(range(6)):
        for k in range(i + 1, 6):
            x[i] = x[i] - lower[6 * k + i] * x[k]
    return tuple(x)


@formula
def accelerate_base(robot: Robot, f: Vec3, n_B: Vec3) -> None:
    """a_0 = (I^A)^-1 (f - p^A), in all lanes."""
    base = robot.packs[0]
    bias = [lane_sum(x) for x in base.f + base.n]
    wrench = f + rotate(base_rotation(robot), n_B)
    x = solve_factored_base(robot, tuple(w - b for w, b in zip(wrench, bias, strict=True)))
    base.a, base.alpha = x[:3], x[3:]


@formula
def hold_root(robot: Robot) -> None:
    """The root of a fixed-base robot accelerates opposite to gravity."""
    g, base = robot.gravity, robot.packs[0]
    base.a, base.alpha = (-g[0], -g[1], -g[2]), ZERO3


# ---------------------------------------------------------------- outward


@formula
def release_pack(pack: Pack) -> None:
    """qdd = (u - U . a_parent) / d, and the resulting accelerations of the bodies."""
    a, alpha = pack.parent.a, pack.parent.alpha
    u = pack.u_tau - dot(pack.U_f, a) - dot(pack.U_n, alpha)
    accelerate_pack(pack, u * pack.d_inv)


@routine
def write_accelerations(robot: Robot, du: Address, i: Int) -> None:
    """Write du[i : i + nv]."""
    if robot.floating != 0:
        write_base_acceleration(robot, du, i)
    # In local variables; otherwise they would be reloaded after every store.
    nj, joints, start = robot.nj, robot.joints, i + base_rows(robot)
    for j in range(nj):
        du[start + j] = joints[j].body.qdd


@formula
def write_base_acceleration(robot: Robot, du: Address, i: Int) -> None:
    """The base's acceleration including gravity; angular part in body axes."""
    base = base_body(robot)
    a, alpha = base.a, base.alpha
    alpha_B, g = unrotate(base.rotation, alpha), robot.gravity
    for k in range(3):
        du[i + k] = a[k] + g[k]
        du[i + 3 + k] = alpha_B[k]
