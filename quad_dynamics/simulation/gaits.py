# SPDX-License-Identifier: Apache-2.0
"""Simple joint-space commands that work for any robot: hold a pose, and trot in place.

They are meant for trying out robots and contact models, and do not control balance: torques that carry the
weight, plus springs and dampers at the joints.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import default_gains, gravity_norm, leg_length, resting_pose
from quad_dynamics.api.dynamics import inverse_dynamics
from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.leg_kinematics import sole
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.command import JointCommand, joint_numbers

if TYPE_CHECKING:
    from quad_dynamics.simulation.simulator import Simulator


LIFT = 0.15  # default height of a step, relative to the height of the base
PERIOD = 2.4  # default duration of a stride, relative to the square root of height / gravity
DUTY = 0.6  # default fraction of a stride in which a foot is in stance
RAMP = 0.15  # fraction of the stance in which the load of a leg ramps up, and in which it ramps down


def hold(
    model: Model,
    kp: npt.ArrayLike | None = None,
    kd: npt.ArrayLike | None = None,
    dt: float = 1e-3,
    q: npt.ArrayLike | None = None,
) -> JointCommand:
    """The command that holds a pose.

    Args:
        model: robot.
        kp: position gain [N m/rad]; None: see `default_gains`.
        kd: velocity gain [N m s/rad]; None: see `default_gains`.
        dt: time step of the simulation [s].
        q: (nq,) the pose; None: the standing pose, or the neutral one if there is none.
    """
    q = resting_pose(model) if q is None else np.asarray(q, dtype=np.float64)
    tau_0, by_foot, base = _torques(model, q)
    if model.floating_base and model.foot_names:
        load = np.linalg.lstsq(base[1], -base[0], rcond=None)[0]  # the smallest forces that balance it
        tau_0 = tau_0 + by_foot @ np.maximum(load, 0.0)
    kp, kd = _gains(model, kp, kd, dt)
    return JointCommand(tau_0, q[model.nq - model.nj :] if np.any(kp) else None, None, kp, kd)


class Trot:
    """A controller that makes a quadruped trot in place: diagonal pairs of legs step alternately.

    Joints alternate between the standing pose and one with the foot lifted. Stance legs also get the torques
    that carry the weight.

    Attributes:
        period: duration of a stride [s].
        height: height of a step [m].
        duty: fraction of the period in which a foot is in stance.
    """

    def __init__(
        self,
        model: Model,
        kp: npt.ArrayLike | None = None,
        kd: npt.ArrayLike | None = None,
        dt: float = 1e-3,
        period: float | None = None,
        height: float | None = None,
        duty: float = DUTY,
        q: npt.ArrayLike | None = None,
    ) -> None:
        """Compute the poses and the torques.

        Args:
            model: a quadruped.
            kp: position gain [N m/rad]; None: see `default_gains`.
            kd: velocity gain [N m s/rad]; None: see `default_gains`.
            dt: time step of the simulation [s].
            period: duration of a stride [s]; None: PERIOD sqrt(l / g).
            height: height of a step [m]; None: LIFT l.
            duty: at least 0.5.
            q: (nq,) pose in which it steps; None: the standing pose.

        Raises:
            ArgumentError: the robot does not have four legs and a standing pose, a leg cannot be lifted, or
                an invalid number.
        """
        if not model.floating_base or len(model.legs) != 4 or model.standing is None:
            raise ArgumentError(
                f'{model.name} has {len(model.legs)} legs and {"a" if model.standing is not None else "no"} '
                f'standing pose; expected a quadruped with a floating base that can stand'
            )
        length = leg_length(model)
        self.period = PERIOD * math.sqrt(length / gravity_norm(model)) if period is None else period
        self.height = LIFT * length if height is None else height
        self.duty = duty
        if not (0.0 < self.period < math.inf and 0.0 < self.height < math.inf and 0.5 <= duty < 1.0):
            raise ArgumentError(
                f'period, height and duty are {self.period}, {self.height} and {duty}; expected numbers '
                'above 0, and a duty of at least 0.5 and below 1'
            )
        q = resting_pose(model) if q is None else np.asarray(q, dtype=np.float64)
        self._weight = model.total_mass * gravity_norm(model)
        self._stand = q[7:]
        self._lifted = _lifted(model, q, self.height) - self._stand
        self._leg_of = np.zeros(model.nj, dtype=np.int64)
        self._moves = np.zeros(model.nj)
        for i, leg in enumerate(model.legs):
            self._leg_of[list(leg.joint_indices)] = i
            self._moves[list(leg.joint_indices)] = 1.0
        self._tau_0, self._by_foot, _ = _torques(model, q)
        self._kp, self._kd = _gains(model, kp, kd, dt)

    def phases(self, time: float) -> Floats:
        """(4,) phase of each leg in its stride: stance from 0 to `duty`, swing from `duty` to 1."""
        return np.asarray((time / self.period + np.array([0.0, 0.5, 0.5, 0.0])) % 1.0)

    def __call__(self, sim: Simulator) -> JointCommand:
        """The command at the time of a simulator."""
        phase = self.phases(sim.time)
        swing = np.maximum(phase - self.duty, 0.0) / (1.0 - self.duty)
        up = np.sin(math.pi * swing) ** 2
        rate = np.sin(2.0 * math.pi * swing) * math.pi / ((1.0 - self.duty) * self.period)
        stance = phase / self.duty
        load = np.clip(np.minimum(stance, 1.0 - stance) / RAMP, 0.0, 1.0)
        load *= self._weight / max(load.sum(), 1.0)
        part = self._lifted * self._moves
        return JointCommand(
            self._tau_0 + self._by_foot @ load,
            self._stand + up[self._leg_of] * part,
            rate[self._leg_of] * part,
            self._kp,
            self._kd,
        )


def _gains(
    model: Model, kp: npt.ArrayLike | None, kd: npt.ArrayLike | None, dt: float
) -> tuple[Floats, Floats]:
    by_weight = default_gains(model, dt)
    given = (('kp', kp, by_weight[0]), ('kd', kd, by_weight[1]))
    found = [
        default if gain is None else np.broadcast_to(joint_numbers(name, gain, model.nj), (model.nj,))
        for name, gain, default in given
    ]
    return found[0], found[1]


def _torques(model: Model, q: Floats) -> tuple[Floats, Floats, tuple[Floats, Floats]]:
    """Torques at rest: (nj,) without load, (nj, feet) per 1 N upward on a foot; likewise for the base."""
    still, skip = np.zeros(model.nv), model.nv - model.nj
    alone = inverse_dynamics(model, q, still, still)
    loaded = []
    for foot in model.foot_names:
        centre, radius = sole(model, foot, q)
        R, _ = frame_pose(model, q, foot)
        lever = R @ centre - np.array([0.0, 0.0, radius])  # to the point that touches level ground
        unit = [0.0, 0.0, 1.0, lever[1], -lever[0], 0.0]
        loaded.append(inverse_dynamics(model, q, still, still, {foot: unit}) - alone)
    by_foot = np.array(loaded).reshape(len(model.foot_names), model.nv).T
    return alone[skip:], by_foot[skip:], (alone[:skip], by_foot[:skip])


def _lifted(model: Model, q: Floats, height: float) -> Floats:
    """(nj,) joint positions with every foot lifted towards the base, by damped least squares."""
    q = q.copy()
    up = frame_pose(model, q, model.base_name)[0][:, 2]
    for leg in model.legs:
        joints = np.array(leg.joint_indices)
        centre = sole(model, leg.foot, q)[0]
        goal = _at(model, q, leg.foot, centre) + height * up
        for _ in range(50):
            miss = goal - _at(model, q, leg.foot, centre)
            whole = frame_jacobian(model, q, leg.foot)[:, 6 + joints]
            arm = frame_pose(model, q, leg.foot)[0] @ centre
            J = whole[:3] + np.cross(whole[3:], arm, axis=0)
            square = J @ J.T
            damping = 1e-6 * float(np.trace(square)) * np.eye(3)
            step = J.T @ np.linalg.solve(square + damping, miss)
            moved = q[7 + joints] + np.clip(step, -0.3, 0.3)
            q[7 + joints] = np.clip(moved, model.q_min[joints], model.q_max[joints])
        left = float(np.linalg.norm(goal - _at(model, q, leg.foot, centre)))
        if left > 0.2 * height:
            raise ArgumentError(
                f"leg '{leg.name}' cannot lift its foot by {height:.3g} m (error {left:.3g} m); "
                'expected a smaller height'
            )
    return q[7:]


def _at(model: Model, q: Floats, link: str, position: Floats) -> Floats:
    """(3,) a point of a link in the world [m]."""
    R, p = frame_pose(model, q, link)
    return np.asarray(p + R @ position)
