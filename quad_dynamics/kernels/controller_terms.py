# SPDX-License-Identifier: Apache-2.0
"""All terms that a model-based controller needs at one state, in one traversal of the bodies.

The composite-rigid-body algorithm gives M, the centre of mass and the momentum matrix A_G. One pass of the
recursive Newton-Euler algorithm at du = 0 gives all terms that are quadratic in u: with gravity g as an
acceleration -g of the base, the joint forces are h, a point of a body accelerates by dJ/dt u - g, and the
wrench on the whole robot about the centre of mass is dA_G/dt u - [m g; 0].
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, extent, is_writeable, item, length
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, lane_sum, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Object, Vec3
from quad_dynamics.kernels.argument_kinds import FRAMES, ITEMS
from quad_dynamics.kernels.centroidal import write_com, write_com_jacobian, write_momentum_matrix
from quad_dynamics.kernels.crba import composite_inertias, sum_base_inertia, write_mass_matrix
from quad_dynamics.kernels.frames import frame_position, write_jacobian, write_position, write_rotation
from quad_dynamics.kernels.rnea import accelerate_bodies, store_wrenches, sum_inward, write_forces
from quad_dynamics.kernels.spatial import add, cross, scale, sub
from quad_dynamics.kernels.tree import body_of, link_frame, move_bodies, place_bodies
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Body, LinkFrame, Robot

# Order of the results.
M, H, P_WF, R_WF, V_WF, J_F, DJ_F_U, P_WG, J_G, DJ_G_U, A_G, DA_G_U = range(12)
RESULTS = 12


@kernel(Robot, INT, OBJECT, OBJECT, FRAMES, ITEMS)
def controller_terms(robot: Robot, n: Int, q: Object, u: Object, frames: Object, out: Object) -> Int:
    """All terms of n states.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        frames: tuple of k frames.
        out: tuple of RESULTS arrays, out: M (n, nv, nv), h (n, nv); p_WF (n, k, 3), R_WF (n, k, 3, 3), v_WF
            (n, k, 6), J_F (n, k, 6, nv), dJ_F/dt u (n, k, 6); p_WG (n, 3), J_G (n, 3, nv), dJ_G/dt u (n, 3);
            A_G (n, 6, nv), dA_G/dt u (n, 6).
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    if not good_results(robot, n, length(frames), out):
        return 4
    q, u = data(q), data(u)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        composite_inertias(robot)
        write_mass_matrix(robot, data(item(out, M)), i * nv * nv)
        write_com(robot, q, i * nq, data(item(out, P_WG)), 3 * i)
        write_momentum_matrix(robot, data(item(out, A_G)), i * 6 * nv)
        write_com_jacobian(robot, data(item(out, A_G)), i * 6 * nv, data(item(out, J_G)), i * 3 * nv)
        write_frames(robot, q, i * nq, frames, i, out)
        move_bodies(robot, u, i * nv)
        accelerate_bodies(robot, False, u, 0, 0)
        store_wrenches(robot)
        sum_inward(robot)
        write_forces(robot, data(item(out, H)), i * nv)
        write_frame_motions(robot, u, i * nv, frames, i, out)
        write_centroidal_bias(robot, data(item(out, DJ_G_U)), 3 * i, data(item(out, DA_G_U)), 6 * i)
    return 0


# ---------------------------------------------------------------- validation of the result arrays


@routine
def good_results(robot: Robot, n: Int, k: Int, out: Object) -> Bool:
    """Whether all result arrays fit n states and k frames."""
    nv = robot.nv
    return (
        length(out) == RESULTS
        and fits(robot, n, item(out, M), 2, nv, nv, 0)
        and fits(robot, n, item(out, H), 1, nv, 0, 0)
        and fits(robot, n, item(out, P_WF), 2, k, 3, 0)
        and fits(robot, n, item(out, R_WF), 3, k, 3, 3)
        and fits(robot, n, item(out, V_WF), 2, k, 6, 0)
        and fits(robot, n, item(out, J_F), 3, k, 6, nv)
        and fits(robot, n, item(out, DJ_F_U), 2, k, 6, 0)
        and fits(robot, n, item(out, P_WG), 1, 3, 0, 0)
        and fits(robot, n, item(out, J_G), 2, 3, nv, 0)
        and fits(robot, n, item(out, DJ_G_U), 1, 3, 0, 0)
        and fits(robot, n, item(out, A_G), 2, 6, nv, 0)
        and fits(robot, n, item(out, DA_G_U), 1, 6, 0, 0)
    )


