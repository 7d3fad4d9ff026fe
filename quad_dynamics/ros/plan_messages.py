# SPDX-License-Identifier: Apache-2.0
"""Motion plans as standard messages: `motion_plan` and `contact_plan`, a pair with the same stamp.

`motion_plan` (trajectory_msgs/MultiDOFJointTrajectory) has a point for each knot of the spline, two where its
acceleration jumps: splines of the fifth order are exact from position, velocity and acceleration there.

| joint | transform | velocity | acceleration |
|---|---|---|---|
| `com` | centre of mass, and the heading about the vertical | of the centre of mass; turning | of it |
| `control_frame` | centre of mass, and R_WC: heading and ground normal | the command, in its axes | 0 |
| each foot | where it comes down next, or is down | 0 | 0 |

`contact_plan` (trajectory_msgs/JointTrajectory) has a joint for each foot, a point where each phase begins,
and one where the last ends: position 1 for a foot that is down, else 0; effort is the planned normal force.

Name of the gait and time of the solve have no place in these messages and stay in the diagnostics of the
planner. The phase ('walk', 'stop', 'stand') follows from the contacts. Times are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.ros.trajectory_cdr import CONTACTS, MULTI_DOF, Trajectory

MOTION_TOPIC, CONTACT_TOPIC = 'motion_plan', 'contact_plan'
COM, CONTROL_FRAME = 'com', 'control_frame'
# Position, velocity and acceleration of two segments that differ by no more are one knot: over short segments
# rounding alone makes accelerations differ that much [m, m/s, m/s^2].
_SAME_KNOT = (1e-12, 1e-11, 1e-9)


class PlanWriter:
    """Makes messages of plans."""

    def __init__(self, feet: Sequence[str], frame: str) -> None:
        """Prepare messages.

        Args:
            feet: names of the feet in the order of the legs.
            frame: of the world.
        """
        self._feet, self._frame = tuple(feet), frame
        self._names = (COM, CONTROL_FRAME, *self._feet)

    def write(self, plan: MotionPlan, stamp_ns: int) -> tuple[bytes, bytes]:
        """`motion_plan` and `contact_plan` as bytes.

        Args:
            plan: its time is that of the stamp.
            stamp_ns: of the state that it was made for [ns].
        """
        return MULTI_DOF.write(self._motion(plan, stamp_ns)), CONTACTS.write(self._contacts(plan, stamp_ns))

    def _motion(self, plan: MotionPlan, stamp_ns: int) -> Trajectory:
        times, p, v, a = _merged(*plan.com.knots())
        n = len(times)
        transforms = np.zeros((n, len(self._names), 7))
        velocities, accelerations = np.zeros((n, len(self._names), 6)), np.zeros((n, len(self._names), 6))
        transforms[:, :2, :3] = p[:, None]
        transforms[:, 2:, :3] = plan.footholds
        transforms[:, 2:, 6] = 1.0
        yaw = plan.yaw + plan.command[2] * (times - plan.time)
        transforms[:, 0, 3:], transforms[:, 1, 3:] = _headings(yaw), _control_frames(plan.normal, yaw)
        velocities[:, 0, :3], velocities[:, 0, 5] = v, plan.command[2]
        velocities[:, 1, :2], velocities[:, 1, 5] = plan.command[:2], plan.command[2]
        accelerations[:, 0, :3] = a
        arrays = {'transforms': transforms, 'velocities': velocities, 'accelerations': accelerations}
        return Trajectory(stamp_ns, self._frame, self._names, _nanoseconds(times, plan.time), arrays)

    def _contacts(self, plan: MotionPlan, stamp_ns: int) -> Trajectory:
        # The last point is the end of the last phase.
        down = np.vstack([plan.contacts.down, plan.contacts.down[-1:]]).astype(np.float64)
        forces = np.vstack([plan.forces, plan.forces[-1:]])
        arrays = {'positions': down[:, :, None], 'effort': forces[:, :, None]}
        times = _nanoseconds(plan.contacts.times, plan.time)
        return Trajectory(stamp_ns, self._frame, self._feet, times, arrays)


def _merged(times: Floats, p: Floats, v: Floats, a: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Knots without those of the beginnings of segments that repeat the ends of the segments before."""
    keep = np.ones(len(times), dtype=np.bool_)
    keep[2::2] = False
    for values, same in zip((p, v, a), _SAME_KNOT, strict=True):
        keep[2::2] |= np.abs(values[2::2] - values[1:-1:2]).max(axis=1, initial=0.0) > same
    return times[keep], p[keep], v[keep], a[keep]


def _nanoseconds(times: Floats, start: float) -> Ints:
    """Times since a start [s] in whole nanoseconds."""
    return np.rint((times - start) * 1e9).astype(np.int64)


def _headings(yaw: Floats) -> Floats:
    """(n, 4) quaternions x y z w of headings (n,) [rad]."""
    zero = np.zeros(len(yaw))
    return np.stack([zero, zero, np.sin(0.5 * yaw), np.cos(0.5 * yaw)], axis=1)


def _control_frames(normal: Floats, yaw: Floats) -> Floats:
    """(n, 4) quaternions x y z w of R_WC, as `Ground.axes` has it, for headings (n,) [rad]."""
    # The normal in axes of the heading. Then R_WC is a turn about z, one about x and one about y.
    x = np.cos(yaw) * normal[0] + np.sin(yaw) * normal[1]
    y = np.cos(yaw) * normal[1] - np.sin(yaw) * normal[0]
    roll, pitch = 0.5 * np.arctan2(-y, normal[2]), 0.5 * np.arctan2(x, np.hypot(y, normal[2]))
    qx, qy = np.sin(roll) * np.cos(pitch), np.cos(roll) * np.sin(pitch)
    qz, qw = np.sin(roll) * np.sin(pitch), np.cos(roll) * np.cos(pitch)
    c, s = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    return np.stack([c * qx - s * qy, c * qy + s * qx, c * qz + s * qw, c * qw - s * qz], axis=1)
