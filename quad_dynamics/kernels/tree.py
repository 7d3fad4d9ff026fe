# SPDX-License-Identifier: Apache-2.0
"""Kinematics that every kernel starts with: reads a state, and computes poses and velocities of the bodies.

Everything is computed in one frame A for all bodies: world axes, with the origin at the base (at the root of
a fixed-base robot). No transforms between bodies are needed: inertias and wrenches of the children are simply
added to the parent's. The base as origin keeps the numbers small wherever in the world the robot is.

The dynamics do not depend on a constant velocity of the observer, so the observer moves with the base's
origin: the base has angular velocity only, and its spatial acceleration is the plain acceleration du[:3].
"""

from __future__ import annotations

import math
from typing import cast

from quad_dynamics.compiler.trace import formula, join, routine
from quad_dynamics.compiler.types import Address, Int, Lanes, Mat3, Number, Sym3, Vec3
from quad_dynamics.kernels.sincos import SINCOS_LIMIT, sincos
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    inertia_mul,
    matmul,
    quat_to_rot,
    rotate,
    scale,
    sym_rotate,
    sym_sum,
)
from quad_dynamics.memory.layout import Body, BodyRows, LinkFrame, Pack, Robot

ZERO3 = (0.0, 0.0, 0.0)

# ---------------------------------------------------------------- access to bodies


@formula
def base_rows(robot: Robot) -> Int:
    """Number of base rows in u: 6 with a floating base, else 0."""
    return robot.nv - robot.nj


@formula
def body_at(robot: Robot, place: Int) -> Body:
    """The body at an offset in the memory of the robot."""
    return Body(robot.memory, place)


@formula
def link_frame(words: Address) -> LinkFrame:
    """A frame, from its array."""
    return LinkFrame(words, 0)


@routine
def clear_torques(robot: Robot) -> None:
    """Set the torques of all lanes to zero, before joints get theirs; empty lanes keep zero."""
    for k in range(1, robot.n_packs):
        clear_torque(robot.packs[k])


@formula
def clear_torque(pack: Pack) -> None:
    """Set the torques of the lanes of a pack to zero."""
    pack.tau = 0.0


@formula
def body_of(robot: Robot, frame: LinkFrame) -> Body:
    """The body that a frame is fixed to."""
    return body_at(robot, frame.place)


@formula
def body_in(pack: Pack, lane: Int) -> Body:
    """The body in a lane of a pack."""
    return Body(pack.memory, pack.at + lane)


@formula
def base_body(robot: Robot) -> Body:
    """The base, in the first lane of its pack."""
    return Body(robot.memory, robot.packs[0].at)


@formula
def base_rotation(robot: Robot) -> Mat3:
    """R_WB (9) as plain floats."""
    return base_body(robot).rotation


@formula
def pick(pack: Pack, x: Address, start: Int) -> Lanes:
    """x[start + joint] for each body of a pack; empty lanes get the value of joint 0."""
    return join(*[x[start + joint] for joint in cast('tuple[Int, ...]', pack.joint)])


# ---------------------------------------------------------------- positions


@routine
def place_bodies(robot: Robot, q: Address, iq: Int) -> None:
    """Compute the poses of all bodies at the configuration q[iq : iq + nq]."""
    if robot.floating != 0:
        place_base(robot, q[iq + 3], q[iq + 4], q[iq + 5], q[iq + 6])
    iq += robot.nq - robot.nj
    turn_joints(robot, q, iq)
    for k in range(1, robot.n_aligned):
        place_pack(robot.packs[k], q, iq)


@formula
def clear_angle(pack: Pack) -> None:
    """Set sine and cosine of the lanes of a pack to zero; empty lanes keep zero."""
    pack.sine = 0.0
    pack.cosine = 0.0


@routine
def turn_joints(robot: Robot, q: Address, iq: Int) -> None:
    """Sine and cosine of every joint angle. The angle of a prismatic joint is zero."""
    far = False
    for j in range(robot.nj):
        far |= abs(q[iq + j]) >= SINCOS_LIMIT
    if far:
        for k in range(1, robot.n_packs):
            clear_angle(robot.packs[k])
        for j in range(robot.nj):
            body = robot.joints[j].body
            body.sine = math.sin(q[iq + j] * body.revolute)
            body.cosine = math.cos(q[iq + j] * body.revolute)
    else:
        for k in range(1, robot.n_packs):
            turn_pack(robot.packs[k], q, iq)


@formula
def turn_pack(pack: Pack, q: Address, iq: Int) -> None:
    """Sine and cosine of the joint angles of a pack."""
    pack.sine, pack.cosine = sincos(pick(pack, q, iq) * pack.revolute)


@formula
def place_base(robot: Robot, x: Number, y: Number, z: Number, w: Number) -> None:
    """Set R_WB from the base's quaternion, in all lanes."""
    robot.packs[0].rotation = quat_to_rot(x, y, z, w)


@formula
def place_pack(pack: Pack, q: Address, iq: Int) -> None:
    """Pose R_AK, p_AK and joint motion S of the bodies of a pack, from those of their parents."""
    parent = pack.parent
    R_AP = parent.rotation
    E = matmul(R_AP, pack.tree_rotation)
    s, c = pack.sine, pack.cosine
    R = (
        E[0] * c + E[1] * s, E[1] * c - E[0] * s, E[2],
        E[3] * c + E[4] * s, E[4] * c - E[3] * s, E[5],
        E[6] * c + E[7] * s, E[7] * c - E[6] * s, E[8],
    )  # fmt: skip
    z = (E[2], E[5], E[8])
    revolute, prismatic = pack.revolute, pack.prismatic
    p = add(parent.position, rotate(R_AP, pack.tree_position))
    p = add(p, scale(z, prismatic * pick(pack, q, iq)))
    S_w = scale(z, revolute)
    S_v = add(cross(p, S_w), scale(z, prismatic))
    pack.rotation = R
    pack.position = p
    pack.axis_v, pack.axis_w = S_v, S_w