@routine
def fits(robot: Robot, n: Int, array: Int, ndim: Int, a: Int, b: Int, c: Int) -> Bool:
    """Whether it is writeable and has the shape (a, b, c)[:ndim], after an axis n if n > 0."""
    first = 1 if n > 0 else 0
    return (
        is_writeable(robot, array, first + ndim)
        and (n == 0 or extent(array, 0) == n)
        and extent(array, first) == a
        and (ndim < 2 or extent(array, first + 1) == b)
        and (ndim < 3 or extent(array, first + 2) == c)
    )


# ---------------------------------------------------------------- after the composite inertias


@routine
def write_frames(robot: Robot, q: Address, iq: Int, frames: Object, i: Int, out: Object) -> None:
    """Write p_WF, R_WF and J_F of state i."""
    nv, count = robot.nv, length(frames)
    p, R, J = data(item(out, P_WF)), data(item(out, R_WF)), data(item(out, J_F))
    for k in range(count):
        frame, at = link_frame(data(item(frames, k))), i * count + k
        write_position(robot, frame, q, iq, p, 3 * at)
        write_rotation(body_of(robot, frame), frame, R, 9 * at)
        write_jacobian(robot, frame, J, 6 * nv * at)


# ---------------------------------------------------------------- after Newton-Euler


@routine
def write_frame_motions(robot: Robot, u: Address, iu: Int, frames: Object, i: Int, out: Object) -> None:
    """Write v_WF and dJ_F/dt u of state i."""
    count, v, bias = length(frames), data(item(out, V_WF)), data(item(out, DJ_F_U))
    v_WB = (0.0, 0.0, 0.0)
    if robot.floating != 0:
        v_WB = (u[iu], u[iu + 1], u[iu + 2])
    for k in range(count):
        frame, at = link_frame(data(item(frames, k))), 6 * (i * count + k)
        write_frame_motion(robot, body_of(robot, frame), frame, v_WB, v, bias, at)


@formula
def write_frame_motion(
    robot: Robot, body: Body, frame: LinkFrame, v_WB: Vec3, v_WF: Address, bias: Address, at: Int
) -> None:
    """Velocity, and acceleration at du = 0; body velocities are relative to v_WB."""
    p = frame_position(body, frame)
    v, w = body.v, body.w
    a, alpha = body.a, body.alpha
    seen = add(v, cross(w, p))
    a_F = add(add(add(a, robot.gravity), cross(alpha, p)), cross(w, seen))
    for k, x in enumerate(add(v_WB, seen) + w):
        v_WF[at + k] = x
    for k, x in enumerate(a_F + alpha):
        bias[at + k] = x


@formula
def write_centroidal_bias(robot: Robot, J_bias: Address, j: Int, A_bias: Address, a: Int) -> None:
    """Write dJ_G/dt u and dA_G/dt u from the wrench on the base; gravity has no moment about G."""
    m, h, _ = sum_base_inertia(robot)
    f = tuple(lane_sum(x) for x in robot.packs[0].f)
    n = tuple(lane_sum(x) for x in robot.packs[0].n)
    per_mass = 1.0 / m
    moment = sub(n, cross(scale(h, per_mass), f))
    f = add(f, scale(robot.gravity, m))
    for k, x in enumerate(scale(f, per_mass)):
        J_bias[j + k] = x
    for k, x in enumerate(f + moment):
        A_bias[a + k] = x
