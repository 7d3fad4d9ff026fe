# SPDX-License-Identifier: Apache-2.0
"""Reads the numbers of serialized messages such as Odometry, Imu or WrenchStamped.

Such a message has a header, perhaps more names, and numbers; only stamp and numbers change. `NumberReader`
locates the numbers once, and then reads them without rclpy's conversion, which costs ten times more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.bags.cdr_layout import LITTLE_ENDIAN, CdrError
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.frame_names import is_frame
from quad_dynamics.ros.cdr import STAMP, layout_of, type_name

ANY = '*'  # any frame will do

# Groups of numbers of a message: name, and path of the field that contains them.
ODOMETRY = {'pose': 'pose.pose', 'twist': 'twist.twist'}
WRENCH = {'wrench': 'wrench'}
IMU = {name: name for name in ('orientation', 'angular_velocity', 'linear_acceleration')}


class Numbers:
    """The contents of a message.

    Attributes:
        stamp_ns: of the header [ns].
        arrays: by name; read-only.
    """

    __slots__ = ('arrays', 'stamp_ns')

    def __init__(self, stamp_ns: int, arrays: dict[str, Floats]) -> None:
        self.stamp_ns = stamp_ns
        self.arrays = arrays


class NumberReader:
    """Reads messages of one topic.

    A message with the same names as the last one is read with the known layout. Frames are compared with the
    expected ones; a frame that ends with `/name` is accepted, since a robot in a namespace may prefix them.

    Attributes:
        frames: expected frame that matched the last message, by path.
    """

    def __init__(
        self,
        kind: Any,
        numbers: Mapping[str, str],
        topic: str,
        frames: Mapping[str, str | Sequence[str]] | None = None,
    ) -> None:
        """Expect messages.

        Args:
            kind: type of the messages; it begins with a header.
            numbers: by name, paths of fields whose numbers are contiguous in the message; see `ODOMETRY`,
                `WRENCH`, `IMU`.
            topic: its name, for error messages.
            frames: expected values of text fields by path ('header.frame_id'); one or several; `ANY` matches
                any text.
        """
        self._kind, self._groups, self._topic = kind, numbers, topic
        self._expected = {
            path: [one] if isinstance(one, str) else list(one) for path, one in (frames or {}).items()
        }
        self.frames: dict[str, str] = {}
        self._places: list[tuple[str, int, int]] = []
        self._paths: dict[str, list[str]] = {}
        self._size, self._names, self._known = -1, slice(0, 0), b''

    def read(self, raw: bytes) -> Numbers:
        """The numbers of a message.

        Raises:
            ArgumentError: an invalid message, unexpected frames, or numbers that are not finite.
        """
        if len(raw) != self._size or raw[self._names] != self._known:
            self._learn(raw)
        if raw[:2] != LITTLE_ENDIAN:
            raise ArgumentError(
                f'{self._topic}: message encoding is {raw[:2].hex()}; expected 0001, little-endian CDR'
            )
        arrays = {}
        for name, place, count in self._places:
            values = np.frombuffer(raw, np.float64, count, place)
            # The sum of finite numbers is finite unless they are huge, which is checked in detail. Python's
            # own sum does not warn of overflow.
            if not math.isfinite(sum(values.tolist())) and not np.isfinite(values).all():
                path = self._paths[name][int(np.argmin(np.isfinite(values)))]
                raise ArgumentError(
                    f'{self._topic}: {path} is {values[~np.isfinite(values)][0]}; expected finite numbers'
                )
            arrays[name] = values
        sec = int.from_bytes(raw[4:8], 'little')
        return Numbers(sec * 10**9 + int.from_bytes(raw[8:12], 'little'), arrays)

    def _learn(self, raw: bytes) -> None:
        try:
            walked = layout_of(type_name(self._kind)).walk_whole(raw, padding=3)
        except CdrError as error:
            raise ArgumentError(
                f'{self._topic}: not a valid {self._kind.__name__} message of {len(raw)} bytes (truncated?)'
            ) from error
        self.frames = {path: self._frame(path, walked.texts[path][0]) for path in self._expected}
        places = {name: walked.place(path) for name, path in self._groups.items()}
        self._places = [(name, place.at, place.count) for name, place in places.items()]
        self._paths = {name: walked.paths(path) for name, path in self._groups.items()}
        first = min(place for _, place, _ in self._places)
        self._size, self._names = len(raw), slice(STAMP.stop, first)
        self._known = raw[self._names]

    def _frame(self, path: str, found: str) -> str:
        """The expected frame that matches."""
        for expected in self._expected[path]:
            if is_frame(found, expected):
                return expected
        if ANY in self._expected[path]:
            return found
        expected = ' or '.join(map(repr, self._expected[path]))
        raise ArgumentError(f'{self._topic}: {path} is {found!r}; expected {expected}')
