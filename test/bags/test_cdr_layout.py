# SPDX-License-Identifier: Apache-2.0
"""Where fields are in the bytes of messages: against rosbags' own serializer, in both orders of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quad_dynamics.bags.cdr_layout import CdrError, MessageLayout, Walked
from quad_dynamics.bags.topics import known_types

JOINT_STATE, TRAJECTORY = 'sensor_msgs/msg/JointState', 'trajectory_msgs/msg/JointTrajectory'
ODOMETRY, MARKERS = 'nav_msgs/msg/Odometry', 'visualization_msgs/msg/MarkerArray'


def make(kind: str, **fields: Any) -> Any:
    return known_types().types[kind](**fields)


def header(frame: str) -> Any:
    stamp = make('builtin_interfaces/msg/Time', sec=3, nanosec=7)
    return make('std_msgs/msg/Header', stamp=stamp, frame_id=frame)


def joint_state(names: list[str]) -> Any:
    numbers = np.random.default_rng(len(names)).normal(size=(3, len(names)))
    return make(
        JOINT_STATE,
        header=header('odd length'),
        name=names,
        position=numbers[0],
        velocity=np.zeros(0),
        effort=numbers[2],
    )


def values(walked: Walked, raw: bytes, path: str) -> Any:
    place = walked.place(path)
    return np.frombuffer(raw, walked.order + place.kind, place.count, place.at)


def serialized(message: Any, kind: str, little: bool) -> bytes:
    return bytes(known_types().serialize_cdr(message, kind, little_endian=little))


@pytest.mark.parametrize('little', [True, False])
@pytest.mark.parametrize('names', [[], ['a'], ['a', 'bcd', 'ef']], ids=len)
def test_joint_state(names: list[str], little: bool) -> None:
    message = joint_state(names)
    raw = serialized(message, JOINT_STATE, little)
    walked = MessageLayout(JOINT_STATE).walk(raw)
    assert walked.texts == {'header.frame_id': ('odd length',), 'name': tuple(names)}
    assert values(walked, raw, 'header.stamp.nanosec').tolist() == [7]
    for field in ('position', 'velocity', 'effort'):
        assert values(walked, raw, field).tolist() == getattr(message, field).tolist()
    assert walked.end == len(raw)


@pytest.mark.parametrize('little', [True, False])
def test_points_of_a_trajectory(little: bool) -> None:
    duration = make('builtin_interfaces/msg/Duration', sec=1, nanosec=2)
    empty = np.zeros(0)
    points = [
        make(
            'trajectory_msgs/msg/JointTrajectoryPoint',
            positions=np.array([1.0, k]),
            velocities=empty,
            accelerations=empty,
            effort=np.array([k, 2.0]),
            time_from_start=duration,
        )
        for k in range(3)
    ]
    message = make(TRAJECTORY, header=header('x'), joint_names=['a', 'b'], points=points)
    raw = serialized(message, TRAJECTORY, little)
    walked = MessageLayout(TRAJECTORY).walk(raw)
    assert [values(walked, raw, f'points.{k}.effort').tolist() for k in range(3)] == [
        [k, 2.0] for k in range(3)
    ]
    assert values(walked, raw, 'points.2.time_from_start.nanosec').tolist() == [2]
    assert walked.end == len(raw)


def test_numbers_below_a_path_are_one_place() -> None:
    layout = MessageLayout(ODOMETRY)
    empty = (
        bytes(4) + bytes(8) + b'\1\0\0\0\0' + bytes(3) + b'\1\0\0\0\0' + bytes(3 + 8 * (7 + 36 + 6 + 36) + 4)
    )
    walked = layout.walk(b'\0\1' + empty[2:])
    assert walked.place('pose.pose').count == 7
    assert walked.paths('twist.twist')[4] == 'twist.twist.angular.y'
    assert walked.place('twist.covariance').end == walked.end
    with pytest.raises(KeyError):
        walked.place('nothing')
    with pytest.raises(CdrError, match='contiguous'):
        walked.place('header')


def test_types_that_hold_nothing_but_numbers_are_one_place_in_a_sequence() -> None:
    raw = b'\0\1\0\0' + bytes(4)  # an array without markers
    assert MessageLayout(MARKERS).walk(raw).end == len(raw)
    fields = {'pack/msg/Line': {'points': 'geometry_msgs/Point[]'}}
    point = {'x': 'double', 'y': 'double', 'z': 'double'}
    layout = MessageLayout('pack/msg/Line', lambda kind: fields.get(kind, point))
    raw = b'\0\1\0\0' + b'\2\0\0\0' + bytes(4) + np.arange(6.0).tobytes()
    assert values(layout.walk(raw), raw, 'points').tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize('seed', range(3))
def test_damaged_bytes_end_in_our_error_or_within_the_message(seed: int) -> None:
    rng = np.random.default_rng(seed)
    raw = serialized(joint_state(['a', 'bcd', 'ef']), JOINT_STATE, True)
    layout = MessageLayout(JOINT_STATE)
    for n in range(len(raw)):
        with pytest.raises(CdrError):
            layout.walk(raw[:n])
    for _ in range(300):
        broken = bytearray(raw)
        for place in rng.integers(0, len(raw), 3):
            broken[place] = rng.integers(256)
        try:
            walked = layout.walk(bytes(broken))
        except CdrError:
            continue
        assert walked.end <= len(raw)


def test_the_same_from_definitions_of_ros_and_from_those_that_are_installed() -> None:
    pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
    from quad_dynamics.ros.subscriptions import fields_of

    for kind in (JOINT_STATE, TRAJECTORY, ODOMETRY, MARKERS):
        assert MessageLayout(kind)._parts == MessageLayout(kind, fields_of)._parts
