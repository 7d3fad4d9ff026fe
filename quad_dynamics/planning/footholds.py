# SPDX-License-Identifier: Apache-2.0
"""Footholds of the simple planner: below the hips, shifted by the velocity and towards the capture point."""

from __future__ import annotations

import math

Vec2 = tuple[float, float]

# Velocity variation of the body under velocity control, relative to that of a free pendulum. A body above two
# diagonal feet falls away from the line between them, forward and sideways; if it cannot move sideways, it
# swings forward like a pendulum above one foot.
SWING_SHARE, PLANAR_SWING_SHARE = 0.6, 1.0


def speed_at_change(stance_time: float, pendulum: float, share: float = SWING_SHARE) -> float:
    """Velocity of a body when it changes feet, relative to its mean velocity.

    The velocity of a pendulum that passes symmetrically over its feet is largest then. Without this factor
    feet land too far ahead, and the body leans.

    Args:
        stance_time: duration of a stance [s].
        pendulum: time constant sqrt(h / g) of the body at its height h [s].
        share: velocity variation relative to that of a free pendulum.
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
    """Where a foot should touch down (Raibert 1986; the capture point of Pratt et al. 2006).

    The hip passes symmetrically over a foot that touches down half a stance ahead of it. A body that is too
    fast is caught by longer steps.

    Args:
        below: where the foot would stand now, below its hip [m].
        velocity: of the body [m/s].
        wanted: desired velocity [m/s].
        time_left: until touch-down [s].
        stance_time: duration of the stance [s].
        pendulum: time constant sqrt(h / g) of the body at its height h [s].
        gain: share of the distance to the capture point.
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
    """The nearest point within a distance from the point below the hip [m]."""
    dx, dy = place[0] - hip[0], place[1] - hip[1]
    distance = math.hypot(dx, dy)
    if distance <= reach:
        return place
    return hip[0] + dx * reach / distance, hip[1] + dy * reach / distance


def in_plane(place: Vec2, plane: Vec2, yaw: float, slope: float, reach: float) -> Vec2:
    """The foothold of a planar leg, which changes the length of its step instead of stepping sideways.

    Two stance feet cannot turn the body about the line between them; what matters is the distance of the
    centre of mass from this line. Moving a foothold to the left by e moves the line as much as moving it back
    by e times the slope of the line. The other two feet step next, and their line slopes the other way, so
    that the effects on the stance cancel on average.

    Args:
        place: desired foothold [m].
        plane: a point where the plane of the leg will intersect the ground [m].
        yaw: heading [rad].
        slope: of the line to the foot that touches down at the same time: forward over lateral distance.
        reach: largest step in exchange [m].
    """
    c, s = math.cos(yaw), math.sin(yaw)
    aside = c * (place[1] - plane[1]) - s * (place[0] - plane[0])
    ahead = min(max(-aside * slope, -reach), reach)
    return place[0] + c * ahead + s * aside, place[1] + s * ahead - c * aside
