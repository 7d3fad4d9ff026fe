# SPDX-License-Identifier: Apache-2.0
"""Hybrid dynamics: some accelerations are given, at the other joints the torques are.

Featherstone, Rigid Body Dynamics Algorithms (2008), section 9.2, as the articulated-body algorithm: a joint
whose acceleration is given carries the inertia behind it on to its parent unreduced, and its torque comes out
at the end, tau = d qdd + U . a_parent + S . (p^A + I^A c). The base is never actuated: where its acceleration
is given, the wrench f_0 = I^A_0 a_0 + p^A_0 that the environment must supply comes out instead.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, is_mask, mask_at
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, load, load_int, routine, store
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Object
from quad_dynamics.kernels.aba import (
    add_articulated,
    articulated_mul,
    hold_root,
    load_articulated,
    rotor_bias,
    solve_base,
    start_pack,
    write_accelerations,
)
from quad_dynamics.kernels.argument_kinds import LINKS, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.door import good_configuration, good_vector, has_shape
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
from quad_dynamics.kernels.rnea import FRICTION, write_forces
from quad_dynamics.kernels.rnea import accelerate_base as give_base_acceleration
from quad_dynamics.kernels.spatial import (
    add,
    add_to6,
    dot,
    load3,
    load6,
    load9,
    rotate,
    scale,
    store6,
)
from quad_dynamics.kernels.tree import (
    accelerate_pack,
    base_rows,
    clear_row,
    friction,
    lane_of,
    move_bodies,
    pack_at,
    parent_of,
    place_bodies,
    take,
)
from quad_dynamics.model import layout as L


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, LINKS, OPTIONAL_ITEMS, INT, VECTORS, VECTORS)
def hybrid_dynamics(
    A: Address,
    n: Int,
    q: Object,
    u: Object,
    du: Object,
    tau: Object,
    prescribed: Object,
    links: Object,
    wrenches: Object,
    flags: Int,
    du_out: Object,
    tau_out: Object,
) -> Int:
    """Accelerations and generalised forces of n states.

    Args:
        A: arena.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        du: (n, nv) accelerations, used where they are prescribed.
        tau: (n, nv) generalised forces, or (n, nj) joint torques; used where du is not prescribed.
        prescribed: (nv,) bool, where du is prescribed; the same for all six base rows.
        links, wrenches: external wrenches, see `external`.
        flags: FRICTION takes joint friction into account.
        du_out: (n, nv) out; what was prescribed, bit for bit.
        tau_out: (n, nv) out; what was given, bit for bit.
    """
    nq, nv, skip = load_int(A, L.NQ), load_int(A, L.NV), base_rows(A)
    if not good_configuration(A, n, q):
        return 1
    if not (good_vector(A, n, nv, u) and good_vector(A, n, nv, du)):
        return 2
    nt = nv if has_shape(A, n, nv, tau) else load_int(A, L.NJ)
    if not good_vector(A, n, nt, tau):
        return 4
    if not good_mask(A, prescribed):
        return 5
    if not good_wrenches(A, n, links, wrenches):
        return 6
    q, u, du, tau = data(q), data(u), data(du), data(tau)
    du_out, tau_out = data(du_out), data(tau_out)
    store_mask(A, prescribed)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        move_bodies(A, u, i * nv)
        for k in range(load_int(A, L.PACKS)):
            start_pack(A, pack_at(A, k))
        subtract_wrenches(A, links, wrenches, i)
        for k in range(1, load_int(A, L.PACKS)):
            at = pack_at(A, k)
            store(A, at + L.QDD, take(A, at, du, i * nv + skip))
            store(A, at + L.TAU, take(A, at, tau, (i + 1) * nt - load_int(A, L.NJ)))
        if flags & FRICTION:
            add_friction(A, u, i * nv + skip, -1.0)
        for k in range(load_int(A, L.PACKS) - 1, 0, -1):
            reduce_pack(A, pack_at(A, k), parent_of(A, k))
        settle_base(A, du, i * nv, tau, i * nt, nt == nv, prescribed)
        for k in range(1, load_int(A, L.PACKS)):
            resolve_pack(A, pack_at(A, k), parent_of(A, k))
        if flags & FRICTION:
            add_friction(A, u, i * nv + skip, 1.0)
        write_accelerations(A, du_out, i * nv)
        write_forces(A, tau_out, i * nv)
        restore_given(prescribed, nv, du, du_out, i * nv, tau, (i + 1) * nt - nv, tau_out, nv - nt)
    return 0


@routine
def good_mask(A: Address, prescribed: Object) -> Bool:
    """Whether it is an array (nv,) of bool with equal base rows."""
    if not is_mask(A, prescribed, load_int(A, L.NV)):
        return False
    for i in range(1, base_rows(A)):
        if mask_at(prescribed, i) != mask_at(prescribed, 0):
            return False
    return True


@routine
def store_mask(A: Address, prescribed: Object) -> None:
    """Put 1 into the row GIVEN where the acceleration of a joint is prescribed, else 0."""
    clear_row(A, L.GIVEN)
    for j in range(load_int(A, L.NJ)):
        A[lane_of(A, j) + L.GIVEN] = float(mask_at(prescribed, base_rows(A) + j))


@routine
def restore_given(
    prescribed: Object,
    nv: Int,
    du: Address,
    du_out: Address,
    i: Int,
    tau: Address,
    it: Int,
    tau_out: Address,
    missing: Int,
) -> None:
    """Copy what was given to the results, without the rounding of the way through the base and the joints.

    Args:
        prescribed: (nv,) bool.
        nv: number of rows.
        du, du_out: accelerations; row 0 of the state is at i.
        i: see du; also for tau_out.
        tau: generalised forces; row 0 is at it, if there are base rows.
        it: see tau.
        tau_out: generalised forces.
        missing: number of base rows that tau does not have; they are zero.
    """
    for row in range(nv):
        if mask_at(prescribed, row) != 0:
            du_out[i + row] = du[i + row]
        elif row < missing:
            tau_out[i + row] = 0.0
        else:
            tau_out[i + row] = tau[it + row]


@routine
def add_friction(A: Address, u: Address, i: Int, factor: Number) -> None:
    """Add factor times the friction of each joint to the row TAU."""
    for j in range(load_int(A, L.NJ)):
        A[lane_of(A, j) + L.TAU] += factor * friction(A, j, u[i + j])


@formula
def reduce_pack(A: Address, at: Int, up: Int) -> None:
    """What the parents feel of the bodies of a pack, through joints that are free to move or not."""
    M, H, J = load_articulated(A, at)
    given, qdd = load(A, at + L.GIVEN), load(A, at + L.QDD)
    S_v, S_w = load3(A, at + L.AXIS_V), load3(A, at + L.AXIS_W)
    U_f, U_n = articulated_mul(M, H, J, S_v, S_w)
    d = dot(S_v, U_f) + dot(S_w, U_n) + load(A, at + L.ROTOR_KK)
    free = (1.0 - given) / (d + given)  # a prescribed joint may have no inertia at all
    r = rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS))
    U_n = add(U_n, scale(r, load(A, at + L.ROTOR_K)))
    add_articulated(A, up, M, H, J, U_f, U_n, free)

    f, n = articulated_mul(M, H, J, load3(A, at + L.BIAS_V), load3(A, at + L.BIAS_W))
    f, n = add(f, load3(A, at + L.FORCE_F)), add(n, load3(A, at + L.FORCE_N))
    # torque that holds the joint at qdd = 0 while the parent does not accelerate
    bias = dot(S_v, f) + dot(S_w, n)
    x = given * qdd + free * (load(A, at + L.TAU) - bias)
    f, n = add(f, scale(U_f, x)), add(n, scale(U_n, x))
    add_to6(A, up + L.FORCE_F, f + add(n, rotor_bias(A, at, up)))
    store6(A, at + L.U_F, U_f + U_n)
    store(A, at + L.D, d)
    store(A, at + L.TAU_BIAS, bias)


@routine
def settle_base(
    A: Address, du: Address, i: Int, tau: Address, it: Int, has_base_rows: Bool, prescribed: Object
) -> None:
    """Solve for the base's acceleration, or take it and find the wrench that it needs."""
    base = pack_at(A, 0)
    if load_int(A, L.FLOATING) == 0:
        hold_root(A, base)
    elif mask_at(prescribed, 0) == 0:
        solve_base(A, tau, it, has_base_rows)
        find_base_wrench(A, base)
    else:
        give_base_acceleration(A, base, 1.0, (du[i], du[i + 1], du[i + 2]), (du[i + 3], du[i + 4], du[i + 5]))
        find_base_wrench(A, base)


@formula
def find_base_wrench(A: Address, at: Int) -> None:
    """f_0 = I^A a + p^A, spread over the lanes."""
    f, n = articulated_mul(*load_articulated(A, at), load3(A, at + L.ACC_V), load3(A, at + L.ACC_W))
    add_to6(A, at + L.FORCE_F, f + n)


@formula
def resolve_pack(A: Address, at: Int, up: Int) -> None:
    """The acceleration or the torque of each joint, whichever is not given."""
    a, alpha = load3(A, up + L.ACC_V), load3(A, up + L.ACC_W)
    d, given = load(A, at + L.D), load(A, at + L.GIVEN)
    U = load6(A, at + L.U_F)
    bias = load(A, at + L.TAU_BIAS) + dot(U[:3], a) + dot(U[3:], alpha)
    tau, qdd = load(A, at + L.TAU), load(A, at + L.QDD)
    qdd = given * qdd + (1.0 - given) * ((tau - bias) / (d + given))
    store(A, at + L.TAU, given * (d * qdd + bias) + (1.0 - given) * tau)
    accelerate_pack(A, at, up, qdd)
