# SPDX-License-Identifier: Apache-2.0
"""Hybrid dynamics: accelerations are given at some joints, torques at the others.

Featherstone, Rigid Body Dynamics Algorithms (2008), section 9.2, as an articulated-body algorithm: a joint
with a given acceleration passes the inertia behind it to its parent unreduced, and its torque is the result,
tau = d qdd + U . a_parent + S . (p^A + I^A c). The base is never actuated: if its acceleration is given, the
result is the wrench f_0 = I^A_0 a_0 + p^A_0 that the environment must supply.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, is_mask, mask_at
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Object
from quad_dynamics.kernels.aba import (
    add_articulated,
    articulated_inertia,
    articulated_mul,
    hold_root,
    rotor_bias,
    solve_base,
    start_pack,
    write_accelerations,
)
from quad_dynamics.kernels.argument_kinds import LINKS, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
from quad_dynamics.kernels.rnea import FRICTION, write_forces
from quad_dynamics.kernels.rnea import accelerate_base as give_base_acceleration
from quad_dynamics.kernels.spatial import add, dot, rotate, scale
from quad_dynamics.kernels.tree import (
    accelerate_pack,
    base_rows,
    friction,
    move_bodies,
    pick,
    place_bodies,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector, has_shape
from quad_dynamics.memory.layout import Pack, Robot


@kernel(Robot, INT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, LINKS, OPTIONAL_ITEMS, INT, VECTORS, VECTORS)
def hybrid_dynamics(
    robot: Robot,
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
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        du: (n, nv) accelerations, used where they are prescribed.
        tau: (n, nv) generalised forces, or (n, nj) joint torques; used where du is not prescribed.
        prescribed: (nv,) bool, where du is prescribed; the same for all six base rows.
        links, wrenches: external wrenches, see `external`.
        flags: FRICTION takes joint friction into account.
        du_out: (n, nv) out; prescribed values are exact copies.
        tau_out: (n, nv) out; given values are exact copies.
    """
    nq, nv, skip = robot.nq, robot.nv, base_rows(robot)
    if not good_configuration(robot, n, q):
        return 1
    if not (good_vector(robot, n, nv, u) and good_vector(robot, n, nv, du)):
        return 2
    nt = nv if has_shape(robot, n, nv, tau) else robot.nj
    if not good_vector(robot, n, nt, tau):
        return 4
    if not good_mask(robot, prescribed):
        return 5
    if not good_wrenches(robot, n, links, wrenches):
        return 6
    q, u, du, tau = data(q), data(u), data(du), data(tau)
    du_out, tau_out = data(du_out), data(tau_out)
    store_mask(robot, prescribed)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        move_bodies(robot, u, i * nv)
        for k in range(robot.n_packs):
            start_pack(robot.packs[k])
        subtract_wrenches(robot, links, wrenches, i)
        for k in range(1, robot.n_packs):
            give_both(robot.packs[k], du, i * nv + skip, tau, (i + 1) * nt - robot.nj)
        if flags & FRICTION:
            add_friction(robot, u, i * nv + skip, -1.0)
        for k in range(robot.n_packs - 1, 0, -1):
            reduce_pack(robot.packs[k])
        settle_base(robot, du, i * nv, tau, i * nt, nt == nv, prescribed)
        for k in range(1, robot.n_packs):
            resolve_pack(robot.packs[k])
        if flags & FRICTION:
            add_friction(robot, u, i * nv + skip, 1.0)
        write_accelerations(robot, du_out, i * nv)
        write_forces(robot, tau_out, i * nv)
        restore_given(prescribed, nv, du, du_out, i * nv, tau, (i + 1) * nt - nv, tau_out, nv - nt)
    return 0


@routine
def good_mask(robot: Robot, prescribed: Object) -> Bool:
    """Whether it is an array (nv,) of bool with equal base rows."""
    if not is_mask(robot, prescribed, robot.nv):
        return False
    for i in range(1, base_rows(robot)):
        if mask_at(prescribed, i) != mask_at(prescribed, 0):
            return False
    return True


@formula
def clear_mask(pack: Pack) -> None:
    """Mark the joints of a pack as not prescribed; empty lanes stay so."""
    pack.prescribed = 0.0


