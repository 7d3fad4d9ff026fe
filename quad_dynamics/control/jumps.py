# SPDX-License-Identifier: Apache-2.0
"""Detects states that cannot follow from the previous one: the robot was teleported, or time was reset."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model

LONGEST_GAP = 0.25  # between two states [s]
# Tolerance of joint positions for noise, and the speed limit of joints without one in the model.
_JOINT_SLACK, _JOINT_SPEED = 0.05, 100.0
# Factor by which a joint may exceed its speed limit, for example in a fall.
_FASTER = 1.5
# The base moves in larger steps, because odometry is less frequent than joint states [m, m/s, rad, rad/s].
_BASE_SLACK, _BASE_SPEED = 0.05, 10.0
_TURN_SLACK, _TURN_SPEED = 0.3, 30.0


class JumpDetector:
    """Compares a state with the previous one."""

    def __init__(self, model: Model) -> None:
        self._model = model
        limit = np.where(np.isfinite(model.velocity_limit), model.velocity_limit, _JOINT_SPEED)
        self._speed = _FASTER * np.maximum(limit, 1.0)

    def check(self, before: RobotState, state: RobotState) -> str:
        """'' if the second state can follow from the first, else what has jumped."""
        dt = state.time - before.time
        if dt < 0.0:
            return f'time went back by {-dt:.3g} s'
        if dt > LONGEST_GAP:
            return f'no state for {dt:.3g} s'
        model = self._model
        skip = model.nq - model.nj
        way = np.abs(state.q[skip:] - before.q[skip:])
        if (way > self._speed * dt + _JOINT_SLACK).any():
            j = int(np.argmax(way - self._speed * dt))
            return f'{model.joint_names[j]} jumped by {way[j]:.3g}'
        return self._base(before.q, state.q, dt) if model.floating_base else ''

    @staticmethod
    def _base(before: Floats, now: Floats, dt: float) -> str:
        if before[:7].tobytes() == now[:7].tobytes():
            return ''
        x, y, z = (now[:3] - before[:3]).tolist()
        way = math.sqrt(x * x + y * y + z * z)
        if way > _BASE_SPEED * dt + _BASE_SLACK:
            return f'the base jumped by {way:.3g} m'
        turn = 2.0 * math.acos(min(1.0, abs(float(now[3:7] @ before[3:7]))))
        if turn > _TURN_SPEED * dt + _TURN_SLACK:
            return f'the base jumped by {turn:.3g} rad'
        return ''
