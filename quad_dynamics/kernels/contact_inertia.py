# SPDX-License-Identifier: Apache-2.0
"""The response of the robot to a force on a link, from the articulated inertias.

A force F on a body acts on its parent as chi^T F, with the propagator chi = 1 - S U^T / d (in one frame for
all bodies, transforms between them are the identity). On its way to the base it contributes S . F at each
joint, and F_b at the base. Then, for forces a and b,

    a^T J M^-1 J^T b = sum over joints (S . F^a) (S . F^b) / d + F^a_b . (I^A_b)^-1 F^b_b,

which is 1/Lambda for a single direction. The acceleration of every joint is

    qdd_i = sum over joints Q_ij (S_j . F) / d_j + W_i a_b,

where Q_ii = 1, and the rest of row i follows from F = -U_i / d_i, that is (chi_i - 1)^T s with S_i . s = 1:
Q_ij = S_j . F, then F <- chi_j^T F, up to the base; what remains there is W_i.

Points are passed as two tuples: `links` has the frames of their links (see `frames`), `offsets` the position
(3,) of each point in the frame of its link [m], or None for the origin. Three unit forces at a point, or
three unit moments, form a group: they are propagated to the base together, one in each lane.
"""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, is_none, item, length
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import (
    fill_zero,
    formula,
    load,
    routine,
    split,
    square_root,
    store,
    unit_lanes,
    zero_lanes,
)
from quad_dynamics.compiler.types import (
    LANES,
    Address,
    Bool,
    Int,
    Lanes,
    Number,
    Object,
    Vec3,
    Vec6,
)
from quad_dynamics.kernels.aba import articulate_rigid, factor_base, reduce_inertia, solve_factored_base
from quad_dynamics.kernels.argument_kinds import FRAME, FRAMES, OPTIONAL_ITEMS, VECTORS
from quad_dynamics.kernels.spatial import add, cross, dot, rotate, scale, sub, unrotate
from quad_dynamics.kernels.tree import (
    ZERO3,
    base_rotation,
    base_rows,
    body_of,
    link_frame,
    place_bodies,
    position_of_point,
    rigid_inertia,
)
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Body, LinkFrame, Pack, Robot

ROWS = 3  # of a group


