# SPDX-License-Identifier: Apache-2.0
"""Records of MCAP files (https://mcap.dev/spec), as far as bags use them.

A file is magic, records, magic. A record is one byte (what it is), eight bytes (how long), and its content.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, ATTACHMENT_INDEX, STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = range(9, 16)

HEAD = struct.Struct('<BQ')  # of every record: what, how long
# Of a message, with the head of its record: what, how long, channel, sequence, time of log and publication.
MESSAGE_HEAD = struct.Struct('<BQHIQQ')
MESSAGE_CONTENT = struct.Struct('<HIQQ')
INDEX_ENTRY = struct.Struct('<QQ')  # of a message index: log time [ns], offset in the chunk
_CHUNK_HEAD = struct.Struct('<QQQI')
U16, U32, U64 = struct.Struct('<H'), struct.Struct('<I'), struct.Struct('<Q')


def record(kind: int, *parts: bytes) -> bytes:
    """A whole record."""
    content = b''.join(parts)
    return HEAD.pack(kind, len(content)) + content


def text(value: str | bytes) -> bytes:
    """A text with its length in front."""
    data = value.encode() if isinstance(value, str) else value
    return U32.pack(len(data)) + data


@dataclass(frozen=True)
class Schema:
    """What messages of a type look like."""

    number: int
    name: str
    encoding: str
    data: bytes

    def encode(self) -> bytes:
        """The record."""
        return record(SCHEMA, U16.pack(self.number), text(self.name), text(self.encoding), text(self.data))

    @classmethod
    def decode(cls, content: bytes) -> Schema:
        """From the content of a record."""
        reader = Reader(content)
        return cls(reader.number(U16), reader.text(), reader.text(), reader.bytes())


@dataclass(frozen=True)
class Channel:
    """A topic of a file."""

    number: int
    schema: int
    topic: str
    encoding: str
    metadata: Mapping[str, str]

    def encode(self) -> bytes:
        """The record."""
        pairs = b''.join(text(key) + text(value) for key, value in self.metadata.items())
        numbers = U16.pack(self.number) + U16.pack(self.schema)
        return record(CHANNEL, numbers, text(self.topic), text(self.encoding), text(pairs))

    @classmethod
    def decode(cls, content: bytes) -> Channel:
        """From the content of a record."""
        reader = Reader(content)
        number, schema = reader.number(U16), reader.number(U16)
        topic, encoding, pairs = reader.text(), reader.text(), Reader(reader.bytes())
        metadata = {}
        while pairs.left:
            key = pairs.text()
            metadata[key] = pairs.text()
        return cls(number, schema, topic, encoding, metadata)


@dataclass
class Statistics:
    """What a file holds.

    Attributes:
        first: time of the first message [ns].
        last: time of the last message [ns].
        counts: messages of each channel.
    """

    first: int = 0
    last: int = 0
    counts: dict[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of messages."""
        return sum(self.counts.values())

    def add(self, channel: int, first: int, last: int, count: int = 1) -> None:
        """Count messages of a channel."""
        self.first = min(self.first, first) if any(self.counts.values()) else first
        self.last = max(self.last, last)
        self.counts[channel] = self.counts.get(channel, 0) + count

    def encode(self, *numbers: int) -> bytes:
        """The record.

        Args:
            numbers: of schemas, channels, attachments, records of metadata, and chunks in the file.
        """
        head = struct.pack('<QHIIIIQQ', self.total, *numbers, self.first, self.last)
        counts = b''.join(struct.pack('<HQ', *pair) for pair in sorted(self.counts.items()))
        return record(STATISTICS, head, text(counts))


@dataclass(frozen=True)
class ChunkHead:
    """The header before the data of a chunk."""

    first: int
    last: int
    size: int
    crc: int
    compression: str
    stored: int

    @property
    def length(self) -> int:
        """How many bytes it takes."""
        return _CHUNK_HEAD.size + 4 + len(self.compression) + 8

    def encode(self) -> bytes:
        """Its bytes."""
        numbers = _CHUNK_HEAD.pack(self.first, self.last, self.size, self.crc)
        return numbers + text(self.compression) + U64.pack(self.stored)

    @classmethod
    def decode(cls, content: bytes) -> ChunkHead:
        """From the first bytes of a record."""
        reader = Reader(content)
        first, last, size, crc = reader.numbers(_CHUNK_HEAD)
        return cls(first, last, size, crc, reader.text(), reader.number(U64))


