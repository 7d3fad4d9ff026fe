# SPDX-License-Identifier: Apache-2.0
"""One step of Newton's method for the impulses: dF = K dp + Q dv = -F, with dv = G dp, in two ways.

*Dense*: the n equations (K + Q G) dp = -F for all impulses, with the Delassus operator G. *Reduced*: G is
T T^T with the rows T of `constraints`, which have as many columns as the robot has degrees of freedom, and
K and Q are made of small blocks. So, by the formula of Sherman, Morrison and Woodbury,

    dp = -K^-1 F - K^-1 Q T w,    (1 + T^T K^-1 Q T) w = -T^T K^-1 F,

m equations for w, whatever the number of contacts is: the cost is linear in it. K must be regular, and is, as
each constraint gives way by a share `soft` of D: it stands in K as soft D Q. That is also what loses digits,
so few unknowns are solved for densely. The joints of a limb meet each other and the base only: with the
joints first and the base last, elimination fills nothing in between.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, fill_zero, formula, load, load_int, routine, store, subroutine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Mat3, Number, Vec3
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import (
    add_block,
    add_contact,
    add_stop,
    contact_velocity,
    row3,
    stop_velocity,
)
from quad_dynamics.kernels.delassus import (
    CHANGE,
    FREE,
    INERTIA,
    STEP,
    P,
    V,
    blocks_at,
    delassus,
    jacobian,
    multiply,
    reduced_length,
    reduced_matrix,
    reduced_size,
    reduced_vector,
    row_length,
    vector,
)
from quad_dynamics.kernels.gaussian_elimination import solve_equations
from quad_dynamics.kernels.natural_map import mean_inertia
from quad_dynamics.kernels.scene import BASE_COLUMNS, contact_at, stop_at
from quad_dynamics.kernels.smooth_projection import contact_defect, contact_slopes, stop_defect
from quad_dynamics.model import layout as L

# Of reduced equations: with less, too many digits are lost. With this they are solved without pivoting, which
# is fast; whoever tries again with another share is in no hurry.
_LEAST_SOFT = 1e-4
_BLOCK = 18  # numbers that reduced equations keep for a contact: K^-1 and K^-1 Q


@subroutine
def newton_step(
    A: Address, S: Address, n_contacts: Int, n_stops: Int, n: Int, e: Number, soft: Number, dense: Bool
) -> Number:
    """STEP = dp, and CHANGE = dv, found densely or in the reduced way; returns |F|, or -1 for no step."""
    apart(A)
    if dense:
        size = fill_jacobian(S, n_contacts, n_stops, n, e, soft)
        if not solve_equations(S, jacobian(S, n), n, row_length(n), vector(S, STEP), True):
            return -1.0
        multiply(S, n, vector(S, STEP), vector(S, CHANGE))
        return size
    size = fill_reduced(A, S, n_contacts, n_stops, e, max(soft, _LEAST_SOFT))
    m, w = reduced_size(A), reduced_vector(A, S)
    if not solve_equations(S, reduced_matrix(S), m, reduced_length(m), w, soft != _LEAST_SOFT):
        return -1.0
    bring_base_forward(A, S, w)
    finish_reduced(S, n_contacts, n_stops, w)
    velocities_of(A, S, n_contacts, n_stops, vector(S, STEP), vector(S, CHANGE))
    return size


@subroutine
def set_velocities(A: Address, S: Address, n_contacts: Int, n_stops: Int, n: Int, dense: Bool) -> None:
    """V from P."""
    apart(A)
    v, free = vector(S, V), vector(S, FREE)
    if dense:
        multiply(S, n, vector(S, P), v)
    else:
        velocities_of(A, S, n_contacts, n_stops, vector(S, P), v)
    for i in range(n):
        S[v + i] += S[free + i]


# ---------------------------------------------------------------- dense


@subroutine
def fill_jacobian(S: Address, n_contacts: Int, n_stops: Int, n: Int, e: Number, soft: Number) -> Number:
    """K + Q G, with -F as its right-hand side; returns |F|."""
    apart(S)
    total = 0.0
    p, v = vector(S, P), vector(S, V)
    J, G, length = jacobian(S, n), delassus(S), row_length(n)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            x, y = row3(S, p + k), row3(S, v + k)
            F = contact_defect(S, contact_at(S, c), x, y, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
            K, Q = contact_slopes(S, contact_at(S, c), x, y, e)
            give = soft * mean_inertia(contact_at(S, c))
            for r in range(3):
                to = J + (k + r) * length
                for b in range(length // LANES):
                    combine_block(S, G + k * length + LANES * b, length, Q, r, to + LANES * b)
                for j in range(3):
                    S[to + k + j] += K[3 * r + j] + give * Q[3 * r + j]
                S[to + n] = -F[r]
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            F0, slope = stop_defect(stop_at(S, s), S[p + k], S[v + k], e)
            total += F0 * F0
            D, to = S[s + S_.L_INERTIA], J + k * length
            for b in range(length // LANES):
                scale_block(S, G + k * length + LANES * b, slope, to + LANES * b)
            S[to + k] += D - slope * D * (1.0 - soft)
            S[to + n] = -F0
    return math.sqrt(total)


@subroutine
def stop_all(S: Address, n: Int, soft: Number) -> Bool:
    """P = the impulses that bring all velocities to their targets, whatever the laws say; if there are any.

    Each constraint gives way by a share `soft` of its D, so that redundant ones do not matter.
    """
    apart(S)
    J, G, length = jacobian(S, n), delassus(S), row_length(n)
    for b in range(n * length // LANES):
        scale_block(S, G + LANES * b, 1.0, J + LANES * b)
    for i in range(n):
        S[J + i * length + i] += soft * S[vector(S, INERTIA) + i]
        S[J + i * length + n] = -S[vector(S, FREE) + i]
    return solve_equations(S, J, n, length, vector(S, P), True)


@routine
def combine_block(S: Address, a: Int, length: Int, Q: Mat3, r: Int, to: Int) -> None:
    """Four columns of row r of Q times three rows of G."""
    write_combination(S, a, length, Q[3 * r], Q[3 * r + 1], Q[3 * r + 2], to)


@formula
def write_combination(S: Address, a: Int, length: Int, x: Number, y: Number, z: Number, to: Int) -> None:
    """Four columns of three rows times x, y, z."""
    store(S, to, load(S, a) * x + load(S, a + length) * y + load(S, a + length * 2) * z)


@formula
def scale_block(S: Address, a: Int, x: Number, to: Int) -> None:
    """Four numbers times x."""
    store(S, to, load(S, a) * x)


# ---------------------------------------------------------------- reduced


@subroutine
def fill_reduced(A: Address, S: Address, n_contacts: Int, n_stops: Int, e: Number, soft: Number) -> Number:
    """1 + T^T K^-1 Q T, with -T^T K^-1 F as its right-hand side; returns |F|.

    K^-1 Q is kept, and -K^-1 F in STEP.
    """
    apart(A)
    total = 0.0
    p, v, step, blocks = vector(S, P), vector(S, V), vector(S, STEP), blocks_at(S)
    m, H, nj = reduced_size(A), reduced_matrix(S), load_int(A, L.NJ)
    length = reduced_length(m)
    fill_zero(S, H, m * length)
    for i in range(m):
        S[H + i * length + i] = 1.0
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            x, y = row3(S, p + k), row3(S, v + k)
            F = contact_defect(S, contact_at(S, c), x, y, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
            K, Q = contact_slopes(S, contact_at(S, c), x, y, e)
            inverse = inverse3(soften(K, Q, soft * mean_inertia(contact_at(S, c))))
            write9(S, blocks + _BLOCK // 3 * k, product3(inverse, Q))
            write_lack(S, step + k, inverse, F)
            row, size = load_int(S, c + S_.A_ROW), load_int(S, c + S_.A_BLOCKS)
            first, block = load_int(S, c + S_.A_FIRST), blocks + _BLOCK // 3 * k
            add_reduced_contact(S, row, first, size, block, step + k, H, length, nj)
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            F0, slope = stop_defect(stop_at(S, s), S[p + k], S[v + k], e)
            total += F0 * F0
            D = S[s + S_.L_INERTIA]
            inverse = 1.0 / (D - slope * D * (1.0 - soft))
            S[blocks + _BLOCK // 3 * k] = inverse * slope
            S[step + k] = -inverse * F0
            entry = load_int(S, S_.JOINTS) + load_int(S, s + S_.L_JOINT) * S_.JOINT_WORDS
            row, first, size = (
                load_int(S, s + S_.L_ROW),
                load_int(S, entry + S_.J_FIRST),
                load_int(S, entry + S_.J_BLOCKS),
            )
            add_reduced_stop(S, row, first, size, inverse * slope, S[step + k], H, length, nj)
    return math.sqrt(total)


@routine
def add_reduced_contact(
    S: Address, row: Int, first: Int, size: Int, block: Int, lack: Int, H: Int, length: Int, nj: Int
) -> None:
    """Add T^T B T and T^T b of one contact, with B = K^-1 Q and b = -K^-1 F."""
    stride = load_int(S, S_.ROW_LENGTH)
    for i in range(BASE_COLUMNS + LANES * size):
        column = nj + i if i < BASE_COLUMNS else first + i - BASE_COLUMNS
        if i < BASE_COLUMNS or column < nj:
            t0, t1, t2 = S[row + i], S[row + stride + i], S[row + 2 * stride + i]
            if t0 != 0.0 or t1 != 0.0 or t2 != 0.0:
                to = H + column * length
                x = t0 * S[block] + t1 * S[block + 3] + t2 * S[block + 6]
                y = t0 * S[block + 1] + t1 * S[block + 4] + t2 * S[block + 7]
                z = t0 * S[block + 2] + t1 * S[block + 5] + t2 * S[block + 8]
                for b in range(size):
                    at = row + BASE_COLUMNS + LANES * b
                    add_combination(S, at, stride, x, y, z, to + first + LANES * b)
                add_combination(S, row, stride, x, y, z, to + nj)
                add_combination(S, row + LANES, stride, x, y, z, to + nj + LANES)
                S[to + nj + BASE_COLUMNS] += t0 * S[lack] + t1 * S[lack + 1] + t2 * S[lack + 2]


@routine
def add_reduced_stop(
    S: Address, row: Int, first: Int, size: Int, share: Number, lack: Number, H: Int, length: Int, nj: Int
) -> None:
    """The same for a constraint of one row."""
    for i in range(BASE_COLUMNS + LANES * size):
        column = nj + i if i < BASE_COLUMNS else first + i - BASE_COLUMNS
        t = S[row + i]
        if t != 0.0:
            to = H + column * length
            for b in range(size):
                add_block(S, row + BASE_COLUMNS + LANES * b, t * share, to + first + LANES * b)
            add_block(S, row, t * share, to + nj)
            add_block(S, row + LANES, t * share, to + nj + LANES)
            S[to + nj + BASE_COLUMNS] += t * lack


@routine
def bring_base_forward(A: Address, S: Address, w: Int) -> None:
    """Order w as y is ordered: the base, then the joints."""
    nj = load_int(A, L.NJ)
    base = S[w + nj], S[w + nj + 1], S[w + nj + 2], S[w + nj + 3], S[w + nj + 4], S[w + nj + 5]
    for j in range(nj - 1, -1, -1):
        S[w + BASE_COLUMNS + j] = S[w + j]
    for k in range(6):
        S[w + k] = base[k]
    for k in range(6, BASE_COLUMNS):
        S[w + k] = 0.0
    fill_zero(S, w + BASE_COLUMNS + nj, LANES)


@routine
def finish_reduced(S: Address, n_contacts: Int, n_stops: Int, w: Int) -> None:
    """STEP = -K^-1 F - K^-1 Q T w."""
    step, blocks = vector(S, STEP), blocks_at(S)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            v, free, B = contact_velocity(S, c, w), row3(S, c + S_.A_FREE), blocks + _BLOCK // 3 * k
            x, y, z = v[0] - free[0], v[1] - free[1], v[2] - free[2]
            for r in range(3):
                S[step + k + r] -= S[B + 3 * r] * x + S[B + 3 * r + 1] * y + S[B + 3 * r + 2] * z
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            S[step + k] -= S[blocks + _BLOCK // 3 * k] * (stop_velocity(S, s, w) - S[s + S_.L_FREE])


@subroutine
def velocities_of(A: Address, S: Address, n_contacts: Int, n_stops: Int, x: Int, to: Int) -> None:
    """S[to ...] = G times the impulses at x, by way of T^T x."""
    apart(A)
    y = reduced_vector(A, S)
    fill_zero(S, y, reduced_length(reduced_size(A)))
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            add_contact(S, c, row3(S, x + k), y)
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            add_stop(S, s, S[x + k], y)
    for i in range(n_contacts):
        c = load_int(S, S_.ACTIVE) + i * S_.ACTIVE_WORDS
        k = load_int(S, c + S_.A_UNKNOWN)
        if k >= 0:
            v, free = contact_velocity(S, c, y), row3(S, c + S_.A_FREE)
            for r in range(3):
                S[to + k + r] = v[r] - free[r]
    for i in range(n_stops):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        k = load_int(S, s + S_.L_UNKNOWN)
        if k >= 0:
            S[to + k] = stop_velocity(S, s, y) - S[s + S_.L_FREE]


# ---------------------------------------------------------------- small matrices


@formula
def soften(K: Mat3, Q: Mat3, x: Number) -> Mat3:
    """K + x Q."""
    return tuple(K[i] + Q[i] * x for i in range(9))


@formula
def inverse3(M: Mat3) -> Mat3:
    """The inverse of a 3 x 3 matrix."""
    a, b, c, d, e, f, g, h, i = M
    A, B, C = e * i - f * h, f * g - d * i, d * h - e * g
    s = 1.0 / (a * A + b * B + c * C)
    return (
        A * s, (c * h - b * i) * s, (b * f - c * e) * s,
        B * s, (a * i - c * g) * s, (c * d - a * f) * s,
        C * s, (b * g - a * h) * s, (a * e - b * d) * s,
    )  # fmt: skip


@formula
def product3(X: Mat3, Y: Mat3) -> Mat3:
    """X Y."""
    return tuple(sum(X[3 * r + k] * Y[3 * k + c] for k in range(3)) for r in range(3) for c in range(3))


@formula
def write9(S: Address, at: Int, M: Mat3) -> None:
    """Write nine numbers."""
    for k in range(9):
        S[at + k] = M[k]


@formula
def write_lack(S: Address, at: Int, inverse: Mat3, F: Vec3) -> None:
    """Write -K^-1 F."""
    for r in range(3):
        S[at + r] = -(inverse[3 * r] * F[0] + inverse[3 * r + 1] * F[1] + inverse[3 * r + 2] * F[2])


@formula
def add_combination(S: Address, a: Int, length: Int, x: Number, y: Number, z: Number, to: Int) -> None:
    """Add four columns of three rows times x, y, z."""
    total = load(S, a) * x + load(S, a + length) * y + load(S, a + length * 2) * z
    store(S, to, load(S, to) + total)
