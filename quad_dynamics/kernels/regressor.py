# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics as a linear function of the inertial parameters: tau = Y(q, u, du) pi.

Atkeson, An and Hollerbach, Estimation of inertial parameters of manipulator loads and links (1986). Row i of
the block of a body is the power, at unit speed of coordinate i, of the wrench that the body needs, as a
function of its ten parameters. With the motion [s; t] of the body's origin, in the link's axes,

    s . (m a + alpha x h + w x (w x h)) + t . (h x a + J alpha + w x J w),   pi = [m, h, J].
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import fill_zero, formula, load, load_int, routine, store
from quad_dynamics.compiler.types import LANES, Address, Int, Object, Vec3
from quad_dynamics.kernels.crba import project
from quad_dynamics.kernels.door import good_configuration, good_vector
from quad_dynamics.kernels.rnea import accelerate_bodies
from quad_dynamics.kernels.spatial import (
    add,
    cross,
    dot,
    load3,
    load9,
    matmul,
    read3,
    rotate,
    scale,
    store3,
    store6,
    store9,
    unrotate,
)
from quad_dynamics.kernels.tree import (
    base_rotation,
    base_rows,
    joint_entry,
    lane_of,
    move_bodies,
    origin_acceleration,
    pack_at,
    parent_of,
    place_bodies,
)
from quad_dynamics.model import layout as L

FRICTION_COLUMNS = 1
ROTOR_COLUMNS = 2


@kernel(ARENA, INT, OBJECT, OBJECT, OBJECT, INT, OBJECT)
def regressor(A: Address, n: Int, q: Object, u: Object, du: Object, flags: Int, Y: Object) -> Int:
    """Regressors of n states.

    Args:
        A: arena.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities.
        du: (n, nv) accelerations.
        flags: FRICTION_COLUMNS appends nj columns of viscous and nj of Coulomb friction, ROTOR_COLUMNS nj of
            rotor inertia.
        Y: (n, nv, columns) out.
    """
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    if not good_configuration(A, n, q):
        return 1
    if not good_vector(A, n, nv, u):
        return 2
    if not good_vector(A, n, nv, du):
        return 3
    columns = count_columns(A, flags)
    q, u, du, Y = data(q), data(u), data(du), data(Y)
    for i in range(max(n, 1)):
        write_regressor(A, q, i * nq, u, du, i * nv, flags, Y, i * nv * columns, columns)
    return 0


@routine
def count_columns(A: Address, flags: Int) -> Int:
    """Number of columns of Y."""
    nj = load_int(A, L.NJ)
    columns = 10 * load_int(A, L.NB)
    if flags & FRICTION_COLUMNS:
        columns += 2 * nj
    if flags & ROTOR_COLUMNS:
        columns += nj
    return columns


@routine
def write_regressor(
    A: Address,
    q: Address,
    iq: Int,
    u: Address,
    du: Address,
    iu: Int,
    flags: Int,
    Y: Address,
    start: Int,
    columns: Int,
) -> None:
    """Write the regressor of one state to Y[start : start + nv columns]."""
    nv, skip = load_int(A, L.NV), base_rows(A)
    place_bodies(A, q, iq)
    move_bodies(A, u, iu)
    accelerate_bodies(A, True, du, iu, 0)
    fill_zero(Y, start, nv * columns)
    base = pack_at(A, 0)
    if skip > 0:
        store_base_motions(A)
        prepare(A, base)
        for row in range(6):
            write_base_row(A, base, row)
            copy_row(A, base, Y, start + row * columns)
    for k in range(1, load_int(A, L.PACKS)):
        at = pack_at(A, k)
        prepare(A, at)
        for row in range(skip):
            write_base_row(A, at, row)
            for lane in range(at, at + LANES):
                j = load_int(A, lane + L.OWN_JOINT)
                if j >= 0:
                    copy_row(A, lane, Y, start + row * columns + 10 * (j + 1))
        above = at
        while above != base:
            write_joint_row(A, at, above)
            for lane in range(LANES):
                j = load_int(A, at + lane + L.OWN_JOINT)
                if j >= 0:
                    row = skip + load_int(A, above + lane + L.OWN_JOINT)
                    body = j + 1 if skip > 0 else j
                    copy_row(A, at + lane, Y, start + row * columns + 10 * body)
            above = load_int(A, above + L.PARENT)
    column = 10 * load_int(A, L.NB)
    if flags & FRICTION_COLUMNS:
        write_friction_columns(A, u, iu, Y, start + column, columns)
        column += 2 * load_int(A, L.NJ)
    if flags & ROTOR_COLUMNS:
        write_rotor_columns(A, Y, start + column, columns)


@formula
def prepare(A: Address, at: Int) -> None:
    """Motion of the bodies of a pack in their links' axes: R_AL, a, w, alpha, and G = [alpha] + [w][w]."""
    R = matmul(load9(A, at + L.ROT), load9(A, at + L.LINK_R))
    w, alpha = unrotate(R, load3(A, at + L.VEL_W)), unrotate(R, load3(A, at + L.ACC_W))
    ww = dot(w, w)
    store9(A, at + L.REG_R, R)
    store3(A, at + L.REG_A, unrotate(R, origin_acceleration(A, at)))
    store3(A, at + L.REG_W, w)
    store3(A, at + L.REG_ALPHA, alpha)
    store9(A, at + L.REG_G, (
        w[0] * w[0] - ww, w[0] * w[1] - alpha[2], w[0] * w[2] + alpha[1],
        w[0] * w[1] + alpha[2], w[1] * w[1] - ww, w[1] * w[2] - alpha[0],
        w[0] * w[2] - alpha[1], w[1] * w[2] + alpha[0], w[2] * w[2] - ww,
    ))  # fmt: skip


