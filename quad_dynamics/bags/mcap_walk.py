# SPDX-License-Identifier: Apache-2.0
"""Iterates over the records of damaged MCAP data, and resynchronises after damage. Needs no ROS.

Nothing in the format marks the start of a record. A record is accepted if its kind, length and content agree,
and another such record (or the end) follows it.
"""

from __future__ import annotations

import bisect
import mmap
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_compression import KNOWN
from quad_dynamics.bags.mcap_fields import is_whole

Data = bytes | mmap.mmap

IN_CHUNK = frozenset({mcap.SCHEMA, mcap.CHANNEL, mcap.MESSAGE})
PRIVATE = 0x80  # kinds of records from here on are free for everybody
IN_FILE = frozenset([*range(mcap.HEADER, mcap.DATA_END + 1), *range(PRIVATE, 0x100)])
# A kind, and a length below 4 GiB.
_CANDIDATE = re.compile(rb'[\x01-\x0f](?=[\x00-\xff]{4}\x00{4})')
# Records whose content says how long it is, and so whether the record is one.
_EVIDENT = (mcap.SCHEMA, mcap.CHANNEL, mcap.CHUNK)
_FIXED_LENGTHS = {mcap.FOOTER: 20, mcap.DATA_END: 4, mcap.SUMMARY_OFFSET: 17}


@dataclass(frozen=True)
class Found:
    """A record.

    Attributes:
        kind: of the record.
        start: where it begins.
        end: where it ends.
        content: None if it is what stands there.
        suspect: it lies next to damage, or was put together from what is left of it.
    """

    kind: int
    start: int
    end: int
    content: bytes | None = None
    suspect: bool = False

    def read(self, data: Data) -> bytes:
        """Its content."""
        return data[self.start + mcap.HEAD.size : self.end] if self.content is None else self.content


