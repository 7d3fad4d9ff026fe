# SPDX-License-Identifier: Apache-2.0
"""Sensor readings of a robot in a state, with and without errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.validation import packed_form
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.imu import imu_truth, turned
from quad_dynamics.simulation.noise import NormalStream, WalkStream
from quad_dynamics.simulation.odometry import true_odometry, turned_about_vertical
from quad_dynamics.simulation.settings import SensorSettings


@dataclass(frozen=True, eq=False)
class Readings:
    """Sensor readings at one time; for several times, all fields have a leading axis.

    Attributes:
        time: simulated time [s].
        imu_acceleration: (3,) specific force, in IMU axes: (0, 0, 9.81) at rest [m/s^2].
        imu_angular_velocity: (3,) in IMU axes [rad/s].
        imu_orientation: (4,) quaternion x y z w of the IMU in the world.
        joint_position: (nj,) [rad or m].
        joint_velocity: (nj,) [rad/s or m/s].
        joint_torque: (nj,) motor torques [N m or N].
        foot_forces: (feet, 3) from the ground on the feet, in world axes [N].
        base_pose: (7,) position of the base in the world [m], quaternion x y z w; (0,) for a fixed base.
        base_twist: (6,) linear and angular velocity of the base in its own axes [m/s, rad/s]; (0,) likewise.
    """

    time: float | Floats
    imu_acceleration: Floats
    imu_angular_velocity: Floats
    imu_orientation: Floats
    joint_position: Floats
    joint_velocity: Floats
    joint_torque: Floats
    foot_forces: Floats
    base_pose: Floats
    base_twist: Floats

    def row(self, i: int) -> Readings:
        """The readings at one of several times."""
        return Readings(**{name: values[i] for name, values in vars(self).items()})


def true_readings(
    model: Model,
    settings: SensorSettings,
    time: float | Floats,
    q: Floats,
    u: Floats,
    du: Floats,
    gravity: npt.ArrayLike,
    tau: Floats,
    foot_forces: Floats,
) -> Readings:
    """Readings without errors, of one state or of n states with a leading axis.

    Args:
        model: robot.
        settings: placement of the IMU.
        time: [s].
        q: (nq,) configuration.
        u: (nv,) velocity.
        du: (nv,) acceleration; in a simulation, the mean over the last time step.
        gravity: (3,) in world axes [m/s^2].
        tau: (nj,) motor torques [N m].
        foot_forces: (feet, 3) in world axes [N].

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    acceleration, angular_velocity, orientation = imu_truth(model, settings.imu, q, u, du, gravity)
    nj = model.nj
    none = np.zeros((*q.shape[:-1], 0))
    base_pose, base_twist = true_odometry(q, u) if model.floating_base else (none, none)
    return Readings(
        time=time,
        imu_acceleration=acceleration,
        imu_angular_velocity=angular_velocity,
        imu_orientation=orientation,
        joint_position=np.array(q[..., model.nq - nj :]),
        joint_velocity=np.array(u[..., model.nv - nj :]),
        joint_torque=np.array(tau),
        foot_forces=np.array(foot_forces),
        base_pose=base_pose,
        base_twist=base_twist,
    )


