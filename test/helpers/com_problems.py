# SPDX-License-Identifier: Apache-2.0
"""Problems of the motion optimisation: gaits of a robot of the size of a go2."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.arc import arc
from quad_dynamics.planning.com_problem import ComProblem, ComState, ReferencePath, SupportPhase

HEIGHT = 0.3
# Touch-down of the front left, front right, rear left and rear right foot in strides, duty, period [s].
GAITS: dict[str, tuple[tuple[float, float, float, float], float, float]] = {
    'trot': ((0.0, 0.5, 0.5, 0.0), 0.5, 0.4),
    'walking_trot': ((0.0, 0.5, 0.5, 0.0), 0.6, 0.5),
    'crawl': ((0.25, 0.75, 0.0, 0.5), 0.8, 1.0),
    'pace': ((0.0, 0.5, 0.0, 0.5), 0.5, 0.3),
    'bound': ((0.0, 0.0, 0.5, 0.5), 0.5, 0.3),
    'flying_trot': ((0.0, 0.5, 0.5, 0.0), 0.4, 0.4),
    'pronk': ((0.0, 0.0, 0.0, 0.0), 0.6, 0.4),
    'stand': ((0.0, 0.0, 0.0, 0.0), 1.0, 0.6),
}
_HIPS = np.array([[0.19, 0.14], [0.19, -0.14], [-0.19, 0.14], [-0.19, -0.14]])


def phases_of(gait: str, clock: float, horizon: float) -> list[tuple[float, float, list[bool]]]:
    """(begin, end, which feet are down) over a horizon, from a clock in strides; times in seconds."""
    touchdown, duty, period = GAITS[gait]
    times = {0.0, horizon}
    for offset in touchdown:
        for event in (offset, offset + duty):
            time = ((event - clock) % 1.0) * period
            while time < horizon - 1e-6:
                times.add(round(time, 9))
                time += period
    ordered = sorted(times)
    found: list[tuple[float, float, list[bool]]] = []
    for begin, end in pairwise(ordered):
        if end - begin < 1e-6:
            continue
        middle = clock + 0.5 * (begin + end) / period
        down = [(middle - offset) % 1.0 < duty for offset in touchdown]
        if found and found[-1][2] == down:
            found[-1] = (found[-1][0], end, down)
        else:
            found.append((begin, end, down))
    return found


def gait_problem(
    gait: str,
    velocity: tuple[float, float] = (0.5, 0.0),
    rate: float = 0.0,
    clock: float = 0.1,
    strides: float = 1.0,
    slope: float = 0.0,
    push: tuple[float, float, float] = (0.0, 0.0, 0.0),
    time: float = 0.0,
    shift: float = 0.0,
) -> ComProblem:
    """A robot that walks with a gait at a velocity.

    Args:
        gait: its name.
        velocity: forward and to the left [m/s].
        rate: of turning [rad/s].
        clock: where in its stride it is.
        strides: horizon.
        slope: of the ground, up along x [rad].
        push: added to the velocity of the centre of mass [m/s].
        time: of the begin [s].
        shift: of the whole scene along x, y and z [m].
    """
    period, duty = GAITS[gait][2], GAITS[gait][1]
    horizon = strides * period
    R = np.array(
        [[math.cos(slope), 0.0, -math.sin(slope)], [0.0, 1.0, 0.0], [math.sin(slope), 0.0, math.cos(slope)]]
    )

    def place(x: float, y: float, z: float) -> Floats:
        return np.asarray(R @ np.array([x, y, z]) + shift)

    def hips(when: float) -> Floats:
        (x, y), yaw = arc(velocity, rate, 0.0, when), rate * when
        c, s = math.cos(yaw), math.sin(yaw)
        return _HIPS @ np.array([[c, s], [-s, c]]) + np.array([x, y])

    phases = []
    touchdown = GAITS[gait][0]
    for begin, end, down in phases_of(gait, clock, horizon):
        feet = []
        for leg in range(4):
            if down[leg]:
                # below the hip in the middle of its stance
                since = ((clock + 0.5 * (begin + end) / period - touchdown[leg]) % 1.0) * period
                feet.append(place(*hips(0.5 * (begin + end) - since + 0.5 * duty * period)[leg], 0.0))
        phases.append(SupportPhase(end - begin, np.array(feet).reshape(-1, 3)))
    (x, y), yaw = arc(velocity, rate, 0.0, horizon), rate * horizon
    v0 = R @ np.array([*velocity, 0.0])
    c, s = math.cos(yaw), math.sin(yaw)
    v1 = R @ np.array([c * velocity[0] - s * velocity[1], s * velocity[0] + c * velocity[1], 0.0])
    # on a slope it is above its feet, not along the normal
    uphill = HEIGHT * math.tan(slope)
    p0 = place(uphill, 0.0, HEIGHT)
    return ComProblem(
        tuple(phases),
        ComState(p0, v0 + np.array(push)),
        ReferencePath(ComState(p0, v0), ComState(place(x + uphill, y, HEIGHT), v1)),
        place(0.0, 0.0, 0.0),
        R[:, 2].copy(),
        HEIGHT,
        9.81,
        time,
    )
