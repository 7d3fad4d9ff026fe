# SPDX-License-Identifier: Apache-2.0
"""What every kernel starts with: read a state into the arena, and place and move the bodies.

Everything is computed in one frame A for all bodies: world axes, with the origin at the base (at the root of
a fixed-base robot). Going from body to body then needs no transform: inertias and wrenches of the children
are just added to the parent's. The base as origin keeps the numbers small wherever in the world the robot is.

Dynamics does not depend on a constant velocity of the observer, so the observer moves with the base's
origin: the base has angular velocity only, and its spatial acceleration is the plain acceleration du[:3].
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import formula, join, load, load_int, routine, store
from quad_dynamics.compiler.types import LANES, Address, Int, Lanes, Mat3, Number, Sym3, Vec3
from quad_dynamics.kernels.sincos import SINCOS_LIMIT, sincos
from quad_dynamics.kernels.spatial import (
    add,
    add_to3,
    add_to6,
    cross,
    dot,
    inertia_mul,
    load3,
    load6,
    load9,
    matmul,
    quat_to_rot,
    read3,
    read9,
    rotate,
    scale,
    store3,
    store6,
    store9,
    sym_rotate,
)
from quad_dynamics.model import layout as L

# ---------------------------------------------------------------- addresses


@formula
def pack_at(A: Address, k: Int) -> Int:
    """Address of pack k."""
    return load_int(A, L.FIRST_PACK) + k * L.PACK_WORDS


@formula
def parent_of(A: Address, k: Int) -> Int:
    """Address of the pack that holds the parents of pack k."""
    return load_int(A, pack_at(A, k) + L.PARENT)


@formula
def joint_entry(A: Address, j: Int) -> Int:
    """Address of joint j in the joint table."""
    return load_int(A, L.JOINTS) + j * L.JOINT_WORDS


@formula
def lane_of(A: Address, j: Int) -> Int:
    """Address of row 0 of the lane in which the body of joint j sits."""
    return load_int(A, joint_entry(A, j) + L.J_LANE)


@formula
def base_rows(A: Address) -> Int:
    """Number of base rows in u: 6 with a floating base, else 0."""
    return load_int(A, L.NV) - load_int(A, L.NJ)


@formula
def base_rotation(A: Address) -> Mat3:
    """R_WB (9) as plain floats."""
    return read9(A, pack_at(A, 0) + L.ROT)


# ---------------------------------------------------------------- reading and writing


@formula
def take(A: Address, at: Int, x: Address, start: Int) -> Lanes:
    """x[start + joint] for each body of a pack; empty lanes get that of joint 0."""
    return join(*[x[start + load_int(A, at + L.JOINT + lane)] for lane in range(LANES)])


@routine
def clear_row(A: Address, row: Int) -> None:
    """Zero in a row of all bodies, before numbers of joints are written to it: in empty lanes it stays."""
    for k in range(1, load_int(A, L.PACKS)):
        store(A, pack_at(A, k) + row, 0.0)


@routine
def gather(A: Address, row: Int, x: Address, start: Int) -> None:
    """Copy a row's number of each joint to x[start], x[start + 1], ..."""
    # In local variables, or they would be read again after every number that is written.
    nj, table = load_int(A, L.NJ), load_int(A, L.JOINTS) + L.J_LANE
    for j in range(nj):
        x[start + j] = A[load_int(A, table + j * L.JOINT_WORDS) + row]


# ---------------------------------------------------------------- positions


@routine
def place_bodies(A: Address, q: Address, iq: Int) -> None:
    """Place all bodies at the configuration q[iq : iq + nq]."""
    if load_int(A, L.FLOATING) != 0:
        place_base(A, pack_at(A, 0), q[iq + 3], q[iq + 4], q[iq + 5], q[iq + 6])
    iq += load_int(A, L.NQ) - load_int(A, L.NJ)
    turn_joints(A, q, iq)
    for k in range(1, load_int(A, L.PACKS)):
        place_pack(A, pack_at(A, k), parent_of(A, k), q, iq)


