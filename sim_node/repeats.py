# SPDX-License-Identifier: Apache-2.0
"""When a state that does not change is published again: paused, or waiting for the first command."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

_SHORTEST = 0.02  # between two copies [s]
_LONGEST = 0.4  # below the 0.5 s after which the viewer takes a foot force to be old [s]
_ALIVE = 0.02  # between two joint_states for a controller, far below its state_timeout [s]


class Repeats:
    """Intervals between copies of a state.

    They double up to `_LONGEST`, so that a bag contains few copies. They are short again when a subscriber
    appears: it needs the state, but may not have discovered the publishers yet. Only a controller needs more
    copies, and only of joint_states: it would take a longer silence for a failure.
    """

    def __init__(self, publishers: Sequence[Any], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin: the first copy is due at once.

        Args:
            publishers: topics whose subscribers are counted.
            clock: monotonic time [s].
        """
        self._publishers, self._clock = publishers, clock
        self._subscribers = 0
        self.restart()

    def restart(self) -> None:
        """The state has changed: it is due at once, with short intervals."""
        self._interval = _SHORTEST
        self._next = self._next_alive = self._clock()

    def wait(self) -> float:
        """Time until something may be due, at most `_SHORTEST` [s]; 0 until both kinds are asked for."""
        return min(max(min(self._next, self._next_alive) - self._clock(), 0.0), _SHORTEST)

    def is_due(self) -> bool:
        """Whether to publish everything now."""
        subscribers = sum(one.get_subscription_count() for one in self._publishers)
        if subscribers > self._subscribers:
            self.restart()
        self._subscribers = subscribers
        now = self._clock()
        if now < self._next:
            return False
        self._next, self._next_alive = now + self._interval, now + _ALIVE
        self._interval = min(2.0 * self._interval, _LONGEST)
        return True

    def is_alive_due(self) -> bool:
        """Whether to publish joint_states now, for a controller."""
        now = self._clock()
        if now < self._next_alive:
            return False
        self._next_alive = now + _ALIVE
        return True
