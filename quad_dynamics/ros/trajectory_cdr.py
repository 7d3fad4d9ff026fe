# SPDX-License-Identifier: Apache-2.0
"""Messages of trajectory_msgs as arrays, to and from their serialized form (CDR).

rclpy creates an object for every vector, which takes milliseconds for a trajectory of many points: longer
than a control period. Here all points are one structured array. A message with another layout of its points
is converted by rclpy, which also finds out what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.bags.cdr_layout import MOST_PADDING, CdrError, Cursor
from quad_dynamics.errors import ArgumentError

_ENCAPSULATION = b'\x00\x01\x00\x00'
_HEADER, _LENGTH = struct.Struct('<iI'), struct.Struct('<I')
# Numbers of rclpy's objects, in the order of the wire.
_TRANSFORM = attrgetter(*(f'translation.{x}' for x in 'xyz'), *(f'rotation.{x}' for x in 'xyzw'))
_TWIST = attrgetter(*(f'{part}.{x}' for part in ('linear', 'angular') for x in 'xyz'))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The contents of a trajectory message.

    Attributes:
        stamp_ns: of its header [ns].
        frame: of its header.
        names: of the joints.
        times_ns: (points,) time_from_start [ns].
        arrays: fields of the points by name, each (points, joints, numbers of a joint).
    """

    stamp_ns: int
    frame: str
    names: tuple[str, ...]
    times_ns: Ints
    arrays: Mapping[str, Floats]


class TrajectoryFormat:
    """How points of one message type are laid out, and its conversion to and from bytes."""

    def __init__(self, kind: Any, fields: Mapping[str, int]) -> None:
        """Describe a message type.

        Args:
            kind: its class.
            fields: all sequences of a point in their order, with the numbers of a joint; 0: left empty.
        """
        self.kind, self._fields = kind, fields

    def _dtype(self, joints: int) -> np.dtype[np.void]:
        """A point that begins at a multiple of eight bytes, as all but the first one do."""
        names: list[str] = []
        formats: list[Any] = []
        offsets: list[int] = []
        at = 0

        def add(name: str, kind: Any, size: int) -> None:
            nonlocal at
            names.append(name)
            formats.append(kind)
            offsets.append(at)
            at += size

        for name, width in self._fields.items():
            add(f'count of {name}', '<u4', 4)
            if width:
                at += -at % 8
                add(name, ('<f8', (joints, width)), 8 * joints * width)
        add('sec', '<i4', 4)
        add('nanosec', '<u4', 4)
        return np.dtype({'names': names, 'formats': formats, 'offsets': offsets, 'itemsize': at})

    def write(self, trajectory: Trajectory) -> bytes:
        """The message as bytes."""
        joints = len(trajectory.names)
        points = np.zeros(len(trajectory.times_ns), self._dtype(joints))
        for name, width in self._fields.items():
            if width:
                points[f'count of {name}'] = joints
                points[name] = trajectory.arrays[name]
        points['sec'], points['nanosec'] = np.divmod(trajectory.times_ns, 10**9)
        head = _head(trajectory.stamp_ns, trajectory.frame, trajectory.names, len(points))
        body = points.tobytes()
        # Where the head ends in the middle of eight bytes, the first count has no padding after it.
        return head + (body if (len(head) - 4) % 8 == 0 else body[:4] + body[8:])

    def read(self, raw: bytes, topic: str) -> Trajectory:
        """A message from its bytes; numbers may be anything.

        Raises:
            ArgumentError: an invalid message, or a point without one value per joint.
        """
        try:
            return self._parse(raw)
        except CdrError:
            return self._convert(raw, topic)

    def _parse(self, raw: bytes) -> Trajectory:
        cursor = Cursor(raw)
        if cursor.order != '<':
            raise CdrError('big-endian')
        sec, nanosec = _HEADER.unpack_from(raw, cursor.numbers(4, 2))
        frame = cursor.text()
        names = tuple(cursor.text() for _ in range(cursor.length()))
        count = cursor.length()
        dtype, start = self._dtype(len(names)), cursor.at
        padded = (start - 4) % 8 == 0
        end = start + count * dtype.itemsize - (0 if padded else 4)
        if not 0 <= len(raw) - end <= MOST_PADDING or not count:
            raise CdrError(f'{count} points do not fill {len(raw)} bytes')
        body = raw[start:end] if padded else raw[start : start + 4] + b'\0\0\0\0' + raw[start + 4 : end]
        points = np.frombuffer(body, dtype)
        for name, width in self._fields.items():
            if (points[f'count of {name}'] != (len(names) if width else 0)).any():
                raise CdrError(f'points differ in {name}')
        times = points['sec'].astype(np.int64) * 10**9 + points['nanosec']
        arrays = {name: points[name] for name, width in self._fields.items() if width}
        return Trajectory(sec * 10**9 + nanosec, frame, names, times, arrays)

    def _convert(self, raw: bytes, topic: str) -> Trajectory:
        """The same with rclpy; fields that are not needed may be present."""
        try:
            message = deserialize_message(raw, self.kind)
        except Exception as error:  # whatever the deserializer says of damaged bytes
            raise ArgumentError(f'{topic}: not a valid {self.kind.__name__} message (truncated?)') from error
        names, points = tuple(message.joint_names), list(message.points)
        if not names or not points:
            raise ArgumentError(
                f'{topic} has {len(names)} joints and {len(points)} points; expected at least one of each'
            )
        arrays = {
            name: self._field(points, name, len(names), topic)
            for name, width in self._fields.items()
            if width
        }
        durations = [point.time_from_start for point in points]
        times = np.array([one.sec * 10**9 + one.nanosec for one in durations], dtype=np.int64)
        stamp = message.header.stamp
        return Trajectory(stamp.sec * 10**9 + stamp.nanosec, message.header.frame_id, names, times, arrays)

    def _field(self, points: Sequence[Any], name: str, joints: int, topic: str) -> Floats:
        rows = []
        for i, point in enumerate(points):
            found = list(getattr(point, name))
            if len(found) != joints:
                raise ArgumentError(
                    f'{topic}: point {i} has {len(found)} {name}; expected {joints}, one per joint'
                )
            numbers = {7: _TRANSFORM, 6: _TWIST}.get(self._fields[name])
            rows.append([[one] if numbers is None else numbers(one) for one in found])
        return np.array(rows, dtype=np.float64)


def _head(stamp_ns: int, frame: str, names: Sequence[str], points: int) -> bytes:
    """Everything before the first point."""
    head = bytearray(_ENCAPSULATION + _HEADER.pack(*divmod(stamp_ns, 10**9)))

    def count(number: int) -> None:
        head.extend(b'\0' * (-len(head) % 4) + _LENGTH.pack(number))

    def text(value: str) -> None:
        encoded = value.encode() + b'\0'
        count(len(encoded))
        head.extend(encoded)

    text(frame)
    count(len(names))
    for name in names:
        text(name)
    count(points)
    return bytes(head)


MULTI_DOF = TrajectoryFormat(MultiDOFJointTrajectory, {'transforms': 7, 'velocities': 6, 'accelerations': 6})
CONTACTS = TrajectoryFormat(
    JointTrajectory, {'positions': 1, 'velocities': 0, 'accelerations': 0, 'effort': 1}
)
