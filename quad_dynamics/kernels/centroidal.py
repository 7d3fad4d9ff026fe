# SPDX-License-Identifier: Apache-2.0
"""Centre of mass, centroidal momentum and energy.

Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot (2013). The column of joint j is the momentum
of its subtree at unit speed, F_j of the composite-rigid-body algorithm, shifted to the centre of mass.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, lane_sum, routine
from quad_dynamics.compiler.types import Address, Int, Number, Object, Vec3
from quad_dynamics.kernels.coriolis import move_all
from quad_dynamics.kernels.crba import composite_inertias, sum_base_inertia
from quad_dynamics.kernels.rnea import NO_GRAVITY, accelerate_bodies, store_wrenches, sum_inward
from quad_dynamics.kernels.spatial import (
    cross,
    dot,
    inertia_mul,
    rotate,
    scale,
    sub,
    sym_mul,
)
from quad_dynamics.kernels.tree import (
    base_rotation,
    base_rows,
    move_bodies,
    place_bodies,
    rigid_inertia,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Body, Pack, Robot


@kernel(Robot, INT, OBJECT, array(lambda states: 3 * states), array(lambda states, nv: 6 * states * nv))
def centroidal_map(robot: Robot, n: Int, q: Object, com: Object, A_G: Object) -> Int:
    """Centre of mass and centroidal momentum matrix of n configurations.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        com: (n, 3) out, p_WG.
        A_G: (n, 6, nv) out, [linear; angular] momentum about the centre of mass = A_G u, world axes.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    q, com, A_G = data(q), data(com), data(A_G)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        composite_inertias(robot)
        write_com(robot, q, i * nq, com, 3 * i)
        write_momentum_matrix(robot, A_G, i * 6 * nv)
    return 0


@kernel(Robot, INT, OBJECT, array(lambda nv: 6 * nv), array(lambda states, nv: 3 * states * nv))
def com_jacobian(robot: Robot, n: Int, q: Object, work: Object, J: Object) -> Int:
    """Jacobians of the centre of mass in n configurations.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        work: (6, nv) workspace.
        J: (n, 3, nv) out.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    q, work, J = data(q), data(work), data(J)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        composite_inertias(robot)
        write_momentum_matrix(robot, work, 0)
        write_com_jacobian(robot, work, 0, J, i * 3 * nv)
    return 0


@kernel(Robot, INT, OBJECT, OBJECT, array(lambda nv: 6 * nv), array(lambda states: 6 * states))
def centroidal_momentum(robot: Robot, n: Int, q: Object, u: Object, work: Object, momentum: Object) -> Int:
    """Centroidal momentum A_G u of n states.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        work: (6, nv) workspace.
        momentum: (n, 6) out.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    q, u, work, momentum = data(q), data(u), data(work), data(momentum)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        composite_inertias(robot)
        write_momentum_matrix(robot, work, 0)
        for row in range(6):
            total = 0.0
            for k in range(nv):
                total += work[row * nv + k] * u[i * nv + k]
            momentum[6 * i + row] = total
    return 0


@routine
def write_com(robot: Robot, q: Address, iq: Int, com: Address, at: Int) -> None:
    """Write p_WG to com[at : at + 3], at the configuration q[iq : iq + nq]."""
    c = com_from_base(robot)
    for k in range(3):
        com[at + k] = c[k]
    if robot.floating != 0:
        for k in range(3):
            com[at + k] += q[iq + k]


@routine
def write_momentum_matrix(robot: Robot, A_G: Address, at: Int) -> None:
    """Write A_G[at : at + 6 nv], after `composite_inertias`."""
    nv, skip, c = robot.nv, base_rows(robot), com_from_base(robot)
    for j in range(robot.nj):
        write_column(robot.joints[j].body, c, A_G, at + skip + j, nv)
    if skip > 0:
        write_base_columns(robot, c, A_G, at, nv)


@routine
def write_com_jacobian(robot: Robot, A_G: Address, at: Int, J: Address, to: Int) -> None:
    """Write J[to : to + 3 nv]: the linear rows of A_G[at], for unit mass."""
    per_mass = 1.0 / total_mass(robot)
    for k in range(3 * robot.nv):
        J[to + k] = A_G[at + k] * per_mass


@formula
def total_mass(robot: Robot) -> Number:
    """Mass of the whole robot."""
    return sum_base_inertia(robot)[0]


