# SPDX-License-Identifier: Apache-2.0
"""A time step by factorisation of the mass matrix, as an alternative to the articulated bodies of `aba`.

M comes from the composite-rigid-body algorithm (`crba`), with the joint inertias set by `drives`, and h from
the recursive Newton-Euler algorithm (`rnea`) at zero acceleration, minus the external forces. M is factored
by LLT from the last row to the first: M = L^T L, which is the Cholesky factorisation of M with rows and
columns in reverse order. In this order L is as sparse as M (Featherstone, Rigid Body Dynamics Algorithms,
2008, section 6.5): a joint is coupled only with its own limb and the base.

Constraints use the same factor. A row (see `constraints`) is L^-T J^T, so the product of two rows is
J M^-1 J^T, and M^-1 J^T of all impulses is L^-1 y. No articulated inertia is computed.

LLT fails if a pivot is not positive: M is not positive definite. The accelerations then come from LDLT with
pivoting (`ldlt`). For the constraints, the factorisation continues with M = L^T E L, where E has -1 for each
negative pivot (`signs`): rows are then L^-T J^T with J M^-1 J^T = row E row, and y holds E times the sum of
rows times impulses.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import (
    apart,
    fill_zero,
    formula,
    lane_sum,
    load,
    routine,
    split,
    subroutine,
    zero_lanes,
)
from quad_dynamics.compiler.types import LANES, Bool, Int, Lanes, Number, Vec3
from quad_dynamics.kernels.aba import articulated_inertia, articulated_mul
from quad_dynamics.kernels.contact.constraints import inertia_of, invert_inertia, unit_wrenches
from quad_dynamics.kernels.crba import composite_inertias, write_mass_matrix
from quad_dynamics.kernels.ldlt import factor_ldlt, solve_ldlt
from quad_dynamics.kernels.rnea import accelerate_bodies, sum_inward, write_forces
from quad_dynamics.kernels.simulation.scene import BASE_COLUMNS, Contact, Scene, Stop
from quad_dynamics.kernels.spatial import add, dot, unrotate
from quad_dynamics.kernels.tree import base_rotation, base_rows
from quad_dynamics.memory.layout import Body, Pack, Robot

# ---------------------------------------------------------------- accelerations


@subroutine
def accelerate_by_factor(robot: Robot, scene: Scene, to: Numbers) -> None:
    """to = M^-1 (tau - h), after `start_bodies` and `load_joints`; stores the factor of M."""
    apart(robot)
    n, skip = robot.nv, base_rows(robot)
    factor, bias = scene.factor, scene.bias
    fill_zero(to, 0, skip)
    joints = robot.joints
    for j in range(n - skip):  # before Newton-Euler overwrites the torques
        to[skip + j] = joints[j].body.tau
    bias_forces(robot, bias)
    for i in range(n):
        to[i] -= bias[i]
    write_inertia_matrix(robot, factor)
    if factor_reversed(robot, scene):
        solve_reversed(robot, scene, to)
        return
    M, pivots = scene.ldlt, scene.ldlt_pivots
    scene.state.ldlt_solutions += 1.0
    write_inertia_matrix(robot, M)
    if factor_ldlt(M, n, pivots):
        solve_ldlt(M, n, pivots, to)
    else:
        to[0] = math.nan  # singular: there is no acceleration, and the step is rejected


@subroutine
def write_inertia_matrix(robot: Robot, to: Numbers) -> None:
    """to = M, nv rows."""
    apart(robot)
    composite_inertias(robot)
    write_mass_matrix(robot, to, 0)


@routine
def bias_forces(robot: Robot, to: Numbers) -> None:
    """to = h minus external forces: the forces of a motion without acceleration."""
    accelerate_bodies(robot, False, to, 0, 0)
    for k in range(robot.n_packs):
        add_inertial_wrench(robot.packs[k])
    sum_inward(robot)
    write_forces(robot, to, 0)


@formula
def add_inertial_wrench(pack: Pack) -> None:
    """Add I a to the wrenches of a pack; `I` is still that of the single bodies."""
    M, H, J = articulated_inertia(pack)
    f, n = articulated_mul(M, H, J, pack.a, pack.alpha)
    pack.f, pack.n = add(pack.f, f), add(pack.n, n)


# ---------------------------------------------------------------- factorisation


@routine
def first_column(scene: Scene, i: Int, skip: Int) -> Int:
    """The first column of the limb of row i; 0 for a row of the base."""
    if i < skip:
        return scene.zero
    return skip + scene.drives[i - skip].first


@subroutine
def factor_reversed(robot: Robot, scene: Scene) -> Bool:
    """Factor M = L^T E L in place; writes 1 / diagonal of L to `pivots`; whether E is the identity (LLT)."""
    apart(robot)
    n, skip, M = robot.nv, base_rows(robot), scene.factor
    inverses, signs = scene.pivots, scene.signs
    good = True
    for i in range(n - 1, -1, -1):
        row, first = part(M, i * n), first_column(scene, i, skip)
        d = row[i]
        sign = 1.0
        if not d > 0.0:
            good = False
            sign = -1.0
        signs[i if i < skip else BASE_COLUMNS + i - skip] = sign
        inverse = 1.0 / math.sqrt(abs(d))
        inverses[i] = inverse
        scale_part(part(row, first), i - first, sign * inverse)
        if i >= skip > 0:
            reduce_base(M, n, row, sign * inverse, sign)
        for j in range(first, i):
            if i >= skip > 0:
                subtract_base(part(M, j * n), row, sign * row[j])
            subtract_part(part(M, j * n + first), part(row, first), j + 1 - first, sign * row[j])
    scene.indefinite = 0 if good else 1
    return good


@formula
def reduce_base(M: Numbers, n: Int, row: Numbers, factor: Number, sign: Number) -> None:
    """Scale the base columns of a joint's row, and eliminate the row from the block of the base."""
    x = [row[k] * factor for k in range(6)]
    for k in range(6):
        row[k] = x[k]
    for j in range(6):
        left = [M[j * n + k] - x[j] * sign * x[k] for k in range(j + 1)]
        for k in range(j + 1):
            M[j * n + k] = left[k]


