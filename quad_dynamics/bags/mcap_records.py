# SPDX-License-Identifier: Apache-2.0
"""Records of MCAP files (https://mcap.dev/spec), as far as bags use them.

A file is magic, records, magic. A record is one byte (what it is), eight bytes (how long), and its content.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, ATTACHMENT_INDEX, STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = range(9, 16)

HEAD = struct.Struct('<BQ')  # of every record: what, how long
# Of a message, with the head of its record: what, how long, channel, sequence, time of log and publication.
MESSAGE_HEAD = struct.Struct('<BQHIQQ')
MESSAGE_CONTENT = struct.Struct('<HIQQ')
_CHUNK_HEAD = struct.Struct('<QQQI')
_U16, _U32, _U64 = struct.Struct('<H'), struct.Struct('<I'), struct.Struct('<Q')


def record(kind: int, *parts: bytes) -> bytes:
    """A whole record."""
    content = b''.join(parts)
    return HEAD.pack(kind, len(content)) + content


def text(value: str | bytes) -> bytes:
    """A text with its length in front."""
    data = value.encode() if isinstance(value, str) else value
    return _U32.pack(len(data)) + data


@dataclass(frozen=True)
class Schema:
    """What messages of a type look like."""

    number: int
    name: str
    encoding: str
    data: bytes

    def encode(self) -> bytes:
        """The record."""
        return record(SCHEMA, _U16.pack(self.number), text(self.name), text(self.encoding), text(self.data))

    @classmethod
    def decode(cls, content: bytes) -> Schema:
        """From the content of a record."""
        reader = Reader(content)
        return cls(reader.number(_U16), reader.text(), reader.text(), reader.bytes())


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
        numbers = _U16.pack(self.number) + _U16.pack(self.schema)
        return record(CHANNEL, numbers, text(self.topic), text(self.encoding), text(pairs))

    @classmethod
    def decode(cls, content: bytes) -> Channel:
        """From the content of a record."""
        reader = Reader(content)
        number, schema = reader.number(_U16), reader.number(_U16)
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
        self.first = min(self.first, first) if self.total else first
        self.last = max(self.last, last)
        self.counts[channel] = self.counts.get(channel, 0) + count

    def encode(self, schemas: int, channels: int, chunks: int) -> bytes:
        """The record, in a file with so many schemas, channels and chunks."""
        head = struct.pack('<QHIIIIQQ', self.total, schemas, channels, 0, 0, chunks, self.first, self.last)
        counts = b''.join(struct.pack('<HQ', *pair) for pair in sorted(self.counts.items()))
        return record(STATISTICS, head, text(counts))


@dataclass(frozen=True)
class ChunkHead:
    """What stands before the data of a chunk."""

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
        return numbers + text(self.compression) + _U64.pack(self.stored)

    @classmethod
    def decode(cls, content: bytes) -> ChunkHead:
        """From the first bytes of a record."""
        reader = Reader(content)
        first, last, size, crc = reader.numbers(_CHUNK_HEAD)
        return cls(first, last, size, crc, reader.text(), reader.number(_U64))


def message_index(channel: int, entries: list[tuple[int, int]]) -> bytes:
    """The record that says when (ns) and where in a chunk the messages of a channel are."""
    pairs = b''.join(struct.pack('<QQ', *entry) for entry in entries)
    return record(MESSAGE_INDEX, _U16.pack(channel), text(pairs))


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
    sizes = _U64.pack(head.stored) + _U64.pack(head.size)
    return record(CHUNK_INDEX, times, text(pairs), _U64.pack(indices), text(head.compression), sizes)


def header() -> bytes:
    """How a file begins."""
    return MAGIC + record(HEADER, text('ros2'), text('quad_dynamics'))


def ending(
    at: int, schemas: list[Schema], channels: list[Channel], statistics: Statistics, chunks: list[bytes]
) -> bytes:
    """How a file ends: the summary, its offsets, the footer.

    Args:
        at: length of the file so far.
        schemas: all of them.
        channels: all of them.
        statistics: of all messages.
        chunks: records of `chunk_index`.
    """
    end = record(DATA_END, _U32.pack(0))
    groups = {
        SCHEMA: b''.join(schema.encode() for schema in schemas),
        CHANNEL: b''.join(channel.encode() for channel in channels),
        STATISTICS: statistics.encode(len(schemas), len(channels), len(chunks)),
        CHUNK_INDEX: b''.join(chunks),
    }
    start = place = at + len(end)
    offsets = b''
    for kind, group in groups.items():
        if group:
            offsets += record(SUMMARY_OFFSET, bytes([kind]), _U64.pack(place), _U64.pack(len(group)))
        place += len(group)
    # A check sum of 0 means that there is none.
    footer = record(FOOTER, struct.pack('<QQI', start, place, 0))
    return b''.join([end, *groups.values(), offsets, footer, MAGIC])


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
        return self.take(self.number(_U32))

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
