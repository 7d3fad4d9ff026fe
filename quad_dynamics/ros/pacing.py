# SPDX-License-Identifier: Apache-2.0
"""Periodic loops, paced against the wall clock.

Deadlines are absolute, so lateness does not accumulate. The last part of a wait is a busy loop, because a
sleeping thread wakes up late.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable

# Length of the busy wait before the deadline [s].
SPIN = 120e-6
# A backlog above this is dropped and counted; the loop continues from now [s].
LONGEST_BACKLOG = 0.2
_PR_SET_TIMERSLACK = 29


def sharpen_timers() -> None:
    """Set the timer slack of this thread to 1 ns; by default it wakes up to 50 us late."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def _nothing() -> None:
    """The default of `prepare`."""


class Pacer:
    """Waits from deadline to deadline.

    Attributes:
        period: between two deadlines [s]; 0 never waits.
        dropped: how often a backlog was dropped.
        deadline: the last one, by time.monotonic [s].
    """

    def __init__(self, period: float) -> None:
        """Start now.

        Args:
            period: [s]; 0 never waits.
        """
        self.period = period
        self.dropped = 0
        self.deadline = time.monotonic()

    def restart(self, period: float | None = None) -> None:
        """Set the next deadline one period from now.

        Args:
            period: a new period [s]; None: unchanged.
        """
        if period is not None:
            self.period = period
        self.deadline = time.monotonic()

    def wait(self, prepare: Callable[[], object] = _nothing) -> float:
        """Wait for the next deadline; return by how much it was missed, or 0 [s].

        Args:
            prepare: called shortly before the deadline, for work of varying duration.
        """
        if self.period <= 0.0 or math.isinf(self.period):
            prepare()
            return 0.0
        self.deadline += self.period
        now = time.monotonic()
        late = now - self.deadline
        if late > LONGEST_BACKLOG:
            self.dropped += 1
            self.deadline = now
        elif late < -SPIN:
            time.sleep(-late - SPIN)
        prepare()
        while time.monotonic() < self.deadline:
            pass
        return max(late, 0.0)

    def hold(self, share: float) -> None:
        """Wait until a share of the period has passed since the deadline, for evenly spaced output.

        Args:
            share: of the period, from 0 to 1; keep it small, since this is a busy wait.
        """
        if math.isinf(self.period):
            return
        until = self.deadline + share * self.period
        while time.monotonic() < until:
            pass
