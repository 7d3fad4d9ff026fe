# SPDX-License-Identifier: Apache-2.0
"""Detects lost messages from the sequence numbers of the publishers."""

from __future__ import annotations


class SequenceNumbers:
    """The numbers of one topic's messages.

    Each publisher counts separately, and a message does not identify its publisher. So the next number of
    every publisher is kept: a message that continues one of them belongs to that publisher.

    Attributes:
        lost: number of missing messages so far.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.publishers = 1
        self._next: list[int] = []

    def publishers_changed(self, count: int) -> None:
        """The publishers have changed: discard the known numbers."""
        self.publishers = count
        self._next.clear()

    def see(self, number: int | None) -> None:
        """Take the number of a message that arrived; None where the middleware gives none."""
        expected = self._next
        if len(expected) == 1 and expected[0] == number:
            expected[0] += 1
        elif number is not None:
            self._see(number)

    def _see(self, number: int) -> None:
        if number in self._next:
            self._next[self._next.index(number)] = number + 1
            return
        if number == 1 or len(self._next) < self.publishers:
            self._next.append(number + 1)
            return
        below = [one for one in self._next if one < number]
        if below:
            nearest = max(below)
            self.lost += number - nearest
            self._next.remove(nearest)
        else:  # a publisher that came back
            self._next.remove(max(self._next))
        self._next.append(number + 1)
