# SPDX-License-Identifier: Apache-2.0
"""Writes an intact MCAP file from the contents of a damaged one. Needs no ROS.

Intact chunks are copied; all other messages are written to new chunks.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_definitions import mend
from quad_dynamics.bags.mcap_fields import fields
from quad_dynamics.bags.mcap_pieces import Chunk
from quad_dynamics.bags.mcap_scan import Scan, open_data
from quad_dynamics.bags.mcap_storage import CHUNK_SIZE, OpenChunk, lock
from quad_dynamics.bags.mcap_verdict import judge
from quad_dynamics.bags.mcap_walk import PRIVATE
from quad_dynamics.bags.metadata import Contents
from quad_dynamics.bags.replacement import MAY_BE_WRONG, FileResult, replacement, saved_text
from quad_dynamics.bags.topics import Topic
from quad_dynamics.errors import ArgumentError


def repair_file(path: Path, keep: bool, known: list[tuple[Topic, int]]) -> FileResult:
    """Repair a data file.

    Args:
        path: of the file.
        keep: keep the old file even if nothing but its end is missing, with '.bak' at the end of its name.
        known: topics that metadata.yaml names, with the numbers of their messages.

    Raises:
        ArgumentError: nothing can be read from it, or it is still being written.
    """
    with path.open('rb') as file:
        if not lock(file, exclusive=False):
            raise ArgumentError(f'{path} is still being written; expected a bag that is not in use')
    scan = Scan(open_data(path))
    verdict = judge(scan)
    if verdict.problems:
        mend(scan, known)
        verdict = judge(scan)
    total = verdict.statistics.total
    result = FileResult(_contents(scan, verdict.statistics))
    magic = scan.data[: len(mcap.MAGIC)]
    if not total and not mcap.MAGIC.startswith(magic):
        raise ArgumentError(f'{path} is not an MCAP file: it starts with {magic!r}; expected {mcap.MAGIC!r}')
    if verdict.problems:
        what = f'{path.name} {" and ".join(verdict.problems)}'
        if not total:
            raise ArgumentError(
                f'{path.parent}: {what}; no messages could be recovered, the bag is unchanged'
            )
        # Where something is damaged there may be more in it, for who knows how to get it.
        keep = keep or scan.damaged_at is not None or verdict.suspect > 0
        with replacement(path, keep) as (beside, backup):
            with beside.open('wb') as target:
                rewrite(scan, verdict.statistics, target)
            _check(beside, total)
        result.found.append(f'{what}; {saved_text(total, verdict.suspect, backup)}')
        result.suspect, result.spans = verdict.suspect, verdict.spans
    if verdict.unchecked:
        says = MAY_BE_WRONG if verdict.problems else 'damaged values cannot be detected'
        result.notes.append(f'{path.name}: {verdict.unchecked} messages had no CRC: {says}')
    return result


def _check(path: Path, count: int) -> None:
    """Check that the replacement of a file is intact."""
    again = judge(Scan(open_data(path)))
    if again.problems or again.statistics.total != count:
        raise ArgumentError(
            f'the repaired file {" and ".join(again.problems)} and has {again.statistics.total} of {count} '
            f'messages; {path.parent} is unchanged'
        )


def _contents(scan: Scan, statistics: mcap.Statistics) -> Contents:
    topics = []
    for number, channel in scan.channels.items():
        schema = scan.schemas.get(channel.schema)
        topic = Topic(
            channel.topic,
            '' if schema is None else schema.name,
            channel.metadata.get('offered_qos_profiles', ''),
            digest=channel.metadata.get('topic_type_hash', ''),
            serialization=channel.encoding,
        )
        topics.append((topic, statistics.counts.get(number, 0)))
    return Contents(topics, statistics.first, statistics.last)


def rewrite(scan: Scan, statistics: mcap.Statistics, target: BinaryIO) -> None:
    """Write an intact file.

    Args:
        scan: what was found.
        statistics: of all messages in it.
        target: an empty file.
    """
    writer = _Writer(scan, target)
    for piece in scan.pieces:
        if isinstance(piece, Chunk) and piece.good:
            writer.copy(piece)
        else:
            for channel, log, content, _ in scan.messages(piece):
                writer.add(channel, log, content)
    writer.finish(statistics)


class _Writer:
    def __init__(self, scan: Scan, target: BinaryIO) -> None:
        self._scan, self._target = scan, target
        self._index: list[bytes] = []
        self._parts: list[bytes] = []
        self._chunk = OpenChunk(0)
        target.write(mcap.header())
        target.writelines(schema.encode() for schema in scan.schemas.values())
        target.writelines(channel.encode() for channel in scan.channels.values())

    def add(self, channel: int, log: int, content: bytes) -> None:
        """Add a message."""
        record = mcap.record(mcap.MESSAGE, content)
        self._chunk.add(channel, log, self._chunk.size)
        self._chunk.size += len(record)
        self._parts.append(record)
        if self._chunk.size >= CHUNK_SIZE:
            self._flush()

    def _flush(self) -> None:
        """Write the messages that were added as a chunk."""
        if not self._parts:
            return
        data = b''.join(self._parts)
        self._chunk.crc = zlib.crc32(data)
        self._write(self._chunk, data)
        self._parts, self._chunk = [], OpenChunk(0)

    def _write(self, chunk: OpenChunk, data: bytes) -> None:
        chunk.start = self._target.tell()
        self._target.write(chunk.encode_head())
        self._target.write(data)
        indices, index = chunk.message_indices(self._target.tell())
        self._target.write(indices)
        self._index.append(index)

    def copy(self, piece: Chunk) -> None:
        """Copy a good chunk, with a CRC if it has none."""
        self._flush()
        content = self._scan.content(piece)
        assert piece.head is not None
        chunk = CopiedChunk(0)
        for kind, at, inner in mcap.records(content):
            if kind == mcap.MESSAGE:
                channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(inner)
                chunk.add(channel, log, at)
        chunk.said = replace(piece.head, first=chunk.first, last=chunk.last, crc=zlib.crc32(content))
        self._write(chunk, self._scan.data[piece.data : piece.end])

    def finish(self, statistics: mcap.Statistics) -> None:
        """Write the rest, and the end of the file."""
        self._flush()
        scan, extras = self._scan, []
        for kind, start, end in scan.extras:
            if kind < PRIVATE:
                extras.append(_extra_index(kind, self._target.tell(), scan.data[start:end]))
            self._target.write(scan.data[start:end])
        schemas, channels = list(scan.schemas.values()), list(scan.channels.values())
        at = self._target.tell()
        self._target.write(mcap.ending(at, schemas, channels, statistics, self._index, extras))


class CopiedChunk(OpenChunk):
    """A chunk whose data is there already, perhaps compressed."""

    said: mcap.ChunkHead

    @property
    def head(self) -> mcap.ChunkHead:
        """The header before its data."""
        return self.said

    @property
    def length(self) -> int:
        """Of its record [bytes]."""
        return mcap.HEAD.size + self.said.length + self.said.stored


def _extra_index(kind: int, at: int, record: bytes) -> tuple[int, bytes]:
    """The record of the summary that says where an attachment or metadata is, and its kind."""
    values, _ = fields(kind, record[mcap.HEAD.size :])
    place = struct.pack('<QQ', at, len(record))
    if kind == mcap.METADATA:
        return mcap.METADATA_INDEX, mcap.record(mcap.METADATA_INDEX, place, mcap.text(values[0]))
    log, created, name, media, data, _ = values
    times = struct.pack('<QQQ', log, created, len(data))
    names = mcap.text(name), mcap.text(media)
    return mcap.ATTACHMENT_INDEX, mcap.record(mcap.ATTACHMENT_INDEX, place, times, *names)
