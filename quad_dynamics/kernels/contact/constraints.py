# SPDX-License-Identifier: Apache-2.0
"""Contacts and joint limits as velocity constraints.

A unit impulse at a constraint is propagated to the base by the propagators of `contact_inertia`. It
contributes S . F at each joint on its way and F_b at the base. A *row* holds these contributions, each
multiplied by the square root of its inverse inertia (1/d of a joint; at the base L^-1 F_b times the roots of
1/D). Then J M^-1 J^T of two impulses is the dot product of their rows. With y = sum of rows times impulses,
the velocity of a constraint is its velocity without impulses plus row . y, and one outward pass maps y to
M^-1 J^T of all impulses. A Gauss-Seidel sweep therefore stores nothing for pairs of constraints: its cost is
linear in their number, not quadratic.

A row has BASE_COLUMNS numbers for the base and then a few blocks of four for joints, starting with the joint
`first`, the first of the limb of the body: joints are numbered depth first, so these blocks contain all
joints between the body and the base. y has the same columns, for all joints.

The articulated-body inertias d and D are those of Featherstone, Rigid Body Dynamics Algorithms (2008),
chapter 7.
"""

from __future__ import annotations

from typing import cast

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import (
    apart,
    fill_zero,
    formula,
    join,
    lane_sum,
    load,
    routine,
    split,
    square_root,
    store,
    subroutine,
    zero_lanes,
)
from quad_dynamics.compiler.types import LANES, Int, Lanes, Number, Vec3
from quad_dynamics.kernels.contact_inertia import pass_through
from quad_dynamics.kernels.simulation.scene import BASE_COLUMNS, Contact, Scene, Stop
from quad_dynamics.kernels.spatial import add, cross, dot, rotate, scale, unrotate, vector3
from quad_dynamics.kernels.tree import (
    ZERO3,
    base_rotation,
    base_rows,
    pick,
)
from quad_dynamics.memory.layout import BaseFactor, Body, Pack, Robot

# A 3 x 3 inverse is used only if the determinant exceeds this fraction of the cube of the mean diagonal.
_REGULAR = 1e-9
_SOFT = 1e-3  # otherwise the diagonal is increased by this fraction of its mean
# Displacements are solved to this fraction of the largest, in at most so many sweeps (a wedged robot would
# need hundreds); the next step corrects the remainder.
_PUSH_PRECISION, _PUSH_SWEEPS = 0.01, 10


# ---------------------------------------------------------------- rows


@routine
def root_inertias(robot: Robot) -> None:
    """Square roots of 1/d of all joints and of the base; needs the inward pass of the articulated bodies."""
    for k in range(1, robot.n_packs):
        root_pack(robot.packs[k])
    if robot.floating != 0:
        root_base(robot)


@formula
def root_pack(pack: Pack) -> None:
    """Square roots of 1/d of a pack."""
    pack.d_inv_root = square_root(pack.d_inv)


@formula
def root_base(robot: Robot) -> None:
    """Square roots of 1/D of the base."""
    base = robot.base
    base.d_inv_root = tuple(square_root(x) for x in base.d_inv)


@subroutine
def open_contact(robot: Robot, scene: Scene, contact: Contact) -> None:
    """Rows, free velocity and inverse inertia of an active contact, if the robot moves with `velocity`."""
    apart(robot)
    length, v = scene.row_length, scene.velocity
    first, joint = contact.first, contact.joint
    skip, joints = base_rows(robot), robot.joints
    to = contact.rows
    fill_zero(to, 0, 3 * length)
    f0, m0 = unit_wrenches(contact)
    f, m = f0, m0
    zero = zero_lanes(robot)
    inertia: Vec3 = (zero, zero, zero)
    speed = zero
    while joint >= 0:
        column = part(to, BASE_COLUMNS + joint - first)
        f, m, inertia, speed = leave_joint(
            joints[joint].body, f, m, f0, m0, v[skip + joint], inertia, speed, column, length
        )
        joint = joints[joint].parent
    if skip > 0:
        inertia, speed = leave_base(robot, f, m, f0, m0, inertia, speed, v, to, length)
    write_inertia(contact, inertia, speed)
    invert_inertia(contact)


