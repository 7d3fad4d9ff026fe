# SPDX-License-Identifier: Apache-2.0
"""Which feet are in contact when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bools, Floats


@dataclass(frozen=True, eq=False)
class ContactSchedule:
    """Which feet are in contact over a horizon, in phases with constant contacts.

    Attributes:
        times: (phases + 1,) start times of the phases, and end of the last one [s].
        down: (phases, legs) which feet are in contact.
    """

    times: Floats
    down: Bools

    @property
    def durations(self) -> Floats:
        """(phases,) [s]."""
        return np.diff(self.times)

    def phase(self, time: float) -> int:
        """The phase at a time; the first before the horizon, the last after it."""
        last = len(self.down) - 1
        return min(max(int(np.searchsorted(self.times, time, side='right')) - 1, 0), last)

    def next_change(self, leg: int, time: float) -> float:
        """Next touch-down or lift-off of a foot; infinity if there is none within the horizon [s]."""
        now = self.phase(time)
        for k in range(now + 1, len(self.down)):
            if self.down[k, leg] != self.down[now, leg]:
                return float(self.times[k])
        return float('inf')
