# SPDX-License-Identifier: Apache-2.0
"""A loop that keeps its period against the wall clock.

Deadlines are absolute, so lateness does not add up. The last part of a wait is spent spinning, because a
sleeping thread wakes up late.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable

# How long before the deadline sleeping ends and spinning begins [s].
SPIN = 120e-6
# A backlog above this is dropped: the loop goes on from now, and counts it [s].
LONGEST_BACKLOG = 0.2
_PR_SET_TIMERSLACK = 29


def sharpen_timers() -> None:
    """Let the kernel wake this thread at the nanosecond that it asked for, not up to 50 us later."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def _nothing() -> None:
    """For who has nothing to prepare."""


class Pacer:
    """Waits from deadline to deadline.

    Attributes:
        period: between two deadlines [s]; 0 never waits.
        dropped: how often a backlog was dropped.
        dropped_time: sum of what was dropped [s].
        deadline: the last one, by time.monotonic [s].
    """

    def __init__(self, period: float) -> None:
        """Start now.

        Args:
            period: [s]; 0 never waits.
        """
        self.period = period
        self.dropped = 0
        self.dropped_time = 0.0
        self.deadline = time.monotonic()

    def restart(self, period: float | None = None) -> None:
        """The next deadline is one period from now.

        Args:
            period: a new one [s]; None leaves it.
        """
        if period is not None:
            self.period = period
        self.deadline = time.monotonic()

    def wait(self, prepare: Callable[[], object] = _nothing) -> float:
        """Wait for the next deadline; return by how much it was missed, 0 if it was not [s].

        Args:
            prepare: called shortly before the deadline, for what takes now more, now less time.
        """
        if self.period <= 0.0 or math.isinf(self.period):
            prepare()
            return 0.0
        self.deadline += self.period
        now = time.monotonic()
        late = now - self.deadline
        if late > LONGEST_BACKLOG:
            self.dropped += 1
            self.dropped_time += late
            self.deadline = now
        elif late < -SPIN:
            time.sleep(-late - SPIN)
        prepare()
        while time.monotonic() < self.deadline:
            pass
        return max(late, 0.0)

    def hold(self, share: float) -> None:
        """Wait until so much of the period has passed since the deadline, for what must come evenly.

        Args:
            share: of the period, from 0 to 1; small, for the time is spent spinning.
        """
        if math.isinf(self.period):
            return
        until = self.deadline + share * self.period
        while time.monotonic() < until:
            pass
