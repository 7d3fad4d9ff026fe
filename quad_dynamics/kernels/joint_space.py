# SPDX-License-Identifier: Apache-2.0
"""A time step by factoring the mass matrix, in place of the articulated bodies of `aba`.

M comes from the composite-rigid-body algorithm (`crba`), with the inertias that `drives` gives the joints,
and h from the recursive Newton-Euler algorithm (`rnea`) at zero acceleration, less the external forces. M is
factored by LLT from the last row to the first: M = L^T L, which is the Cholesky factorization of M with rows
and columns in reverse order. In this order L has no elements but where M has some (Featherstone, Rigid Body
Dynamics Algorithms, 2008, section 6.5): a joint meets its own limb and the base only.

Constraints use the same factor. A row (see `constraints`) is L^-T J^T, so that the product of two rows is
J M^-1 J^T, and M^-1 J^T of all impulses is L^-1 y. No articulated inertia is computed.

Where a pivot is not positive, LLT fails: M is not positive definite. The accelerations then come from LDLT
with pivoting (`ldlt`). For the constraints, the factorization goes on with M = L^T E L, where E has -1 for
each negative pivot (SIGNS): rows are then L^-T J^T with J M^-1 J^T = row E row, and y holds E times the sum
of rows times impulses.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import (
    apart,
    fill_zero,
    formula,
    lane_sum,
    load,
    load_int,
    routine,
    split,
    store_int,
    subroutine,
    zero_lanes,
)
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Lanes, Number, Vec3
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.aba import articulated_mul, load_articulated
from quad_dynamics.kernels.constraints import invert_inertia, unit_wrenches
from quad_dynamics.kernels.crba import composite_inertias, write_mass_matrix
from quad_dynamics.kernels.ldlt import factor_ldlt, solve_ldlt
from quad_dynamics.kernels.rnea import accelerate_bodies, sum_inward, write_forces
from quad_dynamics.kernels.scene import BASE_COLUMNS
from quad_dynamics.kernels.spatial import add_to6, dot, load3, read3, unrotate
from quad_dynamics.kernels.tree import base_rotation, base_rows, gather, pack_at
from quad_dynamics.model import layout as L

# ---------------------------------------------------------------- accelerations


@subroutine
def accelerate_by_factor(A: Address, S: Address, to: Int) -> None:
    """S[to : to + nv] = M^-1 (tau - h), after `start_bodies` and `load_joints`; keeps the factor of M."""
    apart(A)
    n, skip = load_int(A, L.NV), base_rows(A)
    factor, bias = load_int(S, S_.FACTOR), load_int(S, S_.BIAS)
    fill_zero(S, to, skip)
    gather(A, L.TAU, S, to + skip)  # before it is overwritten
    bias_forces(A, S, bias)
    for i in range(n):
        S[to + i] -= S[bias + i]
    write_inertia_matrix(A, S, factor)
    if factor_reversed(A, S):
        solve_reversed(A, S, to)
        return
    state, copy = load_int(S, S_.STATE), load_int(S, S_.LDLT)
    S[state + S_.LDLT_USED] += 1.0
    write_inertia_matrix(A, S, copy)
    if factor_ldlt(S, copy, n, copy + n * n):
        solve_ldlt(S, copy, n, copy + n * n, S, to)
    else:
        S[to] = math.nan  # singular: there is no such acceleration, and the step is refused


@subroutine
def write_inertia_matrix(A: Address, S: Address, to: Int) -> None:
    """S[to : to + nv nv] = M."""
    apart(A)
    composite_inertias(A)
    write_mass_matrix(A, S, to)


@routine
def bias_forces(A: Address, S: Address, to: Int) -> None:
    """S[to : to + nv] = h less external forces: what a motion without acceleration takes."""
    accelerate_bodies(A, False, S, to, 0)
    for k in range(load_int(A, L.PACKS)):
        add_inertial_wrench(A, pack_at(A, k))
    sum_inward(A)
    write_forces(A, S, to)


@formula
def add_inertial_wrench(A: Address, at: Int) -> None:
    """Add I a to the wrenches of a pack; the articulated inertias are still those of the bodies alone."""
    M, H, J = load_articulated(A, at)
    f, n = articulated_mul(M, H, J, load3(A, at + L.ACC_V), load3(A, at + L.ACC_W))
    add_to6(A, at + L.FORCE_F, f + n)


# ---------------------------------------------------------------- factorization


@routine
def first_column(S: Address, i: Int, skip: Int) -> Int:
    """The column where the limb of row i begins; for a row of the base, that is 0."""
    if i < skip:
        return load_int(S, S_.NONE)
    return skip + load_int(S, load_int(S, S_.JOINTS) + (i - skip) * S_.JOINT_WORDS + S_.J_FIRST)


@subroutine
def factor_reversed(A: Address, S: Address) -> Bool:
    """Factor M = L^T E L in place; 1 over L's diagonal to S[PIVOTS]; whether E is the identity (LLT)."""
    apart(A)
    n, skip, M = load_int(A, L.NV), base_rows(A), load_int(S, S_.FACTOR)
    inverses, signs = load_int(S, S_.PIVOTS), load_int(S, S_.SIGNS)
    good = True
    for i in range(n - 1, -1, -1):
        row, first = M + i * n, first_column(S, i, skip)
        d = S[row + i]
        sign = 1.0
        if not d > 0.0:
            good = False
            sign = -1.0
        S[signs + (i if i < skip else BASE_COLUMNS + i - skip)] = sign
        inverse = 1.0 / math.sqrt(abs(d))
        S[inverses + i] = inverse
        scale_part(S, row + first, i - first, sign * inverse)
        if i >= skip > 0:
            reduce_base(S, M, n, row, sign * inverse, sign)
        for j in range(first, i):
            if i >= skip > 0:
                subtract_base(S, M + j * n, row, sign * S[row + j])
            subtract_part(S, M + j * n + first, row + first, j + 1 - first, sign * S[row + j])
    store_int(S, S_.INDEFINITE, 0 if good else 1)
    return good


