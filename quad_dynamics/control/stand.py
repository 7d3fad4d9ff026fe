# SPDX-License-Identifier: Apache-2.0
"""Getting up from lying, and standing.

A robot on its belly first folds its legs, so that its feet are below its hips. Then the feet take over the
weight and push the base up, straight in the base frame. The torques that carry the weight are feed-forward;
the stiffness and damping of the drives do the rest. The contact state is not needed.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.api.drives import hip_position, joint_friction, motor_limits, resting_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.contact_forces import foot_points, torques_and_forces
from quad_dynamics.control.leg_path import LegPath, lowest_crouch, solve_legs
from quad_dynamics.control.lying import can_rise, folded_joints
from quad_dynamics.control.min_jerk import min_jerk
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

_SHORTEST_FOLD = 0.2  # [s]
_LOAD_TIME = 0.25  # in which the feet take over the weight from the belly [s]
_SPEED_SHARE = 0.5  # of the joints' velocity limits, used for folding and rising
_UNLIMITED_SPEED = 20.0  # if neither the file nor the motor limits a joint's velocity [rad/s or m/s]
_LONG_WAY = 2.0  # motion of a joint that takes the full `fold_time` [rad]
_PEAK = 1.875  # ratio of largest to mean speed of a minimum-jerk motion
_SLOW = 0.1  # velocity above which dry friction is fully compensated [rad/s or m/s]
_SAMPLES = 101  # of the rise, at which joint velocities are compared with their limits
# A robot rises at once if its feet are below the hips by at least this share of their standing distance, at
# most this share of the leg length to the side, and if its tilt is at most this [rad].
_HIGH_ENOUGH, _NEAR_ENOUGH, _LEVEL_ENOUGH = 0.6, 0.25, 0.4


class StandUp:
    """Gets up from any pose in which the base is not upside-down, and then stands.

    Attributes:
        phase: 'fold', 'rise' or 'hold'.
    """

    def __init__(self, model: Model, settings: ControlSettings | None = None) -> None:
        """Compute the poses and the path between them.

        Args:
            model: a robot with legs and a standing pose.
            settings: None for the defaults.

        Raises:
            ArgumentError: the robot has no standing pose, or its legs cannot reach the configured height.
        """
        if not model.floating_base or model.standing is None or not model.foot_names:
            raise ArgumentError(
                f'{model.name} cannot stand up; expected a floating base, feet and a standing pose'
            )
        self._model, self.settings = model, settings or ControlSettings()
        self._points = foot_points(model)
        self._standing = self._at_height(self.settings.stand_height)
        self._folded = folded_joints(model)
        if self.settings.stand_height != 1.0 and not can_rise(model, self._folded, self._standing):
            self._folded = lowest_crouch(model, self._standing)
        self._rise = LegPath(model, self._folded, self._standing)
        self._viscous, self._coulomb = joint_friction(model)
        self._feet = tuple(range(len(model.foot_names)))
        self._still = np.zeros(model.nv)
        self._down = np.ones(len(self._feet), dtype=np.bool_)
        self._speed = _SPEED_SHARE * _largest_velocities(model)
        self._rise_needs = self._shortest_rise()
        self._start: Floats = self._folded
        self._begin, self._fold_time, self._rise_time = 0.0, 0.0, self.settings.rise_time
        self._direct = False
        self.phase = 'fold'

    @property
    def finished(self) -> bool:
        """Whether it is standing."""
        return self.phase == 'hold'

    def start(self, state: RobotState) -> None:
        """Start at a state: with folding, or with rising if the feet are in place."""
        joints = np.array(state.q[7:])
        self._begin = state.time
        self._direct = self._can_push(state)
        self._start = np.clip(joints, self._model.q_min, self._model.q_max)
        if self._direct:
            self._fold_time, needed = 0.0, self._shortest_move(self._standing)
        else:
            self._fold_time, needed = self._time_to_fold(), self._rise_needs
        self._rise_time = max(self.settings.rise_time, needed)
        self.phase = 'rise' if self._direct else 'fold'

    def _time_to_fold(self) -> float:
        """Duration of folding from the start [s].

        A motion of _LONG_WAY or more takes `fold_time`, a shorter one less. It takes longer if the velocity
        limits of the joints require it.
        """
        way = float(np.abs(self._folded - self._start).max())
        leisurely = self.settings.fold_time * min(way / _LONG_WAY, 1.0)
        return max(leisurely, self._shortest_move(self._folded), _SHORTEST_FOLD)

    def _shortest_move(self, end: Floats) -> float:
        """Shortest duration of a minimum-jerk motion from the start within the velocity limits [s]."""
        return _PEAK * float((np.abs(end - self._start) / self._speed).max(initial=0.0))

    def _shortest_rise(self) -> float:
        """Shortest duration of the motion from the folded to the standing pose [s]."""
        shortest = 0.0
        for t in np.linspace(0.0, 1.0, _SAMPLES):
            s, ds, _ = min_jerk(float(t))
            shortest = max(shortest, float((np.abs(ds * self._rise(s)[1]) / self._speed).max(initial=0.0)))
        return shortest

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint at the time of a state."""
        t = state.time - self._begin
        q_j, qd_j, load = self._targets(t)
        q = state.q.copy()
        q[7:] = q_j
        tau = torques_and_forces(self._model, q, self._still, self._still, self._feet, self.settings.mu)[0]
        if load < 1.0:  # the share that the belly still carries
            alone = torques_and_forces(self._model, q, self._still, self._still, (), 0.0)[0]
            tau = load * tau + (1.0 - load) * alone
        tau = tau + self._viscous * qd_j + self._coulomb * np.tanh(qd_j / _SLOW)
        return Setpoint(tau, q_j, qd_j, self._down if load > 0.0 else np.zeros_like(self._down))

    def change(self, settings: ControlSettings) -> None:
        """Change times and friction without a restart; the height is kept."""
        self.settings = settings

    def _targets(self, t: float) -> tuple[Floats, Floats, float]:
        """Joint positions and velocities, and the share of the weight that the feet carry."""
        if t < self._fold_time:
            s, ds, _ = min_jerk(t / self._fold_time)
            way = self._folded - self._start
            self.phase = 'fold'
            return self._start + s * way, ds / self._fold_time * way, 0.0
        t -= self._fold_time
        load = 1.0 if self._direct else min_jerk(t / _LOAD_TIME)[0]
        rise, before = self._rise_time, 0.0 if self._direct else 0.5 * _LOAD_TIME
        s, ds, _ = min_jerk((t - before) / rise)
        self.phase = 'rise' if t - before < rise else 'hold'
        if self.phase == 'hold':
            return self._standing.copy(), np.zeros(self._model.nj), 1.0
        if self._direct:
            way = self._standing - self._start
            return self._start + s * way, ds / rise * way, load
        q_j, slope = self._rise(s)
        return q_j, ds / rise * slope, load

    def _can_push(self, state: RobotState) -> bool:
        """Whether the feet are below the base, close to their standing positions."""
        q = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], state.q[7:]])
        feet = self._points.positions(q)
        q[7:] = self._standing
        wanted = self._points.positions(q)
        x, y = state.q[3:5]
        tilt = np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0))
        beside = np.linalg.norm((feet - wanted)[:, :2], axis=1)
        hips = np.array([hip_position(self._model, q, leg)[2] for leg in self._model.legs])
        return bool(
            (feet[:, 2] - hips < _HIGH_ENOUGH * (wanted[:, 2] - hips)).all()
            and (beside < _NEAR_ENOUGH * self._points.length).all()
            and tilt < _LEVEL_ENOUGH
        )

    def _at_height(self, share: float) -> Floats:
        """(nj,) joint positions with the hips at a share of their standing height above the feet."""
        model = self._model
        standing = resting_pose(model)[7:]
        if share == 1.0:
            return standing
        q = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], standing])
        feet = self._points.positions(q)
        feet[:, 2] += (1.0 - share) * self._points.length
        joints, miss = solve_legs(model, self._points, standing, feet)
        if miss > 0.01 * self._points.length:
            raise ArgumentError(
                f'stand_height is {share:g}: a foot of {model.name} misses its place by {miss:.3g} m; '
                'expected a height that the legs can reach'
            )
        return joints


def _largest_velocities(model: Model) -> Floats:
    """(nj,) velocity limits of file and motors, and `_UNLIMITED_SPEED` if there is none."""
    _, stall, slope = motor_limits(model)
    no_load = np.divide(stall, slope, out=np.full(model.nj, np.inf), where=slope > 0.0)
    limit = np.minimum(model.velocity_limit, no_load)
    return np.where(np.isfinite(limit), np.maximum(limit, 1e-3), _UNLIMITED_SPEED)
