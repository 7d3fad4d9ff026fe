# SPDX-License-Identifier: Apache-2.0
"""Many messages of one topic as arrays, read from their bytes (CDR) at once.

Messages of a topic nearly always have the same texts and lengths, and differ in numbers only. Where the
numbers are is found from one of them, and then read from all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bytes, Floats, Ints
from quad_dynamics.errors import ArgumentError

_START = 4  # bytes that say how the rest is encoded; alignment counts from behind them
_SWAPPED, _PLAIN = 0, 1  # kinds of encoding: big-endian and little-endian


@dataclass(frozen=True)
class Shape:
    """What messages have in common that differ in numbers only.

    Attributes:
        texts: names in it: frames, joints.
        numbers: place and count of the numbers of each field [bytes].
        fixed: places of the bytes that must be the same.
        order: '<' or '>', of bytes.
        stamped: whether they begin with a header.
    """

    texts: dict[str, tuple[str, ...]]
    numbers: dict[str, tuple[int, int]]
    fixed: tuple[tuple[int, int], ...]
    order: str
    stamped: bool


@dataclass(frozen=True, eq=False)
class Batch:
    """Messages of one shape.

    Attributes:
        shape: of all of them.
        index: (n,) which of the messages they are.
        stamps: (n,) of their headers [ns]; 0 where they have none.
        values: (n, k) of each field.
    """

    shape: Shape
    index: Ints
    stamps: Ints
    values: dict[str, Floats]


class _Walker:
    """Goes through the bytes of one message, and remembers where numbers are."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) < _START + 8 or raw[0] != 0 or raw[1] not in (_SWAPPED, _PLAIN):
            raise ArgumentError(f'a message begins with the bytes {raw[:4].hex()}; expected plain CDR')
        self.raw, self.at = raw, _START
        self.order = '<' if raw[1] == _PLAIN else '>'
        self.texts: dict[str, tuple[str, ...]] = {}
        self.numbers: dict[str, tuple[int, int]] = {}
        self.fixed: list[tuple[int, int]] = []
        self.stamped = False

    def _align(self, size: int) -> None:
        self.at += -(self.at - _START) % size

    def length(self) -> int:
        """A count of four bytes, which all messages of a shape share."""
        self._align(4)
        [value] = struct.unpack_from(f'{self.order}I', self.raw, self.at)
        self.fixed.append((self.at, self.at + 4))
        self.at += 4
        return int(value)

    def text(self) -> str:
        size = self.length()
        end = self.at + size
        if end > len(self.raw):
            raise ArgumentError('a message ends within a text')
        value = self.raw[self.at : end].rstrip(b'\0').decode(errors='replace')
        self.fixed.append((self.at, end))
        self.at = end
        return value

    def floats(self, name: str, count: int) -> None:
        """Numbers of a field, side by side."""
        if count:
            self._align(8)
        self.numbers[name] = self.at, count
        self.at += 8 * count
        if self.at > len(self.raw):
            raise ArgumentError(f'a message ends within {name!r}')

    def header(self) -> None:
        self.stamped = True
        self.at += 8
        self.texts['frame_id'] = (self.text(),)

    def shape(self) -> Shape:
        return Shape(self.texts, self.numbers, tuple(self.fixed), self.order, self.stamped)


def _joint_state(walk: _Walker) -> None:
    walk.header()
    walk.texts['name'] = tuple(walk.text() for _ in range(walk.length()))
    for field in ('position', 'velocity', 'effort'):
        walk.floats(field, walk.length())


def _odometry(walk: _Walker) -> None:
    walk.header()
    walk.texts['child_frame_id'] = (walk.text(),)
    for field, count in (('pose', 7), ('pose_covariance', 36), ('twist', 6), ('twist_covariance', 36)):
        walk.floats(field, count)


def _imu(walk: _Walker) -> None:
    walk.header()
    for field, count in (('orientation', 4), ('angular_velocity', 3), ('linear_acceleration', 3)):
        walk.floats(field, count)
        walk.floats(f'{field}_covariance', 9)


def _wrench(walk: _Walker) -> None:
    walk.header()
    walk.floats('force', 3)
    walk.floats('torque', 3)


