# SPDX-License-Identifier: Apache-2.0
"""Normal equations of the regressor: Y^T W Y and Y^T W tau, summed over samples without storing any Y.

A row of Y is zero outside the subtree of its joint; these zeros are skipped.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, is_none, optional_data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Address, Int, Number, Object
from quad_dynamics.kernels.regression.regressor import (
    FRICTION_COLUMNS,
    ROTOR_COLUMNS,
    count_columns,
    width,
    write_regressor,
)
from quad_dynamics.kernels.tree import base_rows
from quad_dynamics.kernels.validation import good_configuration, good_optional, good_vector
from quad_dynamics.memory.layout import Robot


@kernel(
    Robot,
    INT,
    *[OBJECT] * 5,
    INT,
    array(lambda flags, nv, nb, nj: nv * width(flags, nb, nj)),
    array(lambda flags, nb, nj: width(flags, nb, nj) * width(flags, nb, nj)),
    array(lambda flags, nb, nj: width(flags, nb, nj) + 1),
)
def accumulate(
    robot: Robot,
    n: Int,
    q: Object,
    u: Object,
    du: Object,
    tau: Object,
    weights: Object,
    flags: Int,
    Y: Object,
    YtY: Object,
    Yty: Object,
) -> Int:
    """Add Y^T W Y and Y^T W tau of n states to the sums.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        du: (n, nv) accelerations.
        tau: (n, nv) measured generalised forces.
        weights: (n, nv) weight of each row, or None for 1.
        flags: as in `regressor`.
        Y: (nv, columns) workspace for one regressor.
        YtY: (columns, columns) in and out; only the upper triangle is added to.
        Yty: (columns + 1,) in and out; the last number is tau^T W tau.
    """
    nq, nv = robot.nq, robot.nv
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    if not good_vector(robot, n, nv, du):
        return 3
    if not good_vector(robot, n, nv, tau):
        return 4
    if not good_optional(robot, n, nv, weights):
        return 5
    columns = count_columns(robot, flags)
    weighted = not is_none(robot, weights)
    q, u, du, tau, weights = data(q), data(u), data(du), data(tau), optional_data(robot, weights)
    Y, YtY, Yty = data(Y), data(YtY), data(Yty)
    for i in range(max(n, 1)):
        write_regressor(robot, q, i * nq, u, du, i * nv, flags, Y, 0, columns)
        for row in range(nv):
            w = weights[i * nv + row] if weighted else 1.0
            if w != 0.0:
                add_row(robot, Y, row, columns, flags, w, tau[i * nv + row], YtY, Yty)
    return 0


@routine
def add_row(
    robot: Robot,
    Y: Address,
    row: Int,
    columns: Int,
    flags: Int,
    w: Number,
    tau: Number,
    YtY: Address,
    Yty: Address,
) -> None:
    """Add one row of Y to the sums, in the segments of columns where it is not zero."""
    nj, nb, skip = robot.nj, robot.nb, base_rows(robot)
    Yty[columns] += w * tau * tau
    j = row - skip
    count = nj
    first = 0
    last = 10 * nb
    if j >= 0:
        count = robot.joints[j].subtree
        body = j + 1 if skip > 0 else j
        first, last = 10 * body, 10 * (body + count)
    extra = 10 * nb
    friction = extra
    if flags & FRICTION_COLUMNS:
        extra += 2 * nj
    rotor = extra + max(j, 0)
    y = row * columns
    add_triangle(Y, y, w, tau, first, last, columns, YtY, Yty)
    if flags & ROTOR_COLUMNS:
        add_block(Y, y, w, first, last, rotor, rotor + count, columns, YtY)
        add_triangle(Y, y, w, tau, rotor, rotor + count, columns, YtY, Yty)
    if flags & FRICTION_COLUMNS and j >= 0:
        for c in (friction + j, friction + nj + j):
            add_block(Y, y, w, first, last, c, c + 1, columns, YtY)
            Yty[c] += w * Y[y + c] * tau
            YtY[c * columns + c] += w * Y[y + c] * Y[y + c]
            if flags & ROTOR_COLUMNS:
                add_block(Y, y, w, c, c + 1, rotor, rotor + count, columns, YtY)
        YtY[(friction + j) * columns + friction + nj + j] += (
            w * Y[y + friction + j] * Y[y + friction + nj + j]
        )


@routine
def add_triangle(
    Y: Address,
    y: Int,
    w: Number,
    tau: Number,
    first: Int,
    last: Int,
    columns: Int,
    YtY: Address,
    Yty: Address,
) -> None:
    """Add the outer product of Y[y + first : y + last] with itself (upper triangle), and with tau."""
    for a in range(first, last):
        wa = w * Y[y + a]
        Yty[a] += wa * tau
        at = a * columns
        for b in range(a, last):
            YtY[at + b] += wa * Y[y + b]


@routine
def add_block(
    Y: Address, y: Int, w: Number, first: Int, last: Int, first2: Int, last2: Int, columns: Int, YtY: Address
) -> None:
    """Add the outer product of two segments that do not overlap."""
    for a in range(first, last):
        wa = w * Y[y + a]
        at = a * columns
        for b in range(first2, last2):
            YtY[at + b] += wa * Y[y + b]
