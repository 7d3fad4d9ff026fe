# SPDX-License-Identifier: Apache-2.0
"""Reads rows from the pages of SQLite files that SQLite itself refuses (https://sqlite.org/fileformat2.html).

A leaf page of a table holds whole rows. So every row whose bytes are there can be had, whatever else is
missing. Which table a row belongs to is seen from the types of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MAGIC = b'SQLite format 3\x00'
_TABLE_LEAF = 0x0D
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
        self._data = path.read_bytes()
        log = path.with_name(f'{path.name}-wal')
        self._newer: dict[int, bytes] = {}
        self.size = self._page_size(self._data[:100])
        if log.exists():
            self._read_log(log.read_bytes())
        first = self._newer.get(1, self._data[: self.size])
        self.usable = self.size - (first[20] if len(first) > 20 else 0)
        highest = max([-(-len(self._data) // self.size), *self._newer])
        self.numbers = range(1, highest + 1)

    @property
    def has_header(self) -> bool:
        """Whether it is an SQLite file, or the beginning of one."""
        start = self._data[: len(_MAGIC)]
        return _MAGIC.startswith(start) or bool(self._newer)

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
        """Take the pages of all transactions that were committed."""
        if len(log) < 32:
            return
        self.size = int.from_bytes(log[8:12], 'big') or self.size
        salts, at, open_pages = log[16:24], 32, {}
        while at + 24 + self.size <= len(log) and log[at + 8 : at + 16] == salts:
            open_pages[int.from_bytes(log[at : at + 4], 'big')] = log[at + 24 : at + 24 + self.size]
            if int.from_bytes(log[at + 4 : at + 8], 'big'):
                self._newer.update(open_pages)
                open_pages = {}
            at += 24 + self.size


def rows(pages: Pages) -> Iterator[tuple[int, Row]]:
    """All rows of all tables: number and columns; a key column is None."""
    for number in pages.numbers:
        page = pages.get(number)
        start = 100 if number == 1 else 0
        if len(page) < start + 8 or page[start] != _TABLE_LEAF:
            continue
        count = int.from_bytes(page[start + 3 : start + 5], 'big')
        for i in range(count):
            place = start + 8 + 2 * i
            if place + 2 > len(page):
                break
            try:
                yield _cell(pages, page, int.from_bytes(page[place : place + 2], 'big'))
            except (IndexError, ValueError, UnicodeDecodeError):  # a part of it is missing
                continue


def _cell(pages: Pages, page: bytes, at: int) -> tuple[int, Row]:
    size, at = _varint(page, at)
    number, at = _varint(page, at)
    largest, smallest = pages.usable - 35, (pages.usable - 12) * 32 // 255 - 23
    if size <= largest:
        payload = page[at : at + size]
    else:
        local = smallest + (size - smallest) % (pages.usable - 4)
        local = local if local <= largest else smallest
        payload = page[at : at + local]
        follows = int.from_bytes(page[at + local : at + local + 4], 'big')
        payload += _overflow(pages, follows, size - local)
    if len(payload) != size:
        raise ValueError('a part of the row is missing')
    return number, _columns(payload)


def _overflow(pages: Pages, number: int, size: int) -> bytes:
    """The rest of a long row."""
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
    return tuple(values)


def _column_size(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return 8 if kind == _FLOAT else _INTEGER_SIZES.get(kind, 0)


def _value(kind: int, part: bytes) -> Any:
    if kind >= 12:
        return part if kind % 2 == 0 else part.decode()
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


def tables(pages: Pages) -> dict[str, dict[int, Row]]:
    """The rows of a bag's tables, by their numbers: 'topics', 'message_definitions', 'messages'."""
    shapes = {
        'topics': (6, (str,) * 5),
        'message_definitions': (5, (str,) * 4),
        'messages': (4, (int, int, bytes)),
    }
    found: dict[str, dict[int, Row]] = {name: {} for name in shapes}
    for number, row in rows(pages):
        for name, (size, kinds) in shapes.items():
            if len(row) == size and row[0] is None and all(map(isinstance, row[1:], kinds)):
                found[name][number] = row
    return found
