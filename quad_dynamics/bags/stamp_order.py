# SPDX-License-Identifier: Apache-2.0
"""Sorts messages by their stamps, so that identical runs give identical bags.

Messages of different topics arrive in an order that depends on the machine. Here they are buffered until
simulated time has advanced by a window, and released in order of stamp, then topic. So nothing in the bag
depends on arrival times.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from quad_dynamics.bags.topics import Topic, stamp_of

# (stamp [ns], topic, bytes where several publishers share a topic, count, topic, message)
_Held = tuple[int, str, bytes, int, 'StampedTopic', bytes]
_BEFORE_ALL = -1
# A stamp that is so far ahead of the clock is not of this clock [ns].
_FAR_AHEAD = 60 * 10**9


@dataclass(eq=False)
class StampedTopic:
    """A topic whose messages are put in order.

    Attributes:
        topic: as it will be in the bag.
        offset: where its messages have their stamps; None if they have none.
        latched: its last message is sent again to late subscribers.
        shared: it has several publishers.
        is_clock: its messages are the simulated time.
        unwanted: it is not for the bag.
        number: id in the bag, 0 before it is added.
        written: number of its messages in the bag.
    """

    topic: Topic
    offset: int | None
    latched: bool = False
    shared: bool = False
    is_clock: bool = False
    unwanted: bool = False
    number: int = 0
    written: int = 0
    count: int = 0
    last: bytes = b''


class StampOrder:
    """Buffers messages, and releases them in order.

    Attributes:
        late: messages that arrived after later ones had been released.
        repeated: messages identical to the previous one, which are left out.
    """

    def __init__(self, window: int, duration: int | None = None) -> None:
        """Begin empty.

        Args:
            window: how far simulated time must be ahead of a message before it is released [ns].
            duration: messages later than this after the first are left out [ns]; None: no limit.
        """
        self._window, self._duration = window, duration
        self._held: list[_Held] = []
        self._first: int | None = None
        self._newest = 0
        self._clock: int | None = None
        self._written = 0
        self._counter = 0
        self.late = self.repeated = 0

    @property
    def is_over(self) -> bool:
        """Whether everything up to the end of the duration has certainly arrived."""
        if self._duration is None or self._first is None:
            return False
        return self._now >= self._first + self._duration + self._window

    @property
    def _now(self) -> int:
        """The simulated time, as far as it is known: of the clock, else the newest stamp."""
        return self._newest if self._clock is None else self._clock

    def _is_set(self, stamp: int) -> bool:
        """Whether a stamp is set, and in simulated time."""
        if stamp == 0:
            return self._now <= self._window
        return self._clock is None or stamp <= self._clock + _FAR_AHEAD

    def add(self, source: StampedTopic, raw: bytes) -> None:
        """Take a message."""
        stamp = stamp_of(raw, source.offset)
        if stamp is not None and raw == source.last:
            self.repeated += 1  # a paused simulation says the same again and again
            return
        source.last = raw
        if source.is_clock and stamp is not None:
            self._clock = max(stamp, self._clock or 0)
        if stamp is not None and not self._is_set(stamp):
            stamp = None
        if stamp is not None:
            self._first = stamp if self._first is None else min(self._first, stamp)
            self._newest = max(self._newest, stamp)
        elif source.latched and not source.count:
            # Latched messages have no time of their own: they come before everything else.
            stamp = _BEFORE_ALL
        else:
            stamp = self._now
        source.count += 1
        self._counter += 1
        tie = raw if source.shared else b''
        heapq.heappush(self._held, (stamp, source.topic.name, tie, self._counter, source, raw))

    def release(self, everything: bool = False) -> list[tuple[int, StampedTopic, bytes]]:
        """Release messages older than the window: time [ns], topic, message.

        Args:
            everything: release all, at the end.
        """
        ready: list[tuple[int, StampedTopic, bytes]] = []
        first = self._first or 0
        until = self._now - self._window
        end = None if self._duration is None else first + self._duration
        while self._held and (everything or self._held[0][0] < until):
            stamp, _, _, _, source, raw = heapq.heappop(self._held)
            stamp = max(stamp, first) if stamp == _BEFORE_ALL else stamp
            if end is not None and stamp >= end:
                continue
            if stamp < self._written:
                self.late += 1
                stamp = self._written
            self._written = stamp
            ready.append((stamp, source, raw))
        return ready
