# SPDX-License-Identifier: Apache-2.0
"""Contacts and joint limits as constraints on velocities.

A unit impulse travels to the base by the propagators of `contact_inertia`, and leaves S . F at each joint and
F_b at the base. A *row* holds what it leaves, each number times the root of its inverse inertia (1/d of a
joint; at the base L^-1 F_b times the roots of 1/D). Then J M^-1 J^T of two impulses is the product of their
rows. With y = sum of rows times impulses, the velocity of a constraint is its velocity without impulses plus
row . y, and one outward pass turns y into M^-1 J^T of all impulses. So a sweep over the constraints stores
nothing for a pair of them: its work grows with their number, not with its square.

A row has BASE_COLUMNS numbers for the base and then a few blocks of four for joints, from the joint `first`
on, which is where the limb of the body begins: joints are numbered depth first, so all joints between the
body and the base are among them. y has the same columns, for all joints.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import (
    apart,
    fill_zero,
    formula,
    join,
    lane_sum,
    load,
    load_int,
    routine,
    split,
    square_root,
    store,
    store_int,
    subroutine,
    zero_lanes,
)
from quad_dynamics.compiler.types import LANES, Address, Int, Lanes, Number, Vec3
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.contact_inertia import pass_joint
from quad_dynamics.kernels.scene import BASE_COLUMNS
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    load3,
    read3,
    rotate,
    scale,
    store3,
    store6,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    base_rotation,
    base_rows,
    gather,
    joint_entry,
    lane_of,
    pack_at,
    parent_of,
    take,
)
from quad_dynamics.model import layout as L

# A 3 x 3 inverse is used only where the determinant is above this share of the cube of the mean diagonal.
_REGULAR = 1e-9
_SOFT = 1e-3  # of the mean diagonal: what is added where it is not
# Displacements are found to this share of the largest: what is left, the next step removes.
_PUSH_PRECISION = 0.01


# ---------------------------------------------------------------- rows


@routine
def root_inertias(A: Address) -> None:
    """The roots of 1/d of all joints and of the base; after the inward pass of the articulated bodies."""
    for k in range(1, load_int(A, L.PACKS)):
        root_pack(A, pack_at(A, k))
    if load_int(A, L.FLOATING) != 0:
        root_base(A)


@formula
def root_pack(A: Address, at: Int) -> None:
    """The roots of 1/d of a pack."""
    store(A, at + L.D_ROOT, square_root(load(A, at + L.D_INV)))


@formula
def root_base(A: Address) -> None:
    """The roots of 1/D of the base."""
    at = load_int(A, L.SCRATCH)
    for k in range(6):
        A[at + L.BASE_D_ROOT + k] = square_root(A[at + L.BASE_D_INV + k])


@subroutine
def open_contact(A: Address, S: Address, c: Int) -> None:
    """Rows, free velocity and inertia of the active contact at c, when the robot moves with S[V]."""
    apart(A)
    length, v = load_int(S, S_.ROW_LENGTH), load_int(S, S_.V)
    first, joint = load_int(S, c + S_.A_FIRST), load_int(S, c + S_.A_JOINT)
    skip, table = base_rows(A), load_int(A, L.JOINTS)
    to = load_int(S, c + S_.A_ROW)
    fill_zero(S, to, 3 * length)
    f0, m0 = unit_wrenches(S, c)
    f, m = f0, m0
    zero = zero_lanes(A)
    inertia = (zero, zero, zero)
    speed = zero
    while joint >= 0:
        entry = table + joint * L.JOINT_WORDS
        at = to + BASE_COLUMNS + joint - first
        f, m, inertia, speed = leave_joint(
            A, load_int(A, entry + L.J_LANE), f, m, f0, m0, S[v + skip + joint], inertia, speed, S, at, length
        )
        joint = load_int(A, entry + L.J_PARENT)
    if skip > 0:
        inertia, speed = leave_base(A, f, m, f0, m0, inertia, speed, S, v, to, length)
    write_inertia(S, c, inertia, speed)
    invert_inertia(S, c)


@formula
def unit_wrenches(S: Address, c: Int) -> tuple[Vec3, Vec3]:
    """Unit forces along normal and tangents as wrenches about the origin of A: a lane for each direction."""
    n, t1 = row3(S, c + S_.A_NORMAL), row3(S, c + S_.A_TANGENT)
    t2 = cross(n, t1)
    p = row3(S, c + S_.A_PLACE)
    zero = n[0] * 0.0
    f = tuple(join(n[k], t1[k], t2[k], zero) for k in range(3))
    return f, cross(p, f)


@formula
def row3(S: Address, at: Int) -> Vec3:
    """Three numbers that stand one after the other."""
    return S[at], S[at + 1], S[at + 2]


@formula
def write3(S: Address, at: Int, a: Vec3) -> None:
    """Write three numbers one after the other."""
    for k in range(3):
        S[at + k] = a[k]


@formula
def leave_joint(
    A: Address,
    lane: Int,
    f: Vec3,
    m: Vec3,
    f0: Vec3,
    m0: Vec3,
    qd: Number,
    inertia: Vec3,
    speed: Lanes,
    S: Address,
    to: Int,
    length: Int,
) -> tuple[Vec3, Vec3, Vec3, Lanes]:
    """What three impulses leave at a joint, on their way to the base; what the joint's speed does to them."""
    # J = S . F_0 with the impulse as it was given
    speed = speed + (dot(read3(A, lane + L.AXIS_V), f0) + dot(read3(A, lane + L.AXIS_W), m0)) * qd
    left, f, m = pass_joint(A, lane, f, m)
    inertia = write_column(left * A[lane + L.D_ROOT], inertia, S, to, length)
    return f, m, inertia, speed


