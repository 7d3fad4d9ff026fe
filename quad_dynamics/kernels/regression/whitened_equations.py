# SPDX-License-Identifier: Apache-2.0
"""Normal equations of rows whose errors are correlated through forces at the feet.

The errors of the rows of a sample have the covariance C = diag(v) + J^T J. Multiplied by U^-1, where
C = U U^T with U upper triangular, they are independent with unit variance. Legs are eliminated from their
tips to the base, so that rows stay zero outside the subtree of their joint; these zeros are skipped. No row
is stored.

Columns are grouped by body: for the base its 10 inertial parameters; for each joint the 10 of its body, the
rotor, and columns of its own; at the end columns shared by all rows, the last of them the measurement y.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array, table
from quad_dynamics.compiler.arrays import data, is_none, optional_data
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, load, routine, square_root, store
from quad_dynamics.compiler.types import LANES, Address, Int, Number, Object
from quad_dynamics.kernels.regression.regressor import ROTOR_COLUMNS, write_regressor
from quad_dynamics.kernels.tree import base_rows
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Robot

_BASE = 6  # rows of a floating base
_TOGETHER = 12  # rows of the base that are added at once: those of two states
_TILE, _TILE_WIDTH = 4, 8  # tile of the sum that is kept in registers
_HUBER = 2.0  # whitened residuals beyond this get less weight


def columns_of(nb: Int, nj: Int, n_own: Int, n_shared: Int) -> Int:
    """p, the number of columns."""
    return 10 * (nb - nj) + nj * (11 + n_own) + n_shared


_SOLUTION = table(columns_of, optional=True)


def _room_size(nv: Int, p: Int) -> Int:
    return nv * (2 * p + nv + 1) + _TOGETHER * p


@kernel(
    Robot,
    INT,
    *[OBJECT] * 4,
    table(lambda n, feet, nv: n * feet * nv),
    table(lambda n, nj, n_own: n * nj * n_own),
    table(lambda n, nv, n_shared: n * nv * n_shared),
    *[INT] * 3,
    _SOLUTION,
    _SOLUTION,
    array(lambda nv, nb, nj, n_own, n_shared: _room_size(nv, columns_of(nb, nj, n_own, n_shared))),
    array(
        lambda nb, nj, n_own, n_shared: (
            columns_of(nb, nj, n_own, n_shared) * columns_of(nb, nj, n_own, n_shared)
        ),
        optional=True,
    ),
    array(lambda n, nb, nj, n_own, n_shared: n * columns_of(nb, nj, n_own, n_shared), optional=True),
)
def accumulate_whitened(
    robot: Robot,
    n: Int,
    q: Object,
    u: Object,
    du: Object,
    variance: Object,
    J: Object,
    own: Object,
    shared: Object,
    feet: Int,
    n_own: Int,
    n_shared: Int,
    x_robust: Object,
    x: Object,
    room: Object,
    YtY: Object,
    scores: Object,
) -> Int:
    """Add [Y y]^T W [Y y] of n states to a sum, or write Y^T W (y - Y x) of each state.

    Args:
        robot: its memory.
        n: number of states.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        du: (n, nv) accelerations.
        variance: (n, nv) error variance of each row.
        J: (n, feet, nv) rows of the common errors, scaled to standard deviation 1.
        own: (n, nj, n_own) values of each joint's own columns.
        shared: (n, nv, n_shared) values of the shared columns, the last y: measured generalised forces.
        feet: number of rows of J per state.
        n_own: number of own columns per joint.
        n_shared: number of shared columns, including y.
        x_robust: (p,) solution, -1 for y; rows with large residuals get less weight. Or None.
        x: (p,) solution, -1 for y, for which scores are written. None: add to the sum.
        room: (nv (2 p + nv + 1) + 12 p,) workspace.
        YtY: (p, p) in and out, upper triangle; p is a multiple of 8. None if x is given.
        scores: (n, p) out; None if x is not given.
    """
    nq, nv, nj = robot.nq, robot.nv, robot.nj
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    if not good_vector(robot, n, nv, du):
        return 3
    if not good_vector(robot, n, nv, variance):
        return 4
    robust, with_scores = not is_none(robot, x_robust), not is_none(robot, x)
    if is_none(robot, scores if with_scores else YtY):
        return 15
    q, u, du, variance, J, own = data(q), data(u), data(du), data(variance), data(J), data(own)
    shared, room = data(shared), data(room)
    x_robust, x = optional_data(robot, x_robust), optional_data(robot, x)
    YtY, scores = optional_data(robot, YtY), optional_data(robot, scores)
    width = 11 + n_own
    p = (10 if base_rows(robot) > 0 else 0) + nj * width + n_shared
    compact = 10 * robot.nb + nj
    U, w, raw = nv * p, nv * p + nv * nv, nv * p + nv * nv + nv
    base = raw + nv * compact
    fill_zero(room, 0, nv * p)
    fill_zero(room, base, _TOGETHER * p)
    for i in range(n):
        write_regressor(robot, q, i * nq, u, du, i * nv, ROTOR_COLUMNS, room, raw, compact)
        spread_columns(robot, room, raw, compact, p, width, n_shared)
        add_columns(robot, own, i * nj * n_own, n_own, shared, i * nv * n_shared, n_shared, room, p, width)
        if feet > 0:
            factorize(nv, feet, variance, i * nv, J, i * feet * nv, room, U)
            whiten(robot, room, p, width, n_shared, U)
        else:  # row errors are independent
            for row in range(nv):
                scale_row(robot, room, row, p, width, n_shared, 1.0 / square_root(variance[i * nv + row]))
        for row in range(nv):
            room[w + row] = 1.0
            if robust:
                left = abs(times_row(robot, room, row, p, width, n_shared, x_robust))
                if left > _HUBER:
                    room[w + row] = _HUBER / left
        if with_scores:
            write_scores(robot, room, p, width, n_shared, w, x, scores, i * p)
        else:
            copy_base_rows(robot, room, p, w, base + i % 2 * _BASE * p)
            if base_rows(robot) > 0 and (i % 2 == 1 or i == n - 1):
                add_base_rows(room, base, p, YtY)
                fill_zero(room, base + _BASE * p, _BASE * p)
            add_rows(robot, room, p, width, n_shared, w, YtY)
    return 0


@routine
def block_of(robot: Robot, j: Int, width: Int) -> Int:
    """First column of a joint's body."""
    return (10 if base_rows(robot) > 0 else 0) + j * width