@formula
def subtract_base(to: Numbers, row: Numbers, x: Number) -> None:
    """to -= x row, six numbers."""
    left = [to[k] - row[k] * x for k in range(6)]
    for k in range(6):
        to[k] = left[k]


@routine
def scale_part(row: Numbers, count: Int, x: Number) -> None:
    """row[:count] *= x."""
    for k in range(count):
        row[k] *= x


@routine
def subtract_part(to: Numbers, row: Numbers, count: Int, x: Number) -> None:
    """to[:count] -= x row[:count]."""
    for k in range(count):
        to[k] -= x * row[k]


@routine
def solve_reversed(robot: Robot, scene: Scene, b: Numbers) -> None:
    """Solve L^T L x = b, in place."""
    n, skip, M = robot.nv, base_rows(robot), scene.factor
    inverses = scene.pivots
    for i in range(n - 1, -1, -1):
        x = b[i] * inverses[i]
        b[i] = x
        if i >= skip > 0:
            subtract_base(b, part(M, i * n), x)
        first = first_column(scene, i, skip)
        subtract_part(part(b, first), part(M, i * n + first), i - first, x)
    finish_solution(robot, scene, b)


@routine
def finish_solution(robot: Robot, scene: Scene, b: Numbers) -> None:
    """Solve L x = b, in place."""
    n, skip, M = robot.nv, base_rows(robot), scene.factor
    inverses = scene.pivots
    for i in range(n):
        row = part(M, i * n)
        x = b[i]
        if i >= skip > 0:
            x -= base_product(row, b)
        for k in range(first_column(scene, i, skip), i):
            x -= row[k] * b[k]
        b[i] = x * inverses[i]


@formula
def base_product(a: Numbers, b: Numbers) -> Number:
    """Dot product of six numbers."""
    return sum(a[k] * b[k] for k in range(6))


# ---------------------------------------------------------------- constraints


@subroutine
def open_factored_contact(robot: Robot, scene: Scene, contact: Contact) -> None:
    """As `constraints.open_contact`, from the factor."""
    apart(robot)
    length, v, to = scene.row_length, scene.velocity, contact.rows
    first, last = contact.first, contact.joint
    skip, joints = base_rows(robot), robot.joints
    fill_zero(to, 0, 3 * length)
    f, m = unit_wrenches(contact)
    speed = zero_lanes(robot)
    joint = last
    while joint >= 0:
        column, qd = part(to, BASE_COLUMNS + joint - first), part(v, skip + joint)
        speed = write_joint(joints[joint].body, f, m, column, length, speed, qd)
        joint = joints[joint].parent
    if skip > 0:
        speed = write_base(robot, f, m, to, length, speed, v)
    write_speed(contact, speed)
    for k in range(3):
        divide_row(robot, scene, part(to, k * length), first, last)
    D = inertia_of(contact)
    for a in range(3):
        for b in range(a, 3):
            D[0] = signed_product(scene, part(to, a * length), part(to, b * length), first, contact.blocks)
            D = part(D, 1)
    invert_inertia(contact)


