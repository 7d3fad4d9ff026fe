# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics by factorisation of the mass matrix: M = L L^T.

If M is not positive definite (physically inconsistent inertial parameters), LLT fails at a pivot, and LDLT
(`ldlt`) solves. The simulator factors in another order, see `joint_space`.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.arguments import array, table
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Address, Int, Object
from quad_dynamics.kernels.argument_kinds import LINKS, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.crba import composite_inertias, write_mass_matrix
from quad_dynamics.kernels.external import good_wrenches, subtract_wrenches
from quad_dynamics.kernels.ldlt import factor_ldlt, solve_ldlt
from quad_dynamics.kernels.rnea import FRICTION, accelerate_bodies, store_wrenches, sum_inward, write_forces
from quad_dynamics.kernels.tree import base_rows, friction, move_bodies, place_bodies
from quad_dynamics.kernels.validation import good_configuration, good_vector, has_shape
from quad_dynamics.memory.layout import Robot


@kernel(INT, array(lambda n: n * n))
def factor_llt(n: Int, M: Object) -> Int:
    """Factor M (n, n) in place, L its lower triangle; returns 0, or 1 + the row whose pivot is not > 0."""
    return factor(data(M), 0, n)


@routine
def factor(M: Address, start: Int, n: Int) -> Int:
    """Factor the n x n matrix at M[start] in place, as `factor_llt`."""
    for i in range(n):
        row_i = start + i * n
        for j in range(i):
            row_j = start + j * n
            x = M[row_i + j]
            for k in range(j):
                x -= M[row_i + k] * M[row_j + k]
            M[row_i + j] = x / M[row_j + j]
        d = M[row_i + i]
        for k in range(i):
            d -= M[row_i + k] * M[row_i + k]
        if not d > 0.0:
            return 1 + i
        M[row_i + i] = math.sqrt(d)
    return 0


@kernel(INT, INT, table(lambda n: n * n), array(lambda n, count: n * count))
def solve_llt(n: Int, count: Int, M: Object, b: Object) -> Int:
    """Solve L L^T x = b in place, for `count` right-hand sides b (count, n)."""
    for i in range(count):
        solve(data(M), 0, n, data(b), i * n)
    return 0


@kernel(
    INT,
    INT,
    table(lambda n, count: count * n * n),
    array(lambda n, count: count * n),
    array(lambda n: (n + 1) * n),
    array(lambda count: count),
)
def solve_symmetric(n: Int, count: Int, M: Object, b: Object, work: Object, failed: Object) -> Int:
    """Solve M x = b in place, for `count` matrices: by LLT, and by LDLT if LLT fails.

    Args:
        n: rows.
        count: number of matrices.
        M: (count, n, n) symmetric.
        b: (count, n) right-hand sides; the solutions out.
        work: (n + 1, n) workspace.
        failed: (count,) out, 0, or 1 + the row at which LLT failed.

    Returns:
        0, or 1 + the index of the first matrix that is singular.
    """
    M, b, work, failed = data(M), data(b), data(work), data(failed)
    for i in range(count):
        copy_matrix(M, i * n * n, n, work)
        row = factor(work, 0, n)
        failed[i] = row
        if row == 0:
            solve(work, 0, n, b, i * n)
            continue
        copy_matrix(M, i * n * n, n, work)
        if not factor_ldlt(part(work, 0), n, part(work, n * n)):
            return 1 + i
        solve_ldlt(part(work, 0), n, part(work, n * n), part(b, i * n))
    return 0


@routine
def copy_matrix(M: Address, start: Int, n: Int, to: Address) -> None:
    """Copy the n x n matrix at M[start]."""
    for k in range(n * n):
        to[k] = M[start + k]


@kernel(
    Robot, INT, OBJECT, OBJECT, OBJECT, LINKS, OPTIONAL_ITEMS, INT, array(lambda nv: (nv + 1) * nv), VECTORS
)
def forward_dynamics_cholesky(
    robot: Robot,
    n: Int,
    q: Object,
    u: Object,
    tau: Object,
    links: Object,
    wrenches: Object,
    flags: Int,
    work: Object,
    du: Object,
) -> Int:
    """Accelerations of n states: M du = tau - h, by LLT, and by LDLT if LLT fails.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        tau: (n, nv) generalised forces, or (n, nj) joint torques.
        links, wrenches: external wrenches, see `external`.
        flags: FRICTION takes joint friction into account.
        work: (nv + 1, nv) workspace.
        du: (n, nv) out.

    Returns:
        0; the number of an invalid argument; or -(1 + row), where row is the first row at which LLT failed,
        or nv for a singular matrix.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    nt = nv if has_shape(robot, n, nv, tau) else robot.nj
    if not good_vector(robot, n, nt, tau):
        return 3
    if not good_wrenches(robot, n, links, wrenches):
        return 4
    q, u, tau, work, du = data(q), data(u), data(tau), data(work), data(du)
    status = 0
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * nq)
        move_bodies(robot, u, i * nv)
        accelerate_bodies(robot, False, u, 0, flags)
        store_wrenches(robot)
        subtract_wrenches(robot, links, wrenches, i)
        sum_inward(robot)
        write_forces(robot, du, i * nv)
        if flags & FRICTION:
            add_friction(robot, du, u, i * nv + base_rows(robot))
        subtract_from_forces(du, i * nv, nv, tau, i * nt, nt)
        composite_inertias(robot)
        write_mass_matrix(robot, work, 0)
        row = factor(work, 0, nv)
        if row == 0:
            solve(work, 0, nv, du, i * nv)
            continue
        status = -row if status == 0 else status
        write_mass_matrix(robot, work, 0)
        if not factor_ldlt(part(work, 0), nv, part(work, nv * nv)):
            return -1 - nv
        solve_ldlt(part(work, 0), nv, part(work, nv * nv), part(du, i * nv))
    return status


@routine
def add_friction(robot: Robot, h: Address, u: Address, i: Int) -> None:
    """Add the friction of the joints at the speeds u[i : i + nj] to h[i : i + nj]."""
    for j in range(robot.nj):
        h[i + j] += friction(robot, j, u[i + j])


@routine
def subtract_from_forces(h: Address, i: Int, nv: Int, tau: Address, it: Int, nt: Int) -> None:
    """h[i : i + nv] = tau - h, with tau[it : it + nt] in the last nt rows and zeros before."""
    for k in range(nv - nt):
        h[i + k] = -h[i + k]
    for k in range(nt):
        row = i + nv - nt + k
        h[row] = tau[it + k] - h[row]


@routine
def solve(M: Address, start: Int, n: Int, b: Address, at: Int) -> None:
    """Solve with the factor at M[start] for b[at : at + n], in place."""
    for i in range(n):
        x = b[at + i]
        for k in range(i):
            x -= M[start + i * n + k] * b[at + k]
        b[at + i] = x / M[start + i * n + i]
    for i in range(n - 1, -1, -1):
        x = b[at + i]
        for k in range(i + 1, n):
            x -= M[start + k * n + i] * b[at + k]
        b[at + i] = x / M[start + i * n + i]
