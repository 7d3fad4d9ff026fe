# SPDX-License-Identifier: Apache-2.0
"""Numbers of messages, read from their bytes as rclpy reads them, and nothing else taken for good."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from quad_dynamics.errors import ArgumentError

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu

from quad_dynamics.ros import messages
from quad_dynamics.ros.diagnostics import OK, Diagnostics
from quad_dynamics.ros.readers import ANY, IMU, ODOMETRY, WRENCH, NumberReader

KINDS = {'odom': (Odometry, ODOMETRY), 'imu': (Imu, IMU), 'wrench': (WrenchStamped, WRENCH)}


def made(kind: str, seed: int, frame: str = 'odom') -> tuple[bytes, dict[str, np.ndarray]]:
    """A message with random numbers, as bytes, and those numbers."""
    rng = np.random.default_rng(seed)
    template = {
        'odom': lambda: messages.odometry(frame, 'body'),
        'imu': lambda: messages.imu(frame, 0.1, 0.2, 0.3),
        'wrench': lambda: messages.wrench(frame),
    }[kind]()
    for numbers in template.numbers.values():
        numbers[:] = rng.standard_normal(numbers.size)
    return template.bytes(12_000_000_034), {name: x.copy() for name, x in template.numbers.items()}


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('frame', ['odom', 'a/odom', 'robot_3/odom'])
def test_numbers_are_those_of_the_message(kind: str, frame: str) -> None:
    reader = NumberReader(*KINDS[kind], 'topic', {'header.frame_id': 'odom'})
    for seed in range(3):
        raw, numbers = made(kind, seed, frame)
        found = reader.read(raw)
        assert found.stamp_ns == 12_000_000_034
        read = [x for name, x in numbers.items() if 'covariance' not in name]
        for ours, theirs in zip(found.arrays.values(), read, strict=True):
            assert ours.tolist() == theirs.tolist()


def test_a_reader_tells_which_frame_a_message_has() -> None:
    reader = NumberReader(*KINDS['wrench'], 'topic', {'header.frame_id': ('odom', 'FL_foot')})
    for frame, expected in [('odom', 'odom'), ('FL_foot', 'FL_foot'), ('r1/FL_foot', 'FL_foot')]:
        reader.read(made('wrench', 0, frame)[0])
        assert reader.frames == {'header.frame_id': expected}
    with pytest.raises(ArgumentError, match=r"header\.frame_id is 'FR_foot'; expected 'odom' or 'FL_foot'"):
        reader.read(made('wrench', 0, 'FR_foot')[0])
    anything = NumberReader(*KINDS['wrench'], 'topic', {'header.frame_id': ('FL_foot', ANY)})
    anything.read(made('wrench', 0, 'somewhere')[0])
    assert anything.frames == {'header.frame_id': 'somewhere'}


def test_numbers_are_where_rclpy_finds_them() -> None:
    raw, _ = made('odom', 7)
    message = deserialize_message(raw, Odometry)
    found = NumberReader(Odometry, ODOMETRY, 'odom').read(raw).arrays
    p, turn, v = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist.linear
    assert found['pose'].tolist() == [p.x, p.y, p.z, turn.x, turn.y, turn.z, turn.w]
    assert found['twist'][:3].tolist() == [v.x, v.y, v.z]


@pytest.mark.parametrize('kind', KINDS)
def test_damaged_bytes_are_refused(kind: str) -> None:
    raw, _ = made(kind, 0)
    reader = NumberReader(*KINDS[kind], 'topic', {'header.frame_id': 'odom'})
    reader.read(raw)
    for bad in [raw[:n] for n in range(0, len(raw), 7)] + [raw + b'\0' * 8, b'\0\0' + raw[2:]]:
        with pytest.raises(ArgumentError, match='topic: '):
            reader.read(bad)
    rng = np.random.default_rng(1)
    for _ in range(300):  # any bytes are numbers or an error, and nothing else
        broken = bytearray(raw)
        for place in rng.integers(0, len(raw), 3):
            broken[place] = rng.integers(256)
        try:
            found = reader.read(bytes(broken))
        except ArgumentError:
            continue
        assert all(np.isfinite(x).all() for x in found.arrays.values())
    reader.read(raw)  # and it still knows a good one


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named(value: float) -> None:
    template = messages.odometry('odom', 'body')
    template.numbers['pose'][6] = 1.0
    reader = NumberReader(Odometry, ODOMETRY, 'odom')
    reader.read(template.bytes(0))
    template.numbers['twist'][4] = value
    with pytest.raises(ArgumentError, match=r'odom: twist.twist.angular.y is -?(nan|inf); expected finite'):
        reader.read(template.bytes(0))
    template.numbers['twist'][:] = 1e308  # the sum is not finite, but they are
    reader.read(template.bytes(0))


def test_another_frame_is_refused_and_named() -> None:
    reader = NumberReader(Odometry, ODOMETRY, 'odom', {'header.frame_id': 'odom', 'child_frame_id': 'trunk'})
    with pytest.raises(ArgumentError, match=r"odom: child_frame_id is 'body'; expected 'trunk'"):
        reader.read(made('odom', 0)[0])
    with pytest.raises(ArgumentError, match=r"header.frame_id is 'map'; expected 'odom'"):
        reader.read(made('odom', 0, 'map')[0])


def test_covariances_may_change() -> None:
    message: Any = Odometry()
    reader = NumberReader(Odometry, ODOMETRY, 'odom')
    for i in range(3):
        message.pose.covariance[0] = float(i)
        message.pose.pose.position.x = 10.0 + i
        assert reader.read(serialize_message(message)).arrays['pose'][0] == 10.0 + i


@pytest.mark.parametrize(
    ('stamp_ns', 'sec', 'nanosec'),
    [
        (12_000_000_034, 12, 34),
        ((2**31 - 1) * 10**9 + 2**32 - 1, 2**31 - 1, 999_999_999),  # the latest that a message can say
        (-(2**31 + 1) * 10**9, -(2**31), 0),
    ],
    ids=['good', 'too late', 'too early'],
)
def test_diagnostics_of_any_stamp(stamp_ns: int, sec: int, nanosec: int) -> None:
    """Joint states with more nanoseconds than a second has must not keep it from being published."""
    published: list[Any] = []
    node = SimpleNamespace(
        create_publisher=lambda *_: SimpleNamespace(publish=published.append),
        get_fully_qualified_name=lambda: '/force_node',
    )
    Diagnostics(node).publish(OK, 'stand', stamp_ns)
    stamp = published[0].header.stamp
    assert (stamp.sec, stamp.nanosec) == (sec, nanosec)
    assert serialize_message(published[0])
