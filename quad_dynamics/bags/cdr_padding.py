# SPDX-License-Identifier: Apache-2.0
"""Sets to zero what is between the fields of a message, and cuts off what is behind them. Needs no ROS.

In CDR a number begins at a multiple of its size, and what is skipped for that holds whatever was in memory.
So the same message has other bytes in another process; with zeros in between it has not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from quad_dynamics.bags.topics import Fields, full_name, spelled

_HEAD = 4  # bytes that say how the message is encoded; positions count from behind them
_LITTLE_ENDIAN = b'\x00\x01'
_SIZES = {'bool': 1, 'byte': 1, 'char': 1, 'int8': 1, 'uint8': 1, 'int16': 2, 'uint16': 2}
_SIZES |= {'int32': 4, 'uint32': 4, 'float32': 4, 'int64': 8, 'uint64': 8, 'float64': 8}


@dataclass
class _Run:
    """So many numbers of a size, side by side."""

    size: int
    count: int


@dataclass
class _Text:
    """A text, with its length in front."""


@dataclass
class _List:
    """The same again and again: so often, or with the number in front."""

    inner: list[_Run | _Text | _List]
    count: int | None


_Part = _Run | _Text | _List


class Padding:
    """Cleans the messages of one type."""

    def __init__(self, kind: str, fields_of: Callable[[str], Fields]) -> None:
        """Learn what a type looks like.

        Args:
            kind: such as 'sensor_msgs/msg/JointState'.
            fields_of: names and types of the fields of a type, as `get_fields_and_field_types` of its class.
        """
        try:
            self._parts: list[_Part] | None = _parts_of(kind, fields_of)
        except ValueError:  # wide characters: nobody uses them
            self._parts = None

    def clean(self, raw: bytes) -> bytes:
        """The message with zeros between its fields; as it is, if it is not what its type promises."""
        if self._parts is None or raw[:2] != _LITTLE_ENDIAN:
            return raw
        data = bytearray(raw[_HEAD:])
        try:
            end = _walk(self._parts, data, 0)
        except ValueError:
            return raw
        # Messages are filled up to a multiple of four; rclpy adds more where lists are empty.
        length = min(end + -end % 4, len(data))
        data[end:] = bytes(length - end)
        return raw[:_HEAD] + bytes(data)


def _parts_of(kind: str, fields_of: Callable[[str], Fields]) -> list[_Part]:
    parts: list[_Part] = []
    for field in fields_of(kind).values():
        for part in _parts_of_field(spelled(field), fields_of):
            last = parts[-1] if parts else None
            if isinstance(part, _Run) and isinstance(last, _Run) and last.size == part.size:
                parts[-1] = _Run(part.size, last.count + part.count)
            else:
                parts.append(part)
    return parts or [_Run(1, 1)]  # CDR has no empty types


def _parts_of_field(field: str, fields_of: Callable[[str], Fields]) -> list[_Part]:
    found = re.fullmatch(r'([\w/]+?)(?:<=\d+)?(?:\[((?:<=)?\d*)\])?', field)
    if found is None:
        raise ValueError(f'{field} is no type of a field')
    name, length = found[1], found[2]
    inner: list[_Part]
    if name in _SIZES:
        inner = [_Run(_SIZES[name], 1)]
    elif name == 'string':
        inner = [_Text()]
    elif '/' in name:
        inner = _parts_of(full_name(name), fields_of)
    else:
        raise ValueError(f'{name} is not supported')
    if length is None:
        return inner
    count = int(length) if length.isdigit() else None
    if count is not None and name in _SIZES:
        return [_Run(_SIZES[name], count)]
    return [_List(inner, count)]


def _walk(parts: list[_Part], data: bytearray, at: int) -> int:
    """Go over the parts from a position on, with zeros in between; return where they end."""
    for part in parts:
        if isinstance(part, _Run):
            at = _aligned(data, at, part.size) + part.size * part.count
        elif isinstance(part, _Text):
            at, length = _length(data, at)
            at += length
        else:
            count = part.count
            if count is None:
                at, count = _length(data, at)
            at = _walk_list(part.inner, count, data, at)
        if at > len(data):
            raise ValueError('the message ends too early')
    return at


def _walk_list(inner: list[_Part], count: int, data: bytearray, at: int) -> int:
    first = inner[0] if len(inner) == 1 else None
    if isinstance(first, _Run):
        return _aligned(data, at, first.size) + first.size * first.count * count if count else at
    if count > len(data):
        raise ValueError('more elements than bytes')
    for _ in range(count):
        at = _walk(inner, data, at)
    return at


def _length(data: bytearray, at: int) -> tuple[int, int]:
    at = _aligned(data, at, 4)
    return at + 4, int.from_bytes(data[at : at + 4], 'little')


def _aligned(data: bytearray, at: int, size: int) -> int:
    skipped = -at % size
    if skipped and at + skipped <= len(data):
        data[at : at + skipped] = bytes(skipped)
    return at + skipped
