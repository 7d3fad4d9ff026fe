# SPDX-License-Identifier: Apache-2.0
"""Reads rows from the pages of SQLite files that SQLite rejects (https://sqlite.org/fileformat2.html).

A leaf page of a table contains complete rows, and an array of their positions. So every row whose bytes exist
can be recovered, whatever else is missing. The table of a row is identified by the types of its columns.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quad_dynamics.bags.sqlite_log import LOG_HEADER, LogFrame, log_frames

_MAGIC = b'SQLite format 3\x00'
_TABLE_LEAF, _OTHER_PAGES = 0x0D, (0x02, 0x05, 0x0A)
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_FLOAT = 7
Row = tuple[Any, ...]


class Pages:
    """The pages of a file, with the committed ones of its log."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        Args:
            path: of the file; it may be damaged.
        """
        self._data = mapped(path)
        log = path.with_name(f'{path.name}-wal')
        self._newer: dict[int, bytes] = {}
        self.size = self._page_size(self._data[:100])
        if log.exists():
            self._read_log(log.read_bytes())
        first = self._newer.get(1, self._data[: self.size])
        reserved = first[20] if len(first) > 20 else 0
        self.usable = self.size - (reserved if reserved <= 32 else 0)
        highest = max([-(-len(self._data) // self.size), *self._newer])
        self.numbers = range(1, highest + 1)

    @property
    def has_header(self) -> bool:
        """Whether it is an SQLite file, or the beginning of one, or at least has a table of a bag."""
        start = self._data[: len(_MAGIC)]
        return _MAGIC.startswith(start) or bool(self._newer) or self._data.find(b'CREATE TABLE messages') >= 0

    def get(self, number: int) -> bytes:
        """A page, or as much of it as there is."""
        start = (number - 1) * self.size
        return self._newer.get(number, self._data[start : start + self.size])

    @staticmethod
    def _page_size(header: bytes) -> int:
        size = int.from_bytes(header[16:18], 'big') if len(header) >= 18 else 4096
        size = 65536 if size == 1 else size
        return size if size >= 512 and size & (size - 1) == 0 else 4096

    def _read_log(self, log: bytes) -> None:
        """Take the pages of all transactions that were committed, whether their check sums match or not."""
        if len(log) < LOG_HEADER:
            return
        size = int.from_bytes(log[8:12], 'big')
        self.size = size if 512 <= size <= 65536 and size & (size - 1) == 0 else self.size
        open_pages: dict[int, LogFrame] = {}
        highest = len(self._data) // self.size + len(log) // self.size
        for frame in log_frames(log, self.size):
            if 0 < frame.page <= highest:
                open_pages[frame.page] = frame
            if frame.commits:
                self._newer.update({number: one.data for number, one in open_pages.items()})
                open_pages = {}


def mapped(path: Path) -> bytes | mmap.mmap:
    """The bytes of a file, without reading them all."""
    if not path.stat().st_size:
        return b''
    with path.open('rb') as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def rows(pages: Pages) -> Iterator[tuple[int, Row, bool]]:
    """All rows of all tables: number, columns (a key column is None), and whether its page is damaged."""
    for number in pages.numbers:
        page = pages.get(number)
        start = 100 if number == 1 else 0
        if len(page) < start + 8 or page[start] in _OTHER_PAGES:
            continue
        found, damaged = _rows_of_page(pages, page, start)
        damaged |= page[start] != _TABLE_LEAF
        for key, row in found:
            yield key, row, damaged


def _rows_of_page(pages: Pages, page: bytes, start: int) -> tuple[list[tuple[int, Row]], bool]:
    """All rows of a page that can be had, and whether anything of it cannot be right."""
    count = int.from_bytes(page[start + 3 : start + 5], 'big')
    lowest = int.from_bytes(page[start + 5 : start + 7], 'big') or 65536
    array_end = start + 8 + 2 * count
    damaged = page[start] != _TABLE_LEAF or array_end > len(page) or not array_end <= lowest <= pages.size
    begins = {
        int.from_bytes(page[place : place + 2], 'big')
        for place in range(start + 8, min(array_end, len(page) - 1), 2)
    }
    damaged |= len(begins) != count
    begins = {at for at in begins if start + 8 < at < pages.usable}
    found: dict[int, tuple[int, Row]] = {}
    at = min([*begins, lowest]) if not damaged else min(begins, default=pages.size)
    # Rows stand side by side: behind each one is the next, also where the array does not say so.
    while at < min(len(page), pages.usable):
        try:
            number, row, end = _cell(pages, page, at)
            known = at in begins or _is_message(row)
        except (IndexError, ValueError):  # a part of it is missing
            known, end = False, at
        if known:
            found[at] = (number, row)
            at = end
        else:
            damaged |= at in begins or bool(found)
            at = min((one for one in begins if one > at), default=len(page))
    for missed in begins - set(found):
        damaged = True
        try:
            number, row, _ = _cell(pages, page, missed)
            if _is_message(row):
                found[missed] = (number, row)
        except (IndexError, ValueError):
            continue
    return list(found.values()), damaged


def _is_message(row: Row) -> bool:
    return len(row) == 4 and row[0] is None and all(map(isinstance, row[1:], (int, int, bytes)))


def _cell(pages: Pages, page: bytes, at: int) -> tuple[int, Row, int]:
    """The row at a place of a page: number, columns, and where it ends."""
    size, at = _varint(page, at)
    number, at = _varint(page, at)
    number -= 1 << 64 if number >> 63 else 0
    largest, smallest = pages.usable - 35, (pages.usable - 12) * 32 // 255 - 23
    if size <= largest:
        payload = page[at : at + size]
        end = at + size
    else:
        local = smallest + (size - smallest) % (pages.usable - 4)
        local = local if local <= largest else smallest
        payload = page[at : at + local]
        end = at + local + 4
        follows = int.from_bytes(page[at + local : end], 'big')
        payload += _overflow(pages, follows, size - local)
    if len(payload) != size:
        raise ValueError('a part of the row is missing')
    return number, _columns(payload), end


def _overflow(pages: Pages, number: int, size: int) -> bytes:
    """The rest of a long row."""
    if size > pages.size * len(pages.numbers):
        raise ValueError('longer than the file')
    parts: list[bytes] = []
    while size > 0:
        page = pages.get(number) if number in pages.numbers else b''
        part = page[4 : 4 + min(size, pages.usable - 4)]
        if not part:
            raise ValueError('a page is missing')
        parts.append(part)
        size -= len(part)
        number = int.from_bytes(page[:4], 'big')
    return b''.join(parts)


def _columns(payload: bytes) -> Row:
    end, at = _varint(payload, 0)
    place, values = end, []
    while at < end:
        kind, at = _varint(payload, at)
        size = _column_size(kind)
        part = payload[place : place + size]
        if len(part) != size:
            raise ValueError('a column is missing')
        values.append(_value(kind, part))
        place += size
    if place != len(payload):
        raise ValueError('more bytes than columns')
    return tuple(values)


def _column_size(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return 8 if kind == _FLOAT else _INTEGER_SIZES.get(kind, 0)


def _value(kind: int, part: bytes) -> Any:
    if kind >= 12:
        return part if kind % 2 == 0 else part.decode(errors='replace')
    if kind in _INTEGER_SIZES:
        return int.from_bytes(part, 'big', signed=True)
    return {8: 0, 9: 1}.get(kind)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where the next thing is."""
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + 8], at + 9
