# SPDX-License-Identifier: Apache-2.0
"""Velocity that is added to the command so that the body moves as commanded.

Unknown friction slows a robot down in proportion to its velocity, and in a turn it drifts sideways. The plain
integral of the velocity error would have to change with every command. So the correction is linear in
functions of the command,

    correction = C phi,    phi_x = (1, vx / s, vy wz / (s r)),    phi_y = (1, vy / s, vx wz / (s r)),

and C follows the normalised gradient of the squared error, dC/dt = gain e phi^T / (phi . phi): the projection
algorithm (Goodwin and Sin, Adaptive Filtering, Prediction and Control (1984), section 3.3). For a constant
command this is an integral with the same gain; when the command changes, what depends on it changes at once.

A robot cannot follow a change of the command immediately. The error that this causes says nothing about C, so
the gain is reduced for a while (`wait`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

# s and r: commands at which what depends on them adapts as fast as the constant part, in sqrt(g l) and
# sqrt(g / l).
_SPEED, _TURN = 0.2, 0.2
_MOST = 0.15  # largest correction of an axis, and largest coefficient, in sqrt(g l)
_FORGET = 0.8  # time constant with which changes of the command are forgotten, in sqrt(l / g)
_CHANGE = 0.05  # recent change of the command at which the gain is halved, in sqrt(g l)


class VelocityCorrection:
    """The correction along x and y of the heading frame."""

    def __init__(self, speed: float, rate: float) -> None:
        """Start without a correction.

        Args:
            speed: sqrt(g l) of the robot [m/s].
            rate: sqrt(g / l) [1/s].
        """
        self._unit = speed
        self._rate = rate
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._along, self._across, self._changed = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0

    def at(self, command: Sequence[float]) -> Vec2:
        """Correction for a command (vx, vy, wz) [m/s]."""
        along, across = self._terms(command)
        return self._limited(_dot(self._along, along)), self._limited(_dot(self._across, across))

    def wait(self, change_rate: Sequence[float], dt: float) -> None:
        """Adapt more slowly after a change of the command.

        Args:
            change_rate: of (vx, vy, wz) [m/s^2, m/s^2, rad/s^2].
            dt: time since the last call [s].
        """
        x, y, turn = change_rate
        change = math.hypot(x, y) / self._unit + abs(turn) / self._rate
        self._changed = self._changed * math.exp(-dt * self._rate / _FORGET) + dt * change

    def adapt(self, command: Sequence[float], error: Vec2, gain: float) -> None:
        """Adapt to a velocity error.

        Args:
            command: (vx, vy, wz) [m/s, m/s, rad/s].
            error: (x, y) commanded minus measured velocity in the heading frame [m/s].
            gain: integral gain times the time that has passed.
        """
        gain /= 1.0 + (self._changed / _CHANGE) ** 2
        coefficients = self._along, self._across
        for own, terms, e in zip(coefficients, self._terms(command), error, strict=True):
            step = gain * e / _dot(terms, terms)
            for i, term in enumerate(terms):
                own[i] = self._limited(own[i] + step * term)

    def _terms(self, command: Sequence[float]) -> tuple[Vec3, Vec3]:
        """phi of both axes."""
        vx, vy = command[0] / (_SPEED * self._unit), command[1] / (_SPEED * self._unit)
        turn = command[2] / (_TURN * self._rate)
        return (1.0, vx, vy * turn), (1.0, vy, vx * turn)

    def _limited(self, value: float) -> float:
        most = _MOST * self._unit
        return min(max(value, -most), most)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
