# SPDX-License-Identifier: Apache-2.0
"""Where feet come down next: below the hips, ahead by the velocity, and beyond that by the capture point."""

from __future__ import annotations

import math

Vec2 = tuple[float, float]

# Share of the change of velocity of a free pendulum that is left of it where forces hold the velocity.
_SWING_SHARE = 0.6


def foothold(
    below: Vec2,
    velocity: Vec2,
    wanted: Vec2,
    time_left: float,
    stance_time: float,
    pendulum: float,
    gain: float,
) -> Vec2:
    """Where a foot should come down (Raibert 1986; the capture point of Pratt et al. 2006).

    A foot that comes down half a stance ahead of the hip sees the hip pass over it evenly. A body that is
    faster than it should be is caught by feet that go further.

    Args:
        below: where the foot would stand now, below its hip [m].
        velocity: of the body [m/s].
        wanted: velocity that it should have [m/s].
        time_left: until touch-down [s].
        stance_time: for which the foot will be down [s].
        pendulum: time constant sqrt(h / g) of the body at its height h [s].
        gain: share of the way to the capture point.
    """
    # The velocity of a pendulum that passes evenly over its feet is largest when it changes feet.
    half = 0.5 * stance_time / pendulum
    at_change = 1.0 + _SWING_SHARE * (half / math.tanh(half) - 1.0) if half > 1e-6 else 1.0
    ahead, reach = 0.5 * stance_time, gain * pendulum
    return (
        below[0]
        + velocity[0] * time_left
        + wanted[0] * ahead
        + reach * (velocity[0] - at_change * wanted[0]),
        below[1]
        + velocity[1] * time_left
        + wanted[1] * ahead
        + reach * (velocity[1] - at_change * wanted[1]),
    )


def within_reach(place: Vec2, hip: Vec2, reach: float) -> Vec2:
    """The nearest place that is not farther from below the hip than a reach [m]."""
    dx, dy = place[0] - hip[0], place[1] - hip[1]
    distance = math.hypot(dx, dy)
    if distance <= reach:
        return place
    return hip[0] + dx * reach / distance, hip[1] + dy * reach / distance