class SensorSuite:
    """The sensors of one robot with their errors.

    The errors of a sample are a pure function of the seed, the sensor and the number of the time step.

    Attributes:
        model: robot.
        settings: errors of the sensors.
        seed: seed of all errors.
    """

    def __init__(self, model: Model, settings: SensorSettings, seed: int = 0, dt: float = 1e-3) -> None:
        """Set up the sensors.

        Args:
            model: robot.
            settings: errors of the sensors.
            seed: seed of all errors; 0 or more.
            dt: time step [s], for errors that drift.

        Raises:
            ArgumentError: the link of the IMU is unknown, or the seed is invalid.
        """
        imu, encoders = settings.imu, settings.encoders
        torque, force, odometry = settings.joint_torque, settings.foot_force, settings.odometry
        packed_form(model).frame(imu.link or model.base_name, 'sensors.imu.link')
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ArgumentError(f'seed is {seed!r}; expected a whole number of at least 0')
        self.model, self.settings, self.seed = model, settings, int(seed)
        per_step = math.sqrt(dt)

        def channel(name: str, width: int, **errors: float) -> _Channel:
            return _Channel(self.seed, name, width, **errors)

        self._acceleration = channel(
            'imu.acceleration',
            3,
            noise=imu.acceleration_noise,
            bias=imu.acceleration_bias,
            walk=imu.acceleration_walk * per_step,
        )
        self._angular_velocity = channel(
            'imu.angular_velocity',
            3,
            noise=imu.angular_velocity_noise,
            bias=imu.angular_velocity_bias,
            walk=imu.angular_velocity_walk * per_step,
        )
        self._turn = channel('imu.orientation', 3, noise=imu.orientation_noise)
        self._position = channel(
            'encoders.position',
            model.nj,
            noise=encoders.position_noise,
            resolution=encoders.position_resolution,
        )
        self._velocity = channel(
            'encoders.velocity',
            model.nj,
            noise=encoders.velocity_noise,
            resolution=encoders.velocity_resolution,
        )
        self._torque = channel('joint_torque', model.nj, **vars(torque))
        self._force = channel('foot_force', 3 * len(model.foot_names), **vars(force))
        self._base = channel(
            'odometry.position', 3, noise=odometry.position_noise, walk=odometry.position_walk * per_step
        )
        self._base_turn = channel('odometry.orientation', 3, noise=odometry.orientation_noise)
        self._base_yaw = channel('odometry.yaw', 1, walk=odometry.yaw_walk * per_step)
        self._base_linear = channel('odometry.linear_velocity', 3, noise=odometry.linear_velocity_noise)
        self._base_angular = channel('odometry.angular_velocity', 3, noise=odometry.angular_velocity_noise)
        self._is_ready = True

    def __setattr__(self, name: str, value: object) -> None:
        """Reject assignments that would have no effect: settings and seed are read once, at construction."""
        if hasattr(self, '_is_ready') and type(self) is SensorSuite:
            raise AttributeError(f"'{name}' of a SensorSuite cannot be set; create a new one")
        super().__setattr__(name, value)

    def measure(self, truth: Readings, step: int) -> Readings:
        """Readings with errors.

        Args:
            truth: readings without errors, of one time.
            step: number of time steps since the reset.

        Raises:
            ArgumentError: a step below 0.
        """
        if step < 0:
            raise ArgumentError(f'step is {step}; expected a whole number of at least 0')
        position, velocity, torque, foot_forces = self.measure_legs(
            truth.joint_position, truth.joint_velocity, truth.joint_torque, truth.foot_forces, step
        )
        return Readings(
            time=truth.time,
            imu_acceleration=self._acceleration.measure(truth.imu_acceleration, step),
            imu_angular_velocity=self._angular_velocity.measure(truth.imu_angular_velocity, step),
            imu_orientation=self._turned(truth.imu_orientation, step),
            joint_position=position,
            joint_velocity=velocity,
            joint_torque=torque,
            foot_forces=foot_forces,
            base_pose=self._pose(truth.base_pose, step),
            base_twist=self._twist(truth.base_twist, step),
        )

    def measure_legs(
        self, position: Floats, velocity: Floats, torque: Floats, foot_forces: Floats, step: int
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Readings of joints and feet only, as `measure` returns them.

        Args:
            position: (nj,) true positions of the joints [rad or m].
            velocity: (nj,) true velocities [rad/s or m/s].
            torque: (nj,) true torques of the motors [N m or N].
            foot_forces: (feet, 3) true forces, in world axes [N].
            step: number of time steps since the reset.

        Returns:
            The same with errors.
        """
        return (
            self._position.measure(position, step),
            self._velocity.measure(velocity, step),
            self._torque.measure(torque, step),
            self._force.measure(foot_forces.ravel(), step).reshape(-1, 3),
        )

    def measure_all(self, truth: Readings, steps: npt.ArrayLike) -> Readings:
        """Readings with errors at several times, as `measure` returns them one by one.

        Args:
            truth: readings without errors, with a leading axis n.
            steps: (n,) numbers of time steps since the reset.
        """
        rows = [vars(self.measure(truth.row(i), int(k))) for i, k in enumerate(np.asarray(steps))]
        names = vars(truth)
        return Readings(**{name: np.array([row[name] for row in rows]) for name in names}) if rows else truth

    def _pose(self, pose: Floats, step: int) -> Floats:
        """The pose with its errors: noise in the axes of the base, drift about the vertical."""
        if not len(pose):
            return pose.copy()
        orientation = pose[3:]
        if self.settings.odometry.yaw_walk:
            yaw = float(self._base_yaw.measure(np.zeros(1), step)[0])
            orientation = turned_about_vertical(orientation, yaw)
        if self.settings.odometry.orientation_noise:
            orientation = turned(orientation, self._base_turn.measure(np.zeros(3), step))
        return np.concatenate([self._base.measure(pose[:3], step), orientation])

    def _twist(self, twist: Floats, step: int) -> Floats:
        if not len(twist):
            return twist.copy()
        linear = self._base_linear.measure(twist[:3], step)
        return np.concatenate([linear, self._base_angular.measure(twist[3:], step)])

    def _turned(self, orientation: Floats, step: int) -> Floats:
        """The orientation, rotated in IMU axes by a small random angle about each axis."""
        if not self.settings.imu.orientation_noise:
            return orientation.copy()
        return turned(orientation, self._turn.measure(np.zeros(3), step))


class _Channel:
    """One kind of measurement: truth + bias + walk + noise, rounded to the resolution."""

    def __init__(
        self,
        seed: int,
        name: str,
        width: int,
        noise: float = 0.0,
        bias: float = 0.0,
        walk: float = 0.0,
        resolution: float = 0.0,
    ) -> None:
        self._bias = bias * NormalStream(seed, f'{name}.bias', width).sample(0) if bias else None
        self._walk = walk
        self._walks = WalkStream(seed, f'{name}.walk', width)
        self._noise = noise
        self._noises = NormalStream(seed, f'{name}.noise', width, noise)
        self._resolution = resolution

    def measure(self, truth: Floats, step: int) -> Floats:
        """A new array: the truth with its errors."""
        value = truth
        if self._bias is not None:
            value = value + self._bias
        if self._walk:
            value = value + self._walk * self._walks.sample(step)
        if self._noise:
            value = value + self._noises.sample(step)
        if self._resolution:
            value = value / self._resolution
            np.rint(value, out=value)
            value *= self._resolution
            value += 0.0  # no negative zeros
        return truth.copy() if value is truth else value
