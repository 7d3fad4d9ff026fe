# SPDX-License-Identifier: Apache-2.0
"""Sine and cosine of four angles at once."""

from __future__ import annotations

from quad_dynamics.compiler.trace import formula, fused, nearest, where_nonzero
from quad_dynamics.compiler.types import Lanes

# pi/2 in three parts, each the rounded remainder of the previous one, for exact argument reduction.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_TWO_BY_PI = 0.6366197723675814

# Beyond this angle [rad] the reduction loses digits, and the kernels use sin and cos of the C library.
SINCOS_LIMIT = 1e5

# Minimax polynomials in y^2 (coefficients of fdlibm) on [-pi/4, pi/4], highest power first: sin y = y + y^3
# P, cos y = 1 - y^2/2 + y^4 P.
_SIN = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COS = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)


@formula
def sincos(angle: Lanes) -> tuple[Lanes, Lanes]:
    """sin and cos of four angles at once, to about one unit in the last place, for |angle| < SINCOS_LIMIT.

    Reduction to [-pi/4, pi/4] (Cody and Waite, Software manual for the elementary functions, 1980), then
    polynomials, then the quadrant.
    """
    k = nearest(angle * _TWO_BY_PI)
    y = angle
    for part in _HALF_PI:
        y = fused(-k, part, y)
    z = y * y
    sin_y = y + y * z * _horner(_SIN, z)
    cos_y = (1.0 - 0.5 * z) + z * z * _horner(_COS, z)

    # k mod 4 in floating point: half = floor(k / 2), odd = k mod 2
    half = _floor_half(k)
    odd = k - 2.0 * half
    sin_flips = half - 2.0 * _floor_half(half)
    cos_flips = half + odd - 2.0 * _floor_half(half + odd)
    sin = where_nonzero(odd, cos_y, sin_y) * (1.0 - 2.0 * sin_flips)
    cos = where_nonzero(odd, sin_y, cos_y) * (1.0 - 2.0 * cos_flips)
    return sin, cos


def _horner(coefficients: tuple[float, ...], z: Lanes) -> Lanes:
    total = z * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total = total * z + c
    return total


def _floor_half(k: Lanes) -> Lanes:
    """floor(k / 2) of integers."""
    return nearest(0.5 * k - 0.25)
