# SPDX-License-Identifier: Apache-2.0
"""The reference of the body, and the accelerations that track it."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.velocity_correction import VelocityCorrection
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.stance_geometry import StanceGeometry

_LEAK = 0.3  # time constant with which the reference follows a body that was pushed away [s]
_FARTHEST = 0.15  # largest distance of the reference from the body, in leg lengths
_FARTHEST_YAW = 0.3  # largest heading error [rad]
_STOP = 3.0  # pause of the velocity correction after a zero command, in sqrt(l / g)
_PITCH_RATE = 0.1  # rate of change of the desired pitch, in sqrt(g / l)
_RISE = 0.1  # rate of change of the desired height, in sqrt(g l)
# Limits of the integrals, in g and g / l.
# Unknown friction of the hips causes half of _MOST_TWIST when walking sideways.
_MOST_LIFT, _MOST_TWIST = 0.5, 1.0


class BodyReference:
    """The reference of the body: straight motion at the commanded velocity, or a plan.

    Attributes:
        command: current (vx, vy, wz) after its ramp [m/s, m/s, rad/s].
        change_rate: its derivative [m/s^2, m/s^2, rad/s^2].
        yaw: desired heading [rad].
        place: (3,) desired centre of mass in the world [m].
        velocity: (3,) its desired velocity in the world [m/s].
        acceleration: (3,) its desired acceleration in the world [m/s^2].
        correction: of the velocity, so that the body moves as commanded.
        integrals: of height [m/s^2], of tilt about x and y [rad/s^2].
    """

    def __init__(self, geometry: StanceGeometry, settings: WalkerSettings) -> None:
        self._geometry = geometry
        g, length = geometry.g, geometry.length
        twist = _MOST_TWIST * g / length
        self._most = np.array([_MOST_LIFT * g, twist, twist])
        self.correction = VelocityCorrection(geometry.speed, geometry.rate)
        self.change(settings)
        self.reset(np.zeros(3), 0.0)

    def change(self, settings: WalkerSettings) -> None:
        """Change settings."""
        self._lift, self._wanted_pitch = settings.body_height * self._geometry.length, settings.body_pitch
        rate, g = self._geometry.rate, self._geometry.g
        self._com_gains = (
            np.array(settings.com_stiffness) * rate**2,
            np.array(settings.com_damping) * rate,
        )
        self._angular_gains = (
            np.array(settings.angular_stiffness) * rate**2,
            np.array(settings.angular_damping) * rate,
        )
        self._velocity_gain, tilt = settings.velocity_integral * rate, settings.tilt_integral * rate**3
        self._integral_gains = np.array([settings.height_integral * rate**3, tilt, tilt])
        x, y, turn = settings.max_acceleration
        self._most_change = (x * g, y * g, turn * g / self._geometry.length)
        stop = settings.stop_acceleration
        self._most_stop = (stop * g, stop * g, stop * g / self._geometry.length)

    def reset(self, place: Floats, yaw: float) -> None:
        """Restart at rest."""
        self.command, self.yaw, self._high = [0.0, 0.0, 0.0], yaw, 0.0
        self.place, self.velocity, self.acceleration = place.copy(), np.zeros(3), np.zeros(3)
        self.correction.reset()
        self.integrals, self._is_planned = np.zeros(3), False
        self.change_rate, self._stopped_for = [0.0, 0.0, 0.0], 0.0
        self._target, self._pitch = (0.0, 0.0, 0.0), 0.0

    def follow(self, target: tuple[float, float, float], dt: float) -> None:
        """Move the command towards the target with limited acceleration.

        A target of zero is a stop, which may be faster than other changes.
        """
        self._target = target
        self._stopped_for = 0.0 if any(target) else self._stopped_for + dt
        for i, most in enumerate(self._most_change if any(target) else self._most_stop):
            step = min(max(target[i] - self.command[i], -most * dt), most * dt)
            self.command[i] += step
            self.change_rate[i] = step / dt if dt > 0.0 else 0.0
        self.correction.wait(self.change_rate, dt)

    def command_after(self, time: float) -> tuple[float, float, float]:
        """The command after a time of its ramp [s]."""
        vx, vy, wz = (
            now + min(max(target - now, -abs(rate) * time), abs(rate) * time)
            for now, target, rate in zip(self.command, self._target, self.change_rate, strict=True)
        )
        return vx, vy, wz

    def com_velocity(self, yaw: float) -> tuple[float, float]:
        """Velocity of the centre of mass along x and y of the world for the commanded base velocity."""
        vx, vy = self._geometry.com_velocity(*self.command)
        c, s = math.cos(yaw), math.sin(yaw)
        return c * vx - s * vy, s * vx + c * vy

    def base_velocity(self, R_WB: Floats) -> Floats:
        """(6,) commanded velocity of the base, in its own convention [m/s, rad/s].

        Args:
            R_WB: (3, 3) orientation of the base.
        """
        vx, vy, wz = self.command
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return np.concatenate(((c * vx - s * vy, s * vx + c * vy, self.velocity[2]), wz * R_WB[2]))

    def move(
        self, place: Floats, yaw: float, ground: Ground, dt: float, sway: tuple[float, float] | None
    ) -> None:
        """Advance the reference by a time step.

        Args:
            place: (3,) the centre of mass [m].
            yaw: heading of the body [rad].
            ground: below the feet.
            dt: [s].
            sway: where the body should be held or sway to, in the world [m]; None: it moves straight.
        """
        turned = math.remainder(self.yaw + self.command[2] * dt - yaw, 2.0 * math.pi)
        self.yaw = yaw + min(max(turned, -_FARTHEST_YAW), _FARTHEST_YAW)
        most = _PITCH_RATE * self._geometry.rate * dt
        self._pitch += min(max(self._wanted_pitch - self._pitch, -most), most)
        v = self.com_velocity(self.yaw)
        (x, y, z), (x_ref, y_ref, _) = place.tolist(), self.place.tolist()
        dx, dy = x_ref + v[0] * dt - x, y_ref + v[1] * dt - y
        goal_x, goal_y = (0.0, 0.0) if sway is None else (sway[0] - x, sway[1] - y)
        pull = math.exp(-dt / _LEAK)
        dx, dy = goal_x + pull * (dx - goal_x), goal_y + pull * (dy - goal_y)
        far = math.hypot(dx, dy)
        most = _FARTHEST * self._geometry.length
        shrink = most / far if far > most else 1.0
        x, y = x + shrink * dx, y + shrink * dy
        below = ground.height_at(x, y)
        self._climb(z - below, dt)
        self.place = np.array([x, y, below + self._high])
        slope = ground.slope[0] * v[0] + ground.slope[1] * v[1]
        self.velocity, self.acceleration = np.array([v[0], v[1], slope]), np.zeros(3)
        self._is_planned = False

    def track(self, place: Floats, velocity: Floats, acceleration: Floats) -> None:
        """Take the motion of the centre of mass from a plan."""
        self.place, self.velocity, self.acceleration = place, velocity, acceleration
        self._is_planned = True

    @property
    def brakes(self) -> bool:
        """Whether zero was commanded recently."""
        return 0.0 < self._stopped_for < _STOP / self._geometry.rate

    def adapt(self, velocity: Floats, dt: float) -> None:
        """Adapt the velocity correction to the velocity error of the body.

        Args:
            velocity: (3,) of the centre of mass [m/s].
            dt: [s].
        """
        if self.brakes:  # an error on two feet is not caused by an unknown load
            return
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        wanted = self.com_velocity(self.yaw)
        dx, dy = wanted[0] - float(velocity[0]), wanted[1] - float(velocity[1])
        self.correction.adapt(self.command, (c * dx + s * dy, c * dy - s * dx), dt * self._velocity_gain)

    def _climb(self, height: float, dt: float) -> None:
        """Move the desired height towards `com_height`, starting at the current height [m]."""
        if self._high <= 0.0:
            self._high = height
        most = _RISE * self._geometry.speed * dt
        self._high += min(max(self.com_height - self._high, -most), most)

    @property
    def com_height(self) -> float:
        """Desired height of the centre of mass above the ground [m]."""
        return self._geometry.com_height + self._lift

    @property
    def high(self) -> float:
        """Current desired height, on the way to `com_height` [m]."""
        return self._high if self._high > 0.0 else self.com_height

    def orientation(self, R_WC: Floats) -> Floats:
        """(3, 3) desired orientation of the base: the control frame, pitched."""
        if not self._pitch:
            return R_WC
        c, s = math.cos(self._pitch), math.sin(self._pitch)
        return np.asarray(R_WC @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]))

    def accelerations(
        self,
        place: Floats,
        velocity: Floats,
        R_WB: Floats,
        w_WB: Floats,
        R_WC: Floats,
        dt: float,
    ) -> tuple[Floats, Floats]:
        """Desired accelerations of the centre of mass [m/s^2] and of the base [rad/s^2], in world axes.

        Args:
            place: (3,) the centre of mass [m].
            velocity: (3,) its velocity [m/s].
            R_WB: (3, 3) orientation of the base.
            w_WB: (3,) angular velocity of the base, in world axes [rad/s].
            R_WC: (3, 3) the control frame.
            dt: time since the last call [s].
        """
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        missing = _turned(self.place - place, c, -s)  # in the heading frame
        slow = _turned(self.velocity - velocity, c, -s)
        turn = rotation_vector(self.orientation(R_WC) @ R_WB.T) @ R_WC
        spin = (np.array([0.0, 0.0, self.command[2]]) - w_WB) @ R_WC
        errors = np.array([missing[2], turn[0], turn[1]])
        total = self.integrals + dt * self._integral_gains * errors
        self.integrals = more = np.minimum(np.maximum(total, -self._most), self._most)
        if self._is_planned:  # plans already include both
            ahead = _turned(self.acceleration, c, -s)
        else:
            slow[:2] += self.correction.at(self.command)
            ahead = np.array([*self._geometry.com_velocity(*self.change_rate), 0.0])
        com = ahead + self._com_gains[0] * missing + self._com_gains[1] * slow
        com[2] += more[0]
        angular = self._angular_gains[0] * turn + self._angular_gains[1] * spin
        angular[:2] += more[1:]
        angular[2] += self.change_rate[2]
        return _turned(com, c, s), R_WC @ angular


def _turned(v: Floats, c: float, s: float) -> Floats:
    """(3,) a vector turned about z by the angle with this cosine and sine."""
    x, y, z = v.tolist()
    return np.array((c * x - s * y, s * x + c * y, z))


def rotation_vector(R: Floats) -> Floats:
    """(3,) axis times angle of a rotation [rad]; its direction is arbitrary at half a turn."""
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    twice_sine = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(twice_sine, R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    scale = angle / twice_sine if twice_sine > 1e-9 else 0.5
    return np.array([x * scale, y * scale, z * scale])
