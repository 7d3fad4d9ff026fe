# SPDX-License-Identifier: Apache-2.0
"""The smoothed natural map of a contact and of a constraint with bounds, and its derivatives.

See `smoothing_newton` for the definition of F_e. Its differential, with dq and ds in terms of dp and dv, is

    dF = D dq - dP_e (D dq - ds) = K dp + Q dv,

where K and Q are 3 x 3 matrices for a contact, and numbers for a scalar constraint.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Bool, Mat3, Number, Vec3
from quad_dynamics.kernels.contact.natural_map import mean_inertia
from quad_dynamics.kernels.simulation.scene import Contact, Scene, Stop

_INFINITE = 1e300  # larger bounds are infinite


@routine
def is_pyramid(scene: Scene, contact: Contact) -> Bool:
    """Whether the tangents of a contact have separate limits; without friction both laws are the same."""
    return scene.settings.cone == 0 or not contact.mu > 0.0


@routine
def contact_defect(scene: Scene, contact: Contact, p: Vec3, v: Vec3, e: Number) -> Vec3:
    """F_e of a contact."""
    D, mu = mean_inertia(contact), contact.mu
    if is_pyramid(scene, contact):
        normal, _ = positive_part(D * p[0] - v[0], e)
        first, _, _ = clipped(D * p[1] - v[1], mu * normal, e)
        second, _, _ = clipped(D * p[2] - v[2], mu * normal, e)
        return (D * p[0] - normal, D * p[1] - first, D * p[2] - second)
    x, t, d1, d2, _ = cone_point(D, mu, p, v, e, scene.newton.holds_speeds != 0)
    low, _ = positive_part(x - t, e)
    high, _ = positive_part(x + t, e)
    along = 0.5 * (high - low)
    return (D * mu * p[0] - 0.5 * (high + low), D * p[1] - along * d1, D * p[2] - along * d2)


@routine
def cone_point(
    D: Number, mu: Number, p: Vec3, v: Vec3, e: Number, held: Bool
) -> tuple[Number, Number, Number, Number, Number]:
    """The normal part of D q - s, length and direction of its tangential part, and 1 / smoothed speed.

    If speeds are held (see `sliding_speeds`), v_n contains them, and the last value is 0.
    """
    speed = math.sqrt(v[1] * v[1] + v[2] * v[2] + e * e)
    slowness = 1.0 / speed
    if held:
        speed = 0.0
        slowness = 0.0
    x, a, b = D * mu * p[0] - (v[0] / mu + speed), D * p[1] - v[1], D * p[2] - v[2]
    t = math.sqrt(a * a + b * b)
    if t > 0.0:
        return x, t, a / t, b / t, slowness
    return x, 0.0, 1.0, 0.0, slowness


@routine
def positive_part(x: Number, e: Number) -> tuple[Number, Number]:
    """Smoothed max(x, 0): (x + sqrt(x^2 + 4 e^2)) / 2, without cancellation; and its derivative."""
    root = math.sqrt(x * x + 4.0 * e * e)
    value = 0.5 * (x + root) if x > 0.0 else 2.0 * e * e / (root - x)
    return value, 0.5 * (1.0 + x / root)


@routine
def clipped(x: Number, limit: Number, e: Number) -> tuple[Number, Number, Number]:
    """x clipped to [-limit, limit], smoothed; its derivatives with respect to x and to the limit."""
    a, b = x + limit, x - limit
    root_a, root_b = math.sqrt(a * a + 4.0 * e * e), math.sqrt(b * b + 4.0 * e * e)
    # the difference of the roots, without cancellation
    return (
        2.0 * x * limit / (root_a + root_b),
        0.5 * (a / root_a - b / root_b),
        0.5 * (a / root_a + b / root_b),
    )


@routine
def stop_defect(stop: Stop, p: Number, v: Number, e: Number) -> tuple[Number, Number]:
    """F_e of a constraint with bounds, and the derivative of its projection."""
    D = stop.inertia
    if stop.highest > _INFINITE:
        value, slope = positive_part(D * (p - stop.lowest) - v, e)
        return D * (p - stop.lowest) - value, slope
    middle, half = 0.5 * (stop.highest + stop.lowest), 0.5 * (stop.highest - stop.lowest)
    value, slope, _ = clipped(D * (p - middle) - v, D * half, e)
    return D * (p - middle) - value, slope


@routine
def contact_slopes(scene: Scene, contact: Contact, p: Vec3, v: Vec3, e: Number) -> tuple[Mat3, Mat3]:
    """K and Q of a contact."""
    D, mu = mean_inertia(contact), contact.mu
    if is_pyramid(scene, contact):
        return pyramid_slopes(D, mu, p, v, e)
    return cone_slopes(D, mu, p, v, e, scene.newton.holds_speeds != 0)


@routine
def cone_slopes(D: Number, mu: Number, p: Vec3, v: Vec3, e: Number, held: Bool) -> tuple[Mat3, Mat3]:
    """K and Q with the friction cone."""
    x, t, d1, d2, slowness = cone_point(D, mu, p, v, e, held)
    low, low_slope = positive_part(x - t, e)
    high, high_slope = positive_part(x + t, e)
    b, c = 0.5 * (high_slope + low_slope), 0.5 * (high_slope - low_slope)
    a = b
    if t > 1e-14 * abs(x):
        a = 0.5 * (high - low) / t
    u1, u2 = v[1] * slowness, v[2] * slowness
    # dP_e, symmetric
    P00, P01, P02 = b, c * d1, c * d2
    P11, P12, P22 = a + (b - a) * d1 * d1, (b - a) * d1 * d2, a + (b - a) * d2 * d2
    K = (
        D * mu * (1.0 - P00), -D * P01, -D * P02,
        -D * mu * P01, D * (1.0 - P11), -D * P12,
        -D * mu * P02, -D * P12, D * (1.0 - P22),
    )  # fmt: skip
    Q = (
        P00 / mu, P00 * u1 + P01, P00 * u2 + P02,
        P01 / mu, P01 * u1 + P11, P01 * u2 + P12,
        P02 / mu, P02 * u1 + P12, P02 * u2 + P22,
    )  # fmt: skip
    return K, Q


@routine
def pyramid_slopes(D: Number, mu: Number, p: Vec3, v: Vec3, e: Number) -> tuple[Mat3, Mat3]:
    """K and Q of a pyramid: each tangent has its own limit, mu times the projection of the normal."""
    normal, slope = positive_part(D * p[0] - v[0], e)
    _, slope1, limit1 = clipped(D * p[1] - v[1], mu * normal, e)
    _, slope2, limit2 = clipped(D * p[2] - v[2], mu * normal, e)
    limit1, limit2 = limit1 * mu * slope, limit2 * mu * slope
    K = (
        D * (1.0 - slope), 0.0, 0.0,
        -D * limit1, D * (1.0 - slope1), 0.0,
        -D * limit2, 0.0, D * (1.0 - slope2),
    )  # fmt: skip
    Q = (slope, 0.0, 0.0, limit1, slope1, 0.0, limit2, 0.0, slope2)
    return K, Q