@formula
def position_of_point(body: Body, p_K: Vec3) -> Vec3:
    """Position in A of a point given in the frame K of a body."""
    return add(body.position, rotate(body.rotation, p_K))


# ---------------------------------------------------------------- velocities


@routine
def move_bodies(robot: Robot, u: Address, iu: Int) -> None:
    """Compute the velocities of all bodies at the velocity u[iu : iu + nv]."""
    if robot.floating != 0:
        move_base(robot, u[iu + 3], u[iu + 4], u[iu + 5])
    for k in range(1, robot.n_aligned):
        move_pack(robot.packs[k], pick(robot.packs[k], u, iu + base_rows(robot)))


@formula
def move_base(robot: Robot, w_x: Number, w_y: Number, w_z: Number) -> None:
    """Velocity of the base relative to an observer that moves with its origin: [0; w_WB_W]."""
    base = robot.packs[0]
    base.v, base.w = ZERO3, rotate(base_rotation(robot), (w_x, w_y, w_z))


@formula
def move_pack(pack: Pack, qd: Lanes) -> None:
    """Velocity v = v_parent + S qd and bias acceleration c = v x S qd of the bodies of a pack."""
    pack.qd = qd
    S_v, S_w = scale(pack.axis_v, qd), scale(pack.axis_w, qd)
    v = add(pack.parent.v, S_v)
    w = add(pack.parent.w, S_w)
    pack.v, pack.w = v, w
    pack.bias_v = add(cross(w, S_v), cross(v, S_w))
    pack.bias_w = cross(w, S_w)


@routine
def stop_bodies(robot: Robot) -> None:
    """Set the velocities of all bodies to zero."""
    for k in range(robot.n_packs):
        stop_pack(robot.packs[k])


@formula
def stop_pack(pack: Pack) -> None:
    """Set the velocities of the bodies of a pack to zero."""
    pack.qd = 0.0
    pack.v, pack.w = ZERO3, ZERO3
    pack.bias_v, pack.bias_w = ZERO3, ZERO3


# ---------------------------------------------------------------- accelerations


@formula
def accelerate_pack(pack: Pack, qdd: Number) -> None:
    """a = a_parent + c + S qdd of the bodies of a pack."""
    pack.qdd = qdd
    a = add(pack.parent.a, pack.bias_v)
    alpha = add(pack.parent.alpha, pack.bias_w)
    pack.a = add(a, scale(pack.axis_v, qdd))
    pack.alpha = add(alpha, scale(pack.axis_w, qdd))


@formula
def origin_acceleration(pack: Pack) -> Vec3:
    """Classical acceleration of the origins of a pack's bodies: a + alpha x p + w x (v + w x p)."""
    p, v, w = pack.position, pack.v, pack.w
    a = add(pack.a, cross(pack.alpha, p))
    return add(a, cross(w, add(v, cross(w, p))))


# ---------------------------------------------------------------- inertias


@formula
def rigid_inertia(pack: Pack) -> tuple[Number, Vec3, Sym3]:
    """Mass, first moment (3) and inertia (6) of the bodies of a pack, about the origin of A in its axes."""
    m = pack.mass
    R = pack.rotation
    p = pack.position
    h = rotate(R, pack.first_moment)
    J = sym_rotate(R, pack.inertia)
    # parallel axes: J_A = J + (2 h.p + m p.p) 1 - h p^T - p h^T - m p p^T = J + (g.p + h.p) 1 - g p^T - p h^T
    g = add(h, scale(p, m))
    trace = dot(g, p) + dot(h, p)
    J_A = (
        J[0] + trace - g[0] * p[0] - p[0] * h[0],
        J[1] - g[0] * p[1] - p[0] * h[1],
        J[2] + trace - g[1] * p[1] - p[1] * h[1],
        J[3] - g[0] * p[2] - p[0] * h[2],
        J[4] - g[1] * p[2] - p[1] * h[2],
        J[5] + trace - g[2] * p[2] - p[2] * h[2],
    )
    return m, g, J_A


@formula
def store_own_inertia(pack: Pack) -> None:
    """The inertia of the single bodies of a pack, stored in place of the composite inertia."""
    pack.composite_m, pack.composite_h, pack.composite_J = rigid_inertia(pack)


@formula
def add_composite(pack: BodyRows, m: Number, h: Vec3, J: Sym3) -> None:
    """Add a rigid inertia to the composite inertia of a pack, or of a body."""
    pack.composite_m = pack.composite_m + m
    pack.composite_h = add(pack.composite_h, h)
    pack.composite_J = sym_sum(pack.composite_J, J)


@formula
def composite_inertia(pack: BodyRows) -> tuple[Number, Vec3, Sym3]:
    """Composite mass, first moment and inertia of the bodies of a pack, or of one body."""
    return pack.composite_m, pack.composite_h, pack.composite_J


@formula
def velocity_wrench(m: Number, h: Vec3, J: Sym3, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
    """v x* (I v): the wrench on a body at constant velocity [v; w]."""
    l, k = inertia_mul(m, h, J, v, w)
    return cross(w, l), add(cross(w, k), cross(v, l))


# ---------------------------------------------------------------- friction


@routine
def friction(robot: Robot, j: Int, qd: Number) -> Number:
    """Friction torque of joint j at speed qd: viscous and Coulomb."""
    joint = robot.joints[j]
    sign = 1.0 if qd > 0.0 else (-1.0 if qd < 0.0 else 0.0)
    return joint.viscous * qd + joint.coulomb * sign