@formula
def reduce_base(S: Address, M: Int, n: Int, row: Int, factor: Number, sign: Number) -> None:
    """Scale the base's columns of a joint's row, and take the row out of the block of the base."""
    x = [S[row + k] * factor for k in range(6)]
    for k in range(6):
        S[row + k] = x[k]
    for j in range(6):
        left = [S[M + j * n + k] - x[j] * sign * x[k] for k in range(j + 1)]
        for k in range(j + 1):
            S[M + j * n + k] = left[k]


@formula
def subtract_base(S: Address, to: Int, at: Int, x: Number) -> None:
    """S[to : to + 6] -= x S[at : at + 6]."""
    left = [S[to + k] - S[at + k] * x for k in range(6)]
    for k in range(6):
        S[to + k] = left[k]


@routine
def scale_part(S: Address, at: Int, count: Int, x: Number) -> None:
    """S[at : at + count] *= x."""
    for k in range(count):
        S[at + k] *= x


@routine
def subtract_part(S: Address, to: Int, at: Int, count: Int, x: Number) -> None:
    """S[to : to + count] -= x S[at : at + count]."""
    for k in range(count):
        S[to + k] -= x * S[at + k]


@routine
def solve_reversed(A: Address, S: Address, at: Int) -> None:
    """Solve L^T L x = b for b = S[at : at + nv], in place."""
    n, skip, M = load_int(A, L.NV), base_rows(A), load_int(S, S_.FACTOR)
    inverses = load_int(S, S_.PIVOTS)
    for i in range(n - 1, -1, -1):
        x = S[at + i] * S[inverses + i]
        S[at + i] = x
        if i >= skip > 0:
            subtract_base(S, at, M + i * n, x)
        first = first_column(S, i, skip)
        subtract_part(S, at + first, M + i * n + first, i - first, x)
    finish_solution(A, S, at)


@routine
def finish_solution(A: Address, S: Address, at: Int) -> None:
    """Solve L x = b for b = S[at : at + nv], in place."""
    n, skip, M = load_int(A, L.NV), base_rows(A), load_int(S, S_.FACTOR)
    inverses = load_int(S, S_.PIVOTS)
    for i in range(n):
        row = M + i * n
        x = S[at + i]
        if i >= skip > 0:
            x -= base_product(S, row, at)
        for k in range(first_column(S, i, skip), i):
            x -= S[row + k] * S[at + k]
        S[at + i] = x * S[inverses + i]


@formula
def base_product(S: Address, a: Int, b: Int) -> Number:
    """The product of six numbers with six numbers."""
    return sum(S[a + k] * S[b + k] for k in range(6))


# ---------------------------------------------------------------- constraints


@subroutine
def open_factored_contact(A: Address, S: Address, c: Int) -> None:
    """As `constraints.open_contact`, from the factor."""
    apart(A)
    length, v, to = load_int(S, S_.ROW_LENGTH), load_int(S, S_.V), load_int(S, c + S_.A_ROW)
    first, last = load_int(S, c + S_.A_FIRST), load_int(S, c + S_.A_JOINT)
    skip, table = base_rows(A), load_int(A, L.JOINTS)
    fill_zero(S, to, 3 * length)
    f, m = unit_wrenches(S, c)
    speed = zero_lanes(A)
    joint = last
    while joint >= 0:
        entry = table + joint * L.JOINT_WORDS
        at = to + BASE_COLUMNS + joint - first
        speed = write_joint(A, load_int(A, entry + L.J_LANE), f, m, S, at, length, speed, v + skip + joint)
        joint = load_int(A, entry + L.J_PARENT)
    if skip > 0:
        speed = write_base(A, f, m, S, to, length, speed, v)
    write_speed(S, c, speed)
    for k in range(3):
        divide_row(A, S, to + k * length, first, last)
    at = c + S_.A_INERTIA
    for a in range(3):
        for b in range(a, 3):
            S[at] = signed_product(S, to + a * length, to + b * length, first, load_int(S, c + S_.A_BLOCKS))
            at += 1
    invert_inertia(S, c)


