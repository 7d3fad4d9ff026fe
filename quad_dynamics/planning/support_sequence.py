# SPDX-License-Identifier: Apache-2.0
"""The sequence of support polygons: contact schedule of the next stride, and the polygons of its feet.

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
LATE = 0.02  # time within which a late foot is expected to touch down [s]
_EARLY = 0.5  # progress of a swing from which on a foot in contact has touched down early


def contact_schedule(
    clock: GaitClock,
    down: Sequence[bool] | npt.NDArray[np.bool_],
    phase: str,
    time: float,
    horizon: float | None = None,
) -> ContactSchedule:
    """The contact schedule from the gait clock.

    A foot that touched down early stays in contact until its next lift-off. A late foot is expected to touch
    down within `LATE`. Phases shorter than `SHORTEST` and `SHORTEST_SHARE` are merged: changes within that
    time of another change happen with it, or immediately at the beginning of the horizon; changes within that
    time of the end are omitted.

    Args:
        clock: of the gait; its rate is assumed to be constant.
        down: (legs,) which feet are in contact now.
        phase: 'walk'; 'stop': no more lift-offs; 'stand': all feet should be in contact.
        time: current time [s].
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
    """Alternating times of lift-off and touch-down of a foot, starting from its current state [s]."""
    scheduled = clock.is_stance(leg)
    if phase == 'stand':
        return [] if is_down else [LATE]
    changes = clock.changes(leg, horizon)
    if is_down and not scheduled:
        if phase == 'walk' and clock.swing_progress(leg) < _EARLY:  # it is lifting off
            changes = [0.0, *changes]
        else:  # it has already touched down
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
    """The schedule with identical consecutive phases merged."""
    kept = [k for k in range(len(rows)) if not k or rows[k] != rows[k - 1]]
    begins = [time + times[k] for k in kept]
    return ContactSchedule(
        np.array([*begins, time + times[-1]]), np.array([rows[k] for k in kept], dtype=np.bool_)
    )


def support_polygons(
    schedule: ContactSchedule, feet: Floats, footholds: Floats, normal: Floats, point: Floats
) -> list[Floats]:
    """The support polygon of each phase of a schedule.

    A foot is at its current position until it lifts off, and at its foothold after it has touched down
    (`has_stepped`).

    Args:
        schedule: which feet are in contact when.
        feet: (legs, 3) current positions of the feet [m].
        footholds: (legs, 3) where they touch down next [m].
        normal: (3,) of the ground.
        point: (3,) of the ground [m].

    Returns:
        For each phase the (k, 3) corners, counter-clockwise as seen from above the ground; two for a line,
        one or none if only that many feet are in contact. Feet inside the polygon, or on its sides, are
        omitted.
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
    """(phases, legs) whether a foot is or has been in the air, so that its foothold applies."""
    return np.logical_or.accumulate(~schedule.down, axis=0)


def plane_axes(normal: Floats) -> Floats:
    """(3, 2) two unit vectors along a plane; the normal is the cross product of the first and the second."""
    x, y, z = (float(n) for n in normal)
    scale = 1.0 / math.sqrt(x * x + z * z)
    ax, az = z * scale, -x * scale  # no component along y
    return np.array([[ax, y * az], [0.0, z * ax - x * az], [az, -y * ax]])


def _in_plane(points: Floats, axes: Floats, origin: Floats) -> list[Vec2]:
    """Points projected along the normal, in the axes of the plane [m]."""
    return [(x, y) for x, y in ((points - origin) @ axes).tolist()]
