# SPDX-License-Identifier: Apache-2.0
"""Removal of rows that repeat the stamp of the row before, as a paused simulation publishes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.recordings.recording import Channel, Chunk, Source


class DistinctRows:
    """The chunks of a recording, without repeated rows; of rows with the same stamp, the first is used.

    Attributes:
        repeated: number of rows that were left out, by channel.
    """

    def __init__(self, source: Source) -> None:
        """Read nothing yet.

        Args:
            source: recording; a note is added when all chunks have been read.
        """
        self._source = source
        self._last: dict[str, tuple[int, Floats]] = {}
        self.repeated: Counter[str] = Counter()
        self._differing: Counter[str] = Counter()

    def chunks(self) -> Iterator[Chunk]:
        """Chunks in time order; those in which nothing is left are skipped."""
        for chunk in self._source.chunks():
            kept = {key: self._kept(key, channel) for key, channel in chunk.items()}
            kept = {key: channel for key, channel in kept.items() if len(channel.stamps)}
            if kept:
                yield kept
        self._note(self.repeated - self._differing, 'repeat the previous one, stamp and values')
        self._note(self._differing, 'have the stamp of the previous one, but other values')

    def _kept(self, key: str, channel: Channel) -> Channel:
        """The rows of a channel with new stamps."""
        stamps, values = channel.stamps, channel.values
        if not len(stamps):
            return channel
        stamp, row = self._last.get(key, (int(stamps[0]) - 1, values[0]))
        is_new: Bools = np.diff(stamps, prepend=stamp) != 0
        self._last[key] = int(stamps[-1]), values[-1].copy()
        if is_new.all():
            return channel
        before = np.concatenate([row[None], values[:-1]])
        same = np.all((values == before) | (np.isnan(values) & np.isnan(before)), axis=1)
        self.repeated[key] += int(np.count_nonzero(~is_new))
        self._differing[key] += int(np.count_nonzero(~is_new & ~same))
        return Channel(stamps[is_new], values[is_new], channel.columns)

    def _note(self, counts: Counter[str], what: str) -> None:
        """Add a note; channels with the same number share one."""
        for count in sorted(set(counts.values()) - {0}):
            keys = ', '.join(sorted(key for key, found in counts.items() if found == count))
            self._source.note(f'{keys}: {count} rows {what}; they are not used')