@formula
def unit_wrenches(contact: Contact) -> tuple[Vec3, Vec3]:
    """Unit forces along normal and tangents as wrenches about the origin of A, one lane per direction."""
    n, t1 = contact.normal, contact.tangent
    t2 = cross(n, t1)
    p = contact.place
    zero = n[0] * 0.0
    f = tuple(join(n[k], t1[k], t2[k], zero) for k in range(3))
    return f, cross(p, f)


@formula
def write3(x: Numbers, at: Int, a: Vec3) -> None:
    """Write three consecutive numbers."""
    for k in range(3):
        x[at + k] = a[k]


@formula
def leave_joint(
    body: Body,
    f: Vec3,
    m: Vec3,
    f0: Vec3,
    m0: Vec3,
    qd: Number,
    inertia: Vec3,
    speed: Lanes,
    column: Numbers,
    length: Int,
) -> tuple[Vec3, Vec3, Vec3, Lanes]:
    """Column of a joint in three rows: propagates the impulses past it, and adds its speed to `speed`."""
    # J = S . F_0 with the original impulse
    speed = speed + (dot(body.axis_v, f0) + dot(body.axis_w, m0)) * qd
    left, f, m = pass_through(body, f, m)
    inertia = write_column(left * body.d_inv_root, inertia, column, length)
    return f, m, inertia, speed


@formula
def write_column(left: Lanes, inertia: Vec3, column: Numbers, length: Int) -> Vec3:
    """Write one column of three rows; returns its contribution to their products with each other."""
    parts = split(left)
    for k in range(3):
        column[k * length] = parts[k]
    return tuple(inertia[k] + left * parts[k] for k in range(3))


@formula
def leave_base(
    robot: Robot,
    f: Vec3,
    m: Vec3,
    f0: Vec3,
    m0: Vec3,
    inertia: Vec3,
    speed: Lanes,
    v: Numbers,
    rows: Numbers,
    length: Int,
) -> tuple[Vec3, Lanes]:
    """The columns of the base in three rows."""
    w = rotate(base_rotation(robot), vector3(v, 3))
    speed = speed + dot(f0, vector3(v, 0)) + dot(m0, w)
    base = robot.base
    lower, roots = BaseFactor.lower.numbers(base), BaseFactor.d_inv_root.numbers(base)
    x = list(f + m)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - x[k] * lower[6 * i + k]
    for i in range(6):
        inertia = write_column(x[i] * roots[i], inertia, part(rows, i), length)
    return inertia, speed


@formula
def write_inertia(contact: Contact, inertia: Vec3, speed: Lanes) -> None:
    """Store the free velocity and the inverse inertia of a contact."""
    contact.free_velocity = split(speed)[:3]
    nn, n1, n2, _ = split(inertia[0])
    _, d11, d12, _ = split(inertia[1])
    d22 = split(inertia[2])[2]
    contact.inertia = (nn, n1, n2, d11, d12, d22)


@routine
def invert_inertia(contact: Contact) -> None:
    """Invert the 3 x 3 Delassus block of a contact; zero if the contact cannot move at all.

    On a fixed-base robot with few joints it is singular: some directions cannot move. It is then regularised,
    so that a direction that cannot move gets no impulse.
    """
    D, inverse = inertia_of(contact), inverse_of(contact)
    mean = (D[0] + D[3] + D[5]) / 3.0
    if not determinant_of(D) > _REGULAR * mean * mean * mean:
        for k in (0, 3, 5):
            D[k] += _SOFT * mean
    a, b, d, e, f, g = D[0], D[1], D[2], D[3], D[4], D[5]
    determinant = determinant_of(D)
    x = 0.0
    if determinant > 0.0:
        x = 1.0 / determinant
    inverse[0] = (e * g - f * f) * x
    inverse[1] = (d * f - b * g) * x
    inverse[2] = (b * f - d * e) * x
    inverse[3] = (a * g - d * d) * x
    inverse[4] = (b * d - a * f) * x
    inverse[5] = (a * e - b * b) * x


@formula
def inertia_of(contact: Contact) -> Numbers:
    """The entries of the Delassus block of a contact."""
    return Contact.inertia.numbers(contact)


@formula
def inverse_of(contact: Contact) -> Numbers:
    """The entries of the inverse of the Delassus block of a contact."""
    return Contact.inverse.numbers(contact)


@formula
def determinant_of(D: Numbers) -> Number:
    """The determinant of a symmetric matrix, given its upper triangle."""
    a, b, d, e, f, g = (D[k] for k in range(6))
    return a * (e * g - f * f) + b * (d * f - b * g) + d * (b * f - d * e)


