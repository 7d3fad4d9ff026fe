# SPDX-License-Identifier: Apache-2.0
"""Joint targets, from a trajectory that may name only some of the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.parameters.parameter import nearest

# More would take longer to prepare than the command timeout of the drives.
MOST_POINTS = 3000
# How far in the future a trajectory may start; beyond that, its stamp is from another clock [s].
LATEST_START = 60.0


@dataclass(frozen=True, eq=False)
class Targets:
    """A trajectory of all joints.

    Attributes:
        start: start time, in the time of states; it may have passed [s].
        times: (N,) since then [s].
        q: (N, nj) positions.
        qd: (N, nj) velocities; None: computed from the positions.
        qdd: (N, nj) accelerations; None: computed from the rest.
    """

    start: float
    times: Floats
    q: Floats
    qd: Floats | None
    qdd: Floats | None


def read_targets(message: Any, model: Model, now: float, here: Floats) -> Targets:
    """Targets from a trajectory_msgs/JointTrajectory.

    It starts at its stamp, or now if that is zero. If it arrives late, the part that has passed is skipped.
    Joints that it does not name are held in place.

    Args:
        message: with `header.stamp`, `joint_names` and `points`.
        model: robot.
        now: time of the latest state [s].
        here: (nj,) positions of the joints now.

    Raises:
        ArgumentError: the trajectory is invalid; the message names joint and point.
    """
    columns = _columns(list(message.joint_names), model)
    points = list(message.points)
    if not 0 < len(points) <= MOST_POINTS:
        raise ArgumentError(f'joint_targets has {len(points)} points; expected 1 to {MOST_POINTS}')
    times = _times(points)
    values = {
        name: _values(points, name, columns, model) for name in ('positions', 'velocities', 'accelerations')
    }
    positions = values['positions']
    if positions is None:
        raise ArgumentError('joint_targets has no positions; expected one per joint in each point')
    _check_range(positions, columns, model)
    start = _start(message.header.stamp, now, float(times[-1]))
    q = np.tile(here, (len(points), 1))
    q[:, columns] = positions
    qd, qdd = (_filled(values[name], columns, model.nj) for name in ('velocities', 'accelerations'))
    if qd is None and qdd is not None:
        raise ArgumentError('joint_targets has accelerations without velocities; expected both, or neither')
    return Targets(start, times, q, qd, qdd)


def _columns(names: list[str], model: Model) -> list[int]:
    if not names:
        raise ArgumentError(f'joint_targets names no joints; expected some of {list(model.joint_names)}')
    for name in names:
        if name not in model.joint_names:
            raise ArgumentError(
                f'joint_targets: unknown joint {name!r}{nearest(name, model.joint_names)}; expected some of '
                f'{list(model.joint_names)}'
            )
        if names.count(name) > 1:
            raise ArgumentError(f'joint_targets names {name!r} twice; expected each joint once')
    return [model.joint_names.index(name) for name in names]


def _times(points: Sequence[Any]) -> Floats:
    stamps = [point.time_from_start for point in points]
    times = np.array([stamp.sec + stamp.nanosec * 1e-9 for stamp in stamps])
    if times[0] < 0.0:
        raise ArgumentError(
            f'joint_targets: time_from_start of point 0 is {times[0]:g} s; expected at least 0'
        )
    late = np.flatnonzero(np.diff(times) <= 0.0)
    if len(late):
        i = int(late[0]) + 1
        raise ArgumentError(
            f'joint_targets: time_from_start of point {i} is {times[i]:g} s; expected more than '
            f'{times[i - 1]:g} s, the time of the previous point'
        )
    return times


def _values(points: Sequence[Any], name: str, columns: list[int], model: Model) -> Floats | None:
    """(N, joints named) positions, velocities or accelerations; None if no point has any."""
    sizes = [len(getattr(point, name)) for point in points]
    if name != 'positions' and not any(sizes):
        return None
    for i, size in enumerate(sizes):
        if size != len(columns):
            raise ArgumentError(
                f'joint_targets: point {i} has {size} {name}; expected {len(columns)}, one per joint'
            )
    values = np.array([getattr(point, name) for point in points], dtype=np.float64)
    if not np.isfinite(values).all():
        i, k = np.argwhere(~np.isfinite(values))[0].tolist()
        joint = model.joint_names[columns[k]]
        raise ArgumentError(
            f'joint_targets: {name} of {joint!r} in point {i} is {values[i, k]}; expected finite numbers'
        )
    return values


def _check_range(positions: Floats, columns: list[int], model: Model) -> None:
    low, high = model.q_min[columns], model.q_max[columns]
    outside = np.argwhere((positions < low) | (positions > high))
    if len(outside):
        i, k = outside[0].tolist()
        raise ArgumentError(
            f'joint_targets: position of {model.joint_names[columns[k]]!r} in point {i} is '
            f'{positions[i, k]:g}; expected {low[k]:g} to {high[k]:g}'
        )


def _filled(values: Floats | None, columns: list[int], nj: int) -> Floats | None:
    if values is None:
        return None
    whole = np.zeros((len(values), nj))
    whole[:, columns] = values
    return whole


def _start(stamp: Any, now: float, duration: float) -> float:
    # Computed like the time of states, so that equal stamps give equal times.
    start = (stamp.sec * 10**9 + stamp.nanosec) * 1e-9
    if start == 0.0:
        return now
    is_over = start < now and start + duration <= now
    if is_over or start > now + LATEST_START:
        raise ArgumentError(
            f'joint_targets starts at {start:g} s and lasts {duration:g} s, but the time is {now:g} s'
            f'{": all of its points have passed" if is_over else ""}; expected a stamp in the time of '
            'joint_states, or zero for now'
        )
    return float(start)
