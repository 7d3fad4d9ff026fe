# SPDX-License-Identifier: Apache-2.0
"""Where feet come down next: below the hips, ahead by the velocity, and beyond that by the capture point."""

from __future__ import annotations

import math

Vec2 = tuple[float, float]

# Share of the change of velocity of a free pendulum that is left of it where forces hold the velocity. A body
# above two diagonal feet falls away from the line between them, ahead and sideways; if it cannot go sideways,
# it swings ahead like a pendulum above one foot.
SWING_SHARE, PLANAR_SWING_SHARE = 0.6, 1.0


def speed_at_change(stance_time: float, pendulum: float, share: float = SWING_SHARE) -> float:
    """Velocity of a body at the moment when it changes feet, over its mean velocity.

    The velocity of a pendulum that passes evenly over its feet is largest then. Without this factor feet land
    too far ahead, and the body leans.

    Args:
        stance_time: for which a foot is down [s].
        pendulum: time constant sqrt(h / g) of the body at its height h [s].
        share: of the change of velocity of a free pendulum.
    """
    half = 0.5 * stance_time / pendulum
    return 1.0 + share * (half / math.tanh(half) - 1.0) if half > 1e-6 else 1.0


def foothold(
    below: Vec2,
    velocity: Vec2,
    wanted: Vec2,
    time_left: float,
    stance_time: float,
    pendulum: float,
    gain: float,
    share: float = SWING_SHARE,
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
        share: as in `speed_at_change`.
    """
    at_change = speed_at_change(stance_time, pendulum, share)
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


def in_plane(place: Vec2, plane: Vec2, yaw: float, slope: float, reach: float) -> Vec2:
    """The foothold of a leg that cannot step sideways, and does the same by stepping further or shorter.

    Two feet that stand cannot turn the body about the line between them; what counts is how far the centre of
    mass is from it. A foothold that should be farther to the left by e moves the line as far as one that is
    less far ahead by e times the slope of the line. Next time the other two feet step, whose line slopes the
    other way, so that on average no foot is ahead.

    Args:
        place: where the foot should come down [m].
        plane: a point in which the plane of the leg will meet the ground [m].
        yaw: heading [rad].
        slope: of the line to the foot that comes down at the same time: way ahead over way to the left.
        reach: largest step in exchange [m].
    """
    c, s = math.cos(yaw), math.sin(yaw)
    aside = c * (place[1] - plane[1]) - s * (place[0] - plane[0])
    ahead = min(max(-aside * slope, -reach), reach)
    return place[0] + c * ahead + s * aside, place[1] + s * ahead - c * aside
