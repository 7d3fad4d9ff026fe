# SPDX-License-Identifier: Apache-2.0
"""The path of a body that turns while it moves."""

from __future__ import annotations

import math

Vec2 = tuple[float, float]


def arc(velocity: Vec2, rate: float, begin: float, end: float, yaw: float = 0.0) -> Vec2:
    """Displacement of a body between two times, at a constant velocity in its own frame [m].

    (7) of Bellicoso et al. (2018) rotates the whole displacement by the whole angle. A robot that turns while
    it moves follows an arc: v sin(w t) / w forward and v (1 - cos(w t)) / w sideways.

    Args:
        velocity: (forward, left) in the frame of the body, which turns [m/s].
        rate: yaw rate [rad/s].
        begin: [s].
        end: [s].
        yaw: heading of the body at time 0; the displacement is in axes with heading 0 [rad].
    """
    time = end - begin
    half = 0.5 * rate * time
    # the chord is sin(half) / half of the arc, and points along the heading at the mean time
    chord = time * (math.sin(half) / half if abs(half) > 1e-8 else 1.0)
    x, y = turned(velocity, yaw + 0.5 * rate * (begin + end))
    return chord * x, chord * y


def decay_integral(time: float, constant: float) -> float:
    """Integral of exp(-t / constant) from zero to a time: displacement by a decaying unit velocity [s]."""
    return constant * (1.0 - math.exp(-time / constant))


def turned(vector: Vec2, angle: float) -> Vec2:
    """A vector rotated by an angle [rad]."""
    c, s = math.cos(angle), math.sin(angle)
    return c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]
