# SPDX-License-Identifier: Apache-2.0
"""One step of Newton's method for the impulses: dF = K dp + Q dv = -F with dv = G dp, solved in two ways.

*Dense*: the n equations (K + Q G) dp = -F for all impulses, with the Delassus operator G. *Reduced*: G is
T T^T with the rows T of `constraints`, which have as many columns as the robot has degrees of freedom, and
K and Q are block diagonal with small blocks. By the Sherman-Morrison-Woodbury formula,

    dp = -K^-1 F - K^-1 Q T w,    (1 + T^T K^-1 Q T) w = -T^T K^-1 F,

which are m equations for w, independent of the number of contacts: the cost is linear in it. K must be
regular. It is, because each constraint is regularised by a fraction `soft` of D, which adds soft D Q to K.
This also loses digits, so small problems are solved densely. The joints of a limb couple only with each other
and with the base: with the joints first and the base last, elimination causes no fill-in between limbs.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, fill_zero, formula, load, routine, store, subroutine
from quad_dynamics.compiler.types import LANES, Bool, Int, Mat3, Number, Vec3
from quad_dynamics.kernels.contact.alart_curnier import alart_curnier
from quad_dynamics.kernels.contact.constraints import (
    add_block,
    add_contact,
    add_stop,
    contact_velocity,
    stop_velocity,
)
from quad_dynamics.kernels.contact.delassus import (
    multiply,
    reduced_length,
    reduced_size,
    row_length,
)
from quad_dynamics.kernels.contact.gaussian_elimination import solve_equations
from quad_dynamics.kernels.contact.natural_map import mean_inertia
from quad_dynamics.kernels.contact.smooth_projection import (
    contact_defect,
    contact_slopes,
    is_pyramid,
    stop_defect,
)
from quad_dynamics.kernels.simulation.scene import BASE_COLUMNS, Contact, Scene
from quad_dynamics.kernels.spatial import vector3
from quad_dynamics.memory.layout import Robot

# Minimum regularisation of reduced equations: with less, too many digits are lost. With this value they are
# solved without pivoting, which is fast; retries with another value use pivoting.
LEAST_SOFT = 3e-4
_BLOCK = 18  # numbers stored per contact for reduced equations: K^-1 and K^-1 Q


@subroutine
def newton_step(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, e: Number, soft: Number, dense: Bool
) -> Number:
    """Compute step = dp and change = dv, dense or reduced; returns |F|, or -1 if it fails."""
    apart(robot)
    newton = scene.newton
    if dense:
        size = fill_jacobian(scene, n_contacts, n_stops, n, e, soft)
        if not solve_equations(newton.jacobian, n, row_length(n), newton.step, True):
            return -1.0
        multiply(scene, n, newton.step, newton.change)
        return size
    size = fill_reduced(robot, scene, n_contacts, n_stops, e, max(soft, LEAST_SOFT))
    m, w = reduced_size(robot), newton.reduced_vector
    if not solve_equations(newton.reduced_matrix, m, reduced_length(m), w, soft != LEAST_SOFT):
        return -1.0
    bring_base_forward(robot, w)
    finish_reduced(scene, n_contacts, n_stops, w)
    velocities_of(robot, scene, n_contacts, n_stops, newton.step, newton.change)
    return size


@subroutine
def set_velocities(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, n: Int, dense: Bool) -> None:
    """Compute velocities from impulses."""
    apart(robot)
    newton = scene.newton
    v, free = newton.velocity, newton.free_velocity
    if dense:
        multiply(scene, n, newton.impulse, v)
    else:
        velocities_of(robot, scene, n_contacts, n_stops, newton.impulse, v)
    for i in range(n):
        v[i] += free[i]


@routine
def linearise(scene: Scene, contact: Contact, p: Vec3, v: Vec3, e: Number) -> tuple[Vec3, Mat3, Mat3]:
    """F, K and Q of a contact: of `alart_curnier` in a semismooth method, else smoothed by e."""
    if scene.newton.semismooth != 0 and not is_pyramid(scene, contact):
        return alart_curnier(mean_inertia(contact), contact.mu, p, v)
    F = contact_defect(scene, contact, p, v, e)
    K, Q = contact_slopes(scene, contact, p, v, e)
    return F, K, Q


# ---------------------------------------------------------------- dense


@subroutine
def fill_jacobian(scene: Scene, n_contacts: Int, n_stops: Int, n: Int, e: Number, soft: Number) -> Number:
    """K + Q G, with -F as its right-hand side; returns |F|."""
    apart(scene)
    total = 0.0
    newton = scene.newton
    p, v = newton.impulse, newton.velocity
    J, G, length = newton.jacobian, newton.delassus, row_length(n)
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            x, y = vector3(p, k), vector3(v, k)
            F, K, Q = linearise(scene, contact, x, y, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
            give = soft * mean_inertia(contact)
            for r in range(3):
                to = part(J, (k + r) * length)
                for b in range(length // LANES):
                    combine_block(part(part(G, k * length), LANES * b), length, Q, r, part(to, LANES * b))
                for j in range(3):
                    to[k + j] += K[3 * r + j] + give * Q[3 * r + j]
                to[n] = -F[r]
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            F0, slope = stop_defect(stop, p[k], v[k], e)
            total += F0 * F0
            D, to = stop.inertia, part(J, k * length)
            for b in range(length // LANES):
                scale_block(part(part(G, k * length), LANES * b), slope, part(to, LANES * b))
            to[k] += D - slope * D * (1.0 - soft)
            to[n] = -F0
    return math.sqrt(total)


@subroutine
def stop_all(scene: Scene, n: Int, soft: Number) -> Bool:
    """Find the impulses that bring all velocities to their targets, without contact laws; whether it could.

    Each constraint is regularised by a fraction `soft` of its D, so redundant constraints are allowed.
    """
    apart(scene)
    newton = scene.newton
    J, G, length = newton.jacobian, newton.delassus, row_length(n)
    for b in range(n * length // LANES):
        scale_block(part(G, LANES * b), 1.0, part(J, LANES * b))
    for i in range(n):
        J[i * length + i] += soft * newton.inertia[i]
        J[i * length + n] = -newton.free_velocity[i]
    return solve_equations(J, n, length, newton.impulse, True)


@routine
def combine_block(a: Numbers, length: Int, Q: Mat3, r: Int, to: Numbers) -> None:
    """Four columns of row r of Q times three rows of G."""
    write_combination(a, length, Q[3 * r], Q[3 * r + 1], Q[3 * r + 2], to)


@formula
def write_combination(a: Numbers, length: Int, x: Number, y: Number, z: Number, to: Numbers) -> None:
    """Linear combination of three rows with x, y, z, four columns."""
    store(to, 0, load(a, 0) * x + load(a, length) * y + load(a, length * 2) * z)


@formula
def scale_block(a: Numbers, x: Number, to: Numbers) -> None:
    """to = a * x, for four numbers."""
    store(to, 0, load(a, 0) * x)


# ---------------------------------------------------------------- reduced


@subroutine
def fill_reduced(
    robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, e: Number, soft: Number
) -> Number:
    """Compute 1 + T^T K^-1 Q T, with -T^T K^-1 F as its right-hand side; returns |F|.

    K^-1 Q is stored, and -K^-1 F in `step`.
    """
    apart(robot)
    total = 0.0
    newton = scene.newton
    p, v, step, blocks = newton.impulse, newton.velocity, newton.step, newton.blocks
    m, H, nj = reduced_size(robot), newton.reduced_matrix, robot.nj
    length = reduced_length(m)
    fill_zero(H, 0, m * length)
    for i in range(m):
        H[i * length + i] = 1.0
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            x, y = vector3(p, k), vector3(v, k)
            F, K, Q = linearise(scene, contact, x, y, e)
            total += F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
            inverse = inverse3(soften(K, Q, soft * mean_inertia(contact)))
            write9(blocks, _BLOCK // 3 * k, product3(inverse, Q))
            write_lack(step, k, inverse, F)
            row, size = contact.rows, contact.blocks
            first, block = contact.first, part(blocks, _BLOCK // 3 * k)
            add_reduced_contact(scene, row, first, size, block, part(step, k), H, length, nj)
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            F0, slope = stop_defect(stop, p[k], v[k], e)
            total += F0 * F0
            D = stop.inertia
            give = 1.0 / (D - slope * D * (1.0 - soft))
            blocks[_BLOCK // 3 * k] = give * slope
            step[k] = -give * F0
            drive = scene.drives[stop.joint]
            row, first, size = stop.row, drive.first, drive.blocks
            add_reduced_stop(row, first, size, give * slope, step[k], H, length, nj)
    return math.sqrt(total)


@routine
def add_reduced_contact(
    scene: Scene,
    row: Numbers,
    first: Int,
    size: Int,
    block: Numbers,
    lack: Numbers,
    H: Numbers,
    length: Int,
    nj: Int,
) -> None:
    """Add T^T B T and T^T b of one contact, with B = K^-1 Q and b = -K^-1 F."""
    stride = scene.row_length
    for i in range(BASE_COLUMNS + LANES * size):
        column = nj + i if i < BASE_COLUMNS else first + i - BASE_COLUMNS
        if i < BASE_COLUMNS or column < nj:
            t0, t1, t2 = row[i], row[stride + i], row[2 * stride + i]
            if t0 != 0.0 or t1 != 0.0 or t2 != 0.0:
                to = part(H, column * length)
                x = t0 * block[0] + t1 * block[3] + t2 * block[6]
                y = t0 * block[1] + t1 * block[4] + t2 * block[7]
                z = t0 * block[2] + t1 * block[5] + t2 * block[8]
                for b in range(size):
                    at = part(part(row, BASE_COLUMNS), LANES * b)
                    add_combination(at, stride, x, y, z, part(part(to, first), LANES * b))
                add_combination(row, stride, x, y, z, part(to, nj))
                add_combination(part(row, LANES), stride, x, y, z, part(part(to, nj), LANES))
                to[nj + BASE_COLUMNS] += t0 * lack[0] + t1 * lack[1] + t2 * lack[2]


@routine
def add_reduced_stop(
    row: Numbers, first: Int, size: Int, share: Number, lack: Number, H: Numbers, length: Int, nj: Int
) -> None:
    """The same for a scalar constraint."""
    for i in range(BASE_COLUMNS + LANES * size):
        column = nj + i if i < BASE_COLUMNS else first + i - BASE_COLUMNS
        t = row[i]
        if t != 0.0:
            to = part(H, column * length)
            for b in range(size):
                at = part(part(row, BASE_COLUMNS), LANES * b)
                add_block(at, t * share, part(part(to, first), LANES * b))
            add_block(row, t * share, part(to, nj))
            add_block(part(row, LANES), t * share, part(part(to, nj), LANES))
            to[nj + BASE_COLUMNS] += t * lack


@routine
def bring_base_forward(robot: Robot, w: Numbers) -> None:
    """Reorder w as y: the base, then the joints."""
    nj = robot.nj
    base = w[nj], w[nj + 1], w[nj + 2], w[nj + 3], w[nj + 4], w[nj + 5]
    for j in range(nj - 1, -1, -1):
        w[BASE_COLUMNS + j] = w[j]
    for k in range(6):
        w[k] = base[k]
    for k in range(6, BASE_COLUMNS):
        w[k] = 0.0
    fill_zero(w, BASE_COLUMNS + nj, LANES)


@routine
def finish_reduced(scene: Scene, n_contacts: Int, n_stops: Int, w: Numbers) -> None:
    """step = -K^-1 F - K^-1 Q T w."""
    step, blocks = scene.newton.step, scene.newton.blocks
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            v, free = contact_velocity(scene, contact, w), contact.free_velocity
            B = part(blocks, _BLOCK // 3 * k)
            x, y, z = v[0] - free[0], v[1] - free[1], v[2] - free[2]
            for r in range(3):
                step[k + r] -= B[3 * r] * x + B[3 * r + 1] * y + B[3 * r + 2] * z
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            step[k] -= blocks[_BLOCK // 3 * k] * (stop_velocity(scene, stop, w) - stop.free_velocity)


@subroutine
def velocities_of(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, x: Numbers, to: Numbers) -> None:
    """to = G times the impulses x, computed through T^T x."""
    apart(robot)
    y = scene.newton.reduced_vector
    fill_zero(y, 0, reduced_length(reduced_size(robot)))
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            add_contact(scene, contact, vector3(x, k), y)
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            add_stop(scene, stop, x[k], y)
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            v, free = contact_velocity(scene, contact, y), contact.free_velocity
            for r in range(3):
                to[k + r] = v[r] - free[r]
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            to[k] = stop_velocity(scene, stop, y) - stop.free_velocity


# ---------------------------------------------------------------- small matrices


@formula
def soften(K: Mat3, Q: Mat3, x: Number) -> Mat3:
    """K + x Q."""
    return tuple(K[i] + Q[i] * x for i in range(9))


@formula
def inverse3(M: Mat3) -> Mat3:
    """Inverse of a 3 x 3 matrix."""
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
def write9(x: Numbers, at: Int, M: Mat3) -> None:
    """Write nine numbers."""
    for k in range(9):
        x[at + k] = M[k]


@formula
def write_lack(x: Numbers, at: Int, inverse: Mat3, F: Vec3) -> None:
    """Write -K^-1 F."""
    for r in range(3):
        x[at + r] = -(inverse[3 * r] * F[0] + inverse[3 * r + 1] * F[1] + inverse[3 * r + 2] * F[2])


@formula
def add_combination(a: Numbers, length: Int, x: Number, y: Number, z: Number, to: Numbers) -> None:
    """Add the linear combination of three rows with x, y, z, four columns."""
    total = load(a, 0) * x + load(a, length) * y + load(a, length * 2) * z
    store(to, 0, load(to, 0) + total)
