# SPDX-License-Identifier: Apache-2.0
"""Spans of time whose messages may be damaged."""

from __future__ import annotations

import bisect
import re

_MOST = 200  # spans in metadata.yaml; then the nearest are joined
_JOINED = 50_000_000  # what is nearer than this is one span [ns]


class Spans:
    """Times between which messages are suspect [ns]."""

    def __init__(self, text: str = '') -> None:
        """Read spans.

        Args:
            text: as `str` of others.
        """
        found = re.findall(r'(\d{1,20})-(\d{1,20})', text)
        self._spans = sorted((int(first), int(last)) for first, last in found)

    def add(self, first: int, last: int) -> None:
        """Add a span."""
        begin, end = self._spans[-1] if self._spans else (first, first - _JOINED - 1)
        if begin <= first <= end + _JOINED:
            self._spans[-1:] = [(begin, max(end, last))]
        else:
            self._spans.append((first, last))
            self._spans = self._joined(0)

    def all(self) -> list[tuple[int, int]]:
        """The spans, in the order of time; none overlaps another."""
        joined, apart = self._joined(0), _JOINED
        while len(joined) > _MOST:
            joined, apart = self._joined(apart), 2 * apart
        return joined

    def _joined(self, apart: int) -> list[tuple[int, int]]:
        made: list[tuple[int, int]] = []
        for first, last in sorted(self._spans):
            if made and first <= made[-1][1] + apart:
                made[-1] = (made[-1][0], max(made[-1][1], last))
            else:
                made.append((first, last))
        return made

    def __contains__(self, time: int) -> bool:
        """Whether a time is in one of them."""
        place = bisect.bisect_right(self._spans, (time, 1 << 64)) - 1
        return place >= 0 and self._spans[place][0] <= time <= self._spans[place][1]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._spans)

    def __str__(self) -> str:
        """As metadata.yaml has them."""
        return ' '.join(f'{first}-{last}' for first, last in self.all())
