# SPDX-License-Identifier: Apache-2.0
"""Locates the fields of a serialized message (CDR), from the definition of its type. Needs no ROS.

Only `Cursor` implements the rules of the encoding: a number is aligned to its size, counted from the end of
the four-byte encapsulation header; strings and sequences are preceded by their length. `MessageLayout` parses
a message according to the definition of its type. Readers of many messages do this once, and then read
numbers from the known positions.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rosbags.interfaces import Nodetype

from quad_dynamics.bags.topics import Fields, full_name, known_types, spelled

HEAD = 4  # bytes that say how the message is encoded
LITTLE_ENDIAN = b'\x00\x01'
# Serializers leave space at the end for what empty sequences might have needed, with anything in it.
MOST_PADDING = 32
# Kinds of numbers, as NumPy calls them.
_KINDS = {'bool': 'u1', 'byte': 'u1', 'char': 'u1', 'float32': 'f4', 'float64': 'f8'}
_KINDS |= {f'int{8 * size}': f'i{size}' for size in (1, 2, 4, 8)}
_KINDS |= {f'uint{8 * size}': f'u{size}' for size in (1, 2, 4, 8)}


class CdrError(ValueError):
    """A serialized message that does not match its type."""


class Cursor:
    """Moves through a serialized message from start to end.

    Attributes:
        raw: the message.
        at: where the next thing begins, but for alignment.
        order: of bytes, '<' or '>'.
        gaps: begin and end of what alignment has skipped.
    """

    __slots__ = ('_length', 'at', 'gaps', 'order', 'raw')

    def __init__(self, raw: bytes) -> None:
        """Start after the encapsulation header.

        Raises:
            CdrError: another encoding than plain CDR.
        """
        if len(raw) < HEAD or raw[0] != 0 or raw[1] > 1:
            raise CdrError(f'the message starts with the bytes {raw[:4].hex()}; expected plain CDR')
        self.raw, self.at = raw, HEAD
        self.order = '<' if raw[1] else '>'
        self._length = struct.Struct(f'{self.order}I')
        self.gaps: list[tuple[int, int]] = []

    def numbers(self, size: int, count: int = 1) -> int:
        """Where numbers of a size begin; none at all are not aligned."""
        at = self.at
        if count:
            skipped = (HEAD - at) % size
            if skipped:
                self.gaps.append((at, at + skipped))
                at += skipped
            self.at = at + size * count
            if self.at > len(self.raw):
                raise CdrError('the message is truncated')
        return at

    def length(self) -> int:
        """The length of a text or sequence."""
        found: int = self._length.unpack_from(self.raw, self.numbers(4))[0]
        return found

    def text(self) -> str:
        """A text, which ends with a zero."""
        size = self.length()
        at = self.numbers(1, size)
        return self.raw[at : self.at].rstrip(b'\0').decode(errors='replace')


@dataclass(slots=True)
class Place:
    """Contiguous numbers.

    Attributes:
        at: where they begin [bytes].
        kind: of each, as NumPy calls it: 'f8', 'i4'.
        count: how many.
    """

    at: int
    kind: str
    count: int

    @property
    def end(self) -> int:
        """Where they end [bytes]."""
        return self.at + int(self.kind[1]) * self.count


@dataclass(frozen=True)
class _Numbers:
    path: str
    kind: str
    size: int
    count: int


@dataclass(frozen=True)
class _Text:
    path: str


@dataclass(frozen=True)
class _List:
    """A repeated element: with a fixed count, or preceded by its count."""

    path: str
    inner: tuple[_Numbers | _Text | _List, ...]
    count: int | None


_Part = _Numbers | _Text | _List


class Walked:
    """Where everything is in one message.

    Attributes:
        numbers: by path, such as 'header.stamp.sec', 'position', 'points.0.positions'; sequences of equal
            numbers, and of types that hold nothing else, are one place.
        texts: by path; a sequence of texts is one entry.
        fixed: begin and end of lengths and texts.
        order: of bytes, '<' or '>'.
        end: where the last field ends.
    """

    __slots__ = ('end', 'fixed', 'numbers', 'order', 'texts')

    def __init__(self, raw: bytes, parts: tuple[_Part, ...]) -> None:
        cursor = Cursor(raw)
        self.numbers: dict[str, Place] = {}
        self.texts: dict[str, tuple[str, ...]] = {}
        self.fixed: list[tuple[int, int]] = []
        self._walk(cursor, parts, '')
        self.order, self.end = cursor.order, cursor.at

    def _walk(self, cursor: Cursor, parts: tuple[_Part, ...], prefix: str) -> None:
        for part in parts:
            path = prefix + part.path
            if isinstance(part, _Numbers):
                self.numbers[path] = Place(cursor.numbers(part.size, part.count), part.kind, part.count)
            elif isinstance(part, _Text):
                self.texts[path] = (self._text(cursor),)
            else:
                self._list(cursor, part, path)

    def _list(self, cursor: Cursor, part: _List, path: str) -> None:
        count = part.count
        if count is None:
            count = cursor.length()
            self.fixed.append((cursor.at - 4, cursor.at))
        only = part.inner[0] if len(part.inner) == 1 else None
        if isinstance(only, _Numbers):
            count *= only.count
            self.numbers[path] = Place(cursor.numbers(only.size, count), only.kind, count)
            return
        if count > len(cursor.raw):
            raise CdrError('a sequence has more elements than the message has bytes')
        if isinstance(only, _Text):
            self.texts[path] = tuple(self._text(cursor) for _ in range(count))
            return
        for i in range(count):
            self._walk(cursor, part.inner, f'{path}.{i}.')

    def _text(self, cursor: Cursor) -> str:
        begin = cursor.at
        text = cursor.text()
        self.fixed.append((begin + -begin % 4, cursor.at))
        return text

    def place(self, path: str) -> Place:
        """The numbers of a field, or of all fields below a path, which must be contiguous.

        Raises:
            KeyError: there are none.
            CdrError: they are not contiguous.
        """
        if path in self.numbers:
            return self.numbers[path]
        found = [self.numbers[name] for name in self.paths(path)]
        if not found:
            raise KeyError(path)
        for one, other in itertools.pairwise(found):
            if one.end != other.at or one.kind != other.kind:
                raise CdrError(f'{path} has fields other than contiguous numbers')
        return Place(found[0].at, found[0].kind, sum(one.count for one in found))

    def paths(self, path: str) -> list[str]:
        """Paths of all numbers below a path."""
        return [name for name in self.numbers if name.startswith(f'{path}.')]


class MessageLayout:
    """The definition of one type of message, and where its fields are in bytes."""

    def __init__(self, kind: str, fields_of: Callable[[str], Fields] | None = None) -> None:
        """Read the definition of a type.

        Args:
            kind: such as 'sensor_msgs/msg/JointState'.
            fields_of: names and types of the fields of a type, as `get_fields_and_field_types` of its class;
                None: as ROS itself defines its types.

        Raises:
            ValueError: the type has fields that are not supported (wide characters).
        """
        parts = _parts_of(kind, fields_of or _known_fields)
        self._parts, self._merged = tuple(parts), tuple(_merged(parts))

    def walk(self, raw: bytes) -> Walked:
        """Go through a message.

        Raises:
            CdrError: the message does not match the type.
        """
        return Walked(raw, self._parts)

    def walk_whole(self, raw: bytes, padding: int = MOST_PADDING) -> Walked:
        """Parse a little-endian message that ends with its last field, except for padding.

        Args:
            raw: the message.
            padding: how many bytes may follow.

        Raises:
            CdrError: the message does not match the type.
        """
        walked = Walked(raw, self._parts)
        if walked.order != '<' or len(raw) - walked.end > padding:
            raise CdrError(f'the message has {len(raw)} bytes, but its fields end at byte {walked.end}')
        return walked

    def pass_over(self, raw: bytes) -> Cursor:
        """Parse a message without recording positions.

        Returns:
            At the end of the last field, with the gaps.

        Raises:
            CdrError: the message does not match the type.
        """
        cursor = Cursor(raw)
        _pass_over(cursor, self._merged)
        return cursor


def _pass_over(cursor: Cursor, parts: tuple[_Part, ...]) -> None:
    for part in parts:
        if isinstance(part, _Numbers):
            cursor.numbers(part.size, part.count)
        elif isinstance(part, _Text):
            cursor.numbers(1, cursor.length())
        else:
            count = cursor.length() if part.count is None else part.count
            only = part.inner[0] if len(part.inner) == 1 else None
            if isinstance(only, _Numbers):
                cursor.numbers(only.size, only.count * count)
                continue
            if count > len(cursor.raw):
                raise CdrError('a sequence has more elements than the message has bytes')
            for _ in range(count):
                _pass_over(cursor, part.inner)


def _known_fields(kind: str) -> Fields:
    return {name: _spelled(field) for name, field in known_types().fielddefs[kind][1]}


def _spelled(field: Any) -> str:
    """A field of the definitions of rosbags as messages define it: `float64[36]`."""
    node, value = field
    if node == Nodetype.NAME:
        return str(value)
    if node == Nodetype.BASE:
        return str(value[0])
    return f'{_spelled(value[0])}[{value[1] if node == Nodetype.ARRAY else ""}]'


def _parts_of(kind: str, fields_of: Callable[[str], Fields], prefix: str = '') -> list[_Part]:
    parts: list[_Part] = []
    for name, field in fields_of(kind).items():
        parts += _parts_of_field(prefix + name, spelled(field), fields_of)
    return parts or [_Numbers(prefix, 'u1', 1, 1)]  # CDR has no empty types


def _parts_of_field(path: str, field: str, fields_of: Callable[[str], Fields]) -> list[_Part]:
    found = re.fullmatch(r'([\w/]+?)(?:<=\d+)?(?:\[((?:<=)?\d*)\])?', field)
    if found is None:
        raise ValueError(f'{field} is not a field type')
    name, length = found[1], found[2]
    is_list = length is not None
    inner: list[_Part]
    if name in _KINDS:
        inner = [_Numbers('' if is_list else path, _KINDS[name], int(_KINDS[name][1]), 1)]
    elif name == 'string':
        inner = [_Text('' if is_list else path)]
    elif '/' in name:
        inner = _parts_of(full_name(name), fields_of, '' if is_list else f'{path}.')
    else:
        raise ValueError(f'{name} is not supported')
    if not is_list:
        return inner
    merged = _merged(inner)
    if len(merged) == 1:
        inner = merged
    count = int(length) if length.isdigit() else None
    if count is not None and name in _KINDS:
        return [_Numbers(path, _KINDS[name], int(_KINDS[name][1]), count)]
    return [_List(path, tuple(inner), count)]


def _merged(parts: list[_Part]) -> list[_Part]:
    """The same with numbers of a kind side by side as one."""
    merged: list[_Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, _Numbers) and isinstance(last, _Numbers) and last.kind == part.kind:
            merged[-1] = _Numbers(last.path, last.kind, last.size, last.count + part.count)
        else:
            merged.append(part)
    return merged
