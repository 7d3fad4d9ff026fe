# SPDX-License-Identifier: Apache-2.0
"""From the designed coordinates to the state of the robot.

With a fixed base, the coordinates are joints. With all feet on the ground, they are the six coordinates of
the base, and the joints follow by inverse kinematics, because the feet stay in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import leg_length, resting_pose
from quad_dynamics.api.kinematics import frame_bias_acceleration, frame_jacobian, frame_pose, frame_velocity
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.rotations import angular_motion, quaternion, rotation_vector
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.model.model import Model

_SWEEPS = 15
_CLOSE = 1e-10  # tolerance of foot positions, relative to a leg's length
_DAMPING = 1e-9  # relative to the trace of J J^T
_LONGEST_STEP = 0.3  # of a joint in one sweep [rad or m]
_EDGE = 0.1  # distance of a resting joint from the ends, relative to its range
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class States:
    """States at n times.

    Attributes:
        q: (n, nq) configurations; u: (n, nv) velocities; du: (n, nv) accelerations.
        miss: (n,) largest position error of a foot, relative to a leg's length; 0 with a fixed base.
        contact: (n, 3 feet, nv) Jacobian of the lowest points of the feet, which do not slip; zero for feet
            in the air, no rows with a fixed base.
    """

    q: Floats
    u: Floats
    du: Floats
    miss: Floats
    contact: Floats

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """(n, feet) which feet are on the ground."""
        n, rows, nv = self.contact.shape
        return np.asarray(self.contact.reshape(n, rows // 3, 3 * nv).any(axis=2))

    def repeated(self, count: int) -> States:
        """The same states, repeated `count` times."""
        return joined([self] * count)

    def without(self, foot: int) -> States:
        """The same states with one foot in the air."""
        contact = self.contact.copy()
        contact[:, 3 * foot : 3 * foot + 3] = 0.0
        return States(self.q, self.u, self.du, self.miss, contact)

    def later(self) -> States:
        """The same states without the first one, to follow others that end there."""
        return States(self.q[1:], self.u[1:], self.du[1:], self.miss[1:], self.contact[1:])


def joined(parts: Sequence[States]) -> States:
    """Concatenated states."""
    names = ('q', 'u', 'du', 'miss', 'contact')
    return States(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class Motion(Protocol):
    """A type of motion, as the search uses it.

    Attributes:
        model: robot.
        scale: (coordinates,) initial amplitude of each [rad or m].
        joints: indices of the moving joints.
    """

    model: Model
    scale: Floats
    joints: Ints

    def states(
        self, s: Floats, ds: Floats, dds: Floats, near: States | None = None, same: bool = False
    ) -> States:
        """States for coordinates relative to rest, each (n, coordinates).

        Args:
            s: coordinates.
            ds: their derivatives.
            dds: their second derivatives.
            near: states with similar coordinates, if available.
            same: whether the coordinates are identical.
        """


class HeldBase:
    """Some joints move; the others and the base are fixed."""

    def __init__(self, model: Model, joints: Ints) -> None:
        """Move some joints of a robot with a fixed base, about its standing or neutral pose."""
        if model.floating_base:
            raise ArgumentError(f"'{model.name}' has a floating base; expected a fixed one")
        if not len(joints):
            raise ArgumentError(f"'{model.name}' has no joint that could move; expected at least one")
        self.model, self.joints = model, joints
        # In the neutral pose of an arm, joints may be at the ends of their ranges.
        low, high = model.q_min, model.q_max
        edge = np.where(np.isfinite(high - low), _EDGE * (high - low), 0.0)
        self.rest = np.clip(resting_pose(model), low + edge, high - edge)
        reach = np.minimum(model.q_max[joints] - self.rest[joints], self.rest[joints] - model.q_min[joints])
        self.scale = np.clip(reach, 0.05, np.where(model.is_prismatic[joints], 0.1, 1.0))

    def states(
        self, s: Floats, ds: Floats, dds: Floats, near: States | None = None, same: bool = False
    ) -> States:
        """See `Motion`."""
        n = len(s)
        q, u, du = np.tile(self.rest, (n, 1)), np.zeros((n, self.model.nv)), np.zeros((n, self.model.nv))
        q[:, self.joints] += s
        u[:, self.joints], du[:, self.joints] = ds, dds
        return States(q, u, du, np.zeros(n), np.zeros((n, 0, self.model.nv)))


class Standing:
    """The base moves in all six directions; the feet stay on the ground, and round feet roll.

    Coordinates are position [m], then roll, pitch and yaw [rad], relative to the standing pose.

    Attributes:
        down: indices of the feet on the ground: all.
    """

    def __init__(self, model: Model) -> None:
        """Prepare the motion of a robot that stands on all its feet.

        Raises:
            ArgumentError: it has no floating base or no feet, or cannot stand.
        """
        if not model.floating_base or len(model.foot_names) < 3 or model.standing is None:
            raise ArgumentError(
                f"'{model.name}' cannot stand on three feet or more; expected a legged robot with a floating "
                'base, or --fixed-base'
            )
        self.model, self.joints = model, np.arange(model.nj)
        self.down = np.arange(len(model.legs))
        self.rest = np.array(model.standing)
        self.length = leg_length(model)
        self.scale = np.array([0.2 * self.length] * 3 + [0.3] * 3)
        self._feet = [
            (leg.foot, *contact_ball(model, leg.foot), np.array(leg.joint_indices)) for leg in model.legs
        ]
        self._at_rest = []
        for foot, position, _, _ in self._feet:
            R, p = frame_pose(model, self.rest, foot)
            self._at_rest.append((R, p + R @ position))
        self._volume_at_rest = self._volumes(np.concatenate(self._jacobians(self.rest[None]), axis=1))

    def states(
        self, s: Floats, ds: Floats, dds: Floats, near: States | None = None, same: bool = False
    ) -> States:
        """See `Motion`."""
        if near is not None and same:
            q, miss, contact = near.q, near.miss, near.contact
        else:
            q = np.tile(self.rest, (len(s), 1)) if near is None else near.q.copy()
            q[:, :3] = self.rest[:3] + s[:, :3]
            q[:, 3:7] = quaternion(s[:, 3:])
            miss = self._place_feet(q)
            contact = np.concatenate(self._jacobians(q), axis=1)
        u, du = self._velocities(q, contact, s, ds, dds, np.zeros((3, len(self._feet), 1, 3)))
        return States(q, u, du, miss, contact)

    def _velocities(
        self, q: Floats, contact: Floats, s: Floats, ds: Floats, dds: Floats, up: Floats
    ) -> tuple[Floats, Floats]:
        """u and du of the base and of the joints; `up`: (3, feet, n, 3) motion of the feet."""
        J = [contact[:, 3 * i : 3 * i + 3] for i in range(len(self._feet))]
        u, du = np.zeros((len(s), self.model.nv)), np.zeros((len(s), self.model.nv))
        u[:, :3], du[:, :3] = ds[:, :3], dds[:, :3]
        u[:, 3:6], du[:, 3:6] = angular_motion(s[:, 3:], ds[:, 3:], dds[:, 3:])
        inverses = [_inverse(J_foot[:, :, 6 + own]) for (*_, own), J_foot in zip(self._feet, J, strict=True)]
        for i, (*_, own) in enumerate(self._feet):
            u[:, 6 + own] = -_times(inverses[i], _times(J[i][:, :, :6], u[:, :6]) - up[1, i])
        for i, (*_, own) in enumerate(self._feet):
            left = _times(J[i][:, :, :6], du[:, :6]) + self._bias(q, u, i) - up[2, i]
            du[:, 6 + own] = -_times(inverses[i], left)
        return u, du

    def raised(self, s: Floats, ds: Floats, dds: Floats, foot: int, rise: Floats) -> States:
        """States in which one foot is above its place, or would be below it without the ground.

        Args:
            s: (n, 6) coordinates of the base.
            ds: their derivatives.
            dds: their second derivatives.
            foot: index of the foot.
            rise: (3, n) height above its place [m], with its derivatives.
        """
        q = np.tile(self.rest, (len(s), 1))
        q[:, :3] += s[:, :3]
        q[:, 3:7] = quaternion(s[:, 3:])
        miss = self._place_feet(q, foot, rise[0])
        contact = np.concatenate(self._jacobians(q), axis=1)
        up = np.zeros((3, len(self._feet), len(s), 3))
        up[:, foot] = rise[:, :, None] * _UP
        u, du = self._velocities(q, contact, s, ds, dds, up)
        return States(q, u, du, miss, contact)

    def foot_height(self, q: Floats, foot: int) -> Floats:
        """(n,) height of the lowest point of a foot [m]."""
        frame, position, radius, _ = self._feet[foot]
        R, p = frame_pose(self.model, q, frame)
        return np.asarray((p + R @ position)[:, 2] - radius)

    def stretch(self, states: States) -> Floats:
        """(n, feet) 1 in the standing pose, 0 where a leg is completely stretched or folded."""
        return self._volumes(states.contact) / self._volume_at_rest

    def _volumes(self, contact: Floats) -> Floats:
        """(n, feet) volumes that the joint axes of each leg span at its foot."""
        found = []
        for i, (*_, own) in enumerate(self._feet):
            J_leg = contact[:, 3 * i : 3 * i + 3, 6 + own]
            found.append(np.sqrt(np.maximum(np.linalg.det(J_leg @ np.swapaxes(J_leg, 1, 2)), 0.0)))
        return np.stack(found, axis=1)

    def _jacobians(self, q: Floats) -> list[Floats]:
        """(n, 3, nv) Jacobians of the lowest point of each foot."""
        return [self._point_jacobian(q, i) for i in range(len(self._feet))]

    def support(self) -> Floats:
        """(feet, 2) positions of the feet on the ground [m]."""
        return np.array([p[:2] for _, p in self._at_rest])

    def _point_jacobian(self, q: Floats, i: int) -> Floats:
        foot, position, radius, _ = self._feet[i]
        J = frame_jacobian(self.model, q, foot)
        arm = frame_pose(self.model, q, foot)[0] @ position - radius * _UP
        # w x arm, for each column of w
        return np.asarray(J[:, :3] - _cross_matrix(arm) @ J[:, 3:])

    def _place_feet(self, q: Floats, raised: int = -1, rise: Floats | None = None) -> Floats:
        """Move the joints in q until the feet are at their places; returns the errors, relative to a leg.

        Args:
            q: (n, nq) configurations; they are changed.
            raised: index of a foot above its place.
            rise: (n,) its height [m].
        """
        miss = np.zeros((len(q), len(self._feet)))
        for i, (*_, own) in enumerate(self._feet):
            rest = np.arange(len(q))
            for _ in range(_SWEEPS):
                error = self._error(q[rest], i)
                if i == raised and rise is not None:
                    error += rise[rest, None] * _UP
                miss[rest, i] = np.linalg.norm(error, axis=1)
                far = miss[rest, i] > _CLOSE * self.length
                if not far.any():
                    break
                rest = rest[far]
                # the lowest point rolls: its Jacobian is that of the error
                J = self._point_jacobian(q[rest], i)[:, :, 6 + own]
                step = np.clip(_times(_inverse(J), error[far]), -_LONGEST_STEP, _LONGEST_STEP)
                q[rest[:, None], 7 + own] += step
        return np.asarray(miss.max(axis=1) / self.length)

    def _error(self, q: Floats, i: int) -> Floats:
        """(n, 3) position error of a foot, including the rolling of a round foot."""
        foot, position, radius, _ = self._feet[i]
        R_0, p_0 = self._at_rest[i]
        R, p = frame_pose(self.model, q, foot)
        place = np.tile(p_0, (len(q), 1))
        if radius > 0.0:
            place += radius * _cross(rotation_vector(R @ R_0.T), _UP)
        return np.asarray(place - p - R @ position)

    def _bias(self, q: Floats, u: Floats, i: int) -> Floats:
        """(n, 3) acceleration of the rolling point if du is zero."""
        foot, position, radius, _ = self._feet[i]
        bias = frame_bias_acceleration(self.model, q, u, foot)
        w, arm = frame_velocity(self.model, q, u, foot)[:, 3:], frame_pose(self.model, q, foot)[0] @ position
        centre = bias[:, :3] + _cross(bias[:, 3:], arm) + _cross(w, _cross(w, arm))
        return np.asarray(centre + _cross(bias[:, 3:], -radius * _UP))


def _times(A: Floats, x: Floats) -> Floats:
    return np.asarray((A @ x[:, :, None])[:, :, 0])


def _cross(a: Floats, b: Floats) -> Floats:
    """(n, 3) a x b; faster than numpy.cross, which spends more time on its axes than on the product."""
    (x, y, z), (p, q, r) = a.T, b.T
    return np.stack([y * r - z * q, z * p - x * r, x * q - y * p], axis=1)


def _cross_matrix(r: Floats) -> Floats:
    """(n, 3, 3) [r], with [r] w = r x w."""
    K = np.zeros((len(r), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -r[:, 2], r[:, 1], -r[:, 0]
    return K - np.swapaxes(K, 1, 2)


def _inverse(J: Floats) -> Floats:
    """Damped right inverse of (n, 3, k)."""
    square = J @ np.swapaxes(J, 1, 2)
    trace = np.trace(square, axis1=1, axis2=2)
    return np.asarray(
        np.swapaxes(J, 1, 2) @ np.linalg.inv(square + _DAMPING * trace[:, None, None] * np.eye(3))
    )
