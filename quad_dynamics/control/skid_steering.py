# SPDX-License-Identifier: Apache-2.0
"""Turning of a robot whose legs move their feet only in parallel planes: the feet slide, like tracks.

Two stance feet prevent such a robot from turning: at a yaw rate w, a foot at a distance x in front of the
centre of mass would have to move sideways at w x, and its joints cannot push it there. But they can push
lengthwise: backward on one side, forward on the other. As long as friction suffices, this has no effect: the
ground reacts with lateral forces that keep the robot from turning. With feet at (x, y) and (-x, -y) from the
centre of mass, the ground forces are then along the line between them, and the feet begin to slide when they
reach

    mu N (x, y) / sqrt(x^2 + y^2).

So lengthwise forces of mu N x / sqrt(x^2 + y^2) are added to those of whole-body control. As long as the two
feet stick, these are internal forces, and so do not disturb balance. Because mu is unknown, an integral of
the yaw rate finds how much more or less is needed. Once feet slide, friction opposes their velocity. It
neither turns the robot nor stops it if they slide along the same line, at the velocity

    (w x^2 / y, w x).

Both are smaller the closer the feet are lengthwise, so robots turn with a shorter stance.
"""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.planning.arc import turned
from quad_dynamics.planning.stance_geometry import StanceGeometry

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

_SHARE = 0.8  # of the assumed friction: initial lengthwise force
_SMALL = 0.03  # yaw rate below which forces are smaller and the stance longer, in sqrt(g / l)
_LAG = 5.0  # integral gain: change of the force, relative to the load, per radian of yaw error
_MOST = 0.8  # limit of that integral
_SHORT = 0.6  # length of the stance, relative to that without turning
_FASTEST = 0.2  # largest yaw rate, in sqrt(g / l)
_STEEPEST = 2.0  # largest ratio of lengthwise to lateral sliding
_LONGEST_STEP = 0.02  # limit of the time between two calls [s]


class SkidSteering:
    """Forces and velocities of feet that slide while the robot turns.

    Attributes:
        along: direction in which the legs move their feet, from the heading [rad].
        fastest: largest yaw rate that can be commanded [rad/s].
    """

    def __init__(self, geometry: StanceGeometry, along: float) -> None:
        self.along, self.fastest = along, _FASTEST * geometry.rate
        self._small = _SMALL * geometry.rate
        self.reset(0.0)

    def reset(self, time: float) -> None:
        """Reset the integral."""
        self._more, self._time = 0.0, time

    def stance(self, wz: float) -> Vec2:
        """Factors of the distances of the feet from their centre, forward and to the left, at a yaw rate."""
        short = 1.0 - (1.0 - _SHORT) * abs(self._effort(wz))
        return (short, 1.0) if abs(self.along) < 0.25 * math.pi else (1.0, short)

    def velocity(self, place: Vec2, yaw: float, wz: float) -> Vec3:
        """Velocity at which a stance foot should slide, in the world [m/s].

        Args:
            place: position of the foot from the centre of mass, in the world [m].
            yaw: heading [rad].
            wz: yaw rate, positive to the left [rad/s].
        """
        if not wz:
            return 0.0, 0.0, 0.0
        x, y = turned(place, -yaw - self.along)
        steep = min(abs(x) / max(abs(y), 1e-9), _STEEPEST)
        vx, vy = turned((math.copysign(abs(wz * x) * steep, wz * y), wz * x), yaw + self.along)
        return vx, vy, 0.0

    def forces(
        self, time: float, places: Floats, down: Bools, load: float, yaw: float, rates: Vec2, mu: float
    ) -> Floats:
        """(legs, 3) ground forces in addition to those of whole-body control [N].

        Args:
            time: current time [s].
            places: (legs, 3) positions of the feet from the centre of mass, in the world [m].
            down: (legs,) which feet are in contact.
            load: normal force of one of them [N].
            yaw: heading [rad].
            rates: commanded and measured yaw rate [rad/s].
            mu: assumed friction of the feet.
        """
        dt, self._time = min(max(time - self._time, 0.0), _LONGEST_STEP), time
        if not rates[0]:
            self._more = 0.0
            return np.zeros_like(places)
        self._more = min(max(self._more + _LAG * dt * (rates[0] - rates[1]), -_MOST), _MOST)
        push = load * (_SHARE * mu * self._effort(rates[0]) + self._more)
        c, s = math.cos(yaw + self.along), math.sin(yaw + self.along)
        x, y = c * places[:, 0] + s * places[:, 1], c * places[:, 1] - s * places[:, 0]
        ahead = -np.sign(y) * down * push * np.abs(x) / np.maximum(np.hypot(x, y), 1e-9)
        return np.outer(ahead, [c, s, 0.0])

    def _effort(self, wz: float) -> float:
        """From -1 to 1: share of the sliding force that is needed for a yaw rate."""
        return min(max(wz / self._small, -1.0), 1.0)
