# SPDX-License-Identifier: Apache-2.0
"""A designed motion as a bag with one trajectory, which force_node receives on `joint_targets`.

The trajectory has no stamp, so it begins when it is played. Its first point comes after some seconds, in
which the robot moves from its current pose to its rest pose.
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
    """A joint trajectory.

    Attributes:
        joint_names: of k joints.
        time: (n,) since the beginning; the first is above 0 [s].
        position: (n, k) [rad or m].
        velocity: (n, k) [rad/s or m/s].
        acceleration: (n, k) [rad/s^2 or m/s^2].
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
        path: of the bag; must not exist.
        storage: mcap or sqlite3.

    Raises:
        ArgumentError: the path exists, or the storage is unknown.
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
        ArgumentError: it is not a bag, or has no trajectory.
    """
    folder = Path(path)
    try:
        with Reader(folder) as reader:
            chosen = [one for one in reader.connections if one.msgtype == _KIND]
            for _, _, raw in reader.messages(chosen) if chosen else ():
                return _trajectory(get_typestore(Stores.ROS2_JAZZY).deserialize_cdr(raw, _KIND))
            topics = sorted({one.topic for one in reader.connections})
    except Exception as error:  # rosbags raises many exceptions for damaged bags
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
