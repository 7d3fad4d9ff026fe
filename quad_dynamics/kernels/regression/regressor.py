# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics as a linear function of the inertial parameters: tau = Y(q, u, du) pi.

Atkeson, An and Hollerbach, Estimation of inertial parameters of manipulator loads and links (1986). Row i of
the block of a body is the power, at unit speed of coordinate i, of the net wrench on the body, as a function
of its ten parameters. With the motion [s; t] of the body's origin, in the link's axes,

    s . (m a + alpha x h + w x (w x h)) + t . (h x a + J alpha + w x J w),   pi = [m, h, J].
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.record_types import place
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, routine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Number, Object, Vec3
from quad_dynamics.kernels.mixed_packs import move_tree, place_tree
from quad_dynamics.kernels.rnea import accelerate_tree
from quad_dynamics.kernels.spatial import add, cross, dot, matmul, rotate, scale, unrotate
from quad_dynamics.kernels.tree import (
    ZERO3,
    base_rotation,
    base_rows,
    body_in,
    origin_acceleration,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import BaseMotion, Body, BodyRows, Pack, Robot

FRICTION_COLUMNS = 1
ROTOR_COLUMNS = 2


def width(flags: Int, nb: Int, nj: Int) -> Int:
    """As `count_columns`, for the sizes of arrays."""
    friction, rotors = flags & FRICTION_COLUMNS, (flags & ROTOR_COLUMNS) // ROTOR_COLUMNS
    return 10 * nb + (2 * friction + rotors) * nj


@kernel(
    Robot,
    INT,
    OBJECT,
    OBJECT,
    OBJECT,
    INT,
    array(lambda states, flags, nv, nb, nj: states * nv * width(flags, nb, nj)),
)
def regressor(robot: Robot, n: Int, q: Object, u: Object, du: Object, flags: Int, Y: Object) -> Int:
    """Regressors of n states.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        du: (n, nv) accelerations.
        flags: FRICTION_COLUMNS appends nj columns of viscous and nj of Coulomb friction, ROTOR_COLUMNS nj of
            rotor inertia.
        Y: (n, nv, columns) out.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    if not good_vector(robot, n, nv, du):
        return 3
    columns = count_columns(robot, flags)
    q, u, du, Y = data(q), data(u), data(du), data(Y)
    for i in range(max(n, 1)):
        write_regressor(robot, q, i * nq, u, du, i * nv, flags, Y, i * nv * columns, columns)
    return 0


@routine
def count_columns(robot: Robot, flags: Int) -> Int:
    """Number of columns of Y."""
    nj = robot.nj
    columns = 10 * robot.nb
    if flags & FRICTION_COLUMNS:
        columns += 2 * nj
    if flags & ROTOR_COLUMNS:
        columns += nj
    return columns


@routine
def write_regressor(
    robot: Robot,
    q: Address,
    iq: Int,
    u: Address,
    du: Address,
    iu: Int,
    flags: Int,
    Y: Address,
    start: Int,
    columns: Int,
) -> None:
    """Write the regressor of one state to Y[start : start + nv columns]."""
    nv, skip = robot.nv, base_rows(robot)
    place_tree(robot, q, iq)
    move_tree(robot, u, iu)
    accelerate_tree(robot, True, du, iu, 0)
    fill_zero(Y, start, nv * columns)
    base = robot.packs[0]
    if skip > 0:
        store_base_motions(robot)
        prepare(base)
        for row in range(6):
            write_base_row(base, robot.base_motions[row])
            copy_row(body_in(base, 0), Y, start + row * columns)
    for k in range(1, robot.n_packs):
        pack = robot.packs[k]
        prepare(pack)
        for row in range(skip):
            write_base_row(pack, robot.base_motions[row])
            for lane in range(LANES):
                j = body_in(pack, lane).own_joint
                if j >= 0:
                    copy_row(body_in(pack, lane), Y, start + row * columns + 10 * (j + 1))
        if k < robot.n_aligned:
            write_aligned_rows(robot, pack, Y, start, columns)
        else:
            write_mixed_rows(robot, pack, Y, start, columns)
    column = 10 * robot.nb
    if flags & FRICTION_COLUMNS:
        write_friction_columns(robot, u, iu, Y, start + column, columns)
        column += 2 * robot.nj
    if flags & ROTOR_COLUMNS:
        write_rotor_columns(robot, Y, start + column, columns)


@routine
def write_aligned_rows(robot: Robot, pack: Pack, Y: Address, start: Int, columns: Int) -> None:
    """The rows of all joints that move the bodies of an aligned pack."""
    skip = base_rows(robot)
    base, above = robot.packs[0], pack
    while place(above) != place(base):
        write_joint_row(pack, above)
        for lane in range(LANES):
            j = body_in(pack, lane).own_joint
            if j >= 0:
                row = skip + body_in(above, lane).own_joint
                body = j + 1 if skip > 0 else j
                copy_row(body_in(pack, lane), Y, start + row * columns + 10 * body)
        above = above.parent


@routine
def write_mixed_rows(robot: Robot, pack: Pack, Y: Address, start: Int, columns: Int) -> None:
    """The same for a mixed pack: each row is computed for all its bodies, and written for those that move."""
    skip = base_rows(robot)
    for i in range(robot.nj):
        end = i + robot.joints[i].subtree
        if moves_any(pack, i, end):
            write_joint_row(pack, robot.joints[i].body)
            for lane in range(LANES):
                j = body_in(pack, lane).own_joint
                if i <= j < end:
                    body = j + 1 if skip > 0 else j
                    copy_row(body_in(pack, lane), Y, start + (skip + i) * columns + 10 * body)


@routine
def moves_any(pack: Pack, first: Int, end: Int) -> Bool:
    """Whether the joint of any body of a pack is one of first, ..., end - 1."""
    for lane in range(LANES):
        if first <= body_in(pack, lane).own_joint < end:
            return True
    return False


@formula
def prepare(pack: Pack) -> None:
    """Motion of the bodies of a pack in their links' axes: R_AL, a, w, alpha, and G = [alpha] + [w][w]."""
    R = matmul(pack.rotation, pack.link_rotation)
    w, alpha = unrotate(R, pack.w), unrotate(R, pack.alpha)
    ww = dot(w, w)
    pack.R_AL = R
    pack.a_L = unrotate(R, origin_acceleration(pack))
    pack.w_L = w
    pack.alpha_L = alpha
    pack.G_L = (
        w[0] * w[0] - ww, w[0] * w[1] - alpha[2], w[0] * w[2] + alpha[1],
        w[0] * w[1] + alpha[2], w[1] * w[1] - ww, w[1] * w[2] - alpha[0],
        w[0] * w[2] - alpha[1], w[1] * w[2] + alpha[0], w[2] * w[2] - ww,
    )  # fmt: skip


@formula
def power_row(pack: Pack, S_v: Vec3, S_w: Vec3) -> None:
    """Ten numbers for each body of a pack: power of its wrench at the motion [S_v; S_w], per parameter."""
    R, p = pack.R_AL, pack.position
    s, t = unrotate(R, add(S_v, cross(S_w, p))), unrotate(R, S_w)
    a, w, alpha = pack.a_L, pack.w_L, pack.alpha_L
    z = cross(t, w)
    mass, first_moment = dot(s, a), add(unrotate(pack.G_L, s), cross(a, t))
    inertia = (
        t[0] * alpha[0] + z[0] * w[0],
        t[0] * alpha[1] + t[1] * alpha[0] + z[0] * w[1] + z[1] * w[0],
        t[1] * alpha[1] + z[1] * w[1],
        t[0] * alpha[2] + t[2] * alpha[0] + z[0] * w[2] + z[2] * w[0],
        t[1] * alpha[2] + t[2] * alpha[1] + z[1] * w[2] + z[2] * w[1],
        t[2] * alpha[2] + z[2] * w[2],
    )
    pack.power = (mass, *first_moment, *inertia)


@formula
def write_joint_row(pack: Pack, above: BodyRows) -> None:
    """The row of the joints of the pack or the body `above`, for the bodies of another pack."""
    power_row(pack, above.axis_v, above.axis_w)


@formula
def store_base_motions(robot: Robot) -> None:
    """Motion of the base at unit speed of each coordinate: [1; 0] for v_WB_W, [0; R_WB] for w_WB_B."""
    R = base_rotation(robot)
    for i in range(3):
        linear, angular = robot.base_motions[i], robot.base_motions[3 + i]
        linear.v, linear.w = tuple(1.0 if k == i else 0.0 for k in range(3)), ZERO3
        angular.v, angular.w = ZERO3, (R[i], R[3 + i], R[6 + i])


@formula
def write_base_row(pack: Pack, motion: BaseMotion) -> None:
    """The row of one coordinate of the base, for the bodies of a pack."""
    power_row(pack, motion.v, motion.w)


@formula
def copy_row(body: Body, Y: Address, to: Int) -> None:
    """Copy the ten numbers of one body to Y[to : to + 10]."""
    for i, x in enumerate(body.power):
        Y[to + i] = x


@routine
def write_friction_columns(robot: Robot, u: Address, iu: Int, Y: Address, start: Int, columns: Int) -> None:
    """qd in the columns of viscous friction, its sign in those of Coulomb friction."""
    nj, skip = robot.nj, base_rows(robot)
    for j in range(nj):
        qd = u[iu + skip + j]
        at = start + (skip + j) * columns + j
        Y[at] = qd
        Y[at + nj] = 1.0 if qd > 0.0 else (-1.0 if qd < 0.0 else 0.0)


@routine
def write_rotor_columns(robot: Robot, Y: Address, start: Int, columns: Int) -> None:
    """Effect of a rotor of unit axial inertia: torque at its joint, moment on the parent."""
    skip = base_rows(robot)
    for k in range(1, robot.n_aligned):
        turn_unit_rotors(robot.packs[k], robot.packs[k].parent)
    for i in range(robot.n_mixed):
        turn_unit_rotors(robot.mixed[i].body, robot.mixed[i].carrier)
    for j in range(robot.nj):
        body = robot.joints[j].body
        Y[start + (skip + j) * columns + j] = body.unit_rotor_tau
        i = robot.joints[j].parent
        while i >= 0:
            Y[start + (skip + i) * columns + j] = project_moment(robot.joints[i].body, body)
            i = robot.joints[i].parent
        if skip > 0:
            write_base_moment(robot, body, Y, start + j, columns)


@formula
def turn_unit_rotors(bodies: BodyRows, parents: BodyRows) -> None:
    """Joint torque and moment on the parent for rotors of unit axial inertia, of a pack or of one body."""
    gear = bodies.rotor_gear
    r = scale(rotate(parents.rotation, bodies.rotor_axis), gear)
    qd, qdd = bodies.qd, bodies.qdd
    bodies.unit_rotor_tau = gear * gear * qdd + dot(r, parents.alpha)
    bodies.unit_rotor_n = add(scale(r, qdd), cross(parents.w, scale(r, qd)))


@formula
def project_moment(above: Body, body: Body) -> Number:
    """Power of the moment of a body's rotor at unit speed of a joint above."""
    return dot(above.axis_w, body.unit_rotor_n)


@formula
def write_base_moment(robot: Robot, body: Body, Y: Address, column: Int, columns: Int) -> None:
    """The moment on the base, in body axes, in rows 3 to 5."""
    n = unrotate(base_rotation(robot), body.unit_rotor_n)
    for i in range(3):
        Y[column + (3 + i) * columns] = n[i]