def message_index(channel: int, entries: bytes | bytearray) -> bytes:
    """The record that says when and where in a chunk the messages of a channel are.

    Args:
        channel: its number.
        entries: `INDEX_ENTRY` of each message: log time [ns], offset in the chunk.
    """
    return record(MESSAGE_INDEX, U16.pack(channel), text(bytes(entries)))


def chunk_index(head: ChunkHead, start: int, length: int, offsets: Mapping[int, int], indices: int) -> bytes:
    """The record that says where a chunk is.

    Args:
        head: of the chunk.
        start: where its record begins in the file.
        length: of its record.
        offsets: where the message index of each channel is.
        indices: length of all its message indices.
    """
    pairs = b''.join(struct.pack('<HQ', *pair) for pair in offsets.items())
    times = struct.pack('<QQQQ', head.first, head.last, start, length)
    sizes = U64.pack(head.stored) + U64.pack(head.size)
    return record(CHUNK_INDEX, times, text(pairs), U64.pack(indices), text(head.compression), sizes)


def times_of(chunk_index: bytes) -> tuple[int, int]:
    """The time range of a chunk, from its record in the index [ns]."""
    first, last = struct.unpack_from('<QQ', chunk_index, HEAD.size)
    return first, last


def header() -> bytes:
    """How a file begins."""
    return MAGIC + record(HEADER, text('ros2'), text('quad_dynamics'))


def ending(
    at: int,
    schemas: list[Schema],
    channels: list[Channel],
    statistics: Statistics,
    chunks: list[bytes],
    extras: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    """How a file ends: the summary, its offsets, the footer.

    Args:
        at: length of the file so far.
        schemas: all of them.
        channels: all of them.
        statistics: of all messages.
        chunks: records of `chunk_index`.
        extras: kinds and records of the indices of attachments and metadata.
    """
    end = record(DATA_END, U32.pack(0))
    attached, described = (
        [record for kind, record in extras if kind == wanted] for wanted in (ATTACHMENT_INDEX, METADATA_INDEX)
    )
    numbers = len(schemas), len(channels), len(attached), len(described), len(chunks)
    groups = {
        SCHEMA: b''.join(schema.encode() for schema in schemas),
        CHANNEL: b''.join(channel.encode() for channel in channels),
        STATISTICS: statistics.encode(*numbers),
        CHUNK_INDEX: b''.join(chunks),
        ATTACHMENT_INDEX: b''.join(attached),
        METADATA_INDEX: b''.join(described),
    }
    start = place = at + len(end)
    offsets = b''
    for kind, group in groups.items():
        if group:
            offsets += record(SUMMARY_OFFSET, bytes([kind]), U64.pack(place), U64.pack(len(group)))
        place += len(group)
    # The footer's CRC covers the summary and the footer itself, up to the CRC.
    summary = b''.join([*groups.values(), offsets, HEAD.pack(FOOTER, 20), struct.pack('<QQ', start, place)])
    return b''.join([end, summary, U32.pack(zlib.crc32(summary)), MAGIC])


class Reader:
    """Takes values from bytes, one after the other; ValueError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if size > self.left:
            raise ValueError(f'{self.left} bytes are left; expected {size}')
        self._at += size
        return self._data[self._at - size : self._at]

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Numbers."""
        return layout.unpack(self.take(layout.size))

    def number(self, layout: struct.Struct) -> int:
        """One number."""
        return int(self.numbers(layout)[0])

    def bytes(self) -> bytes:
        """Bytes with their length in front."""
        return self.take(self.number(U32))

    def text(self) -> str:
        """A text with its length in front."""
        return self.bytes().decode()


def records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The whole records in the data of a chunk: what, where it begins, content."""
    at = 0
    while at + HEAD.size <= len(data):
        kind, length = HEAD.unpack_from(data, at)
        if at + HEAD.size + length > len(data):
            return
        yield kind, at, data[at + HEAD.size : at + HEAD.size + length]
        at += HEAD.size + length
