# SPDX-License-Identifier: Apache-2.0
"""A designed motion as a bag with one trajectory, as force_node takes it from `joint_targets`.

It has no stamp, so that it begins when it is played. The first point comes after some seconds: until then the
robot goes from wherever it is to its resting pose.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from quad_dynamics.array_types import Floats
from quad_dynamics.bags.message_bag import MessageBag
from quad_dynamics.errors import ArgumentError

TOPIC = '/joint_targets'
_KIND = 'trajectory_msgs/msg/JointTrajectory'


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Points that joints go through.

    Attributes:
        joint_names: of k joints.
        time: (n,) since the beginning, the first above 0 [s].
        position: (n, k) [rad or m].
        velocity: likewise.
        acceleration: likewise.
    """

    joint_names: tuple[str, ...]
    time: Floats
    position: Floats
    velocity: Floats
    acceleration: Floats


def write_trajectory(trajectory: Trajectory, path: str | os.PathLike[str], storage: str = 'mcap') -> None:
    """Write a bag.

    Args:
        trajectory: of the joints.
        path: of the bag, where nothing is yet.
        storage: mcap or sqlite3.

    Raises:
        ArgumentError: there is something already, or the storage is not known.
    """
    with MessageBag(path, storage) as bag:
        types = bag.types.types
        zero = types['builtin_interfaces/msg/Time'](sec=0, nanosec=0)
        message = types[_KIND](
            header=types['std_msgs/msg/Header'](stamp=zero, frame_id=''),
            joint_names=list(trajectory.joint_names),
            points=[_point(types, trajectory, i) for i in range(len(trajectory.time))],
        )
        bag.topic(TOPIC, _KIND)(0, message)


def read_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """The first trajectory in a bag.

    Raises:
        ArgumentError: it is no bag, or has no trajectory.
    """
    folder = Path(path)
    try:
        with Reader(folder) as reader:
            chosen = [one for one in reader.connections if one.msgtype == _KIND]
            for _, _, raw in reader.messages(chosen) if chosen else ():
                return _trajectory(get_typestore(Stores.ROS2_JAZZY).deserialize_cdr(raw, _KIND))
            topics = sorted({one.topic for one in reader.connections})
    except Exception as error:  # rosbags raises many kinds for damaged bags
        raise ArgumentError(f'{folder} cannot be read: {str(error).rstrip(".")}') from error
    raise ArgumentError(
        f'{folder} has no JointTrajectory; expected a bag of `quad_dynamics excite`, not {topics}'
    )


def _point(types: Any, trajectory: Trajectory, i: int) -> Any:
    sec, nanosec = divmod(round(float(trajectory.time[i]) * 1e9), 10**9)
    return types['trajectory_msgs/msg/JointTrajectoryPoint'](
        positions=np.ascontiguousarray(trajectory.position[i]),
        velocities=np.ascontiguousarray(trajectory.velocity[i]),
        accelerations=np.ascontiguousarray(trajectory.acceleration[i]),
        effort=np.empty(0),
        time_from_start=types['builtin_interfaces/msg/Duration'](sec=sec, nanosec=nanosec),
    )


def _trajectory(message: Any) -> Trajectory:
    points = message.points
    stamps = [point.time_from_start for point in points]
    return Trajectory(
        tuple(message.joint_names),
        np.array([stamp.sec + stamp.nanosec * 1e-9 for stamp in stamps]),
        *(
            np.array([getattr(p, name) for p in points])
            for name in ('positions', 'velocities', 'accelerations')
        ),
    )