@formula
def power_row(A: Address, at: Int, S_v: Vec3, S_w: Vec3) -> None:
    """Ten numbers for each body of a pack: power of its wrench at the motion [S_v; S_w], by parameter."""
    R, p = load9(A, at + L.REG_R), load3(A, at + L.POS)
    s, t = unrotate(R, add(S_v, cross(S_w, p))), unrotate(R, S_w)
    a, w, alpha = load3(A, at + L.REG_A), load3(A, at + L.REG_W), load3(A, at + L.REG_ALPHA)
    z = cross(t, w)
    store(A, at + L.REG_ROW, dot(s, a))
    store3(A, at + L.REG_ROW + LANES, add(unrotate(load9(A, at + L.REG_G), s), cross(a, t)))
    store6(A, at + L.REG_ROW + 4 * LANES, (
        t[0] * alpha[0] + z[0] * w[0],
        t[0] * alpha[1] + t[1] * alpha[0] + z[0] * w[1] + z[1] * w[0],
        t[1] * alpha[1] + z[1] * w[1],
        t[0] * alpha[2] + t[2] * alpha[0] + z[0] * w[2] + z[2] * w[0],
        t[1] * alpha[2] + t[2] * alpha[1] + z[1] * w[2] + z[2] * w[1],
        t[2] * alpha[2] + z[2] * w[2],
    ))  # fmt: skip


@formula
def write_joint_row(A: Address, at: Int, above: Int) -> None:
    """The row of the joints of the pack `above`, for the bodies of the pack `at`."""
    power_row(A, at, load3(A, above + L.AXIS_V), load3(A, above + L.AXIS_W))


@formula
def store_base_motions(A: Address) -> None:
    """Motion of the base at unit speed of each coordinate: [1; 0] for v_WB_W, [0; R_WB] for w_WB_B."""
    at, R = load_int(A, L.SCRATCH) + L.BASE_MOTION, base_rotation(A)
    for row in range(3):
        for i in range(3):
            A[at + 6 * row + i] = 1.0 if i == row else 0.0
            A[at + 6 * row + 3 + i] = 0.0
            A[at + 6 * (3 + row) + i] = 0.0
            A[at + 6 * (3 + row) + 3 + i] = R[3 * i + row]


@formula
def write_base_row(A: Address, at: Int, row: Int) -> None:
    """The row of one coordinate of the base, for the bodies of a pack."""
    motion = load_int(A, L.SCRATCH) + L.BASE_MOTION + 6 * row
    S = tuple(A[motion + i] for i in range(6))
    power_row(A, at, S[:3], S[3:])


@formula
def copy_row(A: Address, lane: Int, Y: Address, to: Int) -> None:
    """Copy the ten numbers of one lane to Y[to : to + 10]."""
    for i in range(10):
        Y[to + i] = A[lane + L.REG_ROW + i * LANES]


@routine
def write_friction_columns(A: Address, u: Address, iu: Int, Y: Address, start: Int, columns: Int) -> None:
    """qd in the columns of viscous friction, its sign in those of Coulomb friction."""
    nj, skip = load_int(A, L.NJ), base_rows(A)
    for j in range(nj):
        qd = u[iu + skip + j]
        at = start + (skip + j) * columns + j
        Y[at] = qd
        Y[at + nj] = 1.0 if qd > 0.0 else (-1.0 if qd < 0.0 else 0.0)


@routine
def write_rotor_columns(A: Address, Y: Address, start: Int, columns: Int) -> None:
    """What a rotor of unit axial inertia needs: torque at its joint, moment on the parent."""
    skip = base_rows(A)
    for k in range(1, load_int(A, L.PACKS)):
        turn_unit_rotors(A, pack_at(A, k), parent_of(A, k))
    for j in range(load_int(A, L.NJ)):
        lane = lane_of(A, j)
        Y[start + (skip + j) * columns + j] = A[lane + L.TAU]
        i = load_int(A, joint_entry(A, j) + L.J_PARENT)
        while i >= 0:
            Y[start + (skip + i) * columns + j] = project(A, lane_of(A, i), lane)
            i = load_int(A, joint_entry(A, i) + L.J_PARENT)
        if skip > 0:
            write_base_moment(A, lane, Y, start + j, columns)


@formula
def turn_unit_rotors(A: Address, at: Int, up: Int) -> None:
    """Joint torque (TAU) and moment on the parent (FORCE) for rotors of unit axial inertia."""
    gear = load(A, at + L.ROTOR_GEAR)
    r = scale(rotate(load9(A, up + L.ROT), load3(A, at + L.ROTOR_AXIS)), gear)
    qd, qdd = load(A, at + L.QD), load(A, at + L.QDD)
    store(A, at + L.TAU, gear * gear * qdd + dot(r, load3(A, up + L.ACC_W)))
    store3(A, at + L.FORCE_F, (0.0, 0.0, 0.0))
    store3(A, at + L.FORCE_N, add(scale(r, qdd), cross(load3(A, up + L.VEL_W), scale(r, qd))))


@formula
def write_base_moment(A: Address, lane: Int, Y: Address, column: Int, columns: Int) -> None:
    """The moment on the base, in body axes, in rows 3 to 5."""
    n = unrotate(base_rotation(A), read3(A, lane + L.FORCE_N))
    for i in range(3):
        Y[column + (3 + i) * columns] = n[i]
