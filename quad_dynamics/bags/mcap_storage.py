# SPDX-License-Identifier: Apache-2.0
"""Crash-safe writer of MCAP files with chunks, CRCs and an index. Needs no ROS.

Other writers collect a chunk in memory and lose it when they are killed. Here the chunk grows in the file:
messages are appended as they arrive, and then the header of the chunk (length, time range, CRC) is
overwritten in place. When `write` returns, its messages have been passed to the operating system, and the
file is a valid sequence of records at any time; it only lacks its summary.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.metadata import Contents
from quad_dynamics.bags.topics import Topic

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# A message: time of log [ns], number of its topic, time of publication [ns], sequence number, bytes.
Entry = tuple[int, int, int, int, bytes]
# A chunk ends with the message that makes it at least this long [bytes]; rosbag2 uses 768 KiB.
CHUNK_SIZE = 768 * 1024
# Freed on a full disk beside the end of the file, for metadata.yaml [bytes].
_ROOM = 1 << 16


def lock(file: BinaryIO | io.FileIO, exclusive: bool) -> bool:
    """Lock a file as long as it is open; False if another process is known to have locked it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some file systems of networks have no locks
        return True
    return True


@dataclass
class OpenChunk:
    """A chunk that still grows.

    Attributes:
        start: where its record begins in the file.
        size: of the records in it [bytes].
        crc: of these.
        first: time of its first message [ns].
        last: time of its last message [ns].
        index: entries of the message index of each channel.
    """

    start: int
    size: int = 0
    crc: int = 0
    first: int = 0
    last: int = 0
    index: dict[int, bytearray] = field(default_factory=dict)

    @property
    def head(self) -> mcap.ChunkHead:
        """The header before its data."""
        return mcap.ChunkHead(self.first, self.last, self.size, self.crc, '', self.size)

    @property
    def length(self) -> int:
        """Of its record [bytes]."""
        return mcap.HEAD.size + self.head.length + self.size

    def encode_head(self) -> bytes:
        """The head of its record, and the header before its data."""
        return mcap.HEAD.pack(mcap.CHUNK, self.length - mcap.HEAD.size) + self.head.encode()

    def add(self, channel: int, log: int, offset: int) -> None:
        """Note a message."""
        self.first = min(self.first, log) if self.index else log
        self.last = max(self.last, log)
        entries = self.index.get(channel)
        if entries is None:
            entries = self.index[channel] = bytearray()
        entries += mcap.INDEX_ENTRY.pack(log, offset)

    def message_indices(self, at: int) -> tuple[bytes, bytes]:
        """Its message indices, which stand at a position, and its chunk index."""
        parts: list[bytes] = []
        offsets, place = {}, at
        for channel, entries in self.index.items():
            offsets[channel] = place
            parts.append(mcap.message_index(channel, entries))
            place += len(parts[-1])
        return b''.join(parts), mcap.chunk_index(self.head, self.start, self.length, offsets, place - at)