@routine
def turn_joints(A: Address, q: Address, iq: Int) -> None:
    """Sine and cosine of every joint angle. A prismatic joint has the angle zero."""
    far = False
    for j in range(load_int(A, L.NJ)):
        far |= abs(q[iq + j]) >= SINCOS_LIMIT
    if far:
        clear_row(A, L.SIN)
        clear_row(A, L.COS)
        for j in range(load_int(A, L.NJ)):
            lane = lane_of(A, j)
            A[lane + L.SIN] = math.sin(q[iq + j] * A[lane + L.REVOLUTE])
            A[lane + L.COS] = math.cos(q[iq + j] * A[lane + L.REVOLUTE])
    else:
        for k in range(1, load_int(A, L.PACKS)):
            turn_pack(A, pack_at(A, k), q, iq)


@formula
def turn_pack(A: Address, at: Int, q: Address, iq: Int) -> None:
    """Sine and cosine of the joint angles of a pack."""
    s, c = sincos(take(A, at, q, iq) * load(A, at + L.REVOLUTE))
    store(A, at + L.SIN, s)
    store(A, at + L.COS, c)


@formula
def place_base(A: Address, at: Int, x: Number, y: Number, z: Number, w: Number) -> None:
    """Set R_WB from the base's quaternion, in all lanes."""
    store9(A, at + L.ROT, quat_to_rot(x, y, z, w))


@formula
def place_pack(A: Address, at: Int, up: Int, q: Address, iq: Int) -> None:
    """Pose R_AK, p_AK and joint motion S of the bodies of the pack at `at`, from the parents' at `up`."""
    R_AP = load9(A, up + L.ROT)
    E = matmul(R_AP, load9(A, at + L.TREE_R))
    s, c = load(A, at + L.SIN), load(A, at + L.COS)
    R = (
        E[0] * c + E[1] * s, E[1] * c - E[0] * s, E[2],
        E[3] * c + E[4] * s, E[4] * c - E[3] * s, E[5],
        E[6] * c + E[7] * s, E[7] * c - E[6] * s, E[8],
    )  # fmt: skip
    z = (E[2], E[5], E[8])
    revolute, prismatic = load(A, at + L.REVOLUTE), load(A, at + L.PRISMATIC)
    p = add(load3(A, up + L.POS), rotate(R_AP, load3(A, at + L.TREE_P)))
    p = add(p, scale(z, prismatic * take(A, at, q, iq)))
    S_w = scale(z, revolute)
    S_v = add(cross(p, S_w), scale(z, prismatic))
    store9(A, at + L.ROT, R)
    store3(A, at + L.POS, p)
    store6(A, at + L.AXIS_V, S_v + S_w)


@formula
def point_of_body(A: Address, lane: Int, p_K: Vec3) -> Vec3:
    """Position in A of a point that is given in the frame K of the body in a lane."""
    return add(read3(A, lane + L.POS), rotate(read9(A, lane + L.ROT), p_K))


# ---------------------------------------------------------------- velocities


@routine
def move_bodies(A: Address, u: Address, iu: Int) -> None:
    """Move all bodies at the velocity u[iu : iu + nv]."""
    if load_int(A, L.FLOATING) != 0:
        move_base(A, pack_at(A, 0), u[iu + 3], u[iu + 4], u[iu + 5])
    for k in range(1, load_int(A, L.PACKS)):
        move_pack(A, pack_at(A, k), parent_of(A, k), take(A, pack_at(A, k), u, iu + base_rows(A)))


@formula
def move_base(A: Address, at: Int, w_x: Number, w_y: Number, w_z: Number) -> None:
    """Velocity of the base, seen by an observer that moves with its origin: [0; w_WB_W]."""
    w = rotate(base_rotation(A), (w_x, w_y, w_z))
    store6(A, at + L.VEL_V, (0.0, 0.0, 0.0) + w)


@formula
def move_pack(A: Address, at: Int, up: Int, qd: Lanes) -> None:
    """Velocity v = v_parent + S qd and bias acceleration c = v x S qd of the bodies of a pack."""
    store(A, at + L.QD, qd)
    S_v, S_w = scale(load3(A, at + L.AXIS_V), qd), scale(load3(A, at + L.AXIS_W), qd)
    v = add(load3(A, up + L.VEL_V), S_v)
    w = add(load3(A, up + L.VEL_W), S_w)
    store6(A, at + L.VEL_V, v + w)
    store6(A, at + L.BIAS_V, add(cross(w, S_v), cross(v, S_w)) + cross(w, S_w))


