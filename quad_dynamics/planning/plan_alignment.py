# SPDX-License-Identifier: Apache-2.0
"""Time alignment of a new plan with the robot: equation (18) of the planner."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.com_planner import sample_spline
from quad_dynamics.planning.motion_plan import ComSpline

_SAMPLES = 33


def nearest_time(
    com: ComSpline, p: Floats, v: Floats, expected: float, window: float, time_constant: float
) -> float:
    """Time at which a motion is nearest to a measured state, searched near the expected time [s].

    The nearest position over the whole plan is ambiguous if a robot walks in place or turns back. So
    velocities are included, and only times near the expected one are searched. The gait clock is not changed:
    contacts happen at their planned times.

    Args:
        com: the motion.
        p: (3,) measured position of the centre of mass [m].
        v: (3,) its velocity [m/s].
        expected: centre of the search range, the current time [s].
        window: half the width of the search range [s].
        time_constant: weight of velocity errors relative to position errors, such as sqrt(h / g) [s].
    """
    low = max(expected - window, float(com.times[0]))
    high = min(expected + window, float(com.times[-1]))
    if not low < high:
        return min(max(expected, float(com.times[0])), float(com.times[-1]))
    times = np.linspace(low, high, _SAMPLES)
    P, V, _ = sample_spline(com, times, times)
    distance = ((P - p) ** 2).sum(axis=1) + time_constant**2 * ((V - v) ** 2).sum(axis=1)
    k = int(distance.argmin())
    if k in {0, _SAMPLES - 1}:
        return float(times[k])
    before, here, after = distance[k - 1 : k + 2]
    bend = before - 2.0 * here + after
    # the minimum of a parabola through three samples
    shift = 0.5 * (before - after) / bend if bend > 0.0 else 0.0
    return float(times[k] + shift * (times[1] - times[0]))
