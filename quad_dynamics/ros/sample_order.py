# SPDX-License-Identifier: Apache-2.0
"""Sorts samples of several topics, for a node that must see every state of a lock-step run.

A mailbox takes all messages of one topic, then all of the next. A node that is a few states behind would see
only the latest sample of each topic.
"""

from __future__ import annotations

from collections.abc import Callable

from quad_dynamics.ros.cdr import STAMP

Take = Callable[[bytes], None]

_MOST_STAMPS = 500  # that may wait for the rest of their samples


class SampleOrder:
    """Holds samples until all topics have one with the same stamp."""

    def __init__(self) -> None:
        """No topics yet."""
        self._takers: list[Take] = []
        self._waiting: dict[int, dict[int, bytes]] = {}

    def add(self, take: Take) -> Take:
        """Add a topic; samples of one stamp are delivered in the order of these calls.

        Args:
            take: called with the messages in order.

        Returns:
            the callback for its subscription.
        """
        number = len(self._takers)
        self._takers.append(take)

        def hold(raw: bytes) -> None:
            if len(raw) < STAMP.stop:
                take(raw)  # which rejects it
                return
            if len(self._waiting) > _MOST_STAMPS:
                self._waiting.clear()
            self._waiting.setdefault(_stamp(raw), {})[number] = raw

        return hold

    def next(self) -> bool:
        """Deliver the samples of the oldest complete stamp; False if there is none."""
        whole = [stamp for stamp, samples in self._waiting.items() if len(samples) == len(self._takers)]
        if not whole:
            return False
        oldest = min(whole)
        samples = self._waiting.pop(oldest)
        for stamp in [one for one in self._waiting if one < oldest]:
            del self._waiting[stamp]  # its other samples were sent before we subscribed
        for number, take in enumerate(self._takers):
            take(samples[number])
        return True


def _stamp(raw: bytes) -> int:
    """Stamp in the header of a message [ns]."""
    middle = STAMP.start + 4
    sec, nanosec = raw[STAMP.start : middle], raw[middle : STAMP.stop]
    return int.from_bytes(sec, 'little') * 10**9 + int.from_bytes(nanosec, 'little')