@routine
def stop_bodies(A: Address) -> None:
    """All bodies at rest."""
    for k in range(load_int(A, L.PACKS)):
        stop_pack(A, pack_at(A, k))


@formula
def stop_pack(A: Address, at: Int) -> None:
    """The bodies of a pack at rest."""
    store(A, at + L.QD, 0.0)
    store6(A, at + L.VEL_V, (0.0,) * 6)
    store6(A, at + L.BIAS_V, (0.0,) * 6)


# ---------------------------------------------------------------- accelerations


@formula
def accelerate_pack(A: Address, at: Int, up: Int, qdd: Number) -> None:
    """a = a_parent + c + S qdd of the bodies of a pack."""
    store(A, at + L.QDD, qdd)
    a = add(load3(A, up + L.ACC_V), load3(A, at + L.BIAS_V))
    alpha = add(load3(A, up + L.ACC_W), load3(A, at + L.BIAS_W))
    store3(A, at + L.ACC_V, add(a, scale(load3(A, at + L.AXIS_V), qdd)))
    store3(A, at + L.ACC_W, add(alpha, scale(load3(A, at + L.AXIS_W), qdd)))


@formula
def origin_acceleration(A: Address, at: Int) -> Vec3:
    """Classical acceleration of the origins of a pack's bodies: a + alpha x p + w x (v + w x p)."""
    p, v, w = load3(A, at + L.POS), load3(A, at + L.VEL_V), load3(A, at + L.VEL_W)
    a = add(load3(A, at + L.ACC_V), cross(load3(A, at + L.ACC_W), p))
    return add(a, cross(w, add(v, cross(w, p))))


# ---------------------------------------------------------------- inertias


@formula
def inertia_in_A(A: Address, at: Int) -> tuple[Number, Vec3, Sym3]:
    """Mass, first moment (3) and inertia (6) of the bodies of a pack, about the origin of A in its axes."""
    m = load(A, at + L.MASS)
    R = load9(A, at + L.ROT)
    p = load3(A, at + L.POS)
    h = rotate(R, load3(A, at + L.MOMENT))
    J = sym_rotate(R, load6(A, at + L.INERTIA))
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
def store_inertia(A: Address, at: Int, m: Number, h: Vec3, J: Sym3) -> None:
    """Write a rigid inertia to the rows I_M, I_H, I_J of a pack."""
    store(A, at + L.I_M, m)
    store3(A, at + L.I_H, h)
    store6(A, at + L.I_J, J)


@formula
def add_inertia(A: Address, at: Int, m: Number, h: Vec3, J: Sym3) -> None:
    """Add a rigid inertia to that of a pack."""
    store(A, at + L.I_M, load(A, at + L.I_M) + m)
    add_to3(A, at + L.I_H, h)
    add_to6(A, at + L.I_J, J)


@formula
def load_inertia(A: Address, at: Int) -> tuple[Number, Vec3, Sym3]:
    """Read the rigid inertia in the rows I_M, I_H, I_J of a pack."""
    return load(A, at + L.I_M), load3(A, at + L.I_H), load6(A, at + L.I_J)


@formula
def velocity_wrench(m: Number, h: Vec3, J: Sym3, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
    """v x* (I v): the wrench that keeps a body at its velocity [v; w]."""
    l, k = inertia_mul(m, h, J, v, w)
    return cross(w, l), add(cross(w, k), cross(v, l))


# ---------------------------------------------------------------- friction


@routine
def friction(A: Address, j: Int, qd: Number) -> Number:
    """Friction torque of joint j at speed qd: viscous and Coulomb."""
    entry = joint_entry(A, j)
    sign = 1.0 if qd > 0.0 else (-1.0 if qd < 0.0 else 0.0)
    return A[entry + L.J_VISCOUS] * qd + A[entry + L.J_COULOMB] * sign