@subroutine
def open_stop(robot: Robot, scene: Scene, stop: Stop) -> None:
    """The row of a joint constraint: a unit torque of its joint, propagated to the base."""
    apart(robot)
    length, joint = scene.row_length, stop.joint
    drive = scene.drives[joint]
    first, to, sign = drive.first, stop.row, stop.sign
    fill_zero(to, 0, length)
    body = robot.joints[joint].body
    stop.free_velocity = sign * scene.velocity[base_rows(robot) + joint]
    own = sign * body.d_inv_root
    to[BASE_COLUMNS + joint - first] = own
    inertia = own * own
    x = -sign * body.d_inv
    f, m = scale(body.U_f, x), scale(body.U_n, x)
    joint = robot.joints[joint].parent
    while joint >= 0:
        body = robot.joints[joint].body
        left, f, m = pass_through(body, f, m)
        left *= body.d_inv_root
        to[BASE_COLUMNS + joint - first] = left
        inertia += left * left
        joint = robot.joints[joint].parent
    if base_rows(robot) > 0:
        inertia += leave_torque_at_base(robot, f, m, to)
    stop.inertia = inertia


@formula
def leave_torque_at_base(robot: Robot, f: Vec3, m: Vec3, row: Numbers) -> Number:
    """The base columns of a row; returns their product with themselves."""
    base = robot.base
    lower, roots = BaseFactor.lower.numbers(base), BaseFactor.d_inv_root.numbers(base)
    x = list(f + m)
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - x[k] * lower[6 * i + k]
    left = [x[i] * roots[i] for i in range(6)]
    for i in range(6):
        row[i] = left[i]
    return cast(Number, sum(left[i] * left[i] for i in range(6)))


# ---------------------------------------------------------------- products with rows


@routine
def row_velocity(row: Numbers, y: Numbers, first: Int, blocks: Int) -> Number:
    """row . y."""
    total = short_product(row, y, part(part(y, BASE_COLUMNS), first))
    for b in range(1, blocks):
        at = BASE_COLUMNS + LANES * b
        total += block_product(part(row, at), part(part(y, at), first))
    return total


@formula
def short_product(row: Numbers, y: Numbers, joints: Numbers) -> Number:
    """row . y over the base and the first block of joints."""
    total = load(row, 0) * load(y, 0) + load(row, LANES) * load(y, LANES)
    return lane_sum(total + load(row, BASE_COLUMNS) * load(joints, 0))


@formula
def block_product(a: Numbers, b: Numbers) -> Number:
    """Dot product of four numbers."""
    return lane_sum(load(a, 0) * load(b, 0))


@routine
def add_row(scene: Scene, row: Numbers, impulse: Number, y: Numbers, first: Int, blocks: Int) -> None:
    """Add row times impulse to y."""
    signs = scene.signs
    add_signed_block(row, impulse, signs, y)
    add_signed_block(part(row, LANES), impulse, part(signs, LANES), part(y, LANES))
    for b in range(blocks):
        at = BASE_COLUMNS + LANES * b
        add_signed_block(part(row, at), impulse, part(part(signs, at), first), part(part(y, at), first))


@formula
def add_signed_block(a: Numbers, x: Number, signs: Numbers, to: Numbers) -> None:
    """to += a * x * signs, for four numbers."""
    store(to, 0, load(to, 0) + load(a, 0) * load(signs, 0) * x)


@formula
def add_block(a: Numbers, x: Number, to: Numbers) -> None:
    """to += a * x, for four numbers."""
    store(to, 0, load(to, 0) + load(a, 0) * x)


@routine
def contact_velocity(scene: Scene, contact: Contact, y: Numbers) -> Vec3:
    """Velocity of a contact: normal, first tangent, second tangent."""
    length, rows = scene.row_length, contact.rows
    first, blocks = contact.first, contact.blocks
    v = three_products(contact, rows, length, y, part(part(y, BASE_COLUMNS), first))
    for b in range(1, blocks):
        at = BASE_COLUMNS + LANES * b
        v = add(v, block_products(part(rows, at), length, part(part(y, at), first)))
    return v


