# SPDX-License-Identifier: Apache-2.0
"""The sequence of support polygons: which feet are down when over the next stride, and what they span.

Bellicoso, Jenelten, Gehring, Hutter, "Dynamic Locomotion Through Online Nonlinear Motion Optimization for
Quadrupedal Robots" (RA-L 2018), section on the support polygon sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.convex_hull import convex_hull
from quad_dynamics.planning.gait import GaitClock

Vec2 = tuple[float, float]

SHORTEST = 0.005  # phases shorter than this are merged with the next one [s]
SHORTEST_SHARE = 0.02  # likewise, in strides
LATE = 0.02  # within which a foot that should be down and is not is expected to come down [s]
_EARLY = 0.5  # of a swing, from which on a foot that is down has come down early


def contact_schedule(
    clock: GaitClock,
    down: Sequence[bool] | npt.NDArray[np.bool_],
    phase: str,
    time: float,
    horizon: float | None = None,
) -> ContactSchedule:
    """Which feet will be down.

    A foot that came down early stays down until its next lift-off. One that is late is expected to come down
    within `LATE`. Phases that are shorter than `SHORTEST` and `SHORTEST_SHARE` are merged: what changes
    within that time of another change happens with it, or at once at the beginning of the horizon; what
    changes within that time of the end is left out.

    Args:
        clock: of the gait; its rate is taken to stay as it is.
        down: (legs,) which feet are down now.
        phase: 'walk'; 'stop': no foot is lifted any more; 'stand': all feet are to be down.
        time: now [s].
        horizon: duration of the schedule, a stride by default [s].
    """
    horizon = clock.period if horizon is None else horizon
    shortest = min(max(SHORTEST, SHORTEST_SHARE * clock.period), 0.5 * horizon)
    events = [
        (at, leg)
        for leg in range(clock.legs)
        for at in _leg_changes(clock, leg, bool(down[leg]), phase, horizon)
    ]
    now, begins = [bool(one) for one in down], [0.0]
    rows = [list(now)]
    for at, leg in sorted(events):
        now[leg] = not now[leg]
        if at - begins[-1] < shortest:
            rows[-1] = list(now)
        elif horizon - at >= shortest:
            begins.append(at)
            rows.append(list(now))
    return _without_repeats(time, [*begins, horizon], rows)


def _leg_changes(clock: GaitClock, leg: int, is_down: bool, phase: str, horizon: float) -> list[float]:
    """When a foot is lifted and comes down in turn, beginning with what it is now [s]."""
    scheduled = clock.is_stance(leg)
    if phase == 'stand':
        return [] if is_down else [LATE]
    changes = clock.changes(leg, horizon)
    if is_down and not scheduled:
        if phase == 'walk' and clock.swing_progress(leg) < _EARLY:  # it is being lifted
            changes = [0.0, *changes]
        else:  # its touch-down has happened
            changes = changes[1:]
    elif scheduled and not is_down:  # late
        if changes and changes[0] <= LATE:
            changes = changes[1:]
        else:
            changes = [LATE, *changes]
    if phase == 'stop':
        return [] if is_down else changes[:1]
    return changes


def _without_repeats(time: float, times: list[float], rows: list[list[bool]]) -> ContactSchedule:
    """The schedule with phases joined between which nothing changes."""
    kept = [k for k in range(len(rows)) if not k or rows[k] != rows[k - 1]]
    begins = [time + times[k] for k in kept]
    return ContactSchedule(
        np.array([*begins, time + times[-1]]), np.array([rows[k] for k in kept], dtype=np.bool_)
    )


def support_polygons(
    schedule: ContactSchedule, feet: Floats, footholds: Floats, normal: Floats, point: Floats
) -> list[Floats]:
    """The support polygon of each phase of a schedule.

    A foot is where it is now until it is lifted, and at its foothold after it has come down (`has_stepped`).

    Args:
        schedule: which feet are down when.
        feet: (legs, 3) where the feet are now [m].
        footholds: (legs, 3) where they come down next [m].
        normal: (3,) of the ground.
        point: (3,) of the ground [m].

    Returns:
        For each phase the (k, 3) corners, counter-clockwise as seen from above the ground; two for a line,
        one or none where so many feet are down. Feet inside the polygon, or on its sides, are left out.
    """
    axes = plane_axes(normal)
    places = [_in_plane(np.asarray(some), axes, point) for some in (feet, footholds)]
    found = []
    for down, stepped in zip(schedule.down, has_stepped(schedule), strict=True):
        corners = convex_hull([places[int(stepped[leg])][leg] for leg in np.flatnonzero(down)])
        flat = np.array(corners).reshape(-1, 2)
        found.append(point + flat @ axes.T)
    return found


def has_stepped(schedule: ContactSchedule) -> npt.NDArray[np.bool_]:
    """(phases, legs) whether a foot has been lifted before, so that it is, or comes down, at its foothold."""
    return np.logical_or.accumulate(~schedule.down, axis=0)


def plane_axes(normal: Floats) -> Floats:
    """(3, 2) two unit vectors along a plane; the normal is the cross product of the first and the second."""
    x, y, z = (float(n) for n in normal)
    scale = 1.0 / math.sqrt(x * x + z * z)
    ax, az = z * scale, -x * scale  # no part along y
    return np.array([[ax, y * az], [0.0, z * ax - x * az], [az, -y * ax]])


def _in_plane(points: Floats, axes: Floats, origin: Floats) -> list[Vec2]:
    """Points projected along the normal, in the axes of the plane [m]."""
    return [(x, y) for x, y in ((points - origin) @ axes).tolist()]
