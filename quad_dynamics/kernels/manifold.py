# SPDX-License-Identifier: Apache-2.0
"""Integration on the configuration manifold, and the velocity between two configurations.

The base rotates about the fixed axis w_WB_B in its own frame, by the exponential map of unit quaternions;
all other coordinates are added.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import FLOAT, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Address, Int, Number, Object, Quat, Vec3
from quad_dynamics.kernels.argument_kinds import VECTORS
from quad_dynamics.kernels.spatial import quat_mul
from quad_dynamics.kernels.validation import good_configuration, good_vector
from quad_dynamics.memory.layout import Robot

# Below this angle [rad], sin(x)/x and similar functions are computed by series; the error is below 1e-18.
_SMALL = 1e-4
_LARGEST = 1.7976931348623157e308


@kernel(Robot, INT, OBJECT, OBJECT, FLOAT, array(lambda states, nq: states * nq))
def integrate(robot: Robot, n: Int, q: Object, u: Object, dt: Number, out: Object) -> Int:
    """Configurations of n states after a time step.

    Args:
        robot: its memory.
        n: number of states, 0 for a single one without leading axis.
        q: (n, nq) configurations.
        u: (n, nv) velocities, constant over the step.
        dt: time step [s].
        out: (n, nq) out; the quaternions are normalised.
    """
    nq, nv, nj = robot.nq, robot.nv, robot.nj
    if not good_configuration(robot, n, q):
        return 1
    if not good_vector(robot, n, nv, u):
        return 2
    if not math.isfinite(dt):
        return 3
    q, u, out = data(q), data(u), data(out)
    overflows = False
    for i in range(max(n, 1) * nv):
        overflows |= abs(u[i] * dt) > _LARGEST
    if overflows:
        return 4
    for i in range(max(n, 1)):
        iq, iu = i * nq, i * nv
        if nv > nj:
            for k in range(3):
                out[iq + k] = q[iq + k] + dt * u[iu + k]
            turn(q, iq + 3, dt * u[iu + 3], dt * u[iu + 4], dt * u[iu + 5], out, iq + 3)
        for j in range(nj):
            out[iq + nq - nj + j] = q[iq + nq - nj + j] + dt * u[iu + nv - nj + j]
    return 0


@routine
def turn(q: Address, at: Int, x: Number, y: Number, z: Number, out: Address, to: Int) -> None:
    """out[to : to + 4] = the quaternion at q[at], rotated by a rotation vector in its own axes."""
    a, b, c, d = quat_mul((q[at], q[at + 1], q[at + 2], q[at + 3]), exponential(x, y, z))
    scale = 1.0 / math.sqrt(a * a + b * b + c * c + d * d)
    out[to] = a * scale
    out[to + 1] = b * scale
    out[to + 2] = c * scale
    out[to + 3] = d * scale


@routine
def exponential(x: Number, y: Number, z: Number) -> Quat:
    """Unit quaternion of the rotation vector (x, y, z)."""
    angle = math.hypot(math.hypot(x, y), z)  # without overflow
    half = 0.5 * angle
    s = 0.5 * (1.0 - half * half / 6.0) if half < _SMALL else math.sin(half) / angle
    return s * x, s * y, s * z, math.cos(half)


@kernel(Robot, INT, OBJECT, OBJECT, VECTORS)
def difference(robot: Robot, n: Int, q0: Object, q1: Object, u: Object) -> Int:
    """Velocities (n, nv) from q0 to q1 (n, nq) in unit time; the base rotates by the shorter way."""
    nq, nv, nj = robot.nq, robot.nv, robot.nj
    if not good_configuration(robot, n, q0):
        return 1
    if not good_configuration(robot, n, q1):
        return 2
    q0, q1, u = data(q0), data(q1), data(u)
    for i in range(max(n, 1)):
        iq, iu = i * nq, i * nv
        if nv > nj:
            for k in range(3):
                u[iu + k] = q1[iq + k] - q0[iq + k]
            back = (-q0[iq + 3], -q0[iq + 4], -q0[iq + 5], q0[iq + 6])
            r = logarithm(quat_mul(back, (q1[iq + 3], q1[iq + 4], q1[iq + 5], q1[iq + 6])))
            for k in range(3):
                u[iu + 3 + k] = r[k]
        for j in range(nj):
            u[iu + nv - nj + j] = q1[iq + nq - nj + j] - q0[iq + nq - nj + j]
    return 0


@routine
def logarithm(d: Quat) -> Vec3:
    """Rotation vector of a quaternion, of length at most pi."""
    x, y, z, w = d
    if w < 0.0:
        x, y, z, w = -x, -y, -z, -w
    s = math.sqrt(x * x + y * y + z * z)
    # 2 atan2(s, w) / s; for small s the series 2/w (1 - (s/w)^2 / 3)
    factor = 2.0 / w * (1.0 - (s / w) ** 2 / 3.0) if s < _SMALL * w else 2.0 * math.atan2(s, w) / s
    return factor * x, factor * y, factor * z
