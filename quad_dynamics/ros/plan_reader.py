# SPDX-License-Identifier: Apache-2.0
"""Reads motion plans from messages, validates them, and pairs them by stamp; see `plan_messages.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.frame_names import is_frame
from quad_dynamics.parameters.parameter import nearest
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.motion_plan import ComSpline, MotionPlan
from quad_dynamics.ros.plan_messages import COM, CONTACT_TOPIC, CONTROL_FRAME, MOTION_TOPIC
from quad_dynamics.ros.trajectory_cdr import CONTACTS, MULTI_DOF, Trajectory, TrajectoryFormat

MOST_POINTS = 1000  # of a message
LONGEST_HORIZON = 60.0  # from the stamp to the last point, or from the first point to the stamp [s]
LARGEST = 1e6  # number in a message [SI]
_LENGTH_ERROR = 0.01  # by which the length of a quaternion may differ from one
_LEAST_NORMAL = 0.1  # vertical part of the normal of the ground
_MOST_PENDING = 8  # messages of a topic that wait for those of the other


class PlanReader:
    """Makes plans from messages, which may arrive in any order, and rejects invalid ones."""

    def __init__(self, feet: Sequence[str], frame: str, on_unmatched: Callable[[str], None]) -> None:
        """Expect messages.

        Args:
            feet: names of the feet in the order of the legs.
            frame: of the world; messages may prefix it.
            on_unmatched: called with a text for each message whose counterpart did not arrive.
        """
        self._feet, self._frame, self._on_unmatched = tuple(feet), frame, on_unmatched
        self._pending: dict[str, dict[int, Trajectory]] = {MOTION_TOPIC: {}, CONTACT_TOPIC: {}}

    def take_motion(self, raw: bytes) -> tuple[int, MotionPlan] | None:
        """Take a `motion_plan`; return stamp [ns] and plan if its `contact_plan` is here.

        Raises:
            ArgumentError: the message is invalid.
        """
        names = (COM, CONTROL_FRAME, *self._feet)
        found = self._checked(raw, MOTION_TOPIC, MULTI_DOF, names)
        _check_rotations(found)
        return self._take(MOTION_TOPIC, CONTACT_TOPIC, found)

    def take_contacts(self, raw: bytes) -> tuple[int, MotionPlan] | None:
        """Take a `contact_plan`; return stamp [ns] and plan if its `motion_plan` is here.

        Raises:
            ArgumentError: the message is invalid.
        """
        found = self._checked(raw, CONTACT_TOPIC, CONTACTS, self._feet)
        _check_contacts(found)
        return self._take(CONTACT_TOPIC, MOTION_TOPIC, found)

    def _take(self, topic: str, other: str, found: Trajectory) -> tuple[int, MotionPlan] | None:
        stamp = found.stamp_ns
        self._pending[topic][stamp] = found
        if stamp not in self._pending[other]:
            if len(self._pending[topic]) > _MOST_PENDING:
                self._drop(topic, next(iter(self._pending[topic])))
            return None
        motion, contacts = (self._pending[name].pop(stamp) for name in (MOTION_TOPIC, CONTACT_TOPIC))
        for name, pending in self._pending.items():
            for old in [one for one in pending if one < stamp]:
                self._drop(name, old)
        return stamp, _plan(motion, contacts)

    def _drop(self, topic: str, stamp_ns: int) -> None:
        del self._pending[topic][stamp_ns]
        other = CONTACT_TOPIC if topic == MOTION_TOPIC else MOTION_TOPIC
        self._on_unmatched(
            f'{topic} of {stamp_ns * 1e-9:.3f} s has no {other}; expected one with the same stamp'
        )

    def _checked(self, raw: bytes, topic: str, kind: TrajectoryFormat, names: Sequence[str]) -> Trajectory:
        """A message with joints in our order, checked for frame, names, times and finite numbers."""
        found = _in_order(kind.read(raw, topic), names, topic)
        if not is_frame(found.frame, self._frame):
            raise ArgumentError(f'{topic}: header.frame_id is {found.frame!r}; expected {self._frame!r}')
        _check_times(found.times_ns, topic)
        for name, values in found.arrays.items():
            good = np.abs(values) <= LARGEST
            if not good.all():
                i, j, k = np.argwhere(~good)[0].tolist()
                raise ArgumentError(
                    f'{topic}: {name} of {found.names[j]!r} in point {i} have {values[i, j, k]:g}; expected '
                    f'finite numbers of at most {LARGEST:g}'
                )
        return found


def _in_order(found: Trajectory, names: Sequence[str], topic: str) -> Trajectory:
    """The trajectory with its joints in this order."""
    if found.names == tuple(names):
        return found
    for name in found.names:
        if name not in names:
            raise ArgumentError(
                f'{topic}: unknown joint {name!r}{nearest(name, names)}; expected {list(names)}'
            )
    lacks = [name for name in names if name not in found.names]
    if lacks or len(found.names) != len(names):
        what = f'lacks {lacks}' if lacks else 'names a joint twice'
        raise ArgumentError(f'{topic} {what}; it has {list(found.names)}, expected {list(names)}')
    order = [found.names.index(name) for name in names]
    arrays = {name: values[:, order] for name, values in found.arrays.items()}
    return Trajectory(found.stamp_ns, found.frame, tuple(names), found.times_ns, arrays)


def _check_times(times_ns: Ints, topic: str) -> None:
    """Reject times that do not increase; in `motion_plan` an inner knot may occur twice."""
    n = len(times_ns)
    if not 2 <= n <= MOST_POINTS:
        raise ArgumentError(f'{topic} has {n} points; expected 2 to {MOST_POINTS}')
    steps = np.diff(times_ns)
    again = steps == 0
    if topic == MOTION_TOPIC:
        again[1:-1] = again[1:-1] & again[:-2]
    bad = (steps < 0) | again
    if bad.any():
        i = int(np.argmax(bad)) + 1
        raise ArgumentError(
            f'{topic}: time_from_start of point {i} is {times_ns[i] * 1e-9:g} s; expected more than '
            f'{times_ns[i - 1] * 1e-9:g} s, the time of the previous point'
        )
    longest = max(abs(int(times_ns[0])), abs(int(times_ns[-1]))) * 1e-9
    if longest > LONGEST_HORIZON:
        raise ArgumentError(
            f'{topic}: time_from_start goes up to {longest:g} s; expected at most {LONGEST_HORIZON:g} s'
        )


def _check_rotations(motion: Trajectory) -> None:
    """Reject invalid rotations, and ground that is too steep."""
    turns = motion.arrays['transforms'][:, :2, 3:]
    lengths = np.linalg.norm(turns, axis=2)
    wrong = np.abs(lengths - 1.0) > _LENGTH_ERROR
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        raise ArgumentError(
            f'{MOTION_TOPIC}: the quaternion of {motion.names[j]!r} in point {i} has length '
            f'{lengths[i, j]:.3g}; expected a unit quaternion'
        )
    steepest = 1.0 - 2.0 * (turns[:, 1, 0] ** 2 + turns[:, 1, 1] ** 2).max()
    if steepest < _LEAST_NORMAL:
        raise ArgumentError(
            f'{MOTION_TOPIC}: the z axis of {CONTROL_FRAME!r} has vertical component {steepest:.3g}; '
            f'expected a ground normal with at least {_LEAST_NORMAL:g}'
        )


def _check_contacts(contacts: Trajectory) -> None:
    """Reject contact states other than 0 and 1, and negative normal forces."""
    down, forces = contacts.arrays['positions'][:, :, 0], contacts.arrays['effort'][:, :, 0]
    strange = (down != 0.0) & (down != 1.0)
    if strange.any():
        i, j = np.argwhere(strange)[0].tolist()
        raise ArgumentError(
            f'{CONTACT_TOPIC}: position of {contacts.names[j]!r} in point {i} is {down[i, j]:g}; expected 1 '
            'for a foot in contact, else 0'
        )
    if (forces < 0.0).any():
        i, j = np.argwhere(forces < 0.0)[0].tolist()
        raise ArgumentError(
            f'{CONTACT_TOPIC}: effort of {contacts.names[j]!r} in point {i} is {forces[i, j]:g} N; expected '
            'at least 0'
        )


def _plan(motion: Trajectory, contacts: Trajectory) -> MotionPlan:
    """The plan of two messages with the same stamp."""
    transforms, velocities = motion.arrays['transforms'], motion.arrays['velocities']
    begins = np.flatnonzero(np.diff(motion.times_ns))
    rows = np.stack([begins, begins + 1], axis=1).reshape(-1)  # both ends of each segment
    accelerations = motion.arrays['accelerations'][rows, 0, :3]
    com = ComSpline.from_knots(
        _seconds(motion)[rows], transforms[rows, 0, :3], velocities[rows, 0, :3], accelerations
    )
    vx, vy, _, _, _, wz = velocities[0, 1].tolist()
    down = contacts.arrays['positions'][:-1, :, 0] > 0.5
    return MotionPlan(
        time=motion.stamp_ns * 1e-9,
        phase=_phase(down),
        gait='',
        command=(vx, vy, wz),
        com=com,
        yaw=_heading(transforms[0, 0, 3:]) - wz * float(motion.times_ns[0]) * 1e-9,
        contacts=ContactSchedule(_seconds(contacts), down),
        footholds=transforms[0, 2:, :3].copy(),
        forces=contacts.arrays['effort'][:-1, :, 0].copy(),
        normal=_normal(transforms[0, 1, 3:]),
    )


def _seconds(found: Trajectory) -> Floats:
    """(points,) times [s], computed from stamps as for states, so that equal stamps give equal times."""
    return np.asarray((found.stamp_ns + found.times_ns) * 1e-9, dtype=np.float64)


def _phase(down: npt.NDArray[np.bool_]) -> str:
    """'walk' if a foot is lifted within the horizon, 'stop' if feet only come down, else 'stand'."""
    lifted = (down[:-1] & ~down[1:]).any()
    return 'walk' if lifted else ('stand' if down.all() else 'stop')


def _heading(quaternion: Floats) -> float:
    """Heading of a rotation about the vertical, or nearly so [rad]."""
    x, y, z, w = (quaternion / np.linalg.norm(quaternion)).tolist()
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def _normal(quaternion: Floats) -> Floats:
    """(3,) z axis of a rotation."""
    x, y, z, w = (quaternion / np.linalg.norm(quaternion)).tolist()
    return np.array([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])