@formula
def write_column(left: Lanes, inertia: Vec3, S: Address, to: Int, length: Int) -> Vec3:
    """One column of three rows, and its part in the product of these rows with each other."""
    parts = split(left)
    for k in range(3):
        S[to + k * length] = parts[k]
    return tuple(inertia[k] + left * parts[k] for k in range(3))


@formula
def leave_base(
    A: Address,
    f: Vec3,
    m: Vec3,
    f0: Vec3,
    m0: Vec3,
    inertia: Vec3,
    speed: Lanes,
    S: Address,
    v: Int,
    to: Int,
    length: Int,
) -> tuple[Vec3, Lanes]:
    """What three impulses leave at the base."""
    w = rotate(base_rotation(A), row3(S, v + 3))
    speed = speed + dot(f0, row3(S, v)) + dot(m0, w)
    at = load_int(A, L.SCRATCH)
    x = list(f + m)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - x[k] * A[at + L.BASE_L + 6 * i + k]
    for i in range(6):
        inertia = write_column(x[i] * A[at + L.BASE_D_ROOT + i], inertia, S, to + i, length)
    return inertia, speed


@formula
def write_inertia(S: Address, c: Int, inertia: Vec3, speed: Lanes) -> None:
    """Free velocity and inertia of a contact."""
    write3(S, c + S_.A_FREE, split(speed)[:3])
    nn, n1, n2, _ = split(inertia[0])
    _, d11, d12, _ = split(inertia[1])
    d22 = split(inertia[2])[2]
    for k, x in enumerate((nn, n1, n2, d11, d12, d22)):
        S[c + S_.A_INERTIA + k] = x


