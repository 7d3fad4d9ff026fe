# SPDX-License-Identifier: Apache-2.0
"""Motion plans for tests: a straight trot, standing, and random ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.motion_plan import ComSpline, MotionPlan

FEET = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
PERIOD = 0.4  # of a stride [s]


def trot(time: float = 1.0, seed: int = 0, slope: float = 0.0, **changes: Any) -> MotionPlan:
    """One stride of a trot whose numbers are arbitrary; all times are whole nanoseconds."""
    random = np.random.default_rng(seed)
    times = time + PERIOD * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    downs = np.array([[1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], dtype=np.bool_)
    normal = np.array([-slope, 0.3 * slope, 1.0])
    values: dict[str, Any] = {
        'time': time,
        'phase': 'walk',
        'gait': '',
        'command': (0.4, -0.1, 0.3),
        'com': spline(times, random),
        'yaw': float(random.uniform(-math.pi, math.pi)),
        'contacts': ContactSchedule(times, downs),
        'footholds': random.normal(size=(4, 3)),
        'forces': random.uniform(0.0, 90.0, (4, 4)) * downs,
        'normal': normal / np.linalg.norm(normal),
    }
    return MotionPlan(**{**values, **changes})


def spline(times: np.ndarray, random: np.random.Generator) -> ComSpline:
    """One whose accelerations jump at every second knot inside."""
    n = len(times) - 1
    p, v, a = random.normal(size=(n + 1, 3)), random.normal(size=(n + 1, 3)), random.normal(size=(n + 1, 3))
    rows = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1).reshape(-1)
    jumps = np.zeros((2 * n, 3))
    jumps[2::4] = random.normal(size=jumps[2::4].shape)
    return ComSpline.from_knots(times[rows], p[rows], v[rows], a[rows] + jumps)
