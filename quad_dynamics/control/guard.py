# SPDX-License-Identifier: Apache-2.0
"""The last check before setpoints are sent: unsafe setpoints are limited or rejected."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.api.drives import gravity_norm, leg_length, motor_limits
from quad_dynamics.array_types import Floats
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

# Bound of torques, positions and velocities without a limit [N m, rad, rad/s]: their sums stay finite and
# accurate.
_LARGE = 1e6


class Guard:
    """Checks measured states, and limits setpoints to what is allowed for the robot.

    Attributes:
        settings: margins, and the share of the torques that may be used.
    """

    def __init__(self, model: Model, settings: ControlSettings | None = None, dt: float = 1e-3) -> None:
        """Prepare the limits.

        Args:
            model: robot.
            settings: None for the defaults.
            dt: time step of the drives, for `default_gains` [s].
        """
        self._model, self.settings = model, settings or ControlSettings()
        self._kp, self._kd = drive_gains(model, self.settings, dt)
        effort, self._stall, self._slope = motor_limits(model)
        self._effort = np.minimum(effort, _LARGE) * self.settings.torque_share
        self._low, self._high = model.q_min, model.q_max
        # fades are narrower if those of both ends of a range would overlap
        self._fade = np.minimum(self.settings.fade_angle, 0.25 * (self._high - self._low) + 1e-12)
        self._top = model.velocity_limit
        with np.errstate(invalid='ignore'):
            self._ease = np.where(np.isfinite(self._top), self.settings.fade_velocity * self._top, 1.0)
        self._ease = np.maximum(self._ease, 1e-12)
        self._target_low, self._target_high = np.maximum(self._low, -_LARGE), np.minimum(self._high, _LARGE)
        self._target_top = np.minimum(self._top, _LARGE)
        self._worst_speed = np.maximum(self._top * self.settings.velocity_margin, _bump_speeds(model))
        self._lowest = self._low - self.settings.position_margin
        self._highest = self._high + self.settings.position_margin

    # ---------------------------------------------------------------- states

    def check_state(self, state: RobotState) -> str:
        """'' for a valid state, else what is wrong with it."""
        for name in ('q', 'u', 'foot_forces', 'tau'):
            values = getattr(state, name)
            if values is not None and not np.isfinite(values).all():
                return self._not_finite(name, values)
        if not math.isfinite(state.time):
            return f'time is {state.time}'
        model = self._model
        if model.floating_base:
            tilt = base_tilt(state.q)
            if tilt > self.settings.max_tilt:
                return f'fallen: tilt {tilt:.2g} rad'
        qd = state.u[model.nv - model.nj :]
        if (np.abs(qd) > self._worst_speed).any():
            j = int(np.argmax(np.abs(qd) / self._worst_speed))
            most = self._worst_speed[j]
            return f'{model.joint_names[j]} moves at {qd[j]:.3g} rad/s; expected at most {most:.3g}'
        q = state.q[model.nq - model.nj :]
        outside = np.maximum(self._lowest - q, q - self._highest)
        if (outside > 0.0).any():
            j = int(np.argmax(outside))
            return (
                f'{model.joint_names[j]} is at {q[j]:.3g} rad; expected '
                f'{self._lowest[j]:.3g} to {self._highest[j]:.3g}'
            )
        return ''

    def _not_finite(self, name: str, values: Floats) -> str:
        model = self._model
        where = int(np.flatnonzero(~np.isfinite(values).ravel())[0])
        first = {'q': model.nq - model.nj, 'u': model.nv - model.nj, 'tau': 0}.get(name)
        if first is not None and where >= first:
            return f'{name} of {model.joint_names[where - first]} is {np.ravel(values)[where]}'
        if name == 'foot_forces':
            return f'force on {model.foot_names[where // 3]} is {np.ravel(values)[where]}'
        return f'{name}[{where}] of the base is {np.ravel(values)[where]}'

    # ---------------------------------------------------------------- setpoints

    def limit(
        self, setpoint: Setpoint, state: RobotState, torques: tuple[Floats, Floats] | None = None
    ) -> Setpoint:
        """The nearest setpoint that is safe in a state.

        The torque of the drives in this state, tau + kp (q - q_j) + kd (qd - qd_j), is brought within the
        limits by changing tau; position targets are clipped to the range of their joints. N setpoints for N
        states, all with a leading axis, are limited at once.

        Args:
            setpoint: desired setpoint.
            state: of the robot.
            torques: `torque_range` in this state, if it is already known.

        Raises:
            ArgumentError: the setpoint is not finite; the message names the joint.
        """
        model = self._model
        for name in ('tau', 'q', 'qd'):
            values = getattr(setpoint, name)
            if values is not None and not np.isfinite(values).all():
                where = tuple(np.argwhere(~np.isfinite(values))[0])
                joint = model.joint_names[where[-1]]
                raise ArgumentError(f'{name} of {joint} is {values[where]}; expected a finite number')
        q_j, qd_j = state.q[..., model.nq - model.nj :], state.u[..., model.nv - model.nj :]
        q = None if setpoint.q is None else _clipped(setpoint.q, self._target_low, self._target_high)
        qd = None if setpoint.qd is None else _clipped(setpoint.qd, -self._target_top, self._target_top)
        drives = self.drive_torque(q, qd, q_j, qd_j)
        low, high = self.torque_range(q_j, qd_j) if torques is None else torques
        total = _clipped(_clipped(setpoint.tau, -_LARGE, _LARGE) + drives, low, high)
        return Setpoint(total - drives, q, qd, setpoint.feet_down)

    def drive_torque(self, q: Floats | None, qd: Floats | None, q_j: Floats, qd_j: Floats) -> Floats:
        """kp (q - q_j) + kd (qd - qd_j), as the drives add it in a state."""
        if q is None:
            return np.zeros_like(qd_j) if qd is None else self._kd * (qd - qd_j)
        return self._kp * (q - q_j) + self._kd * ((0.0 if qd is None else qd) - qd_j)

    def limited_torque(self, tau: Floats, q_j: Floats, qd_j: Floats) -> Floats:
        """Torques within all limits in a state: (nj,), or (N, nj) for N states."""
        return _clipped(tau, *self.torque_range(q_j, qd_j))

    def torque_range(self, q_j: Floats, qd_j: Floats) -> tuple[Floats, Floats]:
        """Smallest and largest torques in a state, each (nj,), or (N, nj) for N states.

        Within the fade at the end of a joint's range, torque that pushes outward is reduced, to zero at the
        end and beyond; so is torque that accelerates a joint near its largest velocity.
        """
        back = self._slope * qd_j
        # beyond the no-load speed a motor can only brake
        upper = np.maximum(np.minimum(self._effort, self._stall - back), 0.0)
        lower = np.minimum(np.maximum(-self._effort, -self._stall - back), 0.0)
        room_up = np.minimum((self._high - q_j) / self._fade, (self._top - qd_j) / self._ease)
        room_down = np.minimum((q_j - self._low) / self._fade, (self._top + qd_j) / self._ease)
        upper *= _clipped(room_up, 0.0, 1.0)
        lower *= _clipped(room_down, 0.0, 1.0)
        return lower, upper


def _clipped(values: Floats, low: Floats | float, high: Floats | float) -> Floats:
    """np.clip for small arrays, three times as fast."""
    return np.minimum(np.maximum(values, low), high)


def _bump_speeds(model: Model) -> Floats:
    """(nj,) speeds that joints reach whenever a robot is bumped or sinks, however slow their drives are.

    They are those of a pendulum as long as the legs, sqrt(g / l), or sqrt(g l) for a prismatic joint.
    """
    length, g = leg_length(model), gravity_norm(model)
    return np.where(model.is_prismatic, math.sqrt(g * length), math.sqrt(g / length))


def base_tilt(q: Floats) -> float:
    """Angle between the z axes of base and world [rad]."""
    x, y = float(q[3]), float(q[4])
    return math.acos(min(1.0, max(-1.0, 1.0 - 2.0 * (x * x + y * y))))
