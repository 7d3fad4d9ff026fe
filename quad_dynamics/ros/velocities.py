# SPDX-License-Identifier: Apache-2.0
"""Velocities to walk at, from geometry_msgs/Twist."""

from __future__ import annotations

import math
from typing import Any

from quad_dynamics.errors import ArgumentError


def read_velocity(message: Any) -> tuple[float, float, float]:
    """Velocity forward and to the left [m/s], turning to the left [rad/s]; other components are ignored.

    Args:
        message: a Twist, or a TwistStamped, in the heading frame of the robot.

    Raises:
        ArgumentError: a value is not finite.
    """
    twist = getattr(message, 'twist', message)
    for part in ('linear', 'angular'):
        for axis in 'xyz':
            value = getattr(getattr(twist, part), axis)
            if not math.isfinite(value):
                raise ArgumentError(f'cmd_vel: {part}.{axis} is {value}; expected a finite number')
    return twist.linear.x, twist.linear.y, twist.angular.z
