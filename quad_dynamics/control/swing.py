# SPDX-License-Identifier: Apache-2.0
"""The swing trajectory of a foot."""

from __future__ import annotations

from quad_dynamics.control.min_jerk import min_jerk

Vec3 = tuple[float, float, float]

_RAMP = 0.15  # share of an even swing in which a foot accelerates to its constant velocity


def swing_motion(
    progress: float, duration: float, start: Vec3, end: Vec3, height: float, even: bool = False
) -> tuple[Vec3, Vec3, Vec3]:
    """Position, velocity and acceleration of a swing foot.

    It moves from start to end on a minimum-jerk profile, plus a vertical bump of sixth order, which also has
    zero velocity and acceleration at both ends.

    Args:
        progress: 0 at the start, 1 at the end.
        duration: of the swing [s].
        start: lift-off position [m].
        end: touch-down position [m].
        height: of the bump [m].
        even: whether it moves at a constant velocity most of the time. Its largest velocity is then 1.18
            times the mean; with minimum jerk it is 1.88 times.
    """
    s, ds, dds = _even(progress) if even else min_jerk(progress)
    rate = 1.0 / duration
    b, db, ddb = _bump(progress)
    dx, dy, dz = end[0] - start[0], end[1] - start[1], end[2] - start[2]
    v, a = ds * rate, dds * rate * rate
    return (
        (start[0] + s * dx, start[1] + s * dy, start[2] + s * dz + height * b),
        (v * dx, v * dy, v * dz + height * db * rate),
        (a * dx, a * dy, a * dz + height * ddb * rate * rate),
    )


def _even(t: float) -> tuple[float, float, float]:
    """From 0 to 1 with smooth velocity ramps at both ends, and its first two derivatives."""
    if not 0.0 < t < 1.0:
        return float(t >= 1.0), 0.0, 0.0
    if t > 0.5:
        s, ds, dds = _even(1.0 - t)
        return 1.0 - s, ds, -dds
    peak, u = 1.0 / (1.0 - _RAMP), min(t / _RAMP, 1.0)
    s = peak * (_RAMP * u**3 * (1.0 - 0.5 * u) + max(t - _RAMP, 0.0))
    return s, peak * u * u * (3.0 - 2.0 * u), peak * 6.0 * u * (1.0 - u) / _RAMP


def _bump(t: float) -> tuple[float, float, float]:
    """64 t^3 (1 - t)^3, which is 1 in the middle, and its first two derivatives."""
    if not 0.0 < t < 1.0:
        return 0.0, 0.0, 0.0
    p = t * (1.0 - t)
    slope = 1.0 - 2.0 * t
    return 64.0 * p**3, 192.0 * p * p * slope, 384.0 * p * (slope * slope - p)
