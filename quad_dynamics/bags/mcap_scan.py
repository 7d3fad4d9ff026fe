# SPDX-License-Identifier: Apache-2.0
"""Finds everything that can be read in an MCAP file, however it is damaged. Needs no ROS.

Chunks whose CRC matches are kept unchanged. In all others, and outside chunks, every message that can be
found is kept; those near damage that are not protected by a CRC are *suspect*.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_compression import FRAMES, unpack, unpack_damaged
from quad_dynamics.bags.mcap_fields import is_whole
from quad_dynamics.bags.mcap_pieces import Chunk, Loose, Message, Piece, Times
from quad_dynamics.bags.mcap_salvage import salvaged
from quad_dynamics.bags.mcap_summary import ChunkEntry, Summary, has_end, read_summary
from quad_dynamics.bags.mcap_walk import IN_CHUNK, IN_FILE, PRIVATE, Found, Walker
from quad_dynamics.errors import ArgumentError


class Scan:
    """The contents found in a file.

    Attributes:
        size: of the file.
        has_end: whether it has a proper end.
        summary: the summary at its end.
        pieces: containers of messages, in the order of the file.
        extras: attachments and metadata: kind, begin, end.
        lost: number of bytes that belong to no record.
        damaged_at: position of the first damage other than a missing end; None if there is none.
        data_end: where the data section ends; None if unknown.
    """

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.size = data, len(data)
        self.has_end = has_end(data)
        self.summary = read_summary(data) if self.has_end else Summary()
        self.schemas: dict[int, mcap.Schema] = {}
        self.channels: dict[int, mcap.Channel] = {}
        self.pieces: list[Piece] = []
        self.extras: list[tuple[int, int, int]] = []
        self.lost = 0
        self.damaged_at: int | None = None
        self.data_end: int | None = None
        self._has_chunks, self._listed = bool(self.summary.chunks), False
        self._trusted: set[tuple[int, int]] = set()
        for kind, content in self.summary.definitions:
            self._learn(kind, content, self.summary.checked)
        self._listed = self.summary.sound
        self._run()

    # ---------------------------------------------------------------- the file

    def _run(self) -> None:
        limit = self.size - (len(mcap.MAGIC) if self.has_end else 0)
        begins = self.data[: len(mcap.MAGIC)] == mcap.MAGIC
        known = {one.start: one for one in self.summary.chunks if one.start + one.length <= limit}
        ends = {start: start + one.length for start, one in known.items()}
        walker = Walker(self.data, limit, IN_FILE, self.channels, chunks=ends, exact_end=self.has_end)
        if not begins:
            self.damaged_at = 0
        at = len(mcap.MAGIC) if begins or walker.end_of(len(mcap.MAGIC)) else 0
        for found in walker.walk(at):
            if found.kind == mcap.CHUNK and found.content is not None:
                self._indexed_chunk(known[found.start])
            else:
                self._take(found)
        self.lost = walker.damage
        first = walker.first_damage
        if first is not None and self.damaged_at is None and (self.has_end or first + walker.damage < limit):
            self.damaged_at = first

    def _take(self, found: Found) -> None:
        kind = found.kind
        if kind == mcap.MESSAGE:
            self._loose(found)
        elif kind in (mcap.SCHEMA, mcap.CHANNEL):
            self._learn(kind, found.read(self.data), False)
        elif kind == mcap.CHUNK:
            self._chunk(found)
        elif kind == mcap.MESSAGE_INDEX:
            last = self.pieces[-1] if self.pieces else None
            if isinstance(last, Chunk) and last.indices_end == found.start:
                number = int.from_bytes(self.data[found.start + 9 : found.start + 11], 'little')
                last.offsets[number] = found.start
                last.indices_end = found.end
        elif (kind in (mcap.ATTACHMENT, mcap.METADATA) or kind >= PRIVATE) and self.data_end is None:
            self.extras.append((kind, found.start, found.end))
        elif kind == mcap.DATA_END:
            self.data_end = found.start

    def _loose(self, found: Found) -> None:
        last = self.pieces[-1] if self.pieces and isinstance(self.pieces[-1], Loose) else None
        follows = last is not None and last.end == found.start
        # What stands where a chunk should be is what is left of that chunk.
        suspect = found.suspect or (last is not None and follows and last.suspect and self._has_chunks)
        if found.content is not None:
            self.pieces.append(Loose(found.start, found.end, True, found.content))
        elif last is not None and follows and last.content is None and last.suspect == suspect:
            last.end = found.end
        else:
            self.pieces.append(Loose(found.start, found.end, suspect))

    def _chunk(self, found: Found) -> None:
        start = found.start + mcap.HEAD.size
        head = mcap.ChunkHead.decode(self.data[start : min(found.end, start + 128)])
        _, length = mcap.HEAD.unpack_from(self.data, found.start)
        cut = start + length > found.end
        self._add(Chunk(found.start, found.end, start + head.length, head.compression, head, cut=cut))

    def _indexed_chunk(self, entry: ChunkEntry) -> None:
        """A chunk that only the index knows of, because its head is damaged."""
        end = entry.start + entry.length
        self._add(Chunk(entry.start, end, end - entry.stored, entry.compression, None))

    def _add(self, chunk: Chunk) -> None:
        chunk.indices_end = chunk.end
        content = self.content(chunk)
        head = chunk.head
        checked = head is not None and head.crc != 0 and zlib.crc32(content) == head.crc
        chunk.good = head is not None and len(content) == head.size and (checked or head.crc == 0)
        end = 0
        for kind, at, inner in mcap.records(content):
            end = at + mcap.HEAD.size + len(inner)
            if kind in (mcap.SCHEMA, mcap.CHANNEL):
                chunk.good &= self._learn(kind, inner, checked) or checked
            elif kind not in IN_CHUNK:
                end = -1
                break
        chunk.good &= end == len(content)
        if not chunk.good:
            for record in Walker(content, len(content), IN_CHUNK, self.channels).walk(0):
                if record.kind != mcap.MESSAGE:
                    self._learn(record.kind, record.read(content), False)
        self._has_chunks = True
        self.pieces.append(chunk)

    def is_trusted(self, kind: int, number: int) -> bool:
        """Whether a schema or a channel is protected by a CRC."""
        return (kind, number) in self._trusted

    def _learn(self, kind: int, content: bytes, trusted: bool) -> bool:
        """Take a schema or a channel; one protected by a CRC replaces one without.

        Returns:
            whether it is valid, and agrees with known ones.
        """
        try:
            if not is_whole(kind, content):
                return False
            one = mcap.Schema.decode(content) if kind == mcap.SCHEMA else mcap.Channel.decode(content)
        except ValueError:
            return False
        table: dict[int, Any] = self.schemas if kind == mcap.SCHEMA else self.channels
        if one.number not in table and not trusted and self._listed and table:
            return False  # the summary lists all of them
        if one.number not in table or (trusted and (kind, one.number) not in self._trusted):
            table[one.number] = one
        if trusted:
            self._trusted.add((kind, one.number))
        return bool(table[one.number] == one)

    # ---------------------------------------------------------------- messages

    def content(self, chunk: Chunk) -> bytes:
        """The records in a chunk, as far as they can be recovered."""
        data = self.data[chunk.data : chunk.end]
        try:
            return unpack(data, chunk.compression)
        except ValueError:
            chunk.good = False
        name = next((name for name, magic in FRAMES.items() if data.startswith(magic)), chunk.compression)
        return unpack_damaged(data, name)

    def messages(self, piece: Piece) -> Iterator[Message]:
        """The messages of a piece."""
        if isinstance(piece, Loose):
            yield from self._loose_messages(piece)
        elif piece.good:
            for kind, _, content in mcap.records(self.content(piece)):
                if kind == mcap.MESSAGE:
                    channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(content)
                    if channel in self.channels:
                        yield channel, log, content, False
        else:
            yield from self._salvaged(piece)

    def _loose_messages(self, piece: Loose) -> Iterator[Message]:
        if piece.content is not None:
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(piece.content)
            yield channel, log, piece.content, True
            return
        at = piece.start
        while at < piece.end:
            _, length = mcap.HEAD.unpack_from(self.data, at)
            content = self.data[at + mcap.HEAD.size : at + mcap.HEAD.size + length]
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(content)
            yield channel, log, content, piece.suspect
            at += mcap.HEAD.size + length

    def _salvaged(self, chunk: Chunk) -> list[Message]:
        """All messages that can be found in a damaged chunk."""
        content = self.content(chunk)
        hints: dict[int, tuple[int, int]] = {}
        for channel, at in chunk.offsets.items():
            if channel in self.channels:
                hints |= {offset: (channel, log) for log, offset in self.index_entries(at)}
        return salvaged(chunk, content, self.channels, hints, self._times(chunk))

    def index_entries(self, at: int) -> list[tuple[int, int]]:
        """The entries of the message index at a position: log time [ns] and offset in the chunk."""
        _, length = mcap.HEAD.unpack_from(self.data, at)
        entries = self.data[at + mcap.HEAD.size + 6 : at + mcap.HEAD.size + length]
        return [(log, offset) for log, offset in mcap.INDEX_ENTRY.iter_unpack(entries)]

    def _times(self, chunk: Chunk) -> Times | None:
        """Between which times the messages of a damaged chunk are."""
        for entry in self.summary.chunks:
            if entry.start == chunk.start and self.summary.sound:
                return entry.first, entry.last
        head = chunk.head
        return None if head is None or head.first > head.last else (head.first, head.last)


def open_data(path: Path) -> mmap.mmap:
    """The bytes of a file.

    Raises:
        ArgumentError: it is empty.
    """
    if not path.stat().st_size:
        raise ArgumentError(f'{path} is empty; expected an MCAP file')
    with path.open('rb') as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
