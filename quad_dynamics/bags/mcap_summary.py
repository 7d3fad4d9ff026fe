# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of an MCAP file: topics, index, statistics. Needs no ROS."""

from __future__ import annotations

import mmap
import struct
import zlib
from dataclasses import dataclass, field

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_fields import fields, is_whole

FOOTER_SIZE = mcap.HEAD.size + 20 + len(mcap.MAGIC)  # with the magic behind it [bytes]


@dataclass(frozen=True)
class ChunkEntry:
    """What the index says of a chunk; times in ns, the rest in bytes."""

    first: int
    last: int
    start: int
    length: int
    offsets: dict[int, int]
    compression: str
    stored: int


@dataclass
class Summary:
    """The summary of a file.

    Attributes:
        start: where it begins; None if there is none.
        sound: its CRC matches, or it has none and can be read.
        checked: its CRC matches.
        definitions: records of schemas and channels: kind and content.
        chunks: the index.
        count: number of messages; None if not specified.
    """

    start: int | None = None
    sound: bool = False
    checked: bool = False
    definitions: list[tuple[int, bytes]] = field(default_factory=list)
    chunks: list[ChunkEntry] = field(default_factory=list)
    count: int | None = None


def has_end(data: mmap.mmap) -> bool:
    """Whether a file ends with a footer and the magic."""
    if len(data) < FOOTER_SIZE + len(mcap.MAGIC) or data[-len(mcap.MAGIC) :] != mcap.MAGIC:
        return False
    head: tuple[int, int] = mcap.HEAD.unpack_from(data, len(data) - FOOTER_SIZE)
    return head == (mcap.FOOTER, 20)


def read_summary(data: mmap.mmap) -> Summary:
    """The summary of a file that has an end; as much of it as can be read."""
    footer = len(data) - FOOTER_SIZE
    start, _, crc = struct.unpack_from('<QQI', data, footer + mcap.HEAD.size)
    found = Summary()
    if not len(mcap.MAGIC) <= start <= footer:
        return found
    found.start = start
    found.checked = crc != 0 and zlib.crc32(data[start : len(data) - len(mcap.MAGIC) - 4]) == crc
    end = start
    for kind, at, content in mcap.records(data[start:footer]):
        try:
            _take(found, kind, content)
        except (ValueError, struct.error):
            return found
        end = start + at + mcap.HEAD.size + len(content)
    found.sound = end == footer and (crc == 0 or found.checked)
    return found


def _take(found: Summary, kind: int, content: bytes) -> None:
    if kind in (mcap.SCHEMA, mcap.CHANNEL):
        is_whole(kind, content)
        found.definitions.append((kind, content))
    elif kind == mcap.CHUNK_INDEX:
        (first, last, start, length, offsets, _, compression, stored, _), _ = fields(kind, content)
        pairs = dict(struct.iter_unpack('<HQ', offsets))
        found.chunks.append(ChunkEntry(first, last, start, length, pairs, compression, stored))
    elif kind == mcap.STATISTICS:
        found.count = fields(kind, content)[0][0]