@formula
def write_joint(
    A: Address, lane: Int, f: Vec3, m: Vec3, S: Address, to: Int, length: Int, speed: Lanes, v: Int
) -> Lanes:
    """The column of one joint in three rows of J; adds what its speed gives."""
    x = dot(read3(A, lane + L.AXIS_V), f) + dot(read3(A, lane + L.AXIS_W), m)
    return write_parts(x, S, to, length, speed, v)


@formula
def write_base(A: Address, f: Vec3, m: Vec3, S: Address, to: Int, length: Int, speed: Lanes, v: Int) -> Lanes:
    """The columns of the base: linear velocity in world axes, angular velocity in body axes."""
    for k, x in enumerate(f + unrotate(base_rotation(A), m)):
        speed = write_parts(x, S, to + k, length, speed, v + k)
    return speed


@formula
def write_parts(x: Lanes, S: Address, to: Int, length: Int, speed: Lanes, v: Int) -> Lanes:
    """One column of three rows; adds it times S[v]."""
    parts = split(x)
    for k in range(3):
        S[to + k * length] = parts[k]
    return speed + x * S[v]


@formula
def write_speed(S: Address, c: Int, speed: Lanes) -> None:
    """Velocity of a contact without impulses."""
    for k, x in enumerate(split(speed)[:3]):
        S[c + S_.A_FREE + k] = x


@subroutine
def divide_row(A: Address, S: Address, row: Int, first: Int, last: Int) -> None:
    """L^-T times a row of J, in place; its limb reaches from the joint `first` to `last`."""
    apart(A)
    n, skip, M = load_int(A, L.NV), base_rows(A), load_int(S, S_.FACTOR)
    inverses, joints = load_int(S, S_.PIVOTS), row + BASE_COLUMNS
    for j in range(last, first - 1, -1):
        x = S[joints + j - first] * S[inverses + skip + j]
        if x != 0.0:
            S[joints + j - first] = x
            line = M + (skip + j) * n
            if skip > 0:
                subtract_base(S, row, line, x)
            subtract_part(S, joints, line + skip + first, j - first, x)
    if skip > 0:
        divide_base(S, row, M, n, inverses)


@formula
def divide_base(S: Address, row: Int, M: Int, n: Int, inverses: Int) -> None:
    """The base's columns of a row, which come last."""
    x = [S[row + k] for k in range(6)]
    for i in reversed(range(6)):
        x[i] = x[i] * S[inverses + i]
        for k in range(i):
            x[k] = x[k] - x[i] * S[M + i * n + k]
    for k in range(6):
        S[row + k] = x[k]


@routine
def signed_product(S: Address, a: Int, b: Int, first: Int, blocks: Int) -> Number:
    """a E b of two rows of the same limb."""
    signs = load_int(S, S_.SIGNS)
    total = signed_block(S, a, b, signs) + signed_block(S, a + LANES, b + LANES, signs + LANES)
    for k in range(blocks):
        at = BASE_COLUMNS + LANES * k
        total += signed_block(S, a + at, b + at, signs + at + first)
    return total


@formula
def signed_block(S: Address, a: Int, b: Int, signs: Int) -> Number:
    """a E b over four columns."""
    return lane_sum(load(S, a) * load(S, b) * load(S, signs))


@subroutine
def open_factored_stop(A: Address, S: Address, s: Int) -> None:
    """As `constraints.open_stop`, from the factor."""
    apart(A)
    joint, to, sign = load_int(S, s + S_.L_JOINT), load_int(S, s + S_.L_ROW), S[s + S_.L_SIGN]
    entry = load_int(S, S_.JOINTS) + joint * S_.JOINT_WORDS
    first = load_int(S, entry + S_.J_FIRST)
    fill_zero(S, to, load_int(S, S_.ROW_LENGTH))
    S[to + BASE_COLUMNS + joint - first] = sign
    S[s + S_.L_FREE] = sign * S[load_int(S, S_.V) + base_rows(A) + joint]
    divide_row(A, S, to, first, joint)
    S[s + S_.L_INERTIA] = signed_product(S, to, to, first, load_int(S, entry + S_.J_BLOCKS))


@subroutine
def respond_by_factor(A: Address, S: Address, y: Int, to: Int) -> None:
    """As `constraints.respond`: S[to : to + nv] = L^-1 y."""
    apart(A)
    skip = base_rows(A)
    for k in range(skip):
        S[to + k] = S[y + k]
    for j in range(load_int(A, L.NJ)):
        S[to + skip + j] = S[y + BASE_COLUMNS + j]
    finish_solution(A, S, to)
