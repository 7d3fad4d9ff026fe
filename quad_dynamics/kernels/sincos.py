# SPDX-License-Identifier: Apache-2.0
"""Sine and cosine of four angles at once."""

from __future__ import annotations

from typing import cast

from llvmlite import ir
from numba.core import cgutils

from quad_dynamics.compiler.trace import VECTOR, Placeholder, formula
from quad_dynamics.compiler.types import LANES, Lanes

# pi/2 in three parts, each the rounded rest of the one before, for the exact reduction of the argument.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_TWO_BY_PI = 0.6366197723675814

# Beyond this angle [rad] the reduction loses digits, and the kernels take sin and cos of the C library
# instead.
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

    Reduction by Cody and Waite to [-pi/4, pi/4], then polynomials, then the quadrant.
    """
    y = cast(Placeholder, angle)
    k = _vector_function('rint', y * _TWO_BY_PI)
    for part in _HALF_PI:
        y = _vector_function('fma', -k, _constant_lanes(k, part), y)
    z = y * y
    sin_y = y + y * z * _horner(_SIN, z)
    cos_y = (1.0 - 0.5 * z) + z * z * _horner(_COS, z)

    # k mod 4 in floating point: half = floor(k / 2), odd = k mod 2
    half = _floor_half(k)
    odd = k - 2.0 * half
    sin_flips = half - 2.0 * _floor_half(half)
    cos_flips = half + odd - 2.0 * _floor_half(half + odd)
    sin = _where_nonzero(odd, cos_y, sin_y) * (1.0 - 2.0 * sin_flips)
    cos = _where_nonzero(odd, sin_y, cos_y) * (1.0 - 2.0 * cos_flips)
    return cast(Lanes, sin), cast(Lanes, cos)


def _horner(coefficients: tuple[float, ...], z: Placeholder) -> Placeholder:
    total = z * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total = total * z + c
    return total


def _floor_half(k: Placeholder) -> Placeholder:
    """floor(k / 2) of whole numbers."""
    return _vector_function('rint', 0.5 * k - 0.25)


def _vector_function(name: str, *args: Placeholder) -> Placeholder:
    """Call an LLVM function of lanes, such as `rint` (nearest integer) or `fma` (a * b + c, rounded once)."""
    builder = args[0].builder
    function_type = ir.FunctionType(VECTOR, [VECTOR] * len(args))
    function = cgutils.get_or_insert_function(builder.module, function_type, f'llvm.{name}.v{LANES}f64')
    return Placeholder(builder, builder.call(function, [a.value for a in args]))


def _constant_lanes(like: Placeholder, number: float) -> Placeholder:
    return Placeholder(like.builder, ir.Constant(VECTOR, [number] * LANES))


def _where_nonzero(mask: Placeholder, a: Placeholder, b: Placeholder) -> Placeholder:
    nonzero = mask.builder.fcmp_unordered('!=', mask.value, ir.Constant(VECTOR, [0.0] * LANES))
    return Placeholder(mask.builder, mask.builder.select(nonzero, a.value, b.value))
