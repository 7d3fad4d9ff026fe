# SPDX-License-Identifier: Apache-2.0
"""Whether the force sensors of the feet are accurate enough to detect contact.

The error of a load cell is a few newtons, whatever the weight of the robot. A sensor whose error is as large
as the load of a foot is useless, and a robot that relies on it falls. The ground can only push. If a foot
seems to be pulled by half of its share of the weight, or if all feet together seem to carry 1.5 times the
weight of the robot while it stands, the sensors have an error of that size. All of them are then ignored, and
schedule and kinematics decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_FILTER = 0.05  # time constant of the filtered forces [s]
_PULL = 0.5  # pulling force that is implausible, relative to a foot's share of the weight
_TOO_MUCH = 1.5  # total force that is implausible, relative to the weight


class ForceCheck:
    """Detects implausible forces.

    Attributes:
        is_good: whether no implausible force has been detected since the reset.
    """

    def __init__(self, weight: float, feet: int) -> None:
        """Prepare the check.

        Args:
            weight: of the robot [N].
            feet: number of feet.
        """
        self._weight, self._share, self._feet = weight, weight / feet, feet
        self.reset()

    def reset(self) -> None:
        """Restart."""
        self.is_good, self._forces = True, [self._share] * self._feet

    def look(self, forces: Sequence[float], stands: bool, dt: float) -> None:
        """Take measured normal forces.

        Args:
            forces: of the ground on each foot [N].
            stands: whether the robot stands on all feet without a reason to push harder.
            dt: time since the previous call [s].
        """
        keep = math.exp(-dt / _FILTER)
        self._forces = [f + keep * (old - f) for old, f in zip(self._forces, forces, strict=True)]
        pulled = min(self._forces) < -_PULL * self._share
        if pulled or (stands and sum(self._forces) > _TOO_MUCH * self._weight):
            self.is_good = False