@routine
def store_mask(robot: Robot, prescribed: Object) -> None:
    """Mark the joints whose acceleration is prescribed."""
    for k in range(1, robot.n_packs):
        clear_mask(robot.packs[k])
    for j in range(robot.nj):
        robot.joints[j].body.prescribed = float(mask_at(prescribed, base_rows(robot) + j))


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
    """Copy the given values to the results, to remove rounding errors.

    Args:
        prescribed: (nv,) bool.
        nv: number of rows.
        du, du_out: accelerations; row 0 of the state is at i.
        i: see du; also for tau_out.
        tau: generalised forces; row 0 is at `it`, if there are base rows.
        it: see tau.
        tau_out: generalised forces.
        missing: number of base rows missing from tau; they are zero.
    """
    for row in range(nv):
        if mask_at(prescribed, row) != 0:
            du_out[i + row] = du[i + row]
        elif row < missing:
            tau_out[i + row] = 0.0
        else:
            tau_out[i + row] = tau[it + row]


@routine
def add_friction(robot: Robot, u: Address, i: Int, factor: Number) -> None:
    """Add factor times the friction of each joint to its torque."""
    for j in range(robot.nj):
        body = robot.joints[j].body
        body.tau += factor * friction(robot, j, u[i + j])


@formula
def give_both(pack: Pack, du: Address, i: Int, tau: Address, it: Int) -> None:
    """Set accelerations du[i : i + nj] and torques tau[it : it + nj] of the joints of a pack."""
    pack.qdd, pack.tau = pick(pack, du, i), pick(pack, tau, it)


@formula
def reduce_pack(pack: Pack) -> None:
    """Inertia and bias of a pack as seen by the parents, through free and prescribed joints."""
    M, H, J = articulated_inertia(pack)
    given, qdd = pack.prescribed, pack.qdd
    S_v, S_w = pack.axis_v, pack.axis_w
    U_f, U_n = articulated_mul(M, H, J, S_v, S_w)
    d = dot(S_v, U_f) + dot(S_w, U_n) + pack.joint_inertia
    free = (1.0 - given) / (d + given)  # a prescribed joint may have zero inertia
    parent = pack.parent
    r = rotate(parent.rotation, pack.rotor_axis)
    U_n = add(U_n, scale(r, pack.rotor_coupling))
    add_articulated(parent, M, H, J, U_f, U_n, free)

    f, n = articulated_mul(M, H, J, pack.bias_v, pack.bias_w)
    f, n = add(f, pack.f), add(n, pack.n)
    # torque at qdd = 0 while the parent does not accelerate
    bias = dot(S_v, f) + dot(S_w, n)
    x = given * qdd + free * (pack.tau - bias)
    f, n = add(f, scale(U_f, x)), add(add(n, scale(U_n, x)), rotor_bias(pack))
    parent.f, parent.n = add(parent.f, f), add(parent.n, n)
    pack.U_f, pack.U_n = U_f, U_n
    pack.d = d
    pack.bias_torque = bias


@routine
def settle_base(
    robot: Robot, du: Address, i: Int, tau: Address, it: Int, has_base_rows: Bool, prescribed: Object
) -> None:
    """Solve for the base's acceleration, or compute the wrench for a prescribed one."""
    base = robot.packs[0]
    if robot.floating == 0:
        hold_root(robot)
    elif mask_at(prescribed, 0) == 0:
        solve_base(robot, tau, it, has_base_rows)
        find_base_wrench(base)
    else:
        give_base_acceleration(robot, 1.0, (du[i], du[i + 1], du[i + 2]), (du[i + 3], du[i + 4], du[i + 5]))
        find_base_wrench(base)


@formula
def find_base_wrench(pack: Pack) -> None:
    """f_0 = I^A a + p^A, distributed over the lanes."""
    f, n = articulated_mul(*articulated_inertia(pack), pack.a, pack.alpha)
    pack.f, pack.n = add(pack.f, f), add(pack.n, n)


@formula
def resolve_pack(pack: Pack) -> None:
    """The acceleration or the torque of each joint, whichever is unknown."""
    a, alpha = pack.parent.a, pack.parent.alpha
    d, given = pack.d, pack.prescribed
    U_f, U_n = pack.U_f, pack.U_n
    bias = pack.bias_torque + dot(U_f, a) + dot(U_n, alpha)
    tau, qdd = pack.tau, pack.qdd
    qdd = given * qdd + (1.0 - given) * ((tau - bias) / (d + given))
    pack.tau = given * (d * qdd + bias) + (1.0 - given) * tau
    accelerate_pack(pack, qdd)
