# SPDX-License-Identifier: Apache-2.0
"""Whether force sensors of the feet are good enough to tell which feet are down.

The error of a load cell is some newtons, whatever the robot weighs. A sensor that is off by as much as a
foot carries says nothing, and a robot that believes it falls. The ground only pushes: if a foot seems to be
pulled by half of what it should carry, or all feet together seem to carry half as much again as the robot
weighs while it stands, sensors are off by that much. Then all of them are left out, and schedule and
kinematics decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_FILTER = 0.05  # time constant of the forces that are looked at [s]
_PULL = 0.5  # of a foot's part of the weight, at which it seems to be pulled
_TOO_MUCH = 1.5  # weights that all feet together seem to carry


class ForceCheck:
    """Looks for forces that cannot be.

    Attributes:
        is_good: whether none was seen since the reset.
    """

    def __init__(self, weight: float, feet: int) -> None:
        """Begin anew.

        Args:
            weight: of the robot [N].
            feet: number of them.
        """
        self._weight, self._share, self._feet = weight, weight / feet, feet
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.is_good, self._forces = True, [self._share] * self._feet

    def look(self, forces: Sequence[float], stands: bool, dt: float) -> None:
        """Take measured normal forces.

        Args:
            forces: of the ground on each foot [N].
            stands: whether the robot stands on all feet, and has no reason to push harder.
            dt: since the last ones [s].
        """
        keep = math.exp(-dt / _FILTER)
        self._forces = [f + keep * (old - f) for old, f in zip(self._forces, forces, strict=True)]
        pulled = min(self._forces) < -_PULL * self._share
        if pulled or (stands and sum(self._forces) > _TOO_MUCH * self._weight):
            self.is_good = False