@formula
def three_products(contact: Contact, rows: Numbers, length: Int, y: Numbers, joints: Numbers) -> Vec3:
    """Free velocity plus row . y over the base and the first block of joints, for three rows."""
    y0, y1, y2 = load(y, 0), load(y, LANES), load(joints, 0)
    free = Contact.free_velocity.numbers(contact)
    out = []
    for k in range(3):
        row = part(rows, k * length)
        total = load(row, 0) * y0 + load(row, LANES) * y1 + load(row, BASE_COLUMNS) * y2
        out.append(free[k] + lane_sum(total))
    return tuple(out)


@formula
def block_products(rows: Numbers, length: Int, y: Numbers) -> Vec3:
    """Products of one block of three rows with y."""
    return tuple(lane_sum(load(rows, k * length) * load(y, 0)) for k in range(3))


@routine
def add_contact(scene: Scene, contact: Contact, change: Vec3, y: Numbers) -> None:
    """Add three rows times the changes of their impulses to y."""
    length, rows = scene.row_length, contact.rows
    first, blocks = contact.first, contact.blocks
    signs = scene.signs
    add_blocks(rows, length, change, signs, y)
    add_blocks(part(rows, LANES), length, change, part(signs, LANES), part(y, LANES))
    for b in range(blocks):
        at = BASE_COLUMNS + LANES * b
        add_blocks(part(rows, at), length, change, part(part(signs, at), first), part(part(y, at), first))


@formula
def add_blocks(rows: Numbers, length: Int, x: Vec3, signs: Numbers, to: Numbers) -> None:
    """Add one block of three rows, times three numbers and the signs of the columns."""
    total = load(rows, 0) * x[0]
    for k in range(1, 3):
        total = total + load(rows, k * length) * x[k]
    store(to, 0, load(to, 0) + total * load(signs, 0))


# ---------------------------------------------------------------- Gauss-Seidel


