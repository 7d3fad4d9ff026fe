# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics by the recursive Newton-Euler algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 5.1, in one frame for all bodies; geared rotors
after section 9.6. Outward: velocities, accelerations, and the wrench that each body needs. Inward: the
wrenches are summed towards the base, and each joint takes the part along its motion.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, optional_data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, lane_sum, load, load_int, routine, store
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Object, Vec3
from quad_dynamics.kernels.argument_kinds import LINKS, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.door import good_configuration, good_vector
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
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
    store3,
    store6,
    sub,
    sym_mul,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    accelerate_pack,
    base_rotation,
    base_rows,
    friction,
    gather,
    move_bodies,
    origin_acceleration,
    pack_at,
    parent_of,
    place_bodies,
    stop_bodies,
    take,
)
from quad_dynamics.model import layout as L

FRICTION = 1
NO_GRAVITY = 2
AT_REST = 4
NO_ACCELERATION = 8


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, LINKS, OPTIONAL_ITEMS, INT, VECTORS)
def inverse_dynamics(
    A: Address,
    n: Int,
    q: Object,
    u: Object,
    du: Object,
    links: Object,
    wrenches: Object,
    flags: Int,
    tau: Object,
) -> Int:
    """Generalised forces of n states.

    Args:
        A: arena.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities; not read with AT_REST.
        du: (n, nv) accelerations; not read with NO_ACCELERATION.
        links, wrenches: external wrenches, see `external`.
        flags: sum of FRICTION, which adds joint friction, NO_GRAVITY, AT_REST and NO_ACCELERATION.
        tau: (n, nv) out.
    """
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    if not good_configuration(A, n, q):
        return 1
    moves, accelerates = flags & AT_REST == 0, flags & NO_ACCELERATION == 0
    if moves and not good_vector(A, n, nv, u):
        return 2
    if accelerates and not good_vector(A, n, nv, du):
        return 3
    if not good_wrenches(A, n, links, wrenches):
        return 4
    q, u, du, tau = data(q), optional_data(A, u), optional_data(A, du), data(tau)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        if moves:
            move_bodies(A, u, i * nv)
        else:
            stop_bodies(A)
        accelerate_bodies(A, accelerates, du, i * nv, flags)
        store_wrenches(A)
        subtract_wrenches(A, links, wrenches, i)
        sum_inward(A)
        write_forces(A, tau, i * nv)
        if flags & FRICTION and moves:
            for j in range(load_int(A, L.NJ)):
                row = i * nv + base_rows(A) + j
                tau[row] += friction(A, j, u[row])
    return 0


@routine
def accelerate_bodies(A: Address, given: Bool, du: Address, i: Int, flags: Int) -> None:
    """Accelerations of all bodies at du[i : i + nv], or at zero; gravity accelerates the base upward."""
    base = pack_at(A, 0)
    weight = 0.0 if flags & NO_GRAVITY else 1.0
    if given and load_int(A, L.FLOATING) != 0:
        accelerate_base(A, base, weight, (du[i], du[i + 1], du[i + 2]), (du[i + 3], du[i + 4], du[i + 5]))
    else:
        accelerate_base(A, base, weight, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    for k in range(1, load_int(A, L.PACKS)):
        at = pack_at(A, k)
        if given:
            accelerate_pack(A, at, parent_of(A, k), take(A, at, du, i + base_rows(A)))
        else:
            accelerate_pack(A, at, parent_of(A, k), 0.0)


@formula
def accelerate_base(A: Address, at: Int, weight: Number, a: Vec3, alpha_B: Vec3) -> None:
    """Acceleration of the base, against gravity: [a - g; R_WB alpha_B]."""
    g = (A[L.GRAVITY], A[L.GRAVITY + 1], A[L.GRAVITY + 2])
    store6(A, at + L.ACC_V, sub(a, scale(g, weight)) + rotate(base_rotation(A), alpha_B))


@routine
def store_wrenches(A: Address) -> None:
    """The wrench that each body needs."""
    for k in range(load_int(A, L.PACKS)):
        store_wrench(A, pack_at(A, k))


@formula
def store_wrench(A: Address, at: Int) -> None:
    """Wrench about the origin of A that gives the bodies of a pack their acceleration.

    Newton and Euler in the body's own frame K, where its inertia is constant.
    """
    R, p = load9(A, at + L.ROT), load3(A, at + L.POS)
    a_K = unrotate(R, origin_acceleration(A, at))
    w_K, alpha_K = unrotate(R, load3(A, at + L.VEL_W)), unrotate(R, load3(A, at + L.ACC_W))
    m, h, J = load(A, at + L.MASS), load3(A, at + L.MOMENT), load6(A, at + L.INERTIA)
    f_K = add(scale(a_K, m), add(cross(alpha_K, h), cross(w_K, cross(w_K, h))))
    n_K = add(cross(h, a_K), add(sym_mul(J, alpha_K), cross(w_K, sym_mul(J, w_K))))
    f = rotate(R, f_K)
    store6(A, at + L.FORCE_F, f + add(rotate(R, n_K), cross(p, f)))


@routine
def sum_inward(A: Address) -> None:
    """Sum the wrenches towards the base; the joint torques go to the row TAU."""
    for k in range(load_int(A, L.PACKS) - 1, 0, -1):
        at, up = pack_at(A, k), parent_of(A, k)
        sum_pack(A, at, up)
        if load_int(A, L.ROTORS) != 0:
            turn_rotors(A, at, up)


@formula
def sum_pack(A: Address, at: Int, up: Int) -> None:
    """tau = S . F; F_parent += F."""
    f, n = load3(A, at + L.FORCE_F), load3(A, at + L.FORCE_N)
    store(A, at + L.TAU, dot(load3(A, at + L.AXIS_V), f) + dot(load3(A, at + L.AXIS_W), n))
    add_to6(A, up + L.FORCE_F, f + n)


@formula
def turn_rotors(A: Address, at: Int, up: Int) -> None:
    """Add the joint torque and the moment on the parent that the geared rotors need.

    A rotor has the angular momentum J gear qd along its axis r beyond that of a part fixed to the parent; the
    latter is in the parent's inertia.
    """
    r = rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS))
    k, qd, qdd = load(A, at + L.ROTOR_K), load(A, at + L.QD), load(A, at + L.QDD)
    tau = load(A, at + L.ROTOR_KK) * qdd + k * dot(r, load3(A, up + L.ACC_W))
    store(A, at + L.TAU, load(A, at + L.TAU) + tau)
    n = scale(add(scale(r, qdd), cross(load3(A, up + L.VEL_W), scale(r, qd))), k)
    store3(A, up + L.FORCE_N, add(load3(A, up + L.FORCE_N), n))


@routine
def write_forces(A: Address, tau: Address, i: Int) -> None:
    """Write tau[i : i + nv]: the base's wrench (moment in body axes), then the joint torques."""
    if load_int(A, L.FLOATING) != 0:
        write_base_wrench(A, pack_at(A, 0), tau, i)
    gather(A, L.TAU, tau, i + base_rows(A))


@formula
def write_base_wrench(A: Address, at: Int, tau: Address, i: Int) -> None:
    """Sum the base's wrench over the lanes."""
    f, n = load3(A, at + L.FORCE_F), load3(A, at + L.FORCE_N)
    n_B = unrotate(base_rotation(A), tuple(lane_sum(x) for x in n))
    for j in range(3):
        tau[i + j] = lane_sum(f[j])
        tau[i + 3 + j] = n_B[j]
