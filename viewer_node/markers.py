# SPDX-License-Identifier: Apache-2.0
"""Markers, read from a serialized visualization_msgs/MarkerArray.

rclpy creates an object for each point, which takes milliseconds for one message and seconds for a large
terrain. Here the numbers are read directly as arrays. Messages with an unexpected layout are read by rclpy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.bags.cdr_layout import CdrError, Cursor

_NO_POINTS: Floats = np.zeros((0, 3))
_NO_COLORS: Floats = np.zeros((0, 4))


@dataclass(frozen=True)
class Marker:
    """A visualization_msgs/Marker.

    Attributes:
        ns: namespace.
        id: number in it.
        type: as the message has it.
        action: 0 add, 2 delete, 3 delete all.
        frame: that its pose is in.
        position: (3,) [m].
        wxyz: (4,) orientation.
        scale: (3,) [m].
        rgba: (4,) from 0 to 1.
        lifetime: 0 for ever [s].
        points: (n, 3) [m].
        colors: (n, 4) of the points, or none.
        text: of a text.
    """

    ns: str = ''
    id: int = 0
    type: int = 0
    action: int = 0
    frame: str = 'odom'
    position: Floats = field(default_factory=lambda: np.zeros(3))
    wxyz: Floats = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))
    scale: Floats = field(default_factory=lambda: np.ones(3))
    rgba: Floats = field(default_factory=lambda: np.ones(4))
    lifetime: float = 0.0
    points: Floats = field(default_factory=lambda: _NO_POINTS)
    colors: Floats = field(default_factory=lambda: _NO_COLORS)
    text: str = ''

    def __str__(self) -> str:
        return f"marker '{self.ns}' {self.id}"


def read_markers(raw: bytes, by_rclpy: Callable[[bytes], Any]) -> list[Marker]:
    """The markers of a MarkerArray.

    Args:
        raw: CDR.
        by_rclpy: deserializes the message, if we cannot read it.
    """
    try:
        return _Reader(raw).markers()
    except CdrError:
        return [from_message(marker) for marker in by_rclpy(raw).markers]


def from_message(message: Any) -> Marker:
    """A marker from what rclpy makes."""
    p, o, s, c = message.pose.position, message.pose.orientation, message.scale, message.color
    return Marker(
        ns=message.ns,
        id=message.id,
        type=message.type,
        action=message.action,
        frame=message.header.frame_id,
        position=np.array([p.x, p.y, p.z]),
        wxyz=np.array([o.w, o.x, o.y, o.z]),
        scale=np.array([s.x, s.y, s.z]),
        rgba=np.array([c.r, c.g, c.b, c.a]),
        lifetime=message.lifetime.sec + 1e-9 * message.lifetime.nanosec,
        points=np.array([(q.x, q.y, q.z) for q in message.points], dtype=np.float64).reshape(-1, 3),
        colors=np.array([(k.r, k.g, k.b, k.a) for k in message.colors], dtype=np.float64).reshape(-1, 4),
        text=message.text,
    )


class _Reader:
    """Reads markers field by field: looking up fields by their paths would take twice as long."""

    _integers, _duration = struct.Struct('<iii'), struct.Struct('<iI')

    def __init__(self, raw: bytes) -> None:
        self._cursor = Cursor(raw)
        if self._cursor.order != '<':
            raise CdrError('not little-endian')

    def markers(self) -> list[Marker]:
        """All of them; the bytes must end where they do."""
        cursor = self._cursor
        found = [self._marker() for _ in range(cursor.length())]
        # What comes after the last value is padding to four bytes.
        if len(cursor.raw) - cursor.at >= 4:
            raise CdrError('another layout')
        return found

    def _marker(self) -> Marker:
        cursor = self._cursor
        cursor.numbers(4, 2)  # stamp
        frame, ns = cursor.text(), cursor.text()
        number, kind, action = self._integers.unpack_from(cursor.raw, cursor.numbers(4, 3))
        pose, scale = self._array(np.float64, 7), self._array(np.float64, 3)
        rgba = self._array(np.float32, 4)
        sec, nanosec = self._duration.unpack_from(cursor.raw, cursor.numbers(4, 2))
        self._skip(1)  # frame_locked
        points = self._array(np.float64, 3 * cursor.length()).reshape(-1, 3)
        colors = self._array(np.float32, 4 * cursor.length()).reshape(-1, 4)
        self._skip_texture()
        text = cursor.text()
        cursor.text()  # mesh_resource
        cursor.text()  # mesh_file
        self._skip(cursor.length())
        self._skip(1)  # mesh_use_embedded_materials
        return Marker(
            ns, number, kind, action, frame, pose[:3], pose[[6, 3, 4, 5]], scale, rgba,
            sec + 1e-9 * nanosec, points, colors, text,
        )  # fmt: skip

    def _skip_texture(self) -> None:
        cursor = self._cursor
        cursor.text()  # texture_resource
        cursor.numbers(4, 2)  # of the image: stamp, frame, format, data
        cursor.text()
        cursor.text()
        self._skip(cursor.length())
        self._array(np.float32, 2 * cursor.length())  # uv_coordinates

    def _skip(self, count: int) -> None:
        """Leave bytes out."""
        self._cursor.numbers(1, count)

    def _array(self, kind: type[np.floating[Any]], count: int) -> Floats:
        start = self._cursor.numbers(np.dtype(kind).itemsize, count)
        return np.frombuffer(self._cursor.raw, kind, count, start).astype(np.float64, copy=False)