@routine
def invert_inertia(S: Address, c: Int) -> None:
    """The inverse of a contact's inertia; zero where the contact cannot move at all.

    On a fixed robot with few joints it is singular: some directions do not move. Then the contact is taken to
    give way a little in each sweep, so that a direction that does not move gets no impulse.
    """
    at, to = c + S_.A_INERTIA, c + S_.A_INVERSE
    mean = (S[at] + S[at + 3] + S[at + 5]) / 3.0
    if not determinant_of(S, at) > _REGULAR * mean * mean * mean:
        for k in (0, 3, 5):
            S[at + k] += _SOFT * mean
    a, b, d, e, f, g = S[at], S[at + 1], S[at + 2], S[at + 3], S[at + 4], S[at + 5]
    determinant = determinant_of(S, at)
    x = 0.0
    if determinant > 0.0:
        x = 1.0 / determinant
    S[to] = (e * g - f * f) * x
    S[to + 1] = (d * f - b * g) * x
    S[to + 2] = (b * f - d * e) * x
    S[to + 3] = (a * g - d * d) * x
    S[to + 4] = (b * d - a * f) * x
    S[to + 5] = (a * e - b * b) * x


@formula
def determinant_of(S: Address, at: Int) -> Number:
    """The determinant of a symmetric matrix: nn n1 n2 11 12 22."""
    a, b, d, e, f, g = (S[at + k] for k in range(6))
    return a * (e * g - f * f) + b * (d * f - b * g) + d * (b * f - d * e)


@subroutine
def open_stop(A: Address, S: Address, s: Int) -> None:
    """The row of the stop at s: what a unit torque of its joint leaves."""
    apart(A)
    length, joint = load_int(S, S_.ROW_LENGTH), load_int(S, s + S_.L_JOINT)
    entry = load_int(S, S_.JOINTS) + joint * S_.JOINT_WORDS
    first, to, sign = load_int(S, entry + S_.J_FIRST), load_int(S, s + S_.L_ROW), S[s + S_.L_SIGN]
    fill_zero(S, to, length)
    lane = lane_of(A, joint)
    S[s + S_.L_FREE] = sign * S[load_int(S, S_.V) + base_rows(A) + joint]
    own = sign * A[lane + L.D_ROOT]
    S[to + BASE_COLUMNS + joint - first] = own
    inertia = own * own
    x = -sign * A[lane + L.D_INV]
    f, m = scale(read3(A, lane + L.U_F), x), scale(read3(A, lane + L.U_N), x)
    joint = load_int(A, joint_entry(A, joint) + L.J_PARENT)
    while joint >= 0:
        lane = lane_of(A, joint)
        left, f, m = pass_joint(A, lane, f, m)
        left *= A[lane + L.D_ROOT]
        S[to + BASE_COLUMNS + joint - first] = left
        inertia += left * left
        joint = load_int(A, joint_entry(A, joint) + L.J_PARENT)
    if base_rows(A) > 0:
        inertia += leave_torque_at_base(A, f, m, S, to)
    S[s + S_.L_INERTIA] = inertia


@formula
def leave_torque_at_base(A: Address, f: Vec3, m: Vec3, S: Address, to: Int) -> Number:
    """What an impulse leaves at the base; returns the product with itself."""
    at = load_int(A, L.SCRATCH)
    x = list(f + m)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - x[k] * A[at + L.BASE_L + 6 * i + k]
    left = [x[i] * A[at + L.BASE_D_ROOT + i] for i in range(6)]
    for i in range(6):
        S[to + i] = left[i]
    return sum(left[i] * left[i] for i in range(6))


# ---------------------------------------------------------------- products with rows


@routine
def row_velocity(S: Address, row: Int, y: Int, first: Int, blocks: Int) -> Number:
    """row . y."""
    total = short_product(S, row, y, y + BASE_COLUMNS + first)
    for b in range(1, blocks):
        at = BASE_COLUMNS + LANES * b
        total += block_product(S, row + at, y + at + first)
    return total


@formula
def short_product(S: Address, row: Int, y: Int, joints: Int) -> Number:
    """row . y over the base and the first block of joints."""
    total = load(S, row) * load(S, y) + load(S, row + LANES) * load(S, y + LANES)
    return lane_sum(total + load(S, row + BASE_COLUMNS) * load(S, joints))


