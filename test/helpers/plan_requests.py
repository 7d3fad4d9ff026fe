# SPDX-License-Identifier: Apache-2.0
"""Requests for the motion planner: a robot in the midst of a gait, at any velocity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from quad_dynamics.planning.com_problem import ComState
from quad_dynamics.planning.gait import GAITS, GaitClock
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.planner import PlanRequest
from quad_dynamics.planning.stance_geometry import StanceGeometry
from quad_dynamics.planning.support_sequence import contact_schedule

PLACE, TIME = (0.7, -0.4), 3.0  # of the centre of mass [m], and now [s]


def clock_at(geometry: StanceGeometry, gait: str, stride: float) -> GaitClock:
    """The clock of a gait at some time of its stride."""
    clock = GaitClock(GAITS[gait], 1.0 / geometry.rate, range(4))
    clock.stride = stride
    return clock


def request(
    geometry: StanceGeometry,
    gait: str,
    stride: float = 0.1,
    command: tuple[float, float, float] = (0.0, 0.0, 0.0),
    **changes: Any,
) -> PlanRequest:
    """A robot that walks steadily on level ground, at the commanded velocity, without turning.

    Feet that are down have come down half a stance ahead; feet that swing go back there at constant velocity,
    as the planner expects them to.
    """
    clock = clock_at(geometry, gait, stride)
    vx, vy, _ = command
    velocity = np.array([vx, vy, 0.0])
    com = np.array([*PLACE, geometry.com_height])
    factors, feet = GAITS[gait].stance, np.zeros((4, 3))
    for leg, below in enumerate(geometry.below):
        phase, duty = clock.phase(leg), clock.duty(leg)
        swing = (phase - duty) / (1.0 - duty) if phase >= duty else 0.0
        along = 0.5 - phase / duty if phase < duty else swing - 0.5  # from 1 / 2 to -1 / 2, and back
        for i in range(2):
            middle = geometry.middle[i]
            feet[leg, i] = com[i] + middle + factors[i] * (below[i] - middle)
        feet[leg] += along * clock.stance_time * velocity
    ground = Ground(geometry.length, clock.period)
    ground.reset(feet.tolist())
    down = np.array([clock.is_stance(leg) for leg in range(4)])
    base = np.array([com[0] - geometry.com[0], com[1] - geometry.com[1], geometry.base_height])
    values: dict[str, Any] = {
        'time': TIME,
        'phase': 'walk',
        'gait': gait,
        'stance': factors,
        'command': command,
        'correction': (0.0, 0.0),
        'com': com,
        'velocity': velocity,
        'start': ComState(com, velocity),
        'yaw': 0.0,
        'hips': base + geometry.hips,
        'feet': feet,
        'contacts': contact_schedule(clock, down, 'walk', TIME),
        'time_left': np.array([clock.time_to_touchdown(leg) for leg in range(4)]),
        'stance_time': np.array([clock.next_stance_time(leg) for leg in range(4)]),
        'ground': ground,
        'offset': (0.0, 0.0),
        'height': geometry.com_height,
    }
    return PlanRequest(**{**values, **changes})


def standing(geometry: StanceGeometry, com: tuple[float, float] = PLACE, yaw: float = 0.0) -> PlanRequest:
    """A robot that stands with its feet about `PLACE`, and its centre of mass wherever it is."""
    made = request(geometry, 'stand')
    c, s = math.cos(yaw), math.sin(yaw)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    origin = np.array([*PLACE, 0.0])
    feet = origin + (made.feet - origin) @ turn.T
    p = np.array([*com, geometry.com_height])
    return request(
        geometry,
        'stand',
        com=p,
        start=ComState(p, np.zeros(3)),
        yaw=yaw,
        feet=feet,
        hips=origin + (made.hips - origin) @ turn.T,
    )
