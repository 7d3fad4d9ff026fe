# SPDX-License-Identifier: Apache-2.0
"""Reads the numbers of messages such as Odometry, Imu or WrenchStamped from their bytes.

Such a message has a header, perhaps more names, and numbers; only stamp and numbers change. `NumberReader`
learns once where the numbers are, and then reads them without rclpy's conversion, which costs ten times more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.frame_names import is_frame
from quad_dynamics.ros.cdr import STAMP, marks_of

ANY = '*'  # any frame will do
_LITTLE_ENDIAN = b'\x00\x01'

# Which numbers of a message belong together, as attributes of its parts.
_VECTOR, _QUATERNION = ('x', 'y', 'z'), ('x', 'y', 'z', 'w')
ODOMETRY = {
    'pose': [f'pose.pose.position.{x}' for x in _VECTOR]
    + [f'pose.pose.orientation.{x}' for x in _QUATERNION],
    'twist': [f'twist.twist.{part}.{x}' for part in ('linear', 'angular') for x in _VECTOR],
}
WRENCH = {'wrench': [f'wrench.{part}.{x}' for part in ('force', 'torque') for x in _VECTOR]}
IMU = {
    'orientation': [f'orientation.{x}' for x in _QUATERNION],
    'angular_velocity': [f'angular_velocity.{x}' for x in _VECTOR],
    'linear_acceleration': [f'linear_acceleration.{x}' for x in _VECTOR],
}


class Numbers:
    """What a message says.

    Attributes:
        stamp_ns: of the header [ns].
        arrays: by name; not to be written.
    """

    __slots__ = ('arrays', 'stamp_ns')

    def __init__(self, stamp_ns: int, arrays: dict[str, Floats]) -> None:
        self.stamp_ns = stamp_ns
        self.arrays = arrays


class NumberReader:
    """Reads messages of one topic.

    A message with the same names as the last one is read by its known layout. Frames are compared with what
    is expected; one that ends with `/name` is good too, for a robot in a namespace may prefix its frames.

    Attributes:
        frames: of the message that was read last, by path: the one of the expected frames that it has.
    """

    def __init__(
        self,
        kind: Any,
        numbers: Mapping[str, Sequence[str]],
        topic: str,
        frames: Mapping[str, str | Sequence[str]] | None = None,
    ) -> None:
        """Expect messages.

        Args:
            kind: type of the messages; it begins with a header.
            numbers: by name, numbers that stand side by side in the message, as paths of attributes;
                see `ODOMETRY`, `WRENCH`, `IMU`.
            topic: its name, for the texts of errors.
            frames: what texts of the message must be, by their paths ('header.frame_id'); one or several, and
                `ANY` is any.
        """
        self._kind, self._paths, self._topic = kind, numbers, topic
        self._expected = {
            path: [one] if isinstance(one, str) else list(one) for path, one in (frames or {}).items()
        }
        self.frames: dict[str, str] = {}
        self._places: list[tuple[str, int, int]] = []
        self._size, self._names, self._known = -1, slice(0, 0), b''

    def read(self, raw: bytes) -> Numbers:
        """The numbers of a message.

        Raises:
            ArgumentError: damaged bytes, other frames than expected, or numbers that are not finite.
        """
        if len(raw) != self._size or raw[self._names] != self._known:
            self._learn(raw)
        if raw[:2] != _LITTLE_ENDIAN:
            raise ArgumentError(
                f'{self._topic}: a message encoded as {raw[:2].hex()}; expected 0001, CDR in little endian'
            )
        arrays = {}
        for name, place, count in self._places:
            values = np.frombuffer(raw, np.float64, count, place)
            # The sum of finite numbers is finite, or they are so large that it is worth a second look; and
            # Python's own sum does not warn of those.
            if not math.isfinite(sum(values.tolist())) and not np.isfinite(values).all():
                path = self._paths[name][int(np.argmin(np.isfinite(values)))]
                raise ArgumentError(
                    f'{self._topic}: {path} is {values[~np.isfinite(values)][0]}; expected finite numbers'
                )
            arrays[name] = values
        sec = int.from_bytes(raw[4:8], 'little')
        return Numbers(sec * 10**9 + int.from_bytes(raw[8:12], 'little'), arrays)

    def _learn(self, raw: bytes) -> None:
        what = self._kind.__name__
        try:
            message = deserialize_message(raw, self._kind)
        except Exception as error:  # whatever the deserializer says of damaged bytes
            raise ArgumentError(
                f'{self._topic}: {len(raw)} bytes that are no {what}; expected a whole one'
            ) from error
        if len(serialize_message(message)) != len(raw):
            raise ArgumentError(f'{self._topic}: a damaged {what} of {len(raw)} bytes; expected a whole one')
        self.frames = {path: self._frame(path, attrgetter(path)(message)) for path in self._expected}
        self._places = self._find(message)
        first = min(place for _, place, _ in self._places)
        self._size, self._names = len(raw), slice(STAMP.stop, first)
        self._known = raw[self._names]

    def _frame(self, path: str, found: str) -> str:
        """Which of the expected frames this is."""
        for expected in self._expected[path]:
            if is_frame(found, expected):
                return expected
        if ANY in self._expected[path]:
            return found
        expected = ' or '.join(map(repr, self._expected[path]))
        raise ArgumentError(f'{self._topic}: {path} is {found!r}; expected {expected}')

    def _find(self, message: Any) -> list[tuple[str, int, int]]:
        """Name, place and count of each array: by serializing the message with marks for numbers."""
        marks = {}
        for i, (name, paths) in enumerate(self._paths.items()):
            marks[name] = marks_of(i, len(paths))
            for path, mark in zip(paths, marks[name].tolist(), strict=True):
                owner, _, last = path.rpartition('.')
                setattr(attrgetter(owner)(message) if owner else message, last, mark)
        whole = serialize_message(message)
        return [(name, whole.index(mark.tobytes()), len(mark)) for name, mark in marks.items()]