@routine
def row_begin(robot: Robot, row: Int, width: Int) -> Int:
    """The first column in which a row is not zero."""
    j = row - base_rows(robot)
    return block_of(robot, j, width) if j >= 0 else 0


@routine
def row_end(robot: Robot, row: Int, p: Int, width: Int, n_shared: Int) -> Int:
    """One past the last column in which a row is not zero, without the shared ones."""
    j = row - base_rows(robot)
    end = p - n_shared
    if j >= 0:
        end = block_of(robot, j + robot.joints[j].subtree, width)
    return end


@routine
def spread_columns(
    robot: Robot, room: Address, raw: Int, compact: Int, p: Int, width: Int, n_shared: Int
) -> None:
    """Copy a regressor, in which rotors come after all bodies, to rows that are grouped by body."""
    nv, nj, nb, skip = robot.nv, robot.nj, robot.nb, base_rows(robot)
    base = nb - nj  # bodies without a joint: one or none
    for row in range(nv):
        to, of = row * p, raw + row * compact
        first, count = 0, nj
        if row < skip:
            for c in range(10 * base):
                room[to + c] = room[of + c]
        else:
            first = row - skip
            count = robot.joints[first].subtree
        for j in range(first, first + count):
            at = to + block_of(robot, j, width)
            for c in range(10):
                room[at + c] = room[of + 10 * (base + j) + c]
            room[at + 10] = room[of + 10 * nb + j]
            for c in range(11, width):  # columns of other joints: the rows were mixed in the previous state
                room[at + c] = 0.0


@routine
def add_columns(
    robot: Robot,
    own: Address,
    io: Int,
    n_own: Int,
    shared: Address,
    ish: Int,
    n_shared: Int,
    room: Address,
    p: Int,
    width: Int,
) -> None:
    """Write each joint's own columns and the shared ones."""
    nv, nj, skip = robot.nv, robot.nj, base_rows(robot)
    for j in range(nj):
        at = (skip + j) * p + block_of(robot, j, width) + 11
        for c in range(n_own):
            room[at + c] = own[io + j * n_own + c]
    for row in range(nv):
        at = (row + 1) * p - n_shared
        for c in range(n_shared):
            room[at + c] = shared[ish + row * n_shared + c]


@routine
def factorize(
    nv: Int, feet: Int, variance: Address, iv: Int, J: Address, ij: Int, room: Address, U: Int
) -> None:
    """U U^T = diag(variance) + J^T J, U upper triangular, by columns from the last."""
    for i in range(nv):
        for k in range(i, nv):
            total = variance[iv + i] if i == k else 0.0
            for f in range(feet):
                total += J[ij + f * nv + i] * J[ij + f * nv + k]
            room[U + i * nv + k] = total
    for back in range(nv):
        k = nv - 1 - back
        pivot = square_root(room[U + k * nv + k])
        room[U + k * nv + k] = pivot
        for i in range(k):
            factor = room[U + i * nv + k]
            if factor != 0.0:
                factor /= pivot
                room[U + i * nv + k] = factor
        for i in range(k):
            factor = room[U + i * nv + k]
            if factor != 0.0:
                for m in range(i, k):
                    room[U + i * nv + m] -= factor * room[U + m * nv + k]


