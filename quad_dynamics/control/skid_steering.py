# SPDX-License-Identifier: Apache-2.0
"""How a robot turns whose legs move their feet in parallel planes only: its feet slide, like tracks.

Two feet that stand hold such a robot against turning, for to turn at a rate w, a foot that is x ahead of the
centre of mass has to go sideways at w x. Its joints cannot push it there. They can push lengthways: on one
side to the rear, on the other ahead. As long as friction suffices, this does nothing: the ground answers with
lateral forces that keep the robot from turning. With feet at (x, y) and (-x, -y) from the centre of mass, the
forces of the ground are along the line between them then, and the feet begin to slide where they reach

    mu N (x, y) / sqrt(x^2 + y^2).

So forces of mu N x / sqrt(x^2 + y^2) lengthways are added to those of whole-body control. They are internal
forces of the two feet as long as these stick, and so do not disturb balance. An integral of the yaw rate
finds how much more or less it takes, for nobody knows mu. Once feet slide, friction opposes their velocity,
and it neither turns the robot nor stops it where they slide along the same line, at the velocity

    (w x^2 / y, w x).

Both are smaller the closer the feet are to each other lengthways. So robots turn on a shorter stance.
"""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.planning.arc import turned
from quad_dynamics.planning.stance_geometry import StanceGeometry

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

_SHARE = 0.8  # of the friction that the feet may count on, with which they begin to push
_SMALL = 0.03  # rate up to which they push less, and the stance is longer, in sqrt(g / l)
_LAG = 5.0  # by which the share of the load that they push with grows for each radian that is lacking
_MOST = 0.8  # by which it grows at most
_SHORT = 0.6  # length of the stance, over that of a robot that goes straight
_FASTEST = 0.2  # rate, in sqrt(g / l)
_STEEPEST = 2.0  # largest ratio of sliding lengthways to sliding sideways
_LONGEST_STEP = 0.02  # time that counts between two calls [s]


class SkidSteering:
    """Forces and velocities of feet that slide while the robot turns.

    Attributes:
        along: direction in which the legs move their feet, from the heading [rad].
        fastest: rate of turning that may be asked for [rad/s].
    """

    def __init__(self, geometry: StanceGeometry, along: float) -> None:
        self.along, self.fastest = along, _FASTEST * geometry.rate
        self._small = _SMALL * geometry.rate
        self.reset(0.0)

    def reset(self, time: float) -> None:
        """Begin anew."""
        self._more, self._time = 0.0, time

    def stance(self, wz: float) -> Vec2:
        """Factors of the distances of the feet from their middle, ahead and to the left, at a yaw rate."""
        short = 1.0 - (1.0 - _SHORT) * abs(self._effort(wz))
        return (short, 1.0) if abs(self.along) < 0.25 * math.pi else (1.0, short)

    def velocity(self, place: Vec2, yaw: float, wz: float) -> Vec3:
        """With which a foot that is down should slide, in the world [m/s].

        Args:
            place: of the foot from the centre of mass, in the world [m].
            yaw: heading [rad].
            wz: turning to the left [rad/s].
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
        """(legs, 3) forces of the ground that feet should cause beside those of whole-body control [N].

        Args:
            time: now [s].
            places: (legs, 3) of the feet from the centre of mass, in the world [m].
            down: (legs,) which feet are down.
            load: normal force of one of them [N].
            yaw: heading [rad].
            rates: of turning to the left: commanded, and as it is [rad/s].
            mu: friction that the feet may count on.
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
        """From -1 to 1: how much of what it takes to slide a yaw rate asks for."""
        return min(max(wz / self._small, -1.0), 1.0)