class Walker:
    """Iterates over the records between two positions.

    Attributes:
        damage: number of bytes that belong to no record.
        first_damage: position of the first of them; None if there is none.
    """

    def __init__(
        self,
        data: Data,
        limit: int,
        kinds: frozenset[int],
        channels: Container[int],
        hints: Mapping[int, tuple[int, int]] | None = None,
        chunks: Mapping[int, int] | None = None,
        exact_end: bool = True,
    ) -> None:
        """Be ready to walk.

        Args:
            data: with the records.
            limit: where they end.
            kinds: that may be there.
            channels: that messages may have; it may grow while walking.
            hints: where an index says that messages begin: their channels and log times [ns].
            chunks: where an index says that chunks begin and end.
            exact_end: the data is not cut off at its end.
        """
        self._exact_end = exact_end
        self._data, self._limit, self._kinds, self._channels = data, limit, kinds, channels
        self._hints = dict(hints or {})
        self._chunks = dict(chunks or {})
        self._hinted = sorted([*self._hints, *self._chunks])
        self._sizes: dict[int, set[int]] = {}
        self.damage = 0
        self.first_damage: int | None = None

    def walk(self, at: int) -> Iterator[Found]:
        """The records from a position on."""
        suspect = False
        while at < self._limit:
            end = self.end_of(at)
            if at in self._chunks and (end is None or self._data[at] != mcap.CHUNK):
                self._note(at, at + mcap.HEAD.size)
                yield Found(mcap.CHUNK, at, self._chunks[at], b'', suspect=True)
                at, suspect = self._chunks[at], False
                continue
            if self._is_believed(at, end):
                assert end is not None
                yield self._found(at, end, suspect)
                at, suspect = end, False
                continue
            following = self.resynchronise(at + 1)
            if end is not None and following >= end:
                yield self._found(at, end, suspect)
                at = end
            if at < following:
                self._note(at, following)
                rebuilt = self._rebuilt(at, following)
                if rebuilt is not None:
                    yield rebuilt
                suspect = True
            at = following

    def _found(self, at: int, end: int, suspect: bool) -> Found:
        kind = self._data[at]
        if kind == mcap.MESSAGE:
            channel = int.from_bytes(self._data[at + 9 : at + 11], 'little')
            self._sizes.setdefault(channel, set()).add(end - at)
        return Found(kind, at, end, suspect=suspect)

    def _note(self, at: int, end: int) -> None:
        self.damage += end - at
        if self.first_damage is None:
            self.first_damage = at

    # ---------------------------------------------------------------- what is believed

    def end_of(self, at: int) -> int | None:
        """Where the record at a position ends; None if there is none."""
        data = self._data
        if at + mcap.HEAD.size > self._limit:
            return None
        kind, length = mcap.HEAD.unpack_from(data, at)
        end = at + mcap.HEAD.size + int(length)
        if kind not in self._kinds:
            return None
        if end > self._limit:
            cut = (
                kind == mcap.CHUNK and not self._exact_end and _decodes(kind, data, at + mcap.HEAD.size, end)
            )
            return self._limit if cut else None
        start = at + mcap.HEAD.size
        if kind == mcap.MESSAGE:
            channel = int.from_bytes(data[start : start + 2], 'little')
            good = length >= mcap.MESSAGE_CONTENT.size and channel in self._channels
        elif kind >= PRIVATE:
            good = True
        elif kind in _FIXED_LENGTHS:
            good = length == _FIXED_LENGTHS[kind]
        elif kind == mcap.MESSAGE_INDEX:
            good = length >= 6 and int.from_bytes(data[start + 2 : start + 6], 'little') == length - 6
            good = good and (length - 6) % mcap.INDEX_ENTRY.size == 0
        else:
            good = _decodes(kind, data, start, end)
        return end if good else None

    def resynchronise(self, at: int) -> int:
        """Position of the next acceptable record; the end if there is none."""
        place = bisect.bisect_left(self._hinted, at)
        hinted = self._hinted[place] if place < len(self._hinted) else self._limit
        for candidate in _CANDIDATE.finditer(self._data, at, hinted):
            if self._is_believed(candidate.start(), self.end_of(candidate.start())):
                return candidate.start()
        return hinted

    def _is_believed(self, at: int, end: int | None) -> bool:
        """Whether the record between two positions is valid, judged by its content or its successor."""
        if end is None:
            return False
        return self._data[at] in _EVIDENT or end == self._limit or self.end_of(end) is not None

    # ---------------------------------------------------------------- what is put together

    def _rebuilt(self, at: int, end: int) -> Found | None:
        """A record whose head is damaged, but whose content is there."""
        kind, start = self._data[at], at + mcap.HEAD.size
        if kind in (mcap.SCHEMA, mcap.CHANNEL) and _decodes(kind, self._data, start, end):
            return Found(kind, at, end, self._data[start:end], suspect=True)
        size = mcap.HEAD.size + mcap.MESSAGE_CONTENT.size
        if mcap.MESSAGE not in self._kinds or end - at < size or (end == self._limit and not self._exact_end):
            return None
        kind, length, channel, sequence, log, published = mcap.MESSAGE_HEAD.unpack_from(self._data, at)
        if at in self._hints:
            channel, log = self._hints[at]
        else:
            right = (kind == mcap.MESSAGE) or length == end - at - mcap.HEAD.size
            if not right or end - at not in self._sizes.get(channel, ()):
                return None
        head = mcap.MESSAGE_CONTENT.pack(channel, sequence, log, published)
        return Found(mcap.MESSAGE, at, end, head + self._data[at + size : end], suspect=True)


def _decodes(kind: int, data: Data, start: int, end: int) -> bool:
    """Whether the content of a record matches its kind."""
    try:
        if kind == mcap.CHUNK:
            head = mcap.ChunkHead.decode(data[start : min(end, start + 128)])
            return head.compression in KNOWN and start + head.length + head.stored == end
        return is_whole(kind, data[start:end])
    except (ValueError, UnicodeDecodeError):
        return False
