# SPDX-License-Identifier: Apache-2.0
"""The walker, unchanged, in another simulator: what works in our own contact only does not count."""

from __future__ import annotations

import numpy as np
import pytest
from control_loop import robot
from mujoco_walk import MujocoRobot
from slow_variants import slow_but

from quad_dynamics.control.state import RobotState
from quad_dynamics.control.walker import Walker

SPEED, DURATION, MEASURE_FROM = 0.5, 10.0, 2.5  # the command is followed by a ramp at first
LATENCY = 0.004  # of a usual robot, from measurements to drives [s]


def tilt(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Roll and pitch of rows of configurations [rad]."""
    x, y, z, w = q[:, 3:7].T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return roll, np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))


@pytest.mark.parametrize(
    ('name', 'latency'),
    slow_but(
        [('mini_cheetah', LATENCY)],
        [
            ('mini_cheetah', LATENCY),
            ('mini_cheetah', 0.0),
            ('go2', LATENCY),
            ('anymal_c', LATENCY),
            ('solo12', LATENCY),
        ],
    ),
)
def test_trots_in_mujoco(name: str, latency: float) -> None:
    """10 s at 0.5 m/s: no fall, the velocity is that of the command, and the body stays level."""
    model = robot(name)
    world, walker = MujocoRobot(model), Walker(model)
    world.put(np.array(model.standing))
    walker.reset(world.state())
    walker.command(SPEED, 0.0, 0.0)
    states: list[RobotState] = []
    world.run(walker, DURATION, lambda state, _: states.append(state), latency)
    t, q = np.array([s.time for s in states]), np.array([s.q for s in states])
    assert q[:, 2].min() > 0.8 * walker.standing_height, f'it fell: height {q[:, 2].min():.3f} m'
    t, q = t[t > MEASURE_FROM], q[t > MEASURE_FROM]
    forward, sideways = (q[-1, :2] - q[0, :2]) / (t[-1] - t[0])
    assert abs(forward - SPEED) < 0.05 * SPEED + 0.02
    assert abs(sideways) < 0.05 * SPEED + 0.02
    roll, pitch = tilt(q)
    assert np.degrees(np.sqrt(np.mean(roll**2))) < 2.0
    assert np.degrees(np.sqrt(np.mean(pitch**2))) < 2.0
    assert walker.counts.touchdowns > 4 * (DURATION - 1.0) / walker.period
    assert walker.counts.failures == 0
