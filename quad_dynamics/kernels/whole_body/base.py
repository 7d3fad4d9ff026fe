# SPDX-License-Identifier: Apache-2.0
"""The acceleration of the base and of all joints, as affine functions of the unknowns."""

from __future__ import annotations

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import fill_zero, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Vec3
from quad_dynamics.kernels.spatial import add, dot, scale, sub
from quad_dynamics.kernels.whole_body.legs import jacobian_column
from quad_dynamics.kernels.whole_body.records import TaskLeg, WholeBody
from quad_dynamics.memory.layout import Robot

_PIVOT = 1e-12  # smaller pivots make the matrix singular


@routine
def begin_base(robot: Robot, problem: WholeBody, M: Address, h: Address) -> None:
    """M_bb, and the rows [G | g] of a_b without any leg: G is zero, g is -h_b - M_bo qdd_o."""
    nv, m = robot.nv, 3 * problem.legs
    fill_zero(problem.base_rows, 0, 6 * (m + 1))
    for i in range(6):
        row = part(M, i * nv)
        for j in range(6):
            problem.base_matrix[6 * i + j] = row[j]
        total = -h[i]
        for j in range(robot.nj):
            total -= row[6 + j] * problem.free[j]
        for k in range(problem.legs):  # joints of legs are added with their leg
            leg = problem.leg[k]
            for s in range(leg.joint_count):
                j = leg.joints[s].index
                total += row[6 + j] * problem.free[j]
        problem.base_rows[i * (m + 1) + m] = total


@routine
def add_leg(robot: Robot, problem: WholeBody, M: Address, k: Int) -> None:
    """Add a leg to the equations of the base, and write its joint accelerations at z = 0 and a_b = 0."""
    nv, m, leg, unit = robot.nv, 3 * problem.legs, problem.leg[k], problem.body.unit
    write_joint_biases(robot, problem, leg)
    for i in range(6):
        coupling: Vec3 = (0.0, 0.0, 0.0)
        row = part(problem.base_rows, i * (m + 1))
        for s in range(leg.joint_count):
            joint = leg.joints[s]
            mass = M[i * nv + 6 + joint.index]
            coupling = add(coupling, scale(joint.inverse, mass))
            row[m] -= mass * joint.bias
        for j in range(6):
            problem.base_matrix[6 * i + j] -= dot(coupling, jacobian_column(nv, leg, j))
        a = scale(jacobian_column(nv, leg, i), unit) if leg.down != 0 else scale(coupling, -1.0)
        row[3 * k], row[3 * k + 1], row[3 * k + 2] = a


@routine
def write_joint_biases(robot: Robot, problem: WholeBody, leg: TaskLeg) -> None:
    """Accelerations of the joints of a leg at z = 0 and a_b = 0."""
    a = given_acceleration(leg)
    for i in range(robot.nj):  # subtract the effect of qdd_0 on the foot
        free = problem.free[i]
        if free != 0.0:
            a = sub(a, scale(jacobian_column(robot.nv, leg, 6 + i), free))
    for s in range(leg.joint_count):
        joint = leg.joints[s]
        joint.bias = dot(joint.inverse, a) + problem.free[joint.index]


@routine
def given_acceleration(leg: TaskLeg) -> Vec3:
    """The known part of the acceleration of a foot that J_l du produces."""
    bias = scale(leg.bias, -1.0)
    return add(bias, leg.acceleration) if leg.down != 0 else bias


@routine
def solve_base(matrix: Numbers, rows: Numbers, columns: Int) -> Bool:
    """Gauss-Jordan elimination with partial pivoting; replaces the right-hand sides by the solutions."""
    for k in range(6):
        pivot, largest = k, abs(matrix[6 * k + k])
        for i in range(k + 1, 6):
            if abs(matrix[6 * i + k]) > largest:
                pivot, largest = i, abs(matrix[6 * i + k])
        if not largest > _PIVOT:
            return False
        if pivot != k:
            exchange(part(matrix, 6 * k), part(matrix, 6 * pivot), 6)
            exchange(part(rows, columns * k), part(rows, columns * pivot), columns)
        inverse = 1.0 / matrix[6 * k + k]
        for j in range(k, 6):
            matrix[6 * k + j] *= inverse
        for j in range(columns):
            rows[columns * k + j] *= inverse
        for i in range(6):
            factor = matrix[6 * i + k]
            if i != k and factor != 0.0:
                for j in range(k, 6):
                    matrix[6 * i + j] -= factor * matrix[6 * k + j]
                for j in range(columns):
                    rows[columns * i + j] -= factor * rows[columns * k + j]
    return True


@routine
def exchange(a: Numbers, b: Numbers, n: Int) -> None:
    """Exchange n numbers."""
    for j in range(n):
        a[j], b[j] = b[j], a[j]


@routine
def write_accelerations(robot: Robot, problem: WholeBody) -> None:
    """du = D z + d."""
    nv, nj, m = robot.nv, robot.nj, 3 * problem.legs
    D, d = problem.D, problem.d
    fill_zero(D, 6 * m, nj * m)
    for i in range(6):
        for j in range(m):
            D[i * m + j] = problem.base_rows[i * (m + 1) + j]
        d[i] = problem.base_rows[i * (m + 1) + m]
    for j in range(nj):
        d[6 + j] = problem.free[j]
    for k in range(problem.legs):
        leg = problem.leg[k]
        for s in range(leg.joint_count):
            joint = leg.joints[s]
            row, total = part(D, (6 + joint.index) * m), joint.bias
            for i in range(6):
                factor = dot(joint.inverse, jacobian_column(nv, leg, i))
                total -= factor * d[i]
                for j in range(m):
                    row[j] -= factor * D[i * m + j]
            d[6 + joint.index] = total
            if leg.down == 0:
                x, y, z = joint.inverse
                row[3 * k], row[3 * k + 1], row[3 * k + 2] = (
                    row[3 * k] + x,
                    row[3 * k + 1] + y,
                    row[3 * k + 2] + z,
                )