def _accel(walk: _Walker) -> None:
    walk.header()
    walk.floats('accel', 6)


def _accel_with_covariance(walk: _Walker) -> None:
    _accel(walk)
    walk.floats('covariance', 36)


def _multi_array(walk: _Walker) -> None:
    """Numbers without a header; how they are laid out in several dimensions is not used."""
    for _ in range(walk.length()):
        walk.text()
        walk.length()  # size
        walk.length()  # stride
    walk.length()  # data_offset
    walk.floats('data', walk.length())


def _trajectory(walk: _Walker) -> None:
    """A trajectory; points are fields '0.positions', '0.velocities', ... '0.time' (as bytes, see below)."""
    walk.header()
    walk.texts['name'] = tuple(walk.text() for _ in range(walk.length()))
    for point in range(walk.length()):
        for field in ('positions', 'velocities', 'accelerations', 'effort'):
            walk.floats(f'{point}.{field}', walk.length())
        walk._align(4)
        walk.texts[f'{point}.time'] = (str(_duration(walk)),)


def _duration(walk: _Walker) -> int:
    """Nanoseconds."""
    sec, nanosec = struct.unpack_from(f'{walk.order}iI', walk.raw, walk.at)
    walk.fixed.append((walk.at, walk.at + 8))
    walk.at += 8
    return int(sec) * 10**9 + int(nanosec)


_WALKS: dict[str, Callable[[_Walker], None]] = {
    'sensor_msgs/msg/JointState': _joint_state,
    'nav_msgs/msg/Odometry': _odometry,
    'sensor_msgs/msg/Imu': _imu,
    'geometry_msgs/msg/WrenchStamped': _wrench,
    'trajectory_msgs/msg/JointTrajectory': _trajectory,
    'geometry_msgs/msg/AccelStamped': _accel,
    'geometry_msgs/msg/AccelWithCovarianceStamped': _accel_with_covariance,
    'std_msgs/msg/Float64MultiArray': _multi_array,
}


def shape_of(raw: bytes, kind: str) -> Shape:
    """Where the numbers of a message are.

    Raises:
        ArgumentError: these are not the bytes of such a message.
    """
    walk = _Walker(raw)
    try:
        _WALKS[kind](walk)
    except struct.error as error:
        raise ArgumentError(f'a message of {len(raw)} bytes is no {kind}') from error
    return walk.shape()


def read_batches(raws: Sequence[bytes], kind: str) -> list[Batch]:
    """Messages of one topic, those of the same shape together.

    Args:
        raws: their bytes.
        kind: type, one of those that are known here.

    Raises:
        ArgumentError: bytes that are no such message.
    """
    batches = []
    sizes = np.array([len(raw) for raw in raws], dtype=np.int64)
    for size in np.unique(sizes):
        index = np.flatnonzero(sizes == size)
        table = np.frombuffer(b''.join(raws[int(i)] for i in index), np.uint8).reshape(-1, int(size))
        while len(index):
            shape = shape_of(table[0].tobytes(), kind)
            same = np.all(table[:, :_START] == table[0, :_START], axis=1)
            for begin, end in shape.fixed:
                same &= np.all(table[:, begin:end] == table[0, begin:end], axis=1)
            batches.append(_read(table[same], index[same], shape))
            table, index = table[~same], index[~same]
    return batches


def _read(table: Bytes, index: Ints, shape: Shape) -> Batch:
    def column(at: int, count: int, kind: str) -> Floats:
        size = np.dtype(kind).itemsize * count
        part = np.ascontiguousarray(table[:, at : at + size])
        return part.view(shape.order + kind).astype(np.float64 if kind == 'f8' else np.int64)

    stamps = np.zeros(len(table), dtype=np.int64)
    if shape.stamped:
        seconds, nanoseconds = column(_START, 1, 'i4'), column(_START + 4, 1, 'u4')
        stamps = (seconds[:, 0] * 10**9 + nanoseconds[:, 0]).astype(np.int64)
    values = {name: column(at, count, 'f8') for name, (at, count) in shape.numbers.items() if count}
    return Batch(shape, index, stamps, values)
