# SPDX-License-Identifier: Apache-2.0
"""Converts many messages of one topic to arrays at once, from their bytes (CDR).

Messages of a topic nearly always have the same strings and lengths, and differ only in numbers. The positions
of the numbers are found from one message, and then used for all.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bytes, Floats, Ints
from quad_dynamics.bags.cdr_layout import HEAD, CdrError, MessageLayout, Walked
from quad_dynamics.errors import ArgumentError


@dataclass(frozen=True)
class Shape:
    """Common structure of messages that differ only in numbers.

    Attributes:
        texts: strings: frames, joints.
        numbers: offset and count of the numbers of each field [bytes].
        fixed: offsets of the bytes that must be the same.
        order: byte order, '<' or '>'.
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
        index: (n,) indices of these messages.
        stamps: (n,) of their headers [ns]; 0 if they have none.
        values: (n, k) of each field.
    """

    shape: Shape
    index: Ints
    stamps: Ints
    values: dict[str, Floats]


_IMU = ('orientation', 'angular_velocity', 'linear_acceleration')
# Numbers of each message type: name, and path of their field. Those of the points of a trajectory are
# 'points.0.positions', ...
_NUMBERS = {
    'sensor_msgs/msg/JointState': {name: name for name in ('position', 'velocity', 'effort')},
    'nav_msgs/msg/Odometry': {
        'pose': 'pose.pose',
        'pose_covariance': 'pose.covariance',
        'twist': 'twist.twist',
        'twist_covariance': 'twist.covariance',
    },
    'sensor_msgs/msg/Imu': {name: name for name in (*_IMU, *(f'{name}_covariance' for name in _IMU))},
    'geometry_msgs/msg/WrenchStamped': {'force': 'wrench.force', 'torque': 'wrench.torque'},
    'trajectory_msgs/msg/JointTrajectory': {},
    'geometry_msgs/msg/AccelStamped': {'accel': 'accel'},
    'geometry_msgs/msg/AccelWithCovarianceStamped': {
        'accel': 'accel.accel',
        'covariance': 'accel.covariance',
    },
    'std_msgs/msg/Float64MultiArray': {'data': 'data'},
}
_STAMP = ('header.stamp.sec', 'header.stamp.nanosec')


@functools.cache
def _layout(kind: str) -> MessageLayout:
    return MessageLayout(kind)


def shape_of(raw: bytes, kind: str) -> Shape:
    """Find the numbers of a message.

    Raises:
        ArgumentError: the bytes are not a valid message of this type.
    """
    try:
        walked = _layout(kind).walk(raw)
    except CdrError as error:
        raise ArgumentError(f'a message of {len(raw)} bytes is no {kind}: {error}') from error
    texts = {path.removeprefix('header.'): found for path, found in walked.texts.items()}
    if 'joint_names' in texts:
        texts['name'] = texts.pop('joint_names')
    numbers = {name: walked.place(path) for name, path in _NUMBERS[kind].items()}
    fixed = list(walked.fixed)
    for path, place in walked.numbers.items():
        if path.startswith('points.') and place.kind == 'f8':
            numbers[path.removeprefix('points.')] = place
        elif place.kind != 'f8' and path not in _STAMP:  # times of points, sizes of arrays
            fixed.append((place.at, place.end))
    for point in range(sum(path.endswith('.time_from_start.sec') for path in walked.numbers)):
        texts[f'{point}.time'] = (str(_duration(raw, walked, f'points.{point}.time_from_start')),)
    places = {name: (place.at, place.count) for name, place in numbers.items()}
    return Shape(texts, places, tuple(fixed), walked.order, _STAMP[0] in walked.numbers)


def _duration(raw: bytes, walked: Walked, path: str) -> int:
    """Nanoseconds."""
    sec, nanosec = struct.unpack_from(f'{walked.order}iI', raw, walked.numbers[f'{path}.sec'].at)
    return int(sec) * 10**9 + int(nanosec)


def read_batches(raws: Sequence[bytes], kind: str) -> list[Batch]:
    """Messages of one topic, grouped by shape.

    Args:
        raws: their bytes.
        kind: type, one of those known here.

    Raises:
        ArgumentError: the bytes are not a valid message.
    """
    batches = []
    sizes = np.array([len(raw) for raw in raws], dtype=np.int64)
    for size in np.unique(sizes):
        index = np.flatnonzero(sizes == size)
        table = np.frombuffer(b''.join(raws[int(i)] for i in index), np.uint8).reshape(-1, int(size))
        while len(index):
            shape = shape_of(table[0].tobytes(), kind)
            same = np.all(table[:, :HEAD] == table[0, :HEAD], axis=1)
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
        seconds, nanoseconds = column(HEAD, 1, 'i4'), column(HEAD + 4, 1, 'u4')
        stamps = (seconds[:, 0] * 10**9 + nanoseconds[:, 0]).astype(np.int64)
    values = {name: column(at, count, 'f8') for name, (at, count) in shape.numbers.items() if count}
    return Batch(shape, index, stamps, values)
