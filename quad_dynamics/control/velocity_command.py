# SPDX-License-Identifier: Apache-2.0
"""A commanded velocity that expires: commands to a walking robot must be repeated."""

from __future__ import annotations

from typing import Any, Protocol

Vec3 = tuple[float, float, float]


class Commanded(Protocol):
    """Something that walks at a velocity, or plans to, such as `Walker`."""

    @property
    def largest_command(self) -> Vec3:
        """Largest velocity that can be commanded along each axis alone [m/s, m/s, rad/s]."""

    @property
    def target(self) -> Vec3:
        """The last command, within its limits [m/s, m/s, rad/s]."""

    def command(self, vx: float, vy: float, wz: float) -> bool:
        """Take a velocity; return whether it is within limits."""


class VelocityCommand:
    """Forwards velocities, and stops if none has arrived for too long. Time is that of the states.

    Attributes:
        timeout: age at which a velocity expires [s].
        is_active: whether there is a valid velocity.
    """

    def __init__(self, target: Commanded, timeout: float) -> None:
        """Start without a command.

        Args:
            target: receives the velocities.
            timeout: [s].
        """
        self._target, self.timeout = target, timeout
        self._received = self._time = 0.0
        self.is_active = False

    def take(self, vx: float, vy: float, wz: float) -> str:
        """Take a velocity; its time is that of the last state.

        Returns:
            '' for a velocity that is within limits, else what was limited.

        Raises:
            ArgumentError: a value is not finite; the command is unchanged.
        """
        within = self._target.command(vx, vy, wz)
        self._received, self.is_active = self._time, True
        if within:
            return ''
        taken = ', '.join(f'{value:.3g}' for value in self._target.target)
        return f'cmd_vel is ({vx:.3g}, {vy:.3g}, {wz:.3g}); limited to ({taken}) m/s, m/s, rad/s'

    def details(self, now: Vec3) -> dict[str, Any]:
        """Diagnostic values of the command, by name.

        Args:
            now: current velocity of the ramp [m/s, m/s, rad/s].
        """
        (vx, vy, wz), (most_x, most_y, most_turn) = now, self._target.largest_command
        return {
            'commanded': self.is_active,
            'vx': vx,
            'vy': vy,
            'wz': wz,
            'max_vx': most_x,
            'max_vy': most_y,
            'max_wz': most_turn,
        }

    def stop(self) -> None:
        """Command zero velocity."""
        self._target.command(0.0, 0.0, 0.0)
        self.is_active = False

    def watch(self, time: float) -> None:
        """Record the time of a state [s], and stop if the command is too old."""
        self._time = time
        if self.is_active and time - self._received > self.timeout:
            self.stop()