@formula
def block_product(S: Address, a: Int, b: Int) -> Number:
    """The product of four numbers with four numbers."""
    return lane_sum(load(S, a) * load(S, b))


@routine
def add_row(S: Address, row: Int, impulse: Number, y: Int, first: Int, blocks: Int) -> None:
    """Add row times impulse to y."""
    signs = load_int(S, S_.SIGNS)
    add_signed_block(S, row, impulse, signs, y)
    add_signed_block(S, row + LANES, impulse, signs + LANES, y + LANES)
    for b in range(blocks):
        at = BASE_COLUMNS + LANES * b
        add_signed_block(S, row + at, impulse, signs + at + first, y + at + first)


@formula
def add_signed_block(S: Address, a: Int, x: Number, signs: Int, to: Int) -> None:
    """Add four numbers times x and their signs."""
    store(S, to, load(S, to) + load(S, a) * load(S, signs) * x)


@formula
def add_block(S: Address, a: Int, x: Number, to: Int) -> None:
    """Add four numbers times x."""
    store(S, to, load(S, to) + load(S, a) * x)


@routine
def contact_velocity(S: Address, c: Int, y: Int) -> Vec3:
    """Velocity of a contact: normal, first and second tangent."""
    length, row = load_int(S, S_.ROW_LENGTH), load_int(S, c + S_.A_ROW)
    first, blocks = load_int(S, c + S_.A_FIRST), load_int(S, c + S_.A_BLOCKS)
    v = three_products(S, c + S_.A_FREE, row, length, y, y + BASE_COLUMNS + first)
    for b in range(1, blocks):
        at = BASE_COLUMNS + LANES * b
        v = add(v, block_products(S, row + at, length, y + at + first))
    return v


@formula
def three_products(S: Address, free: Int, row: Int, length: Int, y: Int, joints: Int) -> Vec3:
    """Free velocity plus row . y over the base and the first block of joints, for three rows."""
    y0, y1, y2 = load(S, y), load(S, y + LANES), load(S, joints)
    out = []
    for k in range(3):
        at = row + k * length
        total = load(S, at) * y0 + load(S, at + LANES) * y1 + load(S, at + BASE_COLUMNS) * y2
        out.append(S[free + k] + lane_sum(total))
    return tuple(out)


@formula
def block_products(S: Address, row: Int, length: Int, y: Int) -> Vec3:
    """The products of one block of three rows."""
    return tuple(lane_sum(load(S, row + k * length) * load(S, y)) for k in range(3))


@routine
def add_contact(S: Address, c: Int, change: Vec3, y: Int) -> None:
    """Add three rows times the change of their impulses to y."""
    length, row = load_int(S, S_.ROW_LENGTH), load_int(S, c + S_.A_ROW)
    first, blocks = load_int(S, c + S_.A_FIRST), load_int(S, c + S_.A_BLOCKS)
    signs = load_int(S, S_.SIGNS)
    add_blocks(S, row, length, change, signs, y)
    add_blocks(S, row + LANES, length, change, signs + LANES, y + LANES)
    for b in range(blocks):
        at = BASE_COLUMNS + LANES * b
        add_blocks(S, row + at, length, change, signs + at + first, y + at + first)


@formula
def add_blocks(S: Address, row: Int, length: Int, x: Vec3, signs: Int, to: Int) -> None:
    """Add one block of three rows times three numbers and the signs of the columns."""
    total = load(S, row) * x[0]
    for k in range(1, 3):
        total = total + load(S, row + k * length) * x[k]
    store(S, to, load(S, to) + total * load(S, signs))


# ---------------------------------------------------------------- Gauss-Seidel


