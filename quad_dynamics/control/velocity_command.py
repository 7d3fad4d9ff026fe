# SPDX-License-Identifier: Apache-2.0
"""A commanded velocity that grows old: who commands a robot that walks has to repeat it."""

from __future__ import annotations

from typing import Any, Protocol

Vec3 = tuple[float, float, float]


class Commanded(Protocol):
    """What walks at a velocity, or plans to. `Walker` is such a thing."""

    @property
    def largest_command(self) -> Vec3:
        """Largest velocities that can be commanded, each alone [m/s, m/s, rad/s]."""

    @property
    def target(self) -> Vec3:
        """The last command, within its limits [m/s, m/s, rad/s]."""

    def command(self, vx: float, vy: float, wz: float) -> bool:
        """Take a velocity; return whether it is within limits."""


class VelocityCommand:
    """Hands velocities on, and stops when none has come for too long. Time is that of the states.

    Attributes:
        timeout: age of a velocity at which it counts no more [s].
        is_active: whether one counts.
    """

    def __init__(self, target: Commanded, timeout: float) -> None:
        """No command yet.

        Args:
            target: gets the velocities.
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
            ArgumentError: a value that is not finite; the command is as before then.
        """
        within = self._target.command(vx, vy, wz)
        self._received, self.is_active = self._time, True
        if within:
            return ''
        taken = ', '.join(f'{value:.3g}' for value in self._target.target)
        return f'cmd_vel is ({vx:.3g}, {vy:.3g}, {wz:.3g}); limited to ({taken}) m/s, m/s, rad/s'

    def details(self, now: Vec3) -> dict[str, Any]:
        """What a user wants to know about the command, by name.

        Args:
            now: velocity that is followed, after its ramp [m/s, m/s, rad/s].
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
        """Command no velocity."""
        self._target.command(0.0, 0.0, 0.0)
        self.is_active = False

    def watch(self, time: float) -> None:
        """Note the time of a state [s], and stop if the command has grown too old."""
        self._time = time
        if self.is_active and time - self._received > self.timeout:
            self.stop()