@routine
def start(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Compute y of the impulses that the sweeps start with."""
    contacts, stops, y = scene.contacts, scene.stops, scene.y
    fill_zero(y, 0, BASE_COLUMNS + robot.nj + LANES)
    for i in range(n_contacts):
        contact = contacts[i]
        add_contact(scene, contact, contact.impulse, y)
    for i in range(n_stops):
        stop = stops[i]
        add_stop(scene, stop, stop.impulse, y)


@routine
def add_stop(scene: Scene, stop: Stop, impulse: Number, y: Numbers) -> None:
    """Add the row of a joint constraint times an impulse to y."""
    drive = scene.drives[stop.joint]
    row = stop.row
    add_row(scene, row, impulse, y, drive.first, drive.blocks)


@routine
def stop_velocity(scene: Scene, stop: Stop, y: Numbers) -> Number:
    """Velocity of a joint constraint."""
    drive = scene.drives[stop.joint]
    first, blocks = drive.first, drive.blocks
    return stop.free_velocity + row_velocity(stop.row, y, first, blocks)


@routine
def settle_stop(scene: Scene, stop: Stop, y: Numbers) -> Number:
    """Update the impulse of one joint constraint; returns the change of its velocity."""
    if not stop.inertia > 0.0:
        return 0.0
    v = stop_velocity(scene, stop, y)
    old = stop.impulse
    new = old - (v - stop.target) / stop.inertia
    new = min(max(new, stop.lowest), stop.highest)
    stop.impulse = new
    add_stop(scene, stop, new - old, y)
    return abs(new - old) * stop.inertia


# ---------------------------------------------------------------- penetration


@subroutine
def push_out(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, slop: Number, fastest: Number
) -> bool:
    """Find displacements that remove penetration, as pseudo-velocities; returns whether there are any.

    Their y is written to `y_push`. They have no effect on the velocity, and friction does not oppose them.
    """
    apart(robot)
    contacts, stops, y = scene.contacts, scene.stops, scene.y_push
    h = scene.settings.dt
    rate = scene.settings.correction / h
    largest = 0.0
    for i in range(n_contacts):
        contact = contacts[i]
        depth = max(-contact.distance - slop, 0.0)
        contact.target = min(rate * depth, fastest) + curved_descent(scene, contact, h) / h
        contact.push = 0.0
        largest = max(largest, contact.target)
    for i in range(n_stops):
        stop = stops[i]
        depth = max(-stop.distance - slop, 0.0)
        stop.target = min(rate * depth, fastest)
        largest = max(largest, stop.target)
        stop.free_velocity = 0.0
        stop.impulse = 0.0
        if stop.lowest < 0.0:  # friction does not oppose displacements
            stop.lowest = 0.0
            stop.highest = 0.0
    if largest <= 0.0:
        return False
    fill_zero(y, 0, BASE_COLUMNS + robot.nj + LANES)
    small = max(scene.settings.tolerance, _PUSH_PRECISION * largest)
    for _ in range(min(scene.settings.max_sweeps, _PUSH_SWEEPS)):
        change = 0.0
        for i in range(n_contacts):
            change = max(change, push_contact(scene, contacts[i], y))
        for i in range(n_stops):
            change = max(change, settle_stop(scene, stops[i], y))
        if change <= small:
            break
    return True


@routine
def curved_descent(scene: Scene, contact: Contact, h: Number) -> Number:
    """How far the curvature of its path takes a contact below the surface in this step [m].

    Joint velocities are constant during a step. A foot of a leg that spins therefore moves on an arc, away
    from the tangent along which its velocity points.
    """
    if contact.bend >= 0.0:
        return 0.0
    v = contact_velocity(scene, contact, scene.y)
    return max(-contact.bend - max(contact.distance, 0.0) - h * v[0], 0.0)


@routine
def push_contact(scene: Scene, contact: Contact, y: Numbers) -> Number:
    """Update the displacement of one contact along its normal; returns the change of its pseudo-velocity."""
    first, blocks = contact.first, contact.blocks
    row, d = contact.rows, contact.inertia[0]
    if not d > 0.0:
        return 0.0
    v = row_velocity(row, y, first, blocks)
    old = contact.push
    new = max(old + (contact.target - v) / d, 0.0)
    contact.push = new
    add_row(scene, row, new - old, y, first, blocks)
    return abs(new - old) * d


# ---------------------------------------------------------------- response


@subroutine
def respond(robot: Robot, y: Numbers, to: Numbers) -> None:
    """to = M^-1 J^T of the impulses in y, nv numbers."""
    apart(robot)
    skip = base_rows(robot)
    if skip > 0:
        respond_base(robot, y, to)
    else:
        stop_root(robot.packs[0])
    for k in range(1, robot.n_packs):
        respond_pack(robot.packs[k], y, BASE_COLUMNS)
    # In local variables; otherwise they would be reloaded after every store.
    nj, joints = robot.nj, robot.joints
    for j in range(nj):
        to[skip + j] = joints[j].body.change_qd


@formula
def respond_base(robot: Robot, y: Numbers, to: Numbers) -> None:
    """Velocity of the base from y: L^-T (root of 1/D) y, in world axes for the bodies, then as in u."""
    base, factor = robot.packs[0], robot.base
    roots, lower = BaseFactor.d_inv_root.numbers(factor), BaseFactor.lower.numbers(factor)
    x = [y[k] * roots[k] for k in range(6)]
    for row in reversed(range(6)):
        for k in range(row + 1, 6):
            x[row] = x[row] - lower[6 * k + row] * x[k]
    base.change_v, base.change_w = tuple(x[:3]), tuple(x[3:])
    w_B = unrotate(base_rotation(robot), tuple(x[3:]))
    for k in range(3):
        to[k] = x[k]
        to[3 + k] = w_B[k]


@formula
def stop_root(pack: Pack) -> None:
    """The root of a fixed-base robot does not move."""
    pack.change_v, pack.change_w = ZERO3, ZERO3


@formula
def respond_pack(pack: Pack, y: Numbers, start: Int) -> None:
    """Joint speeds caused by impulses: qd = (t - U . v_parent) / d, and the motion of the bodies."""
    v, w = pack.parent.change_v, pack.parent.change_w
    lost = dot(pack.U_f, v) + dot(pack.U_n, w)
    qd = pick(pack, y, start) * pack.d_inv_root - lost * pack.d_inv
    pack.change_qd = qd
    pack.change_v = add(v, scale(pack.axis_v, qd))
    pack.change_w = add(w, scale(pack.axis_w, qd))


@routine
def number_rows(scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Assign rows to all constraints."""
    rows, length = scene.rows, scene.row_length
    at = scene.zero
    for i in range(n_contacts):
        scene.contacts[i].rows = part(rows, at)
        at += 3 * length
    for i in range(n_stops):
        scene.stops[i].row = part(rows, at)
        at += length
