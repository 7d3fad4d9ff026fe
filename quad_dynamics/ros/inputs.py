# SPDX-License-Identifier: Apache-2.0
"""The latest samples of all sensors, and the robot state that they form."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

# Tolerance of the length of a quaternion.
_LENGTH_ERROR = 0.05
# Largest difference of the stamps of two successive samples [ns].
_STRAY_NS = 250_000_000


class Inputs:
    """Samples by their stamps.

    Attributes:
        joint_stamp: of the latest joint states [ns], -1 before the first; likewise for the others.
        odom_stamp: [ns].
        foot_stamps: of each foot [ns].
    """

    def __init__(self, model: Model, lock_step: bool, timeout: float) -> None:
        """Expect samples.

        Args:
            model: robot; one with a floating base needs odometry.
            lock_step: all samples must have the same stamp.
            timeout: how much older odometry and foot forces may be than the joint states [s].
        """
        self._model, self._lock_step, self.timeout = model, lock_step, timeout
        feet = len(model.foot_names)
        self.joint_stamp = self.odom_stamp = -1
        self.foot_stamps = [-1] * feet
        self._joints: tuple[Floats, Floats, Floats] | None = None
        self._base: tuple[Floats, Floats] | None = None
        self._forces = np.zeros((feet, 3))
        self._in_foot_axes = [False] * feet
        self._strays: dict[str, int] = {}
        for foot in model.foot_names:  # compiles
            frame_pose(model, np.array(model.neutral), foot)

    def joints(self, stamp_ns: int, q_j: Floats, qd_j: Floats, tau: Floats) -> None:
        """Take joint states, each array (nj,)."""
        self._joints = q_j, qd_j, tau
        self.joint_stamp = stamp_ns

    def odometry(self, stamp_ns: int, pose: Floats, twist: Floats) -> None:
        """Take odometry.

        Args:
            stamp_ns: [ns].
            pose: (7,) position in the world, quaternion.
            twist: (6,) linear and angular velocity in the axes of the base.

        Raises:
            ArgumentError: the quaternion is not a unit quaternion, or the stamp is out of order.
        """
        self._check_age('odom', stamp_ns, self.odom_stamp)
        x, y, z, w = quaternion = pose[3:].tolist()
        length = math.sqrt(x * x + y * y + z * z + w * w)
        if abs(length - 1.0) > _LENGTH_ERROR:
            raise ArgumentError(
                f'odom: the quaternion {quaternion} has length {length:.3g}; expected a unit quaternion'
            )
        place = np.array(pose)
        place[3:] /= length
        motion = np.array(twist)
        motion[:3] = rotated(place[3:].tolist(), twist[:3].tolist())
        self._base = place, motion
        self.odom_stamp = stamp_ns

    def foot_force(self, stamp_ns: int, foot: int, force: Floats, in_foot_axes: bool = False) -> None:
        """Take the force of the ground on a foot.

        Args:
            stamp_ns: [ns].
            foot: its number.
            force: (3,) [N].
            in_foot_axes: it is in the axes of the foot's link, not of the world.

        Raises:
            ArgumentError: the stamp is out of order.
        """
        self._check_age(f'foot force of {self._model.foot_names[foot]}', stamp_ns, self.foot_stamps[foot])
        self._forces[foot], self._in_foot_axes[foot] = force, in_foot_axes
        self.foot_stamps[foot] = stamp_ns

    def _check_age(self, what: str, stamp: int, known: int) -> None:
        """Reject a sample whose stamp is far from the previous one; not needed in lock-step.

        A second such sample in a row is accepted: time has moved on while messages were lost.
        """
        if self._lock_step or 0 <= stamp - known <= _STRAY_NS or not self._is_recent(known):
            self._strays.pop(what, None)
            return
        stray = self._strays.pop(what, None)
        if stray is None or not 0 <= stamp - stray <= _STRAY_NS:
            self._strays[what] = stamp
            raise ArgumentError(
                f'{what} has stamp {stamp * 1e-9:.3f} s, the previous one {known * 1e-9:.3f} s; expected a '
                'slightly later stamp'
            )

    def forget(self) -> None:
        """Forget all but the joint states: time was reset, or they have been answered."""
        self.odom_stamp, self.foot_stamps = -1, [-1] * len(self.foot_stamps)

    @property
    def missing(self) -> str:
        """What is missing for a state; '' if nothing is."""
        if self._joints is None:
            return 'no joint_states yet'
        if not self._model.floating_base:
            return ''
        if self._lock_step:
            return self._not_of_this_stamp()
        if self._base is None or self.odom_stamp < 0:
            return 'no odom yet'
        if not self._is_recent(self.odom_stamp):
            age = (self.joint_stamp - self.odom_stamp) * 1e-9
            return f'odom is {age:.3g} s older than joint_states; expected at most {self.timeout:g} s'
        return ''

    def _not_of_this_stamp(self) -> str:
        if self.odom_stamp != self.joint_stamp:
            return 'no odom with this stamp yet'
        for name, stamp in zip(self._model.foot_names, self.foot_stamps, strict=True):
            if stamp != self.joint_stamp:
                return f'no foot_forces of {name} with this stamp yet'
        return ''

    def state(self) -> RobotState:
        """The state; only if nothing is `missing`."""
        assert self._joints is not None
        q_j, qd_j, tau = self._joints
        time = self.joint_stamp * 1e-9
        if not self._model.floating_base:
            return RobotState(time, np.array(q_j), np.array(qd_j), None, np.array(tau))
        assert self._base is not None
        pose, twist = self._base
        q, u = np.concatenate((pose, q_j)), np.concatenate((twist, qd_j))
        forces = self._forces_in_world(q) if self.feet_measured else None
        return RobotState(time, q, u, forces, np.array(tau))

    def _forces_in_world(self, q: Floats) -> Floats:
        """(feet, 3) in world axes."""
        forces = self._forces.copy()
        for foot, in_foot_axes in enumerate(self._in_foot_axes):
            if in_foot_axes and forces[foot].any():
                R_WF, _ = frame_pose(self._model, q, self._model.foot_names[foot])
                forces[foot] = R_WF @ forces[foot]
        return forces

    @property
    def feet_measured(self) -> bool:
        """Whether the forces on all feet are known and recent."""
        return bool(self.foot_stamps) and all(map(self._is_recent, self.foot_stamps))

    def _is_recent(self, stamp: int) -> bool:
        # A later stamp is fine: it was measured while these joint states were on their way.
        return stamp >= 0 and abs(self.joint_stamp - stamp) <= self.timeout * 1e9


def rotated(quaternion: list[float], v: list[float]) -> tuple[float, float, float]:
    """R v with the rotation R of a unit quaternion x y z w."""
    x, y, z, w = quaternion
    a, b, c = v
    # v + 2 w (r x v) + 2 r x (r x v)
    tx, ty, tz = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return (
        a + w * tx + y * tz - z * ty,
        b + w * ty + z * tx - x * tz,
        c + w * tz + x * ty - y * tx,
    )
