# SPDX-License-Identifier: Apache-2.0
"""Pose, Jacobian, velocity and bias acceleration of a frame that is fixed to a body.

The frame F is passed as an array that contains a `LinkFrame`, made by `Packed.frame`.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, routine
from quad_dynamics.compiler.types import Address, Int, Object, Vec3
from quad_dynamics.kernels.argument_kinds import FRAME
from quad_dynamics.kernels.coriolis import move_all
from quad_dynamics.kernels.spatial import add, cross, matmul
from quad_dynamics.kernels.tree import (
    ZERO3,
    accelerate_pack,
    base_rotation,
    base_rows,
    body_of,
    link_frame,
    place_bodies,
    position_of_point,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Body, LinkFrame, Pack, Robot


@kernel(Robot, INT, OBJECT, FRAME, array(lambda states: 9 * states), array(lambda states: 3 * states))
def frame_pose(robot: Robot, n: Int, q: Object, frame: Object, R: Object, p: Object) -> Int:
    """Poses of a frame in n configurations; R: (n, 3, 3) out, R_WF; p: (n, 3) out, p_WF."""
    nq = robot.nq
    if not good_configuration(robot, n, q):
        return 1
    q, frame, R, p = data(q), link_frame(data(frame)), data(R), data(p)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        write_rotation(body_of(robot, frame), frame, R, 9 * i)
        write_position(robot, frame, q, i * nq, p, 3 * i)
    return 0


@formula
def frame_position(body: Body, frame: LinkFrame) -> Vec3:
    """p_AF."""
    return position_of_point(body, frame.position)


@formula
def write_rotation(body: Body, frame: LinkFrame, R: Address, at: Int) -> None:
    """Write R_WF to R[at : at + 9]."""
    for k, x in enumerate(matmul(body.rotation, frame.rotation)):
        R[at + k] = x


@routine
def write_position(robot: Robot, frame: LinkFrame, q: Address, iq: Int, p: Address, at: Int) -> None:
    """Write p_WF to p[at : at + 3], at the configuration q[iq : iq + nq]."""
    p_AF = frame_position(body_of(robot, frame), frame)
    for k in range(3):
        p[at + k] = p_AF[k]
    if robot.floating != 0:
        for k in range(3):
            p[at + k] += q[iq + k]


@kernel(Robot, INT, OBJECT, FRAME, array(lambda states, nv: 6 * states * nv))
def frame_jacobian(robot: Robot, n: Int, q: Object, frame: Object, J: Object) -> Int:
    """Jacobians of a frame in n configurations; J: (n, 6, nv) out, [v_WF_W; w_WF_W] = J u."""
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    q, frame, J = data(q), link_frame(data(frame)), data(J)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        write_jacobian(robot, frame, J, i * 6 * nv)
    return 0


@routine
def write_jacobian(robot: Robot, frame: LinkFrame, J: Address, start: Int) -> None:
    """Write J[start : start + 6 nv] of a frame, after `place_bodies`."""
    nv, skip = robot.nv, base_rows(robot)
    fill_zero(J, start, 6 * nv)
    p = frame_position(body_of(robot, frame), frame)
    j = frame.joint
    while j >= 0:
        write_joint_column(robot.joints[j].body, p, J, start + skip + j, nv)
        j = robot.joints[j].parent
    if skip > 0:
        write_base_columns(robot, p, J, start, nv)


@formula
def write_joint_column(body: Body, p: Vec3, J: Address, column: Int, nv: Int) -> None:
    """Velocity at p and angular velocity for unit joint speed."""
    S_v, S_w = body.axis_v, body.axis_w
    for k, x in enumerate(add(S_v, cross(S_w, p)) + S_w):
        J[column + k * nv] = x


@formula
def write_base_columns(robot: Robot, p: Vec3, J: Address, start: Int, nv: Int) -> None:
    """Columns of the base: v_WB_W translates everything, w_WB_B rotates everything about the base."""
    R = base_rotation(robot)
    for i in range(3):
        J[start + i * nv + i] = 1.0
        r = (R[i], R[3 + i], R[6 + i])
        for k, x in enumerate(cross(r, p) + r):
            J[start + k * nv + 3 + i] = x


@kernel(Robot, INT, OBJECT, OBJECT, FRAME, array(lambda states: 12 * states))
def frame_motion(robot: Robot, n: Int, q: Object, u: Object, frame: Object, motion: Object) -> Int:
    """Velocity and bias acceleration of a frame in n states; motion: (n, 12) out, [v; w; a; alpha].

    [a; alpha] = dJ/dt u: a is the classical acceleration of the frame's origin at du = 0.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    q, u, frame, motion = data(q), data(u), link_frame(data(frame)), data(motion)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        move_all(robot, u, i * nv)
        accelerate_freely(robot)
        write_motion(body_of(robot, frame), frame, motion, 12 * i)
    return 0


@routine
def accelerate_freely(robot: Robot) -> None:
    """Spatial accelerations of all bodies at du = 0."""
    hold_base(robot.packs[0])
    for k in range(1, robot.n_packs):
        accelerate_pack(robot.packs[k], 0.0)


@formula
def hold_base(pack: Pack) -> None:
    """Spatial acceleration of the base at du = 0: [-w x v; 0], since its origin moves with v."""
    pack.a, pack.alpha = cross(pack.v, pack.w), ZERO3


@formula
def write_motion(body: Body, frame: LinkFrame, motion: Address, at: Int) -> None:
    """Velocity and acceleration at the frame's origin p: v + w x p and a + alpha x p + w x (v + w x p)."""
    p = frame_position(body, frame)
    v, w = body.v, body.w
    a, alpha = body.a, body.alpha
    v_F = add(v, cross(w, p))
    a_F = add(add(a, cross(alpha, p)), cross(w, v_F))
    for k, x in enumerate(v_F + w + a_F + alpha):
        motion[at + k] = x
