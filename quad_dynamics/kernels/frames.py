# SPDX-License-Identifier: Apache-2.0
"""Pose, Jacobian, velocity and bias acceleration of a frame that is fixed to a body.

The frame F comes as an array of 14 numbers, as `Packed.frame` makes it: the address of its body's lane (a
whole number), then p_KF (3) and R_KF (9) in the frame K of that body, then the index of its joint, -1 for
the base.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, load_int, routine
from quad_dynamics.compiler.types import Address, Int, Object, Vec3
from quad_dynamics.kernels.argument_kinds import FRAME
from quad_dynamics.kernels.coriolis import move_all
from quad_dynamics.kernels.door import good_configuration, good_vector
from quad_dynamics.kernels.spatial import add, cross, load3, matmul, read3, read9, store6
from quad_dynamics.kernels.tree import (
    accelerate_pack,
    base_rotation,
    base_rows,
    joint_entry,
    lane_of,
    pack_at,
    parent_of,
    place_bodies,
    point_of_body,
)
from quad_dynamics.model import layout as L


@kernel(ARENA, INT, OBJECT, FRAME, array(lambda states: 9 * states), array(lambda states: 3 * states))
def frame_pose(A: Address, n: Int, q: Object, frame: Object, R: Object, p: Object) -> Int:
    """Poses of a frame in n configurations; R: (n, 3, 3) out, R_WF; p: (n, 3) out, p_WF."""
    nq = load_int(A, L.NQ)
    if not good_configuration(A, n, q):
        return 1
    q, frame, R, p = data(q), data(frame), data(R), data(p)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        write_rotation(A, int(frame[0]), frame, R, 9 * i)
        write_position(A, frame, q, i * nq, p, 3 * i)
    return 0


@formula
def frame_position(A: Address, lane: Int, frame: Address) -> Vec3:
    """p_AF."""
    return point_of_body(A, lane, (frame[1], frame[2], frame[3]))


@formula
def write_rotation(A: Address, lane: Int, frame: Address, R: Address, at: Int) -> None:
    """Write R_WF to R[at : at + 9]."""
    R_KF = tuple(frame[4 + k] for k in range(9))
    for k, x in enumerate(matmul(read9(A, lane + L.ROT), R_KF)):
        R[at + k] = x


@routine
def write_position(A: Address, frame: Address, q: Address, iq: Int, p: Address, at: Int) -> None:
    """Write p_WF to p[at : at + 3], at the configuration q[iq : iq + nq]."""
    p_AF = frame_position(A, int(frame[0]), frame)
    for k in range(3):
        p[at + k] = p_AF[k]
    if load_int(A, L.FLOATING) != 0:
        for k in range(3):
            p[at + k] += q[iq + k]


@kernel(ARENA, INT, OBJECT, FRAME, array(lambda states, nv: 6 * states * nv))
def frame_jacobian(A: Address, n: Int, q: Object, frame: Object, J: Object) -> Int:
    """Jacobians of a frame in n configurations; J: (n, 6, nv) out, [v_WF_W; w_WF_W] = J u."""
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    if not good_configuration(A, n, q):
        return 1
    q, frame, J = data(q), data(frame), data(J)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        write_jacobian(A, frame, J, i * 6 * nv)
    return 0


@routine
def write_jacobian(A: Address, frame: Address, J: Address, start: Int) -> None:
    """Write J[start : start + 6 nv] of a frame, after `place_bodies`."""
    nv, skip = load_int(A, L.NV), base_rows(A)
    fill_zero(J, start, 6 * nv)
    p = frame_position(A, int(frame[0]), frame)
    j = int(frame[13])
    while j >= 0:
        write_joint_column(A, lane_of(A, j), p, J, start + skip + j, nv)
        j = load_int(A, joint_entry(A, j) + L.J_PARENT)
    if skip > 0:
        write_base_columns(A, p, J, start, nv)


@formula
def write_joint_column(A: Address, lane: Int, p: Vec3, J: Address, column: Int, nv: Int) -> None:
    """Velocity at p and angular velocity for unit joint speed."""
    S_v, S_w = read3(A, lane + L.AXIS_V), read3(A, lane + L.AXIS_W)
    for k, x in enumerate(add(S_v, cross(S_w, p)) + S_w):
        J[column + k * nv] = x


@formula
def write_base_columns(A: Address, p: Vec3, J: Address, start: Int, nv: Int) -> None:
    """Columns of the base: v_WB_W moves everything alike, w_WB_B turns everything about the base."""
    R = base_rotation(A)
    for i in range(3):
        J[start + i * nv + i] = 1.0
        r = (R[i], R[3 + i], R[6 + i])
        for k, x in enumerate(cross(r, p) + r):
            J[start + k * nv + 3 + i] = x


@kernel(ARENA, INT, OBJECT, OBJECT, FRAME, array(lambda states: 12 * states))
def frame_motion(A: Address, n: Int, q: Object, u: Object, frame: Object, motion: Object) -> Int:
    """Velocity and bias acceleration of a frame in n states; motion: (n, 12) out, [v; w; a; alpha].

    [a; alpha] = dJ/dt u: a is the classical acceleration of the frame's origin when du is zero.
    """
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    if not good_configuration(A, n, q):
        return 1
    if not good_vector(A, n, nv, u):
        return 2
    q, u, frame, motion = data(q), data(u), data(frame), data(motion)
    for i in range(max(n, 1)):
        place_bodies(A, q, i * nq)
        move_all(A, u, i * nv)
        accelerate_freely(A)
        write_motion(A, int(frame[0]), frame, motion, 12 * i)
    return 0


@routine
def accelerate_freely(A: Address) -> None:
    """Spatial accelerations of all bodies when du is zero."""
    hold_base(A, pack_at(A, 0))
    for k in range(1, load_int(A, L.PACKS)):
        accelerate_pack(A, pack_at(A, k), parent_of(A, k), 0.0)


@formula
def hold_base(A: Address, at: Int) -> None:
    """Spatial acceleration of the base at du = 0: [-w x v; 0], since its origin moves with v."""
    v, w = load3(A, at + L.VEL_V), load3(A, at + L.VEL_W)
    store6(A, at + L.ACC_V, cross(v, w) + (0.0, 0.0, 0.0))


@formula
def write_motion(A: Address, lane: Int, frame: Address, motion: Address, at: Int) -> None:
    """Velocity and acceleration at the frame's origin p: v + w x p and a + alpha x p + w x (v + w x p)."""
    p = frame_position(A, lane, frame)
    v, w = read3(A, lane + L.VEL_V), read3(A, lane + L.VEL_W)
    a, alpha = read3(A, lane + L.ACC_V), read3(A, lane + L.ACC_W)
    v_F = add(v, cross(w, p))
    a_F = add(add(a, cross(alpha, p)), cross(w, v_F))
    for k, x in enumerate(v_F + w + a_F + alpha):
        motion[at + k] = x
