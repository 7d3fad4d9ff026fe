# SPDX-License-Identifier: Apache-2.0
"""The write-ahead log of an SQLite file (*.db3-wal): its frames, and whether their checksums match.

SQLite ignores everything after the first frame with a wrong checksum, and then removes the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

LOG_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = 0x377F0682  # with 1 added: check sums of big-endian numbers


@dataclass(frozen=True)
class LogFrame:
    """A page in the log.

    Attributes:
        page: its number.
        commits: it is the last one of a transaction.
        data: the page.
        start: where it begins in the log.
    """

    page: int
    commits: bool
    data: bytes
    start: int


def log_frames(log: bytes, size: int) -> Iterator[LogFrame]:
    """The frames of a log that belong to its current use.

    Args:
        log: the whole file.
        size: of a page [bytes].
    """
    salts, at = log[16:24], LOG_HEADER
    if not _header_is_sound(log):
        salts = log[LOG_HEADER + 8 : LOG_HEADER + 16]
    while at + _FRAME_HEADER + size <= len(log):
        page, commits = struct.unpack_from('>II', log, at)
        # Frames of an earlier use of the log have other salts.
        if log[at + 8 : at + 16] == salts:
            data = log[at + _FRAME_HEADER : at + _FRAME_HEADER + size]
            yield LogFrame(page, commits != 0, data, at)
        at += _FRAME_HEADER + size


def is_sound(log: bytes) -> bool:
    """Whether SQLite would take every frame of a log."""
    if len(log) < LOG_HEADER:
        return True
    if not _header_is_sound(log):
        return False
    order, size = _order(log), int.from_bytes(log[8:12], 'big')
    sums: tuple[int, int] = struct.unpack_from('>II', log, 24)
    expected = LOG_HEADER
    for frame in log_frames(log, size):
        if frame.start != expected:  # one in between has been damaged, or they are of an earlier use
            return False
        sums = _sums(log[frame.start : frame.start + 8], order, sums)
        sums = _sums(frame.data, order, sums)
        if sums != struct.unpack_from('>II', log, frame.start + 16):
            return False
        expected += _FRAME_HEADER + size
    return True


def _order(log: bytes) -> str:
    return '>' if log[3] & 1 else '<'


def _header_is_sound(log: bytes) -> bool:
    magic, _, size = struct.unpack_from('>III', log)
    if magic & ~1 != _MAGIC or not 512 <= size <= 65536 or size & (size - 1):
        return False
    return _sums(log[:24], _order(log), (0, 0)) == struct.unpack_from('>II', log, 24)


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """SQLite's check sum of bytes, continued."""
    first, second = sums
    for one, two in struct.iter_unpack(order + 'II', data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
