# SPDX-License-Identifier: Apache-2.0
"""Whole-body control of a legged robot: the equation of motion and the contact constraint eliminated.

Each leg l has three unknowns x_l: the force f_l of the ground on its foot where the foot is down, the
acceleration a_l of its foot where it swings. The acceleration of a foot that is down is given. With the point
Jacobian J_l = [J_b J_j] of a foot (columns of the base and of the leg's own joints), the joints follow from
the base,

    qdd_l = P_l (a_l - dJ_l/dt u - J_b a_b) + (1 - P_l J_j) qdd_0,        P_l = J_j^T (J_j J_j^T)^-1,

and the rows of the base in the equation of motion give its acceleration:

    (M_bb - sum M_bl P_l J_b) a_b = sum J_b^T f_l - sum M_bl (qdd_l at a_b = 0) - h_b.

So accelerations and torques are affine in the unknowns z, du = D z + d and tau = T z + t, and both
constraints hold for every z. P_l is damped where a leg is close to singular (Nakamura and Hanafusa 1986): a
stretched leg cannot keep its foot from accelerating, whatever the joints do. qdd_0 is the acceleration that
joints are to have where the feet leave them free: those of a leg with more than three joints, and those that
belong to no leg.

A leg of two joints moves its foot in a plane only, whose normal is e: e^T J_j = 0. P_l is the inverse within
the plane. Along e the joints can neither move the foot nor push it, but the ground still holds it: e^T f_l is
a reaction, and the base must follow,

    e^T (J_b a_b + dJ_l/dt u) = e^T a_l.

This is a row of the tasks whose weight is far above all others, and not an equality, so that a foot slides
in the model where the pyramid cannot give the reaction.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import Array, ArrayTuple, array, table, tuple_of
from quad_dynamics.compiler.arrays import data, item
from quad_dynamics.compiler.registry import INT, kernel
from quad_dynamics.compiler.trace import fill_zero, routine, square_root
from quad_dynamics.compiler.types import Address, Int, Number, Object
from quad_dynamics.kernels.argument_kinds import TERMS
from quad_dynamics.kernels.controller_terms import DJ_F_U, DJ_G_U, J_F, J_G, P_WF, R_WF, V_WF, H, M
from quad_dynamics.model.layout import Robot

# Words of a leg in the table of legs.
LEG_FRAME, LEG_OFFSET, LEG_RADIUS, LEG_JOINT_COUNT, LEG_JOINTS = 0, 1, 4, 5, 6
LEG_MOST_JOINTS = 10
LEG_PLANAR = LEG_JOINTS + LEG_MOST_JOINTS  # whether its joints cannot move its foot in one direction
LEG_WORDS = LEG_PLANAR + 1
# Words of a foot, out: position, velocity and angular velocity of its centre.
FOOT_P, FOOT_V, FOOT_W, FOOT_WORDS = 0, 3, 6, 9
# Words of the tasks that belong to the whole robot ...
TASK_COM, TASK_ANGULAR, TASK_AXES, TASK_R_WB = 0, 3, 6, 15
TASK_WEIGHT_COM, TASK_WEIGHT_ANGULAR, TASK_WEIGHT_SWING = 24, 27, 30
TASK_UNIT, TASK_MU, TASK_REGULAR, TASK_LENGTH = 31, 32, 33, 34
TASK_WORDS = 35
# ... and of each leg: whether its foot is down, the acceleration of the foot, the largest normal force, and
# the force that it should have.
DOWN, FOOT_A, MOST, FORCE, LEG_TASK_WORDS = 0, 1, 4, 5, 8
# Rows of inequalities for a foot that is down: the four sides of the pyramid, and the normal force.
PYRAMID_ROWS = 5
# Arrays of results, in their order.
OUT_D, OUT_d, OUT_C, OUT_LOW, OUT_HIGH, OUT_W, OUT_b, OUT_H, OUT_c, OUT_z = range(10)
# A leg is close to singular where det(J_j J_j^T)^(1/2) is below this, in lengths of the leg; and how much its
# inverse is damped at a singularity, likewise.
_SINGULAR, _DAMPING = 0.02, 0.05
_INFINITE = 1e30
_HELD = 1e4  # weight of the rows of planar legs
# Rows of tasks that are shorter than this share of the longest, after the others were taken out, are none.
_RANK = 1e-7


_LEGS = table(lambda n: n * LEG_WORDS)


def _out(*rows: Array) -> ArrayTuple:
    """The arrays of `whole_body`; of C and its bounds, as many rows as there may be or as there are."""
    C, low, high = rows
    return tuple_of(
        array(lambda n, nv: nv * 3 * n),  # D
        array(lambda nv: nv),  # d
        C,
        low,
        high,
        array(lambda n: (6 + 3 * n) * 3 * n),  # W
        array(lambda n: 6 + 3 * n),  # b
        array(lambda n: 3 * n * 3 * n),  # H
        array(lambda n: 3 * n),  # c
        array(lambda n: 3 * n),  # z
    )


_BOUNDS = array(lambda n, nj: nj + PYRAMID_ROWS * n)
_ROWS = array(lambda rows: rows)


@kernel(Robot, INT, TERMS, _LEGS, array(lambda n: n * FOOT_WORDS))
def foot_motions(robot: Robot, n: Int, terms: Object, legs: Object, feet: Object) -> Int:
    """Position and velocity of n feet, from the controller's terms.

    Args:
        robot: its memory.
        n: number of legs.
        terms: of `controller_terms`, with the feet as frames.
        legs: (n, LEG_WORDS) table of legs.
        feet: (n, FOOT_WORDS) out.
    """
    p_WF, R, v = data(item(terms, P_WF)), data(item(terms, R_WF)), data(item(terms, V_WF))
    legs, feet = data(legs), data(feet)
    for k in range(n):
        leg, foot = k * LEG_WORDS, k * FOOT_WORDS
        frame = int(legs[leg + LEG_FRAME])
        x, y, z = turned(R, 9 * frame, legs, leg + LEG_OFFSET)
        at = 6 * frame
        wx, wy, wz = v[at + 3], v[at + 4], v[at + 5]
        feet[foot + FOOT_P] = p_WF[3 * frame] + x
        feet[foot + FOOT_P + 1] = p_WF[3 * frame + 1] + y
        feet[foot + FOOT_P + 2] = p_WF[3 * frame + 2] + z
        feet[foot + FOOT_V] = v[at] + wy * z - wz * y
        feet[foot + FOOT_V + 1] = v[at + 1] + wz * x - wx * z
        feet[foot + FOOT_V + 2] = v[at + 2] + wx * y - wy * x
        feet[foot + FOOT_W], feet[foot + FOOT_W + 1], feet[foot + FOOT_W + 2] = wx, wy, wz
    return 0


@kernel(
    Robot,
    INT,
    TERMS,
    _LEGS,
    table(lambda: TASK_WORDS),
    table(lambda n: n * LEG_TASK_WORDS),
    table(lambda nj: nj),
    table(lambda nj: 2 * nj),
    array(lambda n, nv: n * (3 * nv + 4 * LEG_MOST_JOINTS + 3) + 36 + 6 * (3 * n + 1)),
    _out(array(lambda n, nj: (nj + PYRAMID_ROWS * n) * 3 * n), _BOUNDS, _BOUNDS),
)
def whole_body(
    robot: Robot,
    n: Int,
    terms: Object,
    legs: Object,
    tasks: Object,
    leg_tasks: Object,
    free: Object,
    limits: Object,
    room: Object,
    out: Object,
) -> Int:
    """The problem in the 3 n unknowns z: accelerations, torques, tasks and limits.

    Args:
        robot: its memory.
        n: number of legs.
        terms: of `controller_terms`, with the feet as frames.
        legs: (n, LEG_WORDS) table of legs.
        tasks: (TASK_WORDS,) what the robot is to do.
        leg_tasks: (n, LEG_TASK_WORDS) what each leg is to do.
        free: (nj,) accelerations where the feet leave joints free.
        limits: (2, nj) smallest and largest torques.
        room: (n (3 nv + 4 LEG_MOST_JOINTS + 3) + 36 + 6 (3 n + 1)) to work in; out, at its beginning: the
            Jacobians (n, 3, nv) of the feet, and the inverses (n, LEG_MOST_JOINTS, 3) of the legs.
        out: tuple of arrays, out: D (nv, 3 n) and d (nv,); C (nj + PYRAMID_ROWS n, 3 n), of which the upper
            nj rows are T, with its lower and upper bounds; W (6 + 3 n, 3 n) and b (6 + 3 n,), the weighted
            tasks W z = b; H (3 n, 3 n) and c (3 n,), the cost z^T H z / 2 + c^T z that they make; the z that
            forces and swing feet should have.

    Returns:
        Rows of C in use; -1 if the base's rows cannot be solved.
    """
    nv, nj, m = robot.nv, robot.nj, 3 * n
    legs, tasks, leg_tasks, free = data(legs), data(tasks), data(leg_tasks), data(free)
    limits, room = data(limits), data(room)
    D, d, C = data(item(out, OUT_D)), data(item(out, OUT_d)), data(item(out, OUT_C))
    low, high = data(item(out, OUT_LOW)), data(item(out, OUT_HIGH))
    J, P = 0, 3 * nv * n  # Jacobians of the feet, their inverses, what the joints do at a_b = 0
    c0 = P + 3 * LEG_MOST_JOINTS * n
    base = c0 + LEG_MOST_JOINTS * n
    right = base + 36
    across = right + 6 * (m + 1)  # normals of the planes of planar legs
    begin_base(nv, nj, m, data(item(terms, M)), data(item(terms, H)), free, legs, n, room, base, right)
    for k in range(n):
        point_jacobian(nv, k, terms, legs, tasks, leg_tasks, room, J + 3 * nv * k)
        invert_leg(nv, k, legs, tasks, room, J + 3 * nv * k, P + 3 * LEG_MOST_JOINTS * k, across + 3 * k)
        add_leg(
            nv, m, k, terms, legs, tasks, leg_tasks, free, room, J + 3 * nv * k,
            P + 3 * LEG_MOST_JOINTS * k, c0 + LEG_MOST_JOINTS * k, base, right,
        )  # fmt: skip
    if not solve_base(room, base, right, m + 1):
        return -1
    write_accelerations(nv, nj, m, n, legs, leg_tasks, free, room, J, P, c0, right, D, d)
    write_torques(nv, nj, m, n, terms, legs, tasks, leg_tasks, room, J, D, d, limits, C, low, high)
    rows = write_pyramids(nj, m, n, tasks, leg_tasks, C, low, high)
    hold_planar_legs(nv, m, n, terms, legs, tasks, leg_tasks, room, J, across, D, d, out)
    write_tasks(nv, m, n, terms, tasks, leg_tasks, D, d, out)
    return rows


@kernel(
    Robot,
    INT,
    INT,
    table(lambda n: 3 * n),
    _out(array(lambda n, rows: rows * 3 * n), _ROWS, _ROWS),
    array(lambda n: (6 + 3 * n) * (3 * n + 2)),
    tuple_of(
        array(lambda n: 3 * n * 3 * n),
        array(lambda n: 3 * n),
        array(lambda n, rows: rows * 3 * n),
        _ROWS,
        _ROWS,
    ),
)
def next_level(robot: Robot, n: Int, rows: Int, z: Object, out: Object, room: Object, level: Object) -> Int:
    """The problem of the level below the tasks, in unknowns y that leave them as they are: z + N^T y.

    N has orthonormal rows that span the null space of W. The cost of the level is |z + N^T y - z_0|^2 / 2
    with the z_0 of `whole_body`.

    Args:
        robot: its memory.
        n: number of legs.
        rows: of C in use.
        z: (3 n,) solution of the level above.
        out: arrays of `whole_body`.
        room: ((6 + 3 n) (3 n + 2)) to work in.
        level: tuple of arrays, out: N (k, 3 n), the gradient (k,) of the cost at y = 0, C N^T (rows, k), and
            the lower and upper bounds of C N^T y.

    Returns:
        k, the number of unknowns.
    """
    m = 3 * n
    z, room, C = data(z), data(room), data(item(out, OUT_C))
    low, high, z0 = data(item(out, OUT_LOW)), data(item(out, OUT_HIGH)), data(item(out, OUT_z))
    N, c, CN = data(item(level, 0)), data(item(level, 1)), data(item(level, 2))
    lower, upper = data(item(level, 3)), data(item(level, 4))
    k = null_space(m, 6 + m, data(item(out, OUT_W)), room, N)
    for i in range(k):
        total = 0.0
        for j in range(m):
            total += N[i * m + j] * (z[j] - z0[j])
        c[i] = total
    for r in range(rows):
        total = 0.0
        for j in range(m):
            total += C[r * m + j] * z[j]
        lower[r], upper[r] = low[r] - total, high[r] - total
        # z may be outside by a rounding error
        lower[r], upper[r] = min(lower[r], 0.0), max(upper[r], 0.0)
        for i in range(k):
            total = 0.0
            for j in range(m):
                total += C[r * m + j] * N[i * m + j]
            CN[r * k + i] = total
    return k


@routine
def null_space(m: Int, rows: Int, W: Address, room: Address, N: Address) -> Int:
    """Orthonormal rows that span the null space of W (rows, m); their number.

    By Householder's QR factorisation of W^T with column pivoting (Golub and Van Loan, section 5.4.2): the
    rows of W stand in the room one after the other, and behind them the scale of each reflection.
    """
    scale, rank, first = rows * m, 0, 0.0
    for i in range(rows * m):
        room[i] = W[i]
    for step in range(min(m, rows)):
        best, largest = step, -1.0
        for r in range(step, rows):
            norm = 0.0
            for j in range(step, m):
                norm += room[r * m + j] * room[r * m + j]
            if norm > largest:
                best, largest = r, norm
        norm = square_root(largest)
        first = max(first, norm)
        if norm <= _RANK * first or norm == 0.0:
            break
        if best != step:
            for j in range(m):
                room[best * m + j], room[step * m + j] = room[step * m + j], room[best * m + j]
        # the reflection 1 - v v^T scale brings the row to -+norm e_step; v stands in its place
        v = step * m
        head = room[v + step]
        room[v + step] = head + norm if head >= 0.0 else head - norm
        room[scale + step] = 1.0 / (norm * (norm + abs(head)))
        for r in range(step + 1, rows):
            reflect(room, v, scale + step, room, r * m, step, m)
        rank = step + 1
    for i in range(m - rank):
        fill_zero(N, i * m, m)
        N[i * m + rank + i] = 1.0
        for back in range(rank):
            step = rank - 1 - back
            reflect(room, step * m, scale + step, N, i * m, step, m)
    return m - rank


@routine
def reflect(room: Address, v: Int, scale: Int, x: Address, at: Int, first: Int, m: Int) -> None:
    """x -= v (v^T x) scale, from a component on."""
    total = 0.0
    for j in range(first, m):
        total += room[v + j] * x[at + j]
    total *= room[scale]
    for j in range(first, m):
        x[at + j] -= total * room[v + j]


# ---------------------------------------------------------------- legs


@routine
def turned(R: Address, at: Int, v: Address, i: Int) -> tuple[Number, Number, Number]:
    """R v."""
    a, b, c = v[i], v[i + 1], v[i + 2]
    return (
        R[at] * a + R[at + 1] * b + R[at + 2] * c,
        R[at + 3] * a + R[at + 4] * b + R[at + 5] * c,
        R[at + 6] * a + R[at + 7] * b + R[at + 8] * c,
    )


@routine
def point_jacobian(
    nv: Int,
    k: Int,
    terms: Object,
    legs: Address,
    tasks: Address,
    leg_tasks: Address,
    room: Address,
    at: Int,
) -> None:
    """(3, nv) Jacobian of the centre of a foot that swings, of the lowest point of one that is down."""
    leg = k * LEG_WORDS
    frame = int(legs[leg + LEG_FRAME])
    x, y, z = turned(data(item(terms, R_WF)), 9 * frame, legs, leg + LEG_OFFSET)
    if leg_tasks[k * LEG_TASK_WORDS + DOWN] != 0.0:
        radius = legs[leg + LEG_RADIUS]
        x -= radius * tasks[TASK_AXES + 2]
        y -= radius * tasks[TASK_AXES + 5]
        z -= radius * tasks[TASK_AXES + 8]
    JF = data(item(terms, J_F))
    j = 6 * nv * frame
    for i in range(nv):
        wx, wy, wz = JF[j + 3 * nv + i], JF[j + 4 * nv + i], JF[j + 5 * nv + i]
        room[at + i] = JF[j + i] + wy * z - wz * y
        room[at + nv + i] = JF[j + nv + i] + wz * x - wx * z
        room[at + 2 * nv + i] = JF[j + 2 * nv + i] + wx * y - wy * x


@routine
def point_bias(
    k: Int, terms: Object, legs: Address, tasks: Address, leg_tasks: Address
) -> tuple[Number, Number, Number]:
    """dJ/dt u of the point of `point_jacobian`.

    A foot of radius R that rolls on ground with the normal n moves with v = w x R n, so that its centre
    accelerates with dw/dt x R n: nothing quadratic in w is left of the way from the centre to the ground.
    """
    leg = k * LEG_WORDS
    frame = int(legs[leg + LEG_FRAME])
    v, bias = data(item(terms, V_WF)), data(item(terms, DJ_F_U))
    cx, cy, cz = turned(data(item(terms, R_WF)), 9 * frame, legs, leg + LEG_OFFSET)
    at = 6 * frame
    wx, wy, wz = v[at + 3], v[at + 4], v[at + 5]
    along, square = wx * cx + wy * cy + wz * cz, wx * wx + wy * wy + wz * wz
    ax = bias[at] + wx * along - cx * square
    ay = bias[at + 1] + wy * along - cy * square
    az = bias[at + 2] + wz * along - cz * square
    if leg_tasks[k * LEG_TASK_WORDS + DOWN] != 0.0:
        radius = legs[leg + LEG_RADIUS]
        cx -= radius * tasks[TASK_AXES + 2]
        cy -= radius * tasks[TASK_AXES + 5]
        cz -= radius * tasks[TASK_AXES + 8]
    px, py, pz = bias[at + 3], bias[at + 4], bias[at + 5]
    return ax + py * cz - pz * cy, ay + pz * cx - px * cz, az + px * cy - py * cx


@routine
def invert_leg(
    nv: Int, k: Int, legs: Address, tasks: Address, room: Address, J: Int, P: Int, across: Int
) -> None:
    """(joints, 3) the damped inverse P = J_j^T (J_j J_j^T + lambda)^-1 of a leg; normal of a planar one."""
    leg = k * LEG_WORDS
    count = int(legs[leg + LEG_JOINT_COUNT])
    xx = xy = xz = yy = yz = zz = 0.0
    for i in range(count):
        at = J + 6 + int(legs[leg + LEG_JOINTS + i])
        x, y, z = room[at], room[at + nv], room[at + 2 * nv]
        xx, xy, xz = xx + x * x, xy + x * y, xz + x * z
        yy, yz, zz = yy + y * y, yz + y * z, zz + z * z
    scale = tasks[TASK_LENGTH]
    if legs[leg + LEG_PLANAR] != 0.0:
        # The adjugate of a matrix of rank 2 is l_1 l_2 e e^T. With scale^2 e e^T beside it, J_j J_j^T has an
        # inverse, which is the same within the plane.
        x, y, z = null_vector(xx, xy, xz, yy, yz, zz)
        room[across], room[across + 1], room[across + 2] = x, y, z
        x, y, z = scale * x, scale * y, scale * z
        xx, xy, xz = xx + x * x, xy + x * y, xz + x * z
        yy, yz, zz = yy + y * y, yz + y * z, zz + z * z
    det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    size = square_root(max(det, 0.0)) / (scale * scale * scale)
    if size < _SINGULAR:
        damping = _DAMPING * scale * (1.0 - size / _SINGULAR)
        damping *= damping
        xx, yy, zz = xx + damping, yy + damping, zz + damping
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    e, f, g = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    inverse = 1.0 / (xx * a + xy * b + xz * c)
    for i in range(count):
        at = J + 6 + int(legs[leg + LEG_JOINTS + i])
        x, y, z = room[at], room[at + nv], room[at + 2 * nv]
        room[P + 3 * i] = (x * a + y * b + z * c) * inverse
        room[P + 3 * i + 1] = (x * b + y * e + z * f) * inverse
        room[P + 3 * i + 2] = (x * c + y * f + z * g) * inverse


@routine
def null_vector(
    xx: Number, xy: Number, xz: Number, yy: Number, yz: Number, zz: Number
) -> tuple[Number, Number, Number]:
    """The unit vector that a symmetric matrix of rank 2 maps to zero; the zero vector at a lower rank."""
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    e, f, g = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    x, y, z = a, b, c
    if e >= a and e >= g:
        x, y, z = b, e, f
    elif g >= a:
        x, y, z = c, f, g
    norm = square_root(x * x + y * y + z * z)
    inverse = 1.0 / norm if norm > 0.0 else 0.0
    return x * inverse, y * inverse, z * inverse


# ---------------------------------------------------------------- the base


@routine
def begin_base(
    nv: Int,
    nj: Int,
    m: Int,
    mass: Address,
    h: Address,
    free: Address,
    legs: Address,
    n: Int,
    room: Address,
    base: Int,
    right: Int,
) -> None:
    """M_bb, and right of it the rows [G | g] of a_b without any leg: G is zero, g is -h_b - M_bo qdd_o."""
    fill_zero(room, right, 6 * (m + 1))
    for i in range(6):
        for j in range(6):
            room[base + 6 * i + j] = mass[i * nv + j]
        total = -h[i]
        for j in range(nj):
            total -= mass[i * nv + 6 + j] * free[j]
        for k in range(n):  # joints of legs are counted with their leg
            for s in range(int(legs[k * LEG_WORDS + LEG_JOINT_COUNT])):
                j = int(legs[k * LEG_WORDS + LEG_JOINTS + s])
                total += mass[i * nv + 6 + j] * free[j]
        room[right + i * (m + 1) + m] = total


@routine
def add_leg(
    nv: Int,
    m: Int,
    k: Int,
    terms: Object,
    legs: Address,
    tasks: Address,
    leg_tasks: Address,
    free: Address,
    room: Address,
    J: Int,
    P: Int,
    c0: Int,
    base: Int,
    right: Int,
) -> None:
    """Add a leg to the rows of the base, and write what its joints do at z = 0 and a_b = 0."""
    leg, task, mass = k * LEG_WORDS, k * LEG_TASK_WORDS, data(item(terms, M))
    count, down = int(legs[leg + LEG_JOINT_COUNT]), leg_tasks[task + DOWN] != 0.0
    ax, ay, az = point_bias(k, terms, legs, tasks, leg_tasks)
    ax, ay, az = -ax, -ay, -az
    if down:
        ax, ay, az = (
            ax + leg_tasks[task + FOOT_A],
            ay + leg_tasks[task + FOOT_A + 1],
            az + leg_tasks[task + FOOT_A + 2],
        )
    for i in range(nv - 6):  # joints that move as they are to: all of them here, less what P makes of it
        if free[i] != 0.0:
            at = J + 6 + i
            ax, ay, az = (
                ax - room[at] * free[i],
                ay - room[at + nv] * free[i],
                az - room[at + 2 * nv] * free[i],
            )
    for s in range(count):
        at = P + 3 * s
        room[c0 + s] = (
            room[at] * ax + room[at + 1] * ay + room[at + 2] * az + free[int(legs[leg + LEG_JOINTS + s])]
        )
    unit = tasks[TASK_UNIT]
    for i in range(6):
        x = y = z = 0.0
        row = right + i * (m + 1)
        for s in range(count):
            coupling = mass[i * nv + 6 + int(legs[leg + LEG_JOINTS + s])]
            x += coupling * room[P + 3 * s]
            y += coupling * room[P + 3 * s + 1]
            z += coupling * room[P + 3 * s + 2]
            room[row + m] -= coupling * room[c0 + s]
        for j in range(6):
            room[base + 6 * i + j] -= x * room[J + j] + y * room[J + nv + j] + z * room[J + 2 * nv + j]
        if down:
            room[row + 3 * k] = room[J + i] * unit
            room[row + 3 * k + 1] = room[J + nv + i] * unit
            room[row + 3 * k + 2] = room[J + 2 * nv + i] * unit
        else:
            room[row + 3 * k] = -x
            room[row + 3 * k + 1] = -y
            room[row + 3 * k + 2] = -z


@routine
def solve_base(room: Address, base: Int, right: Int, columns: Int) -> Int:
    """Replace the right-hand sides by the solutions, by Gaussian elimination with pivoting; 0 if singular."""
    for k in range(6):
        pivot, largest = k, abs(room[base + 6 * k + k])
        for i in range(k + 1, 6):
            if abs(room[base + 6 * i + k]) > largest:
                pivot, largest = i, abs(room[base + 6 * i + k])
        if not largest > 1e-12:
            return 0
        if pivot != k:
            for j in range(6):
                room[base + 6 * k + j], room[base + 6 * pivot + j] = (
                    room[base + 6 * pivot + j],
                    room[base + 6 * k + j],
                )
            for j in range(columns):
                room[right + columns * k + j], room[right + columns * pivot + j] = (
                    room[right + columns * pivot + j],
                    room[right + columns * k + j],
                )
        inverse = 1.0 / room[base + 6 * k + k]
        for j in range(k, 6):
            room[base + 6 * k + j] *= inverse
        for j in range(columns):
            room[right + columns * k + j] *= inverse
        for i in range(6):
            factor = room[base + 6 * i + k]
            if i != k and factor != 0.0:
                for j in range(k, 6):
                    room[base + 6 * i + j] -= factor * room[base + 6 * k + j]
                for j in range(columns):
                    room[right + columns * i + j] -= factor * room[right + columns * k + j]
    return 1


# ---------------------------------------------------------------- from the base to everything


@routine
def write_accelerations(
    nv: Int,
    nj: Int,
    m: Int,
    n: Int,
    legs: Address,
    leg_tasks: Address,
    free: Address,
    room: Address,
    J: Int,
    P: Int,
    c0: Int,
    right: Int,
    D: Address,
    d: Address,
) -> None:
    """du = D z + d."""
    fill_zero(D, 6 * m, nj * m)
    for i in range(6):
        for j in range(m):
            D[i * m + j] = room[right + i * (m + 1) + j]
        d[i] = room[right + i * (m + 1) + m]
    for j in range(nj):
        d[6 + j] = free[j]
    for k in range(n):
        leg, own = k * LEG_WORDS, J + 3 * nv * k
        for s in range(int(legs[leg + LEG_JOINT_COUNT])):
            row, p = 6 + int(legs[leg + LEG_JOINTS + s]), P + 3 * LEG_MOST_JOINTS * k + 3 * s
            total = room[c0 + LEG_MOST_JOINTS * k + s]
            for i in range(6):
                factor = (
                    room[p] * room[own + i]
                    + room[p + 1] * room[own + nv + i]
                    + room[p + 2] * room[own + 2 * nv + i]
                )
                total -= factor * d[i]
                for j in range(m):
                    D[row * m + j] -= factor * D[i * m + j]
            d[row] = total
            if leg_tasks[k * LEG_TASK_WORDS + DOWN] == 0.0:
                for i in range(3):
                    D[row * m + 3 * k + i] += room[p + i]


@routine
def write_torques(
    nv: Int,
    nj: Int,
    m: Int,
    n: Int,
    terms: Object,
    legs: Address,
    tasks: Address,
    leg_tasks: Address,
    room: Address,
    J: Int,
    D: Address,
    d: Address,
    limits: Address,
    C: Address,
    low: Address,
    high: Address,
) -> None:
    """tau = T z + t into the upper rows of C; bounds of T z."""
    mass, h, unit = data(item(terms, M)), data(item(terms, H)), tasks[TASK_UNIT]
    fill_zero(C, 0, nj * m)
    for i in range(nj):
        at, total = (6 + i) * nv, h[6 + i]
        for s in range(nv):
            factor = mass[at + s]
            if factor != 0.0:
                total += factor * d[s]
                for j in range(m):
                    C[i * m + j] += factor * D[s * m + j]
        for k in range(n):
            if leg_tasks[k * LEG_TASK_WORDS + DOWN] != 0.0:
                for j in range(3):
                    C[i * m + 3 * k + j] -= room[J + 3 * nv * k + nv * j + 6 + i] * unit
        low[i], high[i] = limits[i] - total, limits[nj + i] - total


@routine
def write_pyramids(
    nj: Int, m: Int, n: Int, tasks: Address, leg_tasks: Address, C: Address, low: Address, high: Address
) -> Int:
    """Rows of the friction pyramids, inside the cones, and of the normal forces; the number of all rows."""
    row, unit = nj, tasks[TASK_UNIT]
    mu = tasks[TASK_MU] / square_root(2.0)
    for k in range(n):
        task = k * LEG_TASK_WORDS
        if leg_tasks[task + DOWN] == 0.0:
            continue
        fill_zero(C, row * m, PYRAMID_ROWS * m)
        for i in range(3):
            x, y = tasks[TASK_AXES + 3 * i], tasks[TASK_AXES + 3 * i + 1]
            up = tasks[TASK_AXES + 3 * i + 2]
            at = row * m + 3 * k + i
            C[at], C[at + m] = x - mu * up, -x - mu * up
            C[at + 2 * m], C[at + 3 * m] = y - mu * up, -y - mu * up
            C[at + 4 * m] = up
        for i in range(4):
            low[row + i], high[row + i] = -_INFINITE, 0.0
        low[row + 4], high[row + 4] = 0.0, leg_tasks[task + MOST] / unit
        row += PYRAMID_ROWS
    return row


@routine
def hold_planar_legs(
    nv: Int,
    m: Int,
    n: Int,
    terms: Object,
    legs: Address,
    tasks: Address,
    leg_tasks: Address,
    room: Address,
    J: Int,
    across: Int,
    D: Address,
    d: Address,
    out: Object,
) -> None:
    """Rows of W z = b by which planar legs whose feet are down hold the base; zero elsewhere."""
    W, b = data(item(out, OUT_W)), data(item(out, OUT_b))
    fill_zero(W, 0, (6 + m) * m)
    weight = square_root(_HELD)
    for k in range(n):
        task, row, own = k * LEG_TASK_WORDS, 6 + 3 * k, J + 3 * nv * k
        for i in range(3):
            b[row + i] = 0.0
        if legs[k * LEG_WORDS + LEG_PLANAR] == 0.0 or leg_tasks[task + DOWN] == 0.0:
            continue
        x, y, z = room[across + 3 * k], room[across + 3 * k + 1], room[across + 3 * k + 2]
        ax, ay, az = point_bias(k, terms, legs, tasks, leg_tasks)
        total = x * (leg_tasks[task + FOOT_A] - ax) + y * (leg_tasks[task + FOOT_A + 1] - ay)
        total += z * (leg_tasks[task + FOOT_A + 2] - az)
        for i in range(6):
            factor = x * room[own + i] + y * room[own + nv + i] + z * room[own + 2 * nv + i]
            total -= factor * d[i]
            for j in range(m):
                W[row * m + j] += weight * factor * D[i * m + j]
        b[row] = weight * total


@routine
def write_tasks(
    nv: Int,
    m: Int,
    n: Int,
    terms: Object,
    tasks: Address,
    leg_tasks: Address,
    D: Address,
    d: Address,
    out: Object,
) -> None:
    """The weighted tasks W z = b, the cost that all rows make, and the z of the forces' level."""
    W, b, H_ = data(item(out, OUT_W)), data(item(out, OUT_b)), data(item(out, OUT_H))
    c, z0 = data(item(out, OUT_c)), data(item(out, OUT_z))
    JG, bias, unit = data(item(terms, J_G)), data(item(terms, DJ_G_U)), tasks[TASK_UNIT]
    for i in range(3):  # along an axis of the ground
        weight, axis = square_root(tasks[TASK_WEIGHT_COM + i]), TASK_AXES + i
        x, y, z = tasks[axis], tasks[axis + 3], tasks[axis + 6]
        total = x * (tasks[TASK_COM] - bias[0]) + y * (tasks[TASK_COM + 1] - bias[1])
        total += z * (tasks[TASK_COM + 2] - bias[2])
        for s in range(nv):
            factor = x * JG[s] + y * JG[nv + s] + z * JG[2 * nv + s]
            if factor != 0.0:
                total -= factor * d[s]
                for j in range(m):
                    W[i * m + j] += weight * factor * D[s * m + j]
        b[i] = weight * total
    for i in range(3):
        weight, axis = square_root(tasks[TASK_WEIGHT_ANGULAR + i]), TASK_AXES + i
        x, y, z = tasks[axis], tasks[axis + 3], tasks[axis + 6]
        total = x * tasks[TASK_ANGULAR] + y * tasks[TASK_ANGULAR + 1] + z * tasks[TASK_ANGULAR + 2]
        for s in range(3):
            at = TASK_R_WB + s
            factor = x * tasks[at] + y * tasks[at + 3] + z * tasks[at + 6]
            total -= factor * d[3 + s]
            for j in range(m):
                W[(3 + i) * m + j] += weight * factor * D[(3 + s) * m + j]
        b[3 + i] = weight * total
    weight = square_root(tasks[TASK_WEIGHT_SWING])
    for k in range(n):
        task = k * LEG_TASK_WORDS
        for i in range(3):
            row = 6 + 3 * k + i
            if leg_tasks[task + DOWN] != 0.0:
                z0[3 * k + i] = leg_tasks[task + FORCE + i] / unit
            else:
                W[row * m + 3 * k + i] = weight
                b[row] = weight * leg_tasks[task + FOOT_A + i]
                z0[3 * k + i] = leg_tasks[task + FOOT_A + i]
    regular = tasks[TASK_REGULAR]
    fill_zero(H_, 0, m * m)
    for j in range(m):
        c[j] = -regular * z0[j]
        H_[j * m + j] = regular
    for row in range(6 + m):
        for i in range(m):
            factor = W[row * m + i]
            if factor != 0.0:
                c[i] -= factor * b[row]
                for j in range(m):
                    H_[i * m + j] += factor * W[row * m + j]