@routine
def start(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """y of the impulses that the sweeps start with."""
    contacts, stops, y = load_int(S, S_.ACTIVE), load_int(S, S_.STOPS), load_int(S, S_.Y)
    fill_zero(S, y, BASE_COLUMNS + load_int(A, L.NJ) + LANES)
    for i in range(n_contacts):
        c = contacts + i * S_.ACTIVE_WORDS
        add_contact(S, c, row3(S, c + S_.A_IMPULSE), y)
    for i in range(n_stops):
        s = stops + i * S_.STOP_WORDS
        add_stop(S, s, S[s + S_.L_IMPULSE], y)


@routine
def add_stop(S: Address, s: Int, impulse: Number, y: Int) -> None:
    """Add the row of a stop times an impulse to y."""
    entry = load_int(S, S_.JOINTS) + load_int(S, s + S_.L_JOINT) * S_.JOINT_WORDS
    row = load_int(S, s + S_.L_ROW)
    add_row(S, row, impulse, y, load_int(S, entry + S_.J_FIRST), load_int(S, entry + S_.J_BLOCKS))


@routine
def stop_velocity(S: Address, s: Int, y: Int) -> Number:
    """Velocity of a stop."""
    entry = load_int(S, S_.JOINTS) + load_int(S, s + S_.L_JOINT) * S_.JOINT_WORDS
    first, blocks = load_int(S, entry + S_.J_FIRST), load_int(S, entry + S_.J_BLOCKS)
    return S[s + S_.L_FREE] + row_velocity(S, load_int(S, s + S_.L_ROW), y, first, blocks)


@routine
def settle_stop(S: Address, s: Int, y: Int) -> Number:
    """The impulse of one stop; returns by how much its velocity changed."""
    if not S[s + S_.L_INERTIA] > 0.0:
        return 0.0
    v = stop_velocity(S, s, y)
    old = S[s + S_.L_IMPULSE]
    new = old - (v - S[s + S_.L_TARGET]) / S[s + S_.L_INERTIA]
    new = min(max(new, S[s + S_.L_LOW]), S[s + S_.L_HIGH])
    S[s + S_.L_IMPULSE] = new
    add_stop(S, s, new - old, y)
    return abs(new - old) * S[s + S_.L_INERTIA]


# ---------------------------------------------------------------- penetration


@subroutine
def push_out(A: Address, S: Address, n_contacts: Int, n_stops: Int, slop: Number, fastest: Number) -> bool:
    """Find displacements, as velocities that are forgotten, that remove penetration; whether there are any.

    y of them goes to S[PUSH]. Friction does not act against them.
    """
    apart(A)
    contacts, stops, y = load_int(S, S_.ACTIVE), load_int(S, S_.STOPS), load_int(S, S_.PUSH)
    rate = S[S_.CORRECTION] / S[S_.DT]
    deepest = 0.0
    for i in range(n_contacts):
        c = contacts + i * S_.ACTIVE_WORDS
        depth = max(-S[c + S_.A_DISTANCE] - slop, 0.0)
        deepest = max(deepest, depth)
        S[c + S_.A_TARGET] = min(rate * depth, fastest)
        S[c + S_.A_PUSH] = 0.0
    for i in range(n_stops):
        s = stops + i * S_.STOP_WORDS
        depth = max(-S[s + S_.L_DISTANCE] - slop, 0.0)
        deepest = max(deepest, depth)
        S[s + S_.L_TARGET] = min(rate * depth, fastest)
        S[s + S_.L_FREE] = 0.0
        S[s + S_.L_IMPULSE] = 0.0
        if S[s + S_.L_LOW] < 0.0:  # friction does not act against displacements
            S[s + S_.L_LOW] = 0.0
            S[s + S_.L_HIGH] = 0.0
    if deepest <= 0.0 or rate <= 0.0:
        return False
    fill_zero(S, y, BASE_COLUMNS + load_int(A, L.NJ) + LANES)
    small = max(S[S_.TOLERANCE], _PUSH_PRECISION * min(rate * deepest, fastest))
    for _ in range(load_int(S, S_.MAX_SWEEPS)):
        change = 0.0
        for i in range(n_contacts):
            change = max(change, push_contact(S, contacts + i * S_.ACTIVE_WORDS, y))
        for i in range(n_stops):
            change = max(change, settle_stop(S, stops + i * S_.STOP_WORDS, y))
        if change <= small:
            break
    return True


@routine
def push_contact(S: Address, c: Int, y: Int) -> Number:
    """The push of one contact along its normal; returns by how much its velocity changed."""
    first, blocks = load_int(S, c + S_.A_FIRST), load_int(S, c + S_.A_BLOCKS)
    row, d = load_int(S, c + S_.A_ROW), S[c + S_.A_INERTIA]
    if not d > 0.0:
        return 0.0
    v = row_velocity(S, row, y, first, blocks)
    old = S[c + S_.A_PUSH]
    new = max(old + (S[c + S_.A_TARGET] - v) / d, 0.0)
    S[c + S_.A_PUSH] = new
    add_row(S, row, new - old, y, first, blocks)
    return abs(new - old) * d


# ---------------------------------------------------------------- response


@subroutine
def respond(A: Address, S: Address, y: Int, to: Int) -> None:
    """S[to : to + nv] = M^-1 J^T of the impulses in y."""
    apart(A)
    skip = base_rows(A)
    if skip > 0:
        respond_base(A, pack_at(A, 0), S, y, to)
    else:
        stop_root(A, pack_at(A, 0))
    for k in range(1, load_int(A, L.PACKS)):
        respond_pack(A, pack_at(A, k), parent_of(A, k), S, y + BASE_COLUMNS)
    gather(A, L.QDD, S, to + skip)


@formula
def respond_base(A: Address, at: Int, S: Address, y: Int, to: Int) -> None:
    """Velocity of the base from y: L^-T (root of 1/D) y, in world axes for the bodies, then as in u."""
    scratch = load_int(A, L.SCRATCH)
    x = [S[y + k] * A[scratch + L.BASE_D_ROOT + k] for k in range(6)]
    for row in reversed(range(6)):
        for k in range(row + 1, 6):
            x[row] = x[row] - A[scratch + L.BASE_L + 6 * k + row] * x[k]
    store6(A, at + L.ACC_V, tuple(x))
    w_B = unrotate(base_rotation(A), tuple(x[3:]))
    for k in range(3):
        S[to + k] = x[k]
        S[to + 3 + k] = w_B[k]


@formula
def stop_root(A: Address, at: Int) -> None:
    """The root of a fixed base does not move."""
    store6(A, at + L.ACC_V, (0.0,) * 6)


@formula
def respond_pack(A: Address, at: Int, up: Int, S: Address, y: Int) -> None:
    """Joint speeds that impulses cause: qd = (t - U . v_parent) / d, and what the bodies move with."""
    a, alpha = load3(A, up + L.ACC_V), load3(A, up + L.ACC_W)
    lost = dot(load3(A, at + L.U_F), a) + dot(load3(A, at + L.U_N), alpha)
    qd = take(A, at, S, y) * load(A, at + L.D_ROOT) - lost * load(A, at + L.D_INV)
    store(A, at + L.QDD, qd)
    store3(A, at + L.ACC_V, add(a, scale(load3(A, at + L.AXIS_V), qd)))
    store3(A, at + L.ACC_W, add(alpha, scale(load3(A, at + L.AXIS_W), qd)))


@routine
def number_rows(S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Give every constraint its rows."""
    at, length = load_int(S, S_.ROWS), load_int(S, S_.ROW_LENGTH)
    for i in range(n_contacts):
        store_int(S, load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS + S_.A_ROW, at)
        at += 3 * length
    for i in range(n_stops):
        store_int(S, load_int(S, S_.STOPS) + i * S_.STOP_WORDS + S_.L_ROW, at)
        at += length