@kernel(
    Robot,
    INT,
    OBJECT,
    FRAMES,
    OPTIONAL_ITEMS,
    INT,
    array(lambda len_links, moments, nv: len_links * (1 + moments) * nv * LANES),
    array(
        lambda states, len_links, moments: (
            states * (ROWS * len_links * (1 + moments)) * (ROWS * len_links * (1 + moments))
        )
    ),
)
def contact_inertia(
    robot: Robot, n: Int, q: Object, links: Object, offsets: Object, moments: Int, T: Object, G: Object
) -> Int:
    """J M^-1 J^T of points in n configurations.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        links: tuple of the links' frames.
        offsets: tuple of the points' positions, or None if all are origins of links.
        moments: 1 to include rotations of the links, after the three directions of each point; else 0.
        T: (groups, nv, LANES) workspace: contributions of the forces of each group at the base and the
            joints.
        G: (n, r, r) out; r is ROWS times the number of groups.
    """
    if not good_configuration(robot, n, q):
        return 1
    if not good_offsets(robot, links, offsets):
        return 3
    nv, kinds = robot.nv, 1 + moments
    groups = length(links) * kinds
    r = ROWS * groups
    q, T, G = data(q), data(T), data(G)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * robot.nq)
        articulate(robot)
        for a in range(groups):
            frame = link_frame(data(item(links, a // kinds)))
            p_K = point_in_body(robot, frame, item_or_none(robot, offsets, a // kinds))
            propagate_group(robot, frame, p_K, a % kinds, T, a * nv * LANES)
        for a in range(groups):
            joint = link_frame(data(item(links, a // kinds))).joint
            for b in range(a + 1):
                rows = multiply_groups(robot, joint, T, a * nv * LANES, b * nv * LANES)
                write_block(rows, G, i * r * r, a * ROWS, b * ROWS, r)
    return 0


@routine
def good_offsets(robot: Robot, links: Object, offsets: Object) -> Bool:
    """Whether there is a finite position, or None, for each link."""
    if is_none(robot, offsets):
        return True
    if length(offsets) != length(links):
        return False
    for k in range(length(links)):
        offset = item(offsets, k)
        if not (is_none(robot, offset) or good_vector(robot, 0, 3, offset)):
            return False
    return True


@routine
def item_or_none(robot: Robot, items: Object, i: Int) -> Int:
    """Address of element i of a tuple; that of None if there is no tuple."""
    return robot.none if is_none(robot, items) else item(items, i)


@routine
def point_in_body(robot: Robot, frame: LinkFrame, offset: Object) -> Vec3:
    """p_K of a point given in the frame of a link."""
    if is_none(robot, offset):
        return frame.position
    return shift_point(frame, data(offset))


@formula
def shift_point(frame: LinkFrame, x: Address) -> Vec3:
    """p_KF + R_KF x."""
    return add(frame.position, rotate(frame.rotation, (x[0], x[1], x[2])))


@routine
def propagate_group(robot: Robot, frame: LinkFrame, p_K: Vec3, kind: Int, T: Address, to: Int) -> None:
    """Write the contributions of unit forces (kind 0) or moments (1) at a point to T[to : to + nv LANES]."""
    nv, skip = robot.nv, base_rows(robot)
    fill_zero(T, to, nv * LANES)
    if kind == 0:
        f, n = start_forces(body_of(robot, frame), p_K)
    else:
        f, n = start_moments(robot)
    j = frame.joint
    while j >= 0:
        left, f, n = pass_through(robot.joints[j].body, f, n)
        store(T, to + (skip + j) * LANES, left)
        j = robot.joints[j].parent
    if skip > 0:
        store_base(robot, T, to, f, n)


@formula
def start_forces(body: Body, p_K: Vec3) -> tuple[Vec3, Vec3]:
    """Unit forces at a point, as wrenches about the origin of A, one in each lane."""
    return place_force(body, p_K, unit_lanes(body.memory), ZERO3)


@formula
def start_moments(robot: Robot) -> tuple[Vec3, Vec3]:
    """Unit moments as wrenches, one in each lane."""
    zero = zero_lanes(robot)
    return (zero, zero, zero), unit_lanes(robot)


@formula
def store_base(robot: Robot, T: Address, to: Int, f: Vec3, n: Vec3) -> None:
    """L^-1 F_b, so that F_a . (I^A)^-1 F_b is a product of two of them with 1/D in between."""
    for k, x in enumerate(halfway_base(robot, f + n)):
        store(T, to + k * LANES, x)


@routine
def multiply_groups(robot: Robot, joint: Int, T: Address, a: Int, b: Int) -> tuple[Lanes, Lanes, Lanes]:
    """Rows of group a times columns (lanes) of group b; only joints above that of a contribute."""
    skip = base_rows(robot)
    rows = (zero_lanes(robot), zero_lanes(robot), zero_lanes(robot))
    j = joint
    while j >= 0:
        c = (skip + j) * LANES
        rows = add_product(rows, T, a + c, b + c, robot.joints[j].body.d_inv)
        j = robot.joints[j].parent
    if skip > 0:
        rows = add_base_products(robot, rows, T, a, b)
    return rows


@formula
def add_product(
    rows: tuple[Lanes, Lanes, Lanes], T: Address, a: Int, b: Int, factor: Number
) -> tuple[Lanes, Lanes, Lanes]:
    """Add factor T_a T_b^T of one column."""
    scaled = load(T, b) * factor
    x, y, z = (row + T[a + i] * scaled for i, row in enumerate(rows))
    return x, y, z


@formula
def add_base_products(
    robot: Robot, rows: tuple[Lanes, Lanes, Lanes], T: Address, a: Int, b: Int
) -> tuple[Lanes, Lanes, Lanes]:
    """Add F_a . (I^A)^-1 F_b of the base."""
    for c, d_inv in enumerate(robot.base.d_inv):
        rows = add_product(rows, T, a + c * LANES, b + c * LANES, d_inv)
    return rows


@formula
def write_block(rows: tuple[Lanes, Lanes, Lanes], G: Address, at: Int, a: Int, b: Int, r: Int) -> None:
    """Write a block to rows a and columns b of the r x r matrix at G[at], and its transpose.

    The later of two writes to an element wins, so blocks on the diagonal are exactly symmetric, too.
    """
    for i, row in enumerate(rows):
        for k, x in enumerate(split(row)[:ROWS]):
            G[at + (a + i) * r + b + k] = x
            G[at + (b + k) * r + a + i] = x


@kernel(Robot, INT, OBJECT, FRAME, OBJECT, OBJECT, array(lambda nv: nv), array(lambda states: states))
def directional_inertia(
    robot: Robot, n: Int, q: Object, frame: Object, offset: Object, direction: Object, T: Object, out: Object
) -> Int:
    """1/Lambda of a point in a direction, in n configurations.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one.
        q: (n, nq) configurations.
        frame: frame of the link.
        offset: (3,) position of the point in that frame.
        direction: (3,) not zero, world axes.
        T: (nv,) workspace.
        out: (max(n, 1),) out.
    """
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, 0, 3, offset):
        return 3
    if not good_direction(robot, direction):
        return 4
    frame, force = link_frame(data(frame)), unit_vector(data(direction))
    p_K = shift_point(frame, data(offset))
    q, T, out = data(q), data(T), data(out)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * robot.nq)
        articulate(robot)
        propagate(robot, frame, p_K, force, T)
        out[i] = sum_squares(robot, T)
    return 0


@routine
def sum_squares(robot: Robot, T: Address) -> Number:
    """1/Lambda: the sum of (S . F)^2 / d and of F_b . (I^A_b)^-1 F_b, from the contributions in T (nv)."""
    skip, total = base_rows(robot), 0.0
    if skip > 0:
        d_inv = robot.base.d_inv
        x = halfway_base(robot, (T[0], T[1], T[2], T[3], T[4], T[5]))
        for k in range(6):
            total += x[k] * x[k] * d_inv[k]
    for j in range(robot.nj):
        total += T[skip + j] * T[skip + j] * robot.joints[j].body.d_inv
    return total


@routine
def good_direction(robot: Robot, direction: Object) -> Bool:
    """Whether it is a finite, nonzero vector (3,)."""
    if not good_vector(robot, 0, 3, direction):
        return False
    x = data(direction)
    return x[0] != 0.0 or x[1] != 0.0 or x[2] != 0.0


@routine
def unit_vector(x: Address) -> Vec3:
    """The direction of x; its squared norm must neither overflow nor underflow."""
    largest = max(abs(x[0]), abs(x[1]), abs(x[2]))
    return normalize((x[0] / largest, x[1] / largest, x[2] / largest))


@formula
def normalize(x: Vec3) -> Vec3:
    """A unit vector."""
    return scale(x, 1.0 / square_root(dot(x, x)))


@routine
def articulate(robot: Robot) -> None:
    """U and 1/d of all joints, and the factored system of the base; after `place_bodies`."""
    for k in range(robot.n_packs):
        start_rigid(robot.packs[k])
    for k in range(robot.n_packs - 1, 0, -1):
        reduce_inertia(robot.packs[k])
    if robot.floating != 0:
        factor_base(robot)


@formula
def start_rigid(pack: Pack) -> None:
    """The inertia of the single bodies of a pack, as an articulated inertia."""
    articulate_rigid(pack, *rigid_inertia(pack))


@routine
def propagate(robot: Robot, frame: LinkFrame, p_K: Vec3, force: Vec3, T: Address) -> None:
    """Write the contributions of a force at a point of a link, at the base (6) and the joints, to T (nv)."""
    skip = base_rows(robot)
    fill_zero(T, 0, robot.nv)
    f, n = place_force(body_of(robot, frame), p_K, force, ZERO3)
    j = frame.joint
    while j >= 0:
        left, f, n = pass_through(robot.joints[j].body, f, n)
        T[skip + j] = left
        j = robot.joints[j].parent
    if skip > 0:
        write_wrench(T, 0, f, n)


@formula
def place_force(body: Body, p_K: Vec3, force: Vec3, moment: Vec3) -> tuple[Vec3, Vec3]:
    """The force as a wrench about the origin of A."""
    return force, add(moment, cross(position_of_point(body, p_K), force))


@formula
def pass_through(body: Body, f: Vec3, n: Vec3) -> tuple[Number, Vec3, Vec3]:
    """S . F, and chi^T F = F - U (S . F) / d."""
    left = dot(body.axis_v, f) + dot(body.axis_w, n)
    x = left * body.d_inv
    return left, sub(f, scale(body.U_f, x)), sub(n, scale(body.U_n, x))


@formula
def write_wrench(T: Address, to: Int, f: Vec3, n: Vec3) -> None:
    """Write [f; n] to T[to : to + 6]."""
    for k, x in enumerate(f + n):
        T[to + k] = x


@formula
def halfway_base(robot: Robot, wrench: Vec6) -> Vec6:
    """L^-1 F_b, with the factor L of the base's system."""
    lower = robot.base.lower
    x = list(wrench)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - lower[6 * i + k] * x[k]
    return tuple(x)


# ---------------------------------------------------------------- response by Q and W


@kernel(
    Robot,
    INT,
    OBJECT,
    array(lambda states, nj: 6 * states * nj),
    array(lambda states, nj: 6 * states * nj),
    array(lambda states, nj: states * nj),
    array(lambda states, nj: states * nj * nj),
    array(lambda states, nj: 6 * states * nj),
)
def contact_propagators(
    robot: Robot, n: Int, q: Object, S: Object, U: Object, d_inv: Object, Q: Object, W: Object
) -> Int:
    """Joint motions, propagators, Q and W of n configurations, in frame A.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        S: (n, nj, 6) out, joint motions [v; w].
        U: (n, nj, 6) out.
        d_inv: (n, nj) out.
        Q: (n, nj, nj) out.
        W: (n, nj, 6) out.
    """
    if not good_configuration(robot, n, q):
        return 1
    nj = robot.nj
    q, S, U, d_inv, Q, W = data(q), data(S), data(U), data(d_inv), data(Q), data(W)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * robot.nq)
        articulate(robot)
        write_Q_W(robot, Q, i * nj * nj, W, i * nj * 6)
        for j in range(nj):
            body = robot.joints[j].body
            d_inv[i * nj + j] = body.d_inv
            write_wrench(S, (i * nj + j) * 6, body.axis_v, body.axis_w)
            write_wrench(U, (i * nj + j) * 6, body.U_f, body.U_n)
    return 0


@routine
def write_Q_W(robot: Robot, Q: Address, to_Q: Int, W: Address, to_W: Int) -> None:
    """Write Q (nj nj) and W (nj 6), after `articulate`."""
    nj = robot.nj
    fill_zero(Q, to_Q, nj * nj)
    for i in range(nj):
        Q[to_Q + i * nj + i] = 1.0
        f, n = start_row(robot.joints[i].body)
        j = robot.joints[i].parent
        while j >= 0:
            left, f, n = pass_through(robot.joints[j].body, f, n)
            Q[to_Q + i * nj + j] = left
            j = robot.joints[j].parent
        write_wrench(W, to_W + 6 * i, f, n)


@formula
def start_row(body: Body) -> tuple[Vec3, Vec3]:
    """F = -U / d."""
    x = -body.d_inv
    return scale(body.U_f, x), scale(body.U_n, x)


@kernel(Robot, INT, OBJECT, FRAME, OBJECT, OBJECT, array(lambda nv, nj: nv + 6 * nj + nj * nj), VECTORS)
def unit_response(
    robot: Robot,
    n: Int,
    q: Object,
    frame: Object,
    offset: Object,
    direction: Object,
    work: Object,
    du: Object,
) -> Int:
    """Acceleration M^-1 J^T f due to a unit force, in n configurations.

    Args:
        robot: its memory.
        n: number of configurations, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        frame: frame of the link.
        offset: (3,) point of application in that frame.
        direction: (3,) not zero, world axes.
        work: (nv + 6 nj + nj nj,) workspace: T, W and Q.
        du: (n, nv) out.
    """
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, 0, 3, offset):
        return 3
    if not good_direction(robot, direction):
        return 4
    nv, to_Q = robot.nv, robot.nv + 6 * robot.nj
    frame, force = link_frame(data(frame)), unit_vector(data(direction))
    p_K = shift_point(frame, data(offset))
    q, work, du = data(q), data(work), data(du)
    for i in range(max(n, 1)):
        place_bodies(robot, q, i * robot.nq)
        articulate(robot)
        write_Q_W(robot, work, to_Q, work, nv)
        propagate(robot, frame, p_K, force, work)
        respond(robot, work, nv, to_Q, du, i * nv)
    return 0


@routine
def respond(robot: Robot, work: Address, to_W: Int, to_Q: Int, du: Address, to: Int) -> None:
    """qdd_i = sum_j Q_ij (S_j . F) / d_j + W_i a_b, with S . F at the beginning of the workspace."""
    nj, skip, T = robot.nj, base_rows(robot), work
    a_b: Vec6 = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if skip > 0:
        a_b = solve_factored_base(robot, (T[0], T[1], T[2], T[3], T[4], T[5]))
        write_base_response(robot, a_b, du, to)
    for j in range(nj):
        T[skip + j] *= robot.joints[j].body.d_inv
    for i in range(nj):
        qdd = 0.0
        for k in range(6):
            qdd += work[to_W + 6 * i + k] * a_b[k]
        for j in range(nj):
            qdd += work[to_Q + i * nj + j] * T[skip + j]
        du[to + skip + i] = qdd


@formula
def write_base_response(robot: Robot, a_b: Vec6, du: Address, to: Int) -> None:
    """Acceleration of the base; angular part in body axes."""
    for k, x in enumerate(a_b[:3] + unrotate(base_rotation(robot), a_b[3:])):
        du[to + k] = x
