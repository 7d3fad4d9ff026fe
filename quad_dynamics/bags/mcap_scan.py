# SPDX-License-Identifier: Apache-2.0
"""Reads MCAP files from their beginning, as far as they are good. Needs no ROS.

Files with chunks, as `ros2 bag record` writes them, are read too, and of a chunk that is not whole what is
there.
"""

from __future__ import annotations

import importlib
import mmap
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.errors import ArgumentError

_FOOTER = 37  # its length with the magic at the end [bytes]
_FIRST_PRIVATE = 0x80  # kinds of records above are free for everybody

Message = tuple[int, int, bytes]  # channel, time of log [ns], the whole record


@dataclass
class Chunk:
    """A whole chunk of a file.

    Attributes:
        head: what it says of itself.
        start: where its record begins.
        end: where it ends.
        entries: for each channel, when [ns] and where in it the messages are.
        offsets: where the message index of each channel is in the file.
    """

    head: mcap.ChunkHead
    start: int
    end: int
    entries: dict[int, list[tuple[int, int]]]
    offsets: dict[int, int] = field(default_factory=dict)
    last_index: int = 0


@dataclass
class Scan:
    """What was found in a file.

    Attributes:
        size: of the file.
        end: up to here it is good.
        has_end: it ends as it should.
        complete: it does, and all is good up to there.
        ordered: messages outside of chunks are in the order of time.
        salvaged: messages of a chunk that is not whole.
    """

    size: int
    end: int = 0
    has_end: bool = False
    complete: bool = False
    ordered: bool = True
    schemas: dict[int, mcap.Schema] = field(default_factory=dict)
    channels: dict[int, mcap.Channel] = field(default_factory=dict)
    statistics: mcap.Statistics = field(default_factory=mcap.Statistics)
    chunks: list[Chunk] = field(default_factory=list)
    salvaged: list[Message] = field(default_factory=list)

    def learn(self, kind: int, content: bytes) -> None:
        """Take a schema or a channel."""
        if kind == mcap.SCHEMA:
            schema = mcap.Schema.decode(content)
            self.schemas.setdefault(schema.number, schema)
        elif kind == mcap.CHANNEL:
            channel = mcap.Channel.decode(content)
            self.channels.setdefault(channel.number, channel)
            self.statistics.counts.setdefault(channel.number, 0)


def scan(path: Path, limit: int | None = None) -> Scan:
    """Read a file from its beginning, as far as it is good.

    Args:
        path: of the file.
        limit: read no further than this many bytes; None: all.

    Raises:
        ArgumentError: it is no MCAP file.
    """
    size = path.stat().st_size
    limit = size if limit is None else min(limit, size)
    with path.open('rb') as file:
        magic = file.read(len(mcap.MAGIC))
        if not mcap.MAGIC.startswith(magic):
            raise ArgumentError(f'{path} is no MCAP file: it begins with {magic!r}; expected {mcap.MAGIC!r}')
        found = Scan(size)
        if limit < len(mcap.MAGIC):
            return found
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found.has_end = limit == size and _has_end(data)
            _Scanner(data, limit, found).run()
    return found


def _has_end(data: mmap.mmap) -> bool:
    """Whether the file ends with a footer, and this with the magic."""
    if len(data) < _FOOTER + len(mcap.MAGIC):
        return False
    kind, length = mcap.HEAD.unpack_from(data, len(data) - _FOOTER)
    return (kind, length) == (mcap.FOOTER, 20) and data[-len(mcap.MAGIC) :] == mcap.MAGIC


class _Scanner:
    """Goes through the records of a file."""

    def __init__(self, data: mmap.mmap, limit: int, found: Scan) -> None:
        self._data, self._limit, self._found = data, limit, found
        self._last = 0

    def run(self) -> None:
        """Read until the data ends, or something is not as it should be."""
        found, data, head = self._found, self._data, mcap.HEAD
        found.end = at = len(mcap.MAGIC)
        while at + head.size <= self._limit:
            kind, length = head.unpack_from(data, at)
            end = at + head.size + length
            if kind in (mcap.DATA_END, mcap.FOOTER):
                found.complete = found.has_end
                return
            if kind == 0 or mcap.DATA_END < kind < _FIRST_PRIVATE:
                return
            if end > self._limit:
                if kind == mcap.CHUNK:
                    self._salvage(at + head.size)
                return
            try:
                self._record(kind, at, end)
            except (ValueError, KeyError):  # not what its kind promises
                return
            at = found.end = end

    def _record(self, kind: int, at: int, end: int) -> None:
        start = at + mcap.HEAD.size
        if kind == mcap.MESSAGE:
            if end - start < mcap.MESSAGE_CONTENT.size:
                raise ValueError('a message without a head')
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(self._data, start)
            self._count(channel, log)
            self._found.ordered &= log >= self._last
            self._last = log
        elif kind in (mcap.SCHEMA, mcap.CHANNEL):
            self._found.learn(kind, self._data[start:end])
        elif kind == mcap.CHUNK:
            self._chunk(at, end)
        elif kind == mcap.MESSAGE_INDEX and self._found.chunks:
            number = int.from_bytes(self._data[start : start + 2], 'little')
            self._found.chunks[-1].offsets[number] = at
            self._found.chunks[-1].last_index = end

    def _count(self, channel: int, log: int) -> None:
        if channel not in self._found.channels:
            raise KeyError(channel)
        self._found.statistics.add(channel, log, log)

    def _chunk(self, at: int, end: int) -> None:
        head = mcap.ChunkHead.decode(self._data[at + mcap.HEAD.size : end])
        start = at + mcap.HEAD.size + head.length
        content = _unpack(self._data[start : start + head.stored], head.compression)
        if len(content) != head.size or (head.crc and zlib.crc32(content) != head.crc):
            raise ValueError('a damaged chunk')
        chunk = Chunk(head, at, end, {}, last_index=end)
        for message, where in self._messages(content):
            chunk.entries.setdefault(message[0], []).append((message[1], where))
        self._found.chunks.append(chunk)

    def _salvage(self, start: int) -> None:
        """Read what is there of a chunk that ends too early."""
        try:
            head = mcap.ChunkHead.decode(self._data[start : self._limit])
            content = _unpack(self._data[start + head.length : self._limit], head.compression)
            with suppress(KeyError):
                for message, _ in self._messages(content):
                    self._found.salvaged.append(message)
        except ValueError:
            return

    def _messages(self, content: bytes) -> Any:
        """The messages of a chunk, and where they are in it; each is counted."""
        for kind, at, inner in mcap.records(content):
            self._found.learn(kind, inner)
            if kind == mcap.MESSAGE:
                channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(inner)
                self._count(channel, log)
                yield (channel, log, mcap.record(kind, inner)), at


def _unpack(data: bytes, compression: str) -> bytes:
    """The content of a chunk, or as much of it as there is."""
    if not compression:
        return data
    decompressors: dict[str, Callable[[], Any]] = {'zstd': _zstd, 'lz4': _lz4}
    if compression not in decompressors:
        raise ValueError(f'unknown compression {compression!r}')
    try:
        return bytes(decompressors[compression]().decompress(data))
    except Exception as error:  # each library has errors of its own
        raise ValueError(str(error)) from error


def _zstd() -> Any:
    name = 'compression.zstd' if sys.version_info >= (3, 14) else 'backports.zstd'
    return importlib.import_module(name).ZstdDecompressor()


def _lz4() -> Any:
    return importlib.import_module('lz4.frame').LZ4FrameDecompressor()
