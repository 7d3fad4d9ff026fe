# SPDX-License-Identifier: Apache-2.0
"""Removal of rows that repeat the stamp of the row before, as a paused simulation publishes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

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
            source: recording.
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

    def note(self, used: Collection[str]) -> None:
        """Add notes about what was left out, of the channels that are used."""
        copies = _numbers(self.repeated - self._differing, used)
        differing = _numbers(self._differing, used)
        unset = _numbers(self._source.unset, {self._source.origin(key) for key in used})
        if copies:
            self._source.note(f'rows that repeat the previous one, stamp and values, are not used: {copies}')
        if differing:
            self._source.note(
                f'rows with the stamp of the previous one, but other values, are not used: {differing}'
            )
        if unset:
            self._source.note(f'messages without a stamp (zero) are not used: {unset}')


def _numbers(counts: Counter[str], used: Collection[str]) -> str:
    """Text like '3 of position, velocity; 1 of base'; '' if there are none."""
    found: dict[int, list[str]] = {}
    for key in sorted(set(counts) & set(used)):
        found.setdefault(counts[key], []).append(key)
    return '; '.join(f'{n} of {", ".join(found[n])}' for n in sorted(found, reverse=True) if n)