class McapStorage:
    """An MCAP file that is being written."""

    def __init__(self, path: Path) -> None:
        """Make the file.

        Args:
            path: where nothing is yet.
        """
        self.path = path
        self._file = path.open('x+b', buffering=0)
        lock(self._file, exclusive=True)  # until the process ends: `repair` keeps off
        self._length = 0
        self._topics: list[Topic] = []
        self._schemas: list[mcap.Schema] = []
        self._channels: list[mcap.Channel] = []
        self._statistics = mcap.Statistics()
        self._chunk: OpenChunk | None = None
        # Where each closed chunk begins, and its record of the index.
        self._closed: list[tuple[int, bytes]] = []
        self._append(mcap.header())

    def add_topic(self, topic: Topic) -> int:
        """Make a topic known; return its number."""
        schema = next((one for one in self._schemas if one.name == topic.type), None)
        new = b''
        if schema is None:
            number = len(self._schemas) + 1
            schema = mcap.Schema(number, topic.type, topic.encoding, topic.definition.encode())
            new = schema.encode()
        number = len(self._channels) + 1
        notes = {'offered_qos_profiles': topic.qos, 'topic_type_hash': topic.digest}
        channel = mcap.Channel(number, schema.number, topic.name, topic.serialization, notes)
        self._extend([new, channel.encode()], [])
        if new:
            self._schemas.append(schema)
        self._channels.append(channel)
        self._topics.append(topic)
        self._statistics.counts[number] = 0
        return number

    def write(self, batch: Sequence[Entry]) -> None:
        """Write messages; best in the order of their times.

        Raises:
            OSError: of the batch, only what `contents` counts has been written.
        """
        head = mcap.MESSAGE_HEAD.pack
        parts: list[bytes] = []
        entries: list[tuple[int, int, int]] = []
        offset = self._chunk.size if self._chunk is not None else 0
        for log, number, published, sequence, data in batch:
            length = len(data) + mcap.MESSAGE_CONTENT.size
            parts += (head(mcap.MESSAGE, length, number, sequence & 0xFFFFFFFF, log, published), data)
            entries.append((number, log, offset))
            offset += mcap.HEAD.size + length
            if offset >= CHUNK_SIZE:
                self._extend(parts, entries)
                self._close_chunk()
                parts, entries, offset = [], [], 0
        if entries:
            self._extend(parts, entries)

    def contents(self) -> Contents:
        """What has been written."""
        counts = [self._statistics.counts.get(i, 0) for i in range(1, len(self._topics) + 1)]
        topics = list(zip(self._topics, counts, strict=True))
        return Contents(topics, self._statistics.first, self._statistics.last)

    def close(self) -> None:
        """Write the end of the file."""
        try:
            try:
                self._append_end()
            except OSError:
                self._make_room()
                self._append_end()
        finally:
            self._file.close()

    # ---------------------------------------------------------------- chunks

    def _extend(self, records: Sequence[bytes], messages: Sequence[tuple[int, int, int]]) -> None:
        """Append records to the open chunk.

        Args:
            records: their bytes.
            messages: of those that are messages: channel, log time [ns], offset in the chunk.
        """
        data = b''.join(records)
        chunk = self._chunk
        if chunk is None:
            chunk = OpenChunk(self._length)
            self._append(chunk.encode_head())
            self._chunk = chunk
        self._append(data)
        chunk.size += len(data)
        chunk.crc = zlib.crc32(data, chunk.crc)
        for channel, log, offset in messages:
            chunk.add(channel, log, offset)
            self._statistics.add(channel, log, log)
        self._write_head(chunk)

    def _write_head(self, chunk: OpenChunk) -> None:
        """Write the header of the chunk; without it, its last records would follow the chunk."""
        os.pwrite(self._file.fileno(), chunk.encode_head(), chunk.start)

    def _close_chunk(self) -> None:
        chunk = self._chunk
        if chunk is None:
            return
        indices, index = chunk.message_indices(self._length)
        self._append(indices)
        self._closed.append((chunk.start, index))
        self._chunk = None

    def _append_end(self) -> None:
        self._close_chunk()
        index = [record for _, record in self._closed]
        self._append(mcap.ending(self._length, self._schemas, self._channels, self._statistics, index))

    # ---------------------------------------------------------------- a full disk

    def _make_room(self) -> None:
        """Drop the last messages, to make space for the end."""
        index = sum(len(record) for _, record in self._closed)
        records = sum(len(one.encode()) for one in self._schemas)
        records += sum(len(one.encode()) for one in self._channels)
        open_index = 0 if self._chunk is None else sum(len(one) for one in self._chunk.index.values())
        limit = self._length - (_ROOM + index + records + open_index)
        while self._chunk is not None or self._closed:
            chunk = self._chunk or self._reopen()
            if self._shorten(chunk, limit):
                return

    def _reopen(self) -> OpenChunk:
        """Reopen the last closed chunk, without its message indices."""
        start, _ = self._closed.pop()
        file = self._file.fileno()
        _, length = mcap.HEAD.unpack(os.pread(file, mcap.HEAD.size, start))
        self._chunk = OpenChunk(start, size=length - OpenChunk(start).head.length)
        self._truncate(start + self._chunk.length)
        return self._chunk

    def _shorten(self, chunk: OpenChunk, limit: int) -> bool:
        """Remove records from the end of the open chunk; False if it is beyond the limit and was removed."""
        begin = chunk.start + chunk.length - chunk.size
        data = os.pread(self._file.fileno(), chunk.size, begin)
        kept = OpenChunk(chunk.start)
        for kind, at, content in mcap.records(data):
            end = at + mcap.HEAD.size + len(content)
            if kind != mcap.MESSAGE:
                kept.size = end if begin + end <= limit else kept.size
                continue
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(content)
            if begin + end <= limit:
                kept.add(channel, log, at)
                kept.size = end
            else:
                self._statistics.counts[channel] -= 1
        kept.crc = zlib.crc32(data[: kept.size])
        self._truncate(kept.start + kept.length if kept.size else kept.start)
        self._chunk = kept if kept.size else None
        if kept.size:
            self._write_head(kept)
        self._statistics.last = max([kept.last, *(mcap.times_of(index)[1] for _, index in self._closed)])
        return kept.size > 0

    def _truncate(self, length: int) -> None:
        self._length = length
        self._file.truncate(length)
        self._file.seek(length)

    def _append(self, data: bytes) -> None:
        """Write all or nothing."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._truncate(self._length)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._length += len(data)