@formula
def write_joint(
    body: Body, f: Vec3, m: Vec3, column: Numbers, length: Int, speed: Lanes, qd: Numbers
) -> Lanes:
    """The column of one joint in three rows of J; adds its contribution to the speed."""
    x = dot(body.axis_v, f) + dot(body.axis_w, m)
    return write_parts(x, column, length, speed, qd)


@formula
def write_base(robot: Robot, f: Vec3, m: Vec3, rows: Numbers, length: Int, speed: Lanes, v: Numbers) -> Lanes:
    """The columns of the base: linear velocity in world axes, angular velocity in body axes."""
    for k, x in enumerate(f + unrotate(base_rotation(robot), m)):
        speed = write_parts(x, part(rows, k), length, speed, part(v, k))
    return speed


@formula
def write_parts(x: Lanes, column: Numbers, length: Int, speed: Lanes, v: Numbers) -> Lanes:
    """Write one column of three rows; adds it times the velocity of its coordinate."""
    parts = split(x)
    for k in range(3):
        column[k * length] = parts[k]
    return speed + x * v[0]


@formula
def write_speed(contact: Contact, speed: Lanes) -> None:
    """Velocity of a contact without impulses."""
    contact.free_velocity = split(speed)[:3]


@subroutine
def divide_row(robot: Robot, scene: Scene, row: Numbers, first: Int, last: Int) -> None:
    """L^-T times a row of J, in place; its limb has the joints `first` to `last`."""
    apart(robot)
    n, skip, M = robot.nv, base_rows(robot), scene.factor
    inverses, joints = scene.pivots, part(row, BASE_COLUMNS)
    for j in range(last, first - 1, -1):
        x = joints[j - first] * inverses[skip + j]
        if x != 0.0:
            joints[j - first] = x
            line = part(M, (skip + j) * n)
            if skip > 0:
                subtract_base(row, line, x)
            subtract_part(joints, part(line, skip + first), j - first, x)
    if skip > 0:
        divide_base(row, M, n, inverses)


@formula
def divide_base(row: Numbers, M: Numbers, n: Int, inverses: Numbers) -> None:
    """The base columns of a row, which come last."""
    x = [row[k] for k in range(6)]
    for i in reversed(range(6)):
        x[i] = x[i] * inverses[i]
        for k in range(i):
            x[k] = x[k] - x[i] * M[i * n + k]
    for k in range(6):
        row[k] = x[k]


@routine
def signed_product(scene: Scene, a: Numbers, b: Numbers, first: Int, blocks: Int) -> Number:
    """a E b of two rows of the same limb."""
    signs = scene.signs
    total = signed_block(a, b, signs)
    total += signed_block(part(a, LANES), part(b, LANES), part(signs, LANES))
    for k in range(blocks):
        at = BASE_COLUMNS + LANES * k
        total += signed_block(part(a, at), part(b, at), part(part(signs, at), first))
    return total


@formula
def signed_block(a: Numbers, b: Numbers, signs: Numbers) -> Number:
    """a E b over four columns."""
    return lane_sum(load(a, 0) * load(b, 0) * load(signs, 0))


@subroutine
def open_factored_stop(robot: Robot, scene: Scene, stop: Stop) -> None:
    """As `constraints.open_stop`, from the factor."""
    apart(robot)
    joint, to, sign = stop.joint, stop.row, stop.sign
    drive = scene.drives[joint]
    first = drive.first
    fill_zero(to, 0, scene.row_length)
    to[BASE_COLUMNS + joint - first] = sign
    stop.free_velocity = sign * scene.velocity[base_rows(robot) + joint]
    divide_row(robot, scene, to, first, joint)
    stop.inertia = signed_product(scene, to, to, first, drive.blocks)


@subroutine
def respond_by_factor(robot: Robot, scene: Scene, y: Numbers, to: Numbers) -> None:
    """As `constraints.respond`: to = L^-1 y."""
    apart(robot)
    skip = base_rows(robot)
    for k in range(skip):
        to[k] = y[k]
    for j in range(robot.nj):
        to[skip + j] = y[BASE_COLUMNS + j]
    finish_solution(robot, scene, to)
