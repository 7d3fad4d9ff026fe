# SPDX-License-Identifier: Apache-2.0
"""Limits and tasks of whole-body control as rows in the unknowns z."""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, item
from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.trace import fill_zero, routine, square_root
from quad_dynamics.compiler.types import Address, Int, Number, Object, Vec3
from quad_dynamics.kernels.controller_terms import DJ_G_U, J_G
from quad_dynamics.kernels.spatial import columns, dot, scale, sub, unrotate, vector3
from quad_dynamics.kernels.whole_body.legs import jacobian_column
from quad_dynamics.kernels.whole_body.records import PYRAMID_ROWS, WholeBody
from quad_dynamics.memory.layout import Robot

_INFINITE = 1e30
_HELD = 1e4  # weight of the rows of planar legs

# ---------------------------------------------------------------- limits


@routine
def write_torques(robot: Robot, problem: WholeBody, M: Address, h: Address) -> None:
    """Write tau = T z + t to the first rows of C, and the bounds of T z."""
    nv, nj, m, unit = robot.nv, robot.nj, 3 * problem.legs, problem.body.unit
    C, D, d = problem.C, problem.D, problem.d
    fill_zero(C, 0, nj * m)
    for i in range(nj):
        at, total, row = (6 + i) * nv, h[6 + i], part(C, i * m)
        for s in range(nv):
            factor = M[at + s]
            if factor != 0.0:
                total += factor * d[s]
                for j in range(m):
                    row[j] += factor * D[s * m + j]
        for k in range(problem.legs):
            leg = problem.leg[k]
            if leg.down != 0:
                for j in range(3):
                    row[3 * k + j] -= leg.jacobian[nv * j + 6 + i] * unit
        problem.low[i], problem.high[i] = problem.lowest[i] - total, problem.highest[i] - total


@routine
def write_pyramids(robot: Robot, problem: WholeBody) -> Int:
    """Rows of the friction pyramids, inscribed in the cones, and of normal forces; the number of all rows."""
    m, body, rows = 3 * problem.legs, problem.body, robot.nj
    mu = body.mu / square_root(2.0)
    x, y, up = columns(body.axes)
    for k in range(problem.legs):
        leg = problem.leg[k]
        if leg.down == 0:
            continue
        C, low, high = part(problem.C, rows * m), part(problem.low, rows), part(problem.high, rows)
        fill_zero(C, 0, PYRAMID_ROWS * m)
        inside = scale(up, mu)
        write_block(C, 3 * k, sub(x, inside))
        write_block(C, m + 3 * k, sub(scale(x, -1.0), inside))
        write_block(C, 2 * m + 3 * k, sub(y, inside))
        write_block(C, 3 * m + 3 * k, sub(scale(y, -1.0), inside))
        write_block(C, 4 * m + 3 * k, up)
        for i in range(4):
            low[i], high[i] = -_INFINITE, 0.0
        low[4], high[4] = 0.0, leg.most_force / body.unit
        rows += PYRAMID_ROWS
    return rows


@routine
def write_block(C: Address, at: Int, a: Vec3) -> None:
    """Write three consecutive numbers of a row."""
    C[at], C[at + 1], C[at + 2] = a


# ---------------------------------------------------------------- tasks


@routine
def hold_planar_legs(robot: Robot, problem: WholeBody) -> None:
    """Rows of W z = b for planar legs in stance, which constrain the base; zero elsewhere."""
    m, W, D = 3 * problem.legs, problem.W, problem.D
    fill_zero(W, 0, (6 + m) * m)
    fill_zero(problem.b, 6, m)
    weight = square_root(_HELD)
    for k in range(problem.legs):
        leg, row = problem.leg[k], part(W, (6 + 3 * k) * m)
        if leg.planar == 0 or leg.down == 0:
            continue
        total = dot(leg.normal, sub(leg.acceleration, leg.bias))
        for i in range(6):
            factor = dot(leg.normal, jacobian_column(robot.nv, leg, i))
            total -= factor * problem.d[i]
            for j in range(m):
                row[j] += weight * factor * D[i * m + j]
        problem.b[6 + 3 * k] = weight * total


@routine
def write_com_task(robot: Robot, problem: WholeBody, terms: Object, i: Int, axis: Vec3) -> None:
    """The row of the centre of mass along an axis of the ground."""
    nv, m, W = robot.nv, 3 * problem.legs, part(problem.W, 3 * i * problem.legs)
    J, bias = data(item(terms, J_G)), vector3(data(item(terms, DJ_G_U)), 0)
    weight = square_root(component(problem.body.com_weight, i))
    total = dot(axis, sub(problem.body.com, bias))
    for s in range(nv):
        factor = dot(axis, (J[s], J[nv + s], J[2 * nv + s]))
        if factor != 0.0:
            total -= factor * problem.d[s]
            for j in range(m):
                W[j] += weight * factor * problem.D[s * m + j]
    problem.b[i] = weight * total


@routine
def write_angular_task(problem: WholeBody, i: Int, axis: Vec3) -> None:
    """The row of the base's rotation about an axis of the ground."""
    m, W, R_WB = 3 * problem.legs, part(problem.W, 3 * (3 + i) * problem.legs), problem.body.R_WB
    weight = square_root(component(problem.body.angular_weight, i))
    total = dot(axis, problem.body.angular)
    factors = unrotate(R_WB, axis)
    for s in range(3):
        total -= factors[s] * problem.d[3 + s]
        for j in range(m):
            W[j] += weight * factors[s] * problem.D[(3 + s) * m + j]
    problem.b[3 + i] = weight * total


@routine
def component(a: Vec3, i: Int) -> Number:
    """Component i of a vector."""
    return a[i]


@routine
def write_leg_tasks(problem: WholeBody) -> None:
    """Rows of the swing feet, and z0 of the forces' level."""
    m, unit, weight = 3 * problem.legs, problem.body.unit, square_root(problem.body.swing_weight)
    for k in range(problem.legs):
        leg = problem.leg[k]
        if leg.down != 0:
            write_block(problem.z0, 3 * k, scale(leg.force, 1.0 / unit))
            continue
        write_block(problem.z0, 3 * k, leg.acceleration)
        write_block(problem.b, 6 + 3 * k, scale(leg.acceleration, weight))
        for i in range(3 * k, 3 * k + 3):
            problem.W[(6 + i) * m + i] = weight


@routine
def write_tasks(robot: Robot, problem: WholeBody, terms: Object) -> None:
    """The weighted tasks W z = b, and z0 of the forces' level."""
    x, y, up = columns(problem.body.axes)
    hold_planar_legs(robot, problem)
    write_com_task(robot, problem, terms, 0, x)
    write_com_task(robot, problem, terms, 1, y)
    write_com_task(robot, problem, terms, 2, up)
    write_angular_task(problem, 0, x)
    write_angular_task(problem, 1, y)
    write_angular_task(problem, 2, up)
    write_leg_tasks(problem)


@routine
def write_cost(problem: WholeBody) -> None:
    """The cost of all tasks: H = W^T W + r 1, c = -W^T b - r z0."""
    m, regular, W, H, c = 3 * problem.legs, problem.body.regular, problem.W, problem.H, problem.c
    fill_zero(H, 0, m * m)
    for j in range(m):
        c[j] = -regular * problem.z0[j]
        H[j * m + j] = regular
    for row in range(6 + m):
        for i in range(m):
            factor = W[row * m + i]
            if factor != 0.0:
                c[i] -= factor * problem.b[row]
                for j in range(m):
                    H[i * m + j] += factor * W[row * m + j]
