# SPDX-License-Identifier: Apache-2.0
"""Messages in their serialized form (CDR), where rclpy's conversion would cost too much.

A node publishes the same message hundreds of times a second with different numbers. `Template` serializes it
once, locates its numbers, and from then on writes only those.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.serialization import serialize_message

from quad_dynamics.array_types import Floats
from quad_dynamics.bags.cdr_layout import CdrError, MessageLayout
from quad_dynamics.bags.cdr_padding import Padding
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.subscriptions import fields_of

# The stamp of a header comes first in a message, after the encapsulation header of four bytes.
STAMP = slice(4, 12)
_TIME = struct.Struct('<II')
FIELDS = ('position', 'velocity', 'effort')


class Template:
    """A message of which only the stamp and some numbers change.

    Attributes:
        numbers: by name, arrays to write the numbers into; they are views of the serialized message.
    """

    def __init__(self, make: Callable[[Mapping[str, Floats]], Any], sizes: Mapping[str, int]) -> None:
        """Serialize a message, and find its numbers.

        Args:
            make: makes the message from arrays of numbers.
            sizes: name and size of each array; its numbers are contiguous in the message.

        Raises:
            ArgumentError: an array is not contiguous in the message.
        """
        marks = {name: marks_of(i, size) for i, (name, size) in enumerate(sizes.items())}
        self._buffer = bytearray(_clean(make(marks)))
        whole = bytes(self._buffer)
        self.numbers: dict[str, Floats] = {}
        for name, mark in marks.items():
            at = whole.find(mark.tobytes())
            if at < 0:
                raise ArgumentError(f"'{name}' not found in the message; expected contiguous numbers")
            self.numbers[name] = np.frombuffer(self._buffer, np.float64, len(mark), at)
            self.numbers[name][:] = 0.0
        self._stamp = np.frombuffer(self._buffer, np.uint32, 2, STAMP.start)

    def bytes(self, stamp_ns: int) -> bytes:
        """The message with this stamp [ns] and the numbers as they are now."""
        self._stamp[:] = divmod(stamp_ns, 10**9)
        return bytes(self._buffer)


def _clean(message: Any) -> bytes:
    """The serialized message, with zeros as padding instead of uninitialised memory."""
    return Padding(type_name(type(message)), fields_of).clean(bytes(serialize_message(message)))


def type_name(kind: Any) -> str:
    """The type of a class of messages, such as 'sensor_msgs/msg/JointState'."""
    return f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'


@functools.cache
def layout_of(kind: str) -> MessageLayout:
    """The layout of a type as it is installed."""
    return MessageLayout(kind, fields_of)


def marks_of(i: int, size: int) -> Floats:
    """Numbers (size,) that occur nowhere else in a message, different for each i."""
    return np.asarray(np.arange(1, size + 1) * 1.234567e-89 + 10.0 ** (i - 80), dtype=np.float64)


class JointReader:
    """Reads sensor_msgs/JointState from bytes into arrays in the order of a robot's joints.

    A publisher sends the same names each time. So the layout of the last message is cached, and used again
    for a message whose bytes differ only in stamp and numbers.
    """

    def __init__(self, joint_names: Sequence[str], required: Sequence[str], topic: str) -> None:
        """Expect messages.

        Args:
            joint_names: of the robot.
            required: which of 'position', 'velocity', 'effort' must be given; the others are optional.
            topic: its name, for error messages.
        """
        self._names, self._required, self._topic = list(joint_names), required, topic
        self._layout: _Layout | None = None

    def read(self, raw: bytes) -> JointSample:
        """The numbers of a message.

        Raises:
            ArgumentError: an invalid message, missing or unknown joints, wrong lengths, or numbers that are
                not finite.
        """
        return self.checked(self.parse(raw))

    def parse(self, raw: bytes) -> JointSample:
        """The numbers of a message, finite or not.

        Raises:
            ArgumentError: an invalid message, missing or unknown joints, or wrong lengths.
        """
        if self._layout is None or not self._layout.fits(raw):
            self._layout = self._learn(raw)
        return self._layout.read(raw)

    def checked(self, sample: JointSample) -> JointSample:
        """The sample, if all its numbers are finite.

        Raises:
            ArgumentError: a number is not finite.
        """
        for name, numbers in sample.arrays.items():
            finite = np.isfinite(numbers)
            if not finite.all():
                j = int(np.argmin(finite))
                raise ArgumentError(
                    f"{self._topic}: {name} of '{self._names[j]}' is {numbers[j]}; expected finite numbers"
                )
        return sample

    def _learn(self, raw: bytes) -> _Layout:
        try:
            layout = _Layout(raw)
        except CdrError as error:
            raise ArgumentError(
                f'{self._topic}: not a valid JointState message of {len(raw)} bytes (truncated?)'
            ) from error
        self._check(layout.names, layout.sizes)
        layout.order_as(self._names)
        return layout

    def _check(self, names: list[str], sizes: dict[str, int]) -> None:
        lacks = [name for name in self._names if name not in names]
        strange = [name for name in names if name not in self._names]
        if lacks or strange or len(names) != len(self._names):
            what = f'lacks {lacks}' if lacks else f'has {strange or "a joint twice"}'
            raise ArgumentError(f'{self._topic} {what}; it has {names}, expected {self._names}')
        for field in FIELDS:
            size = sizes[field]
            if size not in (0, len(names)) or (size == 0 and field in self._required):
                raise ArgumentError(
                    f'{self._topic}: {field} has {size} numbers; expected {len(names)}, one per joint'
                )


class JointSample:
    """The contents of a JointState, in the order of the robot's joints.

    Attributes:
        stamp_ns: of the header [ns].
        arrays: 'position', 'velocity', 'effort' as far as given, each (nj,); read-only.
    """

    __slots__ = ('arrays', 'stamp_ns')

    def __init__(self, stamp_ns: int, arrays: dict[str, Floats]) -> None:
        self.stamp_ns = stamp_ns
        self.arrays = arrays

    def get(self, field: str) -> Floats | None:
        """The numbers of a field, None if they are not given."""
        return self.arrays.get(field)


class _Layout:
    """Where the numbers of a JointState are, and all its other bytes.

    Attributes:
        names: of the joints, in the order of the message.
        sizes: how many numbers each field has.
    """

    def __init__(self, raw: bytes) -> None:
        """Parse a message.

        Raises:
            CdrError: it is damaged.
        """
        walked = layout_of('sensor_msgs/msg/JointState').walk_whole(raw)
        places = {field: walked.numbers[field] for field in FIELDS}
        self.names = list(walked.texts['name'])
        self.sizes = {field: place.count for field, place in places.items()}
        self._places = {field: place.at for field, place in places.items() if place.count}
        self._size = len(raw)
        self._order: npt.NDArray[np.intp] | None = None
        self._constant: list[tuple[slice, bytes]] = [(slice(0, STAMP.start), raw[: STAMP.start])]
        start = STAMP.stop
        for field, place in self._places.items():
            self._constant.append((slice(start, place), raw[start:place]))
            start = place + 8 * self.sizes[field]
        self._constant.append((slice(start, len(raw)), raw[start:]))

    def order_as(self, joint_names: list[str]) -> None:
        """Read the numbers in this order of the joints."""
        order = [self.names.index(name) for name in joint_names]
        self._order = None if order == sorted(order) else np.array(order, dtype=np.intp)

    def fits(self, raw: bytes) -> bool:
        """Whether all bytes other than stamp and numbers are the same."""
        return len(raw) == self._size and all(raw[where] == known for where, known in self._constant)

    def read(self, raw: bytes) -> JointSample:
        """The numbers."""
        arrays = {}
        for name, place in self._places.items():
            numbers = np.frombuffer(raw, np.float64, self.sizes[name], place)
            arrays[name] = numbers if self._order is None else numbers[self._order]
        sec, nanosec = _TIME.unpack_from(raw, STAMP.start)
        return JointSample(sec * 10**9 + nanosec, arrays)