@formula
def com_from_base(robot: Robot) -> Vec3:
    """Position of the centre of mass relative to the base's origin, in world axes."""
    m, h, _ = sum_base_inertia(robot)
    return scale(h, 1.0 / m)


@formula
def write_column(body: Body, c: Vec3, A_G: Address, column: Int, nv: Int) -> None:
    """Momentum of a joint's subtree about the centre of mass."""
    f, n = body.momentum_f, body.momentum_n
    for k, x in enumerate(f + sub(n, cross(c, f))):
        A_G[column + k * nv] = x


@formula
def write_base_columns(robot: Robot, c: Vec3, A_G: Address, start: Int, nv: Int) -> None:
    """Momentum of the whole robot when it moves as one body with the base."""
    m, h, J = sum_base_inertia(robot)
    R = base_rotation(robot)
    for i in range(3):
        r = (R[i], R[3 + i], R[6 + i])
        f = cross(r, h)
        n = sub(sym_mul(J, r), cross(c, f))
        for k in range(3):
            A_G[start + k * nv + i] = m if k == i else 0.0
            A_G[start + (3 + k) * nv + i] = 0.0
            A_G[start + k * nv + 3 + i] = f[k]
            A_G[start + (3 + k) * nv + 3 + i] = n[k]


@kernel(Robot, INT, OBJECT, OBJECT, array(lambda states: 6 * states))
def centroidal_bias(robot: Robot, n: Int, q: Object, u: Object, bias: Object) -> Int:
    """Rate of change of the centroidal momentum of n states at du = 0; bias: (n, 6) out."""
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    q, u, bias = data(q), data(u), data(bias)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        composite_inertias(robot)
        move_bodies(robot, u, i * nv)
        accelerate_bodies(robot, False, u, 0, NO_GRAVITY)
        store_wrenches(robot)
        sum_inward(robot)
        write_bias(robot, bias, 6 * i)
    return 0


@formula
def write_bias(robot: Robot, bias: Address, start: Int) -> None:
    """The wrench on the whole robot, about the centre of mass."""
    m, h, _ = sum_base_inertia(robot)
    f = tuple(lane_sum(x) for x in robot.packs[0].f)
    n = tuple(lane_sum(x) for x in robot.packs[0].n)
    for k, x in enumerate(f + sub(n, cross(scale(h, 1.0 / m), f))):
        bias[start + k] = x


@kernel(Robot, INT, OBJECT, OBJECT, array(lambda states: 2 * states))
def energy(robot: Robot, n: Int, q: Object, u: Object, out: Object) -> Int:
    """Kinetic and potential energy of n states; out: (n, 2)."""
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    q, u, out = data(q), data(u), data(out)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        move_all(robot, u, i * nv)
        out[2 * i] = kinetic_energy(robot)
        height = 0.0
        mass = 0.0
        for k in range(robot.n_packs):
            m, weight = pack_weight(robot.packs[k], robot.gravity)
            mass += m
            height += weight
        if robot.floating != 0:
            for k in range(3):
                height += mass * robot.gravity[k] * q[i * nq + k]
        out[2 * i + 1] = -height
    return 0


@routine
def kinetic_energy(robot: Robot) -> Number:
    """Kinetic energy, summed over bodies and rotors."""
    total = pack_energy(robot.packs[0])
    for k in range(1, robot.n_packs):
        total += pack_energy(robot.packs[k]) + rotor_energy(robot.packs[k])
    return total


@formula
def pack_energy(pack: Pack) -> Number:
    """v . (I v) / 2, summed over the lanes."""
    v, w = pack.v, pack.w
    l, k = inertia_mul(*rigid_inertia(pack), v, w)
    return lane_sum(dot(l, v) + dot(k, w)) * 0.5


@formula
def rotor_energy(pack: Pack) -> Number:
    """gear^2 J qd^2 / 2 + gear J qd (r . w), summed over the lanes; empty lanes contribute zero."""
    r = rotate(pack.parent.rotation, pack.rotor_axis)
    qd = pack.qd * (pack.revolute + pack.prismatic)
    own = pack.joint_inertia * qd * qd * 0.5
    return lane_sum(own + pack.rotor_coupling * qd * dot(r, pack.parent.w))


@formula
def pack_weight(pack: Pack, g: Vec3) -> tuple[Number, Number]:
    """Mass, and mass times gravity times position, summed over the lanes."""
    m, h, _ = rigid_inertia(pack)
    return lane_sum(m), lane_sum(dot(h, g))