@routine
def scale_row(
    robot: Robot, room: Address, row: Int, p: Int, width: Int, n_shared: Int, scale: Number
) -> None:
    """Multiply a row by a number."""
    for c in range(row_begin(robot, row, width), row_end(robot, row, p, width, n_shared)):
        room[row * p + c] *= scale
    for c in range(p - n_shared, p):
        room[row * p + c] *= scale


@routine
def whiten(robot: Robot, room: Address, p: Int, width: Int, n_shared: Int, U: Int) -> None:
    """Multiply all rows by U^-1."""
    nv = robot.nv
    for back in range(nv):
        k = nv - 1 - back
        for m in range(k + 1, nv):
            factor = -room[U + k * nv + m]
            if factor != 0.0:
                first, last = row_begin(robot, m, width), row_end(robot, m, p, width, n_shared)
                add_scaled(room, k * p, factor, room, m * p, first, last)
                add_scaled(room, k * p, factor, room, m * p, p - n_shared, p)
        scale_row(robot, room, k, p, width, n_shared, 1.0 / room[U + k * nv + k])


@routine
def times_row(robot: Robot, room: Address, row: Int, p: Int, width: Int, n_shared: Int, x: Address) -> Number:
    """Inner product of a row with a vector."""
    total = 0.0
    for c in range(row_begin(robot, row, width), row_end(robot, row, p, width, n_shared)):
        total += room[row * p + c] * x[c]
    for c in range(p - n_shared, p):
        total += room[row * p + c] * x[c]
    return total


@routine
def write_scores(
    robot: Robot,
    room: Address,
    p: Int,
    width: Int,
    n_shared: Int,
    w: Int,
    x: Address,
    scores: Address,
    at: Int,
) -> None:
    """Y^T W (y - Y x) of one state."""
    fill_zero(scores, at, p)
    for row in range(robot.nv):
        r = -room[w + row] * times_row(robot, room, row, p, width, n_shared, x)
        first, last = row_begin(robot, row, width), row_end(robot, row, p, width, n_shared)
        add_scaled(scores, at, r, room, row * p, first, last)
        add_scaled(scores, at, r, room, row * p, p - n_shared, p)


@routine
def add_rows(robot: Robot, room: Address, p: Int, width: Int, n_shared: Int, w: Int, YtY: Address) -> None:
    """Add the rows of the joints to the sum."""
    nv, skip = robot.nv, base_rows(robot)
    for row in range(skip, nv):
        first, last = row_begin(robot, row, width), row_end(robot, row, p, width, n_shared)
        y = row * p
        for a in range(first, last):
            factor = room[w + row] * room[y + a]
            if factor != 0.0:
                add_scaled(YtY, a * p, factor, room, y, a, last)
                add_scaled(YtY, a * p, factor, room, y, p - n_shared, p)
        for a in range(p - n_shared, p):
            add_scaled(YtY, a * p, room[w + row] * room[y + a], room, y, a, p)


@routine
def add_scaled(to: Address, at: Int, factor: Number, of: Address, ot: Int, first: Int, last: Int) -> None:
    """to[at + first : at + last] += factor of[ot + first : ot + last]."""
    for c in range(first, last):
        to[at + c] += factor * of[ot + c]


@routine
def copy_base_rows(robot: Robot, room: Address, p: Int, w: Int, at: Int) -> None:
    """Save the rows of the base, times the square roots of their weights."""
    for row in range(base_rows(robot)):
        scale = square_root(room[w + row])
        for c in range(p):
            room[at + row * p + c] = scale * room[row * p + c]


@routine
def add_base_rows(room: Address, base: Int, p: Int, YtY: Address) -> None:
    """Add the base rows of two states, which are dense, in tiles that stay in registers."""
    for a in range(0, p, _TILE):
        for b in range(a - a % _TILE_WIDTH, p, _TILE_WIDTH):
            add_tile(room, base, a, b, p, YtY)


@formula
def add_tile(room: Address, base: Int, a: Int, b: Int, p: Int, YtY: Address) -> None:
    """YtY[a : a + 4, b : b + 8] += the products of twelve rows."""
    sums = [[load(YtY, (a + i) * p + b), load(YtY, (a + i) * p + b + LANES)] for i in range(_TILE)]
    for row in range(_TOGETHER):
        at = base + row * p
        left, right = load(room, at + b), load(room, at + b + LANES)
        for i in range(_TILE):
            factor = room[at + a + i]
            sums[i] = [sums[i][0] + factor * left, sums[i][1] + factor * right]
    for i in range(_TILE):
        store(YtY, (a + i) * p + b, sums[i][0])
        store(YtY, (a + i) * p + b + LANES, sums[i][1])
