# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics by the recursive Newton-Euler algorithm.

Featherstone, Rigid Body Dynamics Algorithms (2008), table 5.1, in one frame for all bodies; geared rotors
after section 9.6. Outward pass: velocities, accelerations, and the net wrench on each body. Inward pass: the
wrenches are summed towards the base, and the torque of each joint is the component along its motion.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, optional_data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, lane_sum, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Object, Vec3
from quad_dynamics.kernels.argument_kinds import LINKS, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
from quad_dynamics.kernels.mixed_packs import accelerate_mixed, move_tree, place_tree
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    rotate,
    scale,
    sub,
    sym_mul,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    ZERO3,
    accelerate_pack,
    base_rotation,
    base_rows,
    friction,
    origin_acceleration,
    pick,
    stop_bodies,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import BodyRows, Pack, Robot

FRICTION = 1
NO_GRAVITY = 2
AT_REST = 4
NO_ACCELERATION = 8


@kernel(Robot, INT, OBJECT, OBJECT, OBJECT, LINKS, OPTIONAL_ITEMS, INT, VECTORS)
def inverse_dynamics(
    robot: Robot,
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
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities; not read with AT_REST.
        du: (n, nv) accelerations; not read with NO_ACCELERATION.
        links, wrenches: external wrenches, see `external`.
        flags: sum of FRICTION, which adds joint friction, NO_GRAVITY, AT_REST and NO_ACCELERATION.
        tau: (n, nv) out.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    moves, accelerates = flags & AT_REST == 0, flags & NO_ACCELERATION == 0
    if moves and not good_vector(robot, n, nv, u):
        return 2
    if accelerates and not good_vector(robot, n, nv, du):
        return 3
    if not good_wrenches(robot, n, links, wrenches):
        return 4
    q, u, du, tau = data(q), optional_data(robot, u), optional_data(robot, du), data(tau)
    for i in range(max(n, 1)):
        place_tree(robot, q, i * nq)
        if moves:
            move_tree(robot, u, i * nv)
        else:
            stop_bodies(robot)
        accelerate_tree(robot, accelerates, du, i * nv, flags)
        store_wrenches(robot)
        subtract_wrenches(robot, links, wrenches, i)
        sum_mixed(robot)
        sum_inward(robot)
        write_forces(robot, tau, i * nv)
        if flags & FRICTION and moves:
            for j in range(robot.nj):
                row = i * nv + base_rows(robot) + j
                tau[row] += friction(robot, j, u[row])
    return 0


@routine
def accelerate_bodies(robot: Robot, given: Bool, du: Address, i: Int, flags: Int) -> None:
    """Accelerations of all bodies at du[i : i + nv], or at zero; gravity accelerates the base upward."""
    weight = 0.0 if flags & NO_GRAVITY else 1.0
    if given and robot.floating != 0:
        accelerate_base(robot, weight, (du[i], du[i + 1], du[i + 2]), (du[i + 3], du[i + 4], du[i + 5]))
    else:
        accelerate_base(robot, weight, ZERO3, ZERO3)
    for k in range(1, robot.n_aligned):
        pack = robot.packs[k]
        if given:
            accelerate_pack(pack, pick(pack, du, i + base_rows(robot)))
        else:
            accelerate_pack(pack, 0.0)


@routine
def accelerate_tree(robot: Robot, given: Bool, du: Address, i: Int, flags: Int) -> None:
    """As `accelerate_bodies`, for robots that may have mixed packs."""
    accelerate_bodies(robot, given, du, i, flags)
    accelerate_mixed(robot, given, du, i)


@formula
def accelerate_base(robot: Robot, weight: Number, a: Vec3, alpha_B: Vec3) -> None:
    """Acceleration of the base minus gravity: [a - g; R_WB alpha_B]."""
    base = robot.packs[0]
    base.a = sub(a, scale(robot.gravity, weight))
    base.alpha = rotate(base_rotation(robot), alpha_B)


@routine
def store_wrenches(robot: Robot) -> None:
    """The net wrench on each body."""
    for k in range(robot.n_packs):
        store_wrench(robot.packs[k])


@formula
def store_wrench(pack: Pack) -> None:
    """Net wrench on the bodies of a pack, about the origin of A, from their acceleration.

    Newton-Euler equations in the body frame K, where the inertia is constant.
    """
    R, p = pack.rotation, pack.position
    a_K = unrotate(R, origin_acceleration(pack))
    w_K, alpha_K = unrotate(R, pack.w), unrotate(R, pack.alpha)
    m, h, J = pack.mass, pack.first_moment, pack.inertia
    f_K = add(scale(a_K, m), add(cross(alpha_K, h), cross(w_K, cross(w_K, h))))
    n_K = add(cross(h, a_K), add(sym_mul(J, alpha_K), cross(w_K, sym_mul(J, w_K))))
    f = rotate(R, f_K)
    pack.f, pack.n = f, add(rotate(R, n_K), cross(p, f))


@routine
def sum_inward(robot: Robot) -> None:
    """Sum the wrenches towards the base, and compute the joint torques."""
    for k in range(robot.n_aligned - 1, 0, -1):
        sum_pack(robot.packs[k])
        if robot.has_rotors != 0:
            turn_rotors(robot.packs[k])


@routine
def sum_mixed(robot: Robot) -> None:
    """The same for the bodies of mixed packs; call before `sum_inward`, as some parents are in others."""
    for i in range(robot.n_mixed - 1, -1, -1):
        one = robot.mixed[i]
        pass_wrench(one.body, one.carrier)
        if robot.has_rotors != 0:
            pass_rotor_moment(one.body, one.carrier)


@formula
def sum_pack(pack: Pack) -> None:
    """tau = S . F; F_parent += F."""
    pass_wrench(pack, pack.parent)


@formula
def pass_wrench(bodies: BodyRows, parents: BodyRows) -> None:
    """The same, for a pack or for one body."""
    f, n = bodies.f, bodies.n
    bodies.tau = dot(bodies.axis_v, f) + dot(bodies.axis_w, n)
    parents.f, parents.n = add(parents.f, f), add(parents.n, n)


@formula
def turn_rotors(pack: Pack) -> None:
    """Add the joint torques and the moments on the parents due to the geared rotors.

    A rotor has the angular momentum J gear qd along its axis r in addition to that of a part fixed to the
    parent; the latter is included in the parent's inertia.
    """
    pass_rotor_moment(pack, pack.parent)


@formula
def pass_rotor_moment(bodies: BodyRows, parents: BodyRows) -> None:
    """The same, for a pack or for one body."""
    r = rotate(parents.rotation, bodies.rotor_axis)
    k, qd, qdd = bodies.rotor_coupling, bodies.qd, bodies.qdd
    tau = bodies.joint_inertia * qdd + k * dot(r, parents.alpha)
    bodies.tau = bodies.tau + tau
    n = scale(add(scale(r, qdd), cross(parents.w, scale(r, qd))), k)
    parents.n = add(parents.n, n)


@routine
def write_forces(robot: Robot, tau: Address, i: Int) -> None:
    """Write tau[i : i + nv]: the base's wrench (moment in body axes), then the joint torques."""
    if robot.floating != 0:
        write_base_wrench(robot, tau, i)
    # In local variables; otherwise they would be reloaded after every store.
    nj, joints, start = robot.nj, robot.joints, i + base_rows(robot)
    for j in range(nj):
        tau[start + j] = joints[j].body.tau


@formula
def write_base_wrench(robot: Robot, tau: Address, i: Int) -> None:
    """Sum the base's wrench over the lanes."""
    f, n = robot.packs[0].f, robot.packs[0].n
    n_B = unrotate(base_rotation(robot), tuple(lane_sum(x) for x in n))
    for j in range(3):
        tau[i + j] = lane_sum(f[j])
        tau[i + 3 + j] = n_B[j]
