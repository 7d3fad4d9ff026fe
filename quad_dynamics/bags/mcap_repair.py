# SPDX-License-Identifier: Apache-2.0
"""Gives MCAP files that lack their end a new one. Needs no ROS.

Whole chunks, of other recorders, stay as they are; what can be read of the last one becomes a new chunk.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_scan import Chunk, Message, Scan

_CHUNK_SIZE = 1 << 20


def complete(path: Path, found: Scan, target: BinaryIO) -> None:
    """Write a whole file from what was found in one that is not.

    Args:
        path: of the file.
        found: by `scan`.
        target: an empty file.
    """
    index: list[bytes] = []
    schemas, channels = list(found.schemas.values()), list(found.channels.values())
    if not found.chunks and not found.ordered:
        # Readers sort only what has an index.
        target.write(mcap.header())
        messages = _loose(path, found)
    else:
        _copy(path, found, target, index)
        messages = found.salvaged
    if messages:
        target.writelines([schema.encode() for schema in schemas])
        target.writelines([channel.encode() for channel in channels])
        _write_chunks(target, messages, index)
    target.write(mcap.ending(target.tell(), schemas, channels, found.statistics, index))


def _copy(path: Path, found: Scan, target: BinaryIO, index: list[bytes]) -> None:
    """The good part, and an index of each of its chunks."""
    with path.open('rb') as source:
        end = found.end
        if end <= len(mcap.MAGIC):
            target.write(mcap.header())
            return
        last = found.chunks[-1] if found.chunks else None
        cut = last is not None and set(last.offsets) != set(last.entries)
        if last is not None and cut:
            end = last.end
        _copy_bytes(source, target, end)
    if last is not None and cut:
        _write_message_index(target, last)
    index += map(_chunk_index, found.chunks)


def _copy_bytes(source: BinaryIO, target: BinaryIO, size: int) -> None:
    while size:
        part = source.read(min(size, _CHUNK_SIZE))
        if not part:
            raise OSError('the file became shorter while it was read')
        target.write(part)
        size -= len(part)


def _loose(path: Path, found: Scan) -> list[Message]:
    """All messages of a file without chunks, in the order of time."""
    messages = []
    for kind, _, content in mcap.records(path.read_bytes()[len(mcap.MAGIC) : found.end]):
        if kind == mcap.MESSAGE:
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(content)
            messages.append((channel, log, mcap.record(kind, content)))
    return sorted(messages, key=lambda message: message[1])


def _write_chunks(target: BinaryIO, messages: list[Message], index: list[bytes]) -> None:
    """Write messages as chunks of moderate size, and add to the index."""
    start = 0
    while start < len(messages):
        entries: dict[int, list[tuple[int, int]]] = {}
        parts, size, stop = [], 0, start
        while stop < len(messages) and size < _CHUNK_SIZE:
            channel, log, record = messages[stop]
            entries.setdefault(channel, []).append((log, size))
            parts.append(record)
            size += len(record)
            stop += 1
        times = [message[1] for message in messages[start:stop]]
        head = mcap.ChunkHead(min(times), max(times), size, 0, '', size)
        at = target.tell()
        target.write(mcap.record(mcap.CHUNK, head.encode(), *parts))
        chunk = Chunk(head, at, target.tell(), entries)
        _write_message_index(target, chunk)
        index.append(_chunk_index(chunk))
        start = stop


def _write_message_index(target: BinaryIO, chunk: Chunk) -> None:
    chunk.offsets.clear()
    for channel, entries in chunk.entries.items():
        chunk.offsets[channel] = target.tell()
        target.write(mcap.message_index(channel, entries))
    chunk.last_index = target.tell()


def _chunk_index(chunk: Chunk) -> bytes:
    length = chunk.end - chunk.start
    return mcap.chunk_index(chunk.head, chunk.start, length, chunk.offsets, chunk.last_index - chunk.end)
