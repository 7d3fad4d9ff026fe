# SPDX-License-Identifier: Apache-2.0
"""All settings of the simulator and its sensors, each declared once: default, unit, meaning, bounds."""

# ruff: noqa: RUF009 (param and group return what dataclasses.field returns)

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quad_dynamics.model.urdf import Vector3
from quad_dynamics.parameters.parameter import group, param
from quad_dynamics.parameters.parameter_set import ParameterSet

CONTACTS = ('auto', 'impulse', 'spring_damper', 'none')
FORWARD_DYNAMICS = ('aba', 'cholesky')
INTEGRATORS = ('semi_implicit', 'rk4')
_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ImuSettings(ParameterSet):
    """The inertial measurement unit: its placement and errors. Its axes are those of its link."""

    link: str | None = param(None, 'link that carries the IMU; empty: the base', kind='text')
    position: Vector3 = param(_ZERO, 'position of the IMU in the frame of its link', unit='m')
    acceleration_noise: float = param(
        0.0, 'standard deviation of each sample', unit='m/s^2', low=0.0, dynamic=True
    )
    acceleration_bias: float = param(
        0.0, 'standard deviation of the constant bias', unit='m/s^2', low=0.0, dynamic=True
    )
    acceleration_walk: float = param(
        0.0, 'random walk of the bias', unit='m/s^2/sqrt(s)', low=0.0, dynamic=True
    )
    angular_velocity_noise: float = param(
        0.0, 'standard deviation of each sample', unit='rad/s', low=0.0, dynamic=True
    )
    angular_velocity_bias: float = param(
        0.0, 'standard deviation of the constant bias', unit='rad/s', low=0.0, dynamic=True
    )
    angular_velocity_walk: float = param(
        0.0, 'random walk of the bias', unit='rad/s/sqrt(s)', low=0.0, dynamic=True
    )
    orientation_noise: float = param(
        0.0, 'standard deviation of the rotation about each axis', unit='rad', low=0.0, dynamic=True
    )


@dataclass(frozen=True)
class EncoderSettings(ParameterSet):
    """Position and velocity of the joints; metres instead of radians for prismatic joints."""

    position_noise: float = param(0.0, 'standard deviation of each sample', unit='rad', low=0.0, dynamic=True)
    position_resolution: float = param(0.0, 'resolution of positions', unit='rad', low=0.0, dynamic=True)
    velocity_noise: float = param(
        0.0, 'standard deviation of each sample', unit='rad/s', low=0.0, dynamic=True
    )
    velocity_resolution: float = param(0.0, 'resolution of velocities', unit='rad/s', low=0.0, dynamic=True)


@dataclass(frozen=True)
class JointTorqueSettings(ParameterSet):
    """Torque sensors of the joints."""

    noise: float = param(0.0, 'standard deviation of each sample', unit='N m', low=0.0, dynamic=True)
    bias: float = param(0.0, 'standard deviation of the constant bias', unit='N m', low=0.0, dynamic=True)
    resolution: float = param(0.0, 'resolution of torques', unit='N m', low=0.0, dynamic=True)


@dataclass(frozen=True)
class FootForceSettings(ParameterSet):
    """Force sensors of the feet, in world axes."""

    noise: float = param(0.0, 'standard deviation of each sample and axis', unit='N', low=0.0, dynamic=True)
    bias: float = param(
        0.0, 'standard deviation of the constant bias of each axis', unit='N', low=0.0, dynamic=True
    )
    resolution: float = param(0.0, 'resolution of forces', unit='N', low=0.0, dynamic=True)


@dataclass(frozen=True)
class OdometrySettings(ParameterSet):
    """Odometry of the base. Position and yaw drift, as usual without a map (REP-105)."""

    position_noise: float = param(
        0.0, 'standard deviation of each sample and axis', unit='m', low=0.0, dynamic=True
    )
    position_walk: float = param(0.0, 'random walk of each axis', unit='m/sqrt(s)', low=0.0, dynamic=True)
    orientation_noise: float = param(
        0.0, 'standard deviation of the rotation about each axis', unit='rad', low=0.0, dynamic=True
    )
    yaw_walk: float = param(0.0, 'random walk of the yaw angle', unit='rad/sqrt(s)', low=0.0, dynamic=True)
    linear_velocity_noise: float = param(
        0.0, 'standard deviation of each sample and axis', unit='m/s', low=0.0, dynamic=True
    )
    angular_velocity_noise: float = param(
        0.0, 'standard deviation of each sample and axis', unit='rad/s', low=0.0, dynamic=True
    )


@dataclass(frozen=True)
class SensorSettings(ParameterSet):
    """The errors of all sensors. By default, sensors are perfect."""

    imu: ImuSettings = group(ImuSettings, 'inertial measurement unit')
    encoders: EncoderSettings = group(EncoderSettings, 'position and velocity of the joints')
    joint_torque: JointTorqueSettings = group(JointTorqueSettings, 'torque sensors of the joints')
    foot_force: FootForceSettings = group(FootForceSettings, 'force sensors of the feet')
    odometry: OdometrySettings = group(OdometrySettings, 'odometry of the base')

    @staticmethod
    def typical() -> SensorSettings:
        """Typical errors of the sensors of a small quadruped, sampled at 1 kHz.

        The IMU is a mid-range MEMS chip (0.1 mg/sqrt(Hz), 0.005 deg/s/sqrt(Hz)), the encoders have 14 bits at
        the joint, torques are computed from motor currents, and feet have load cells. Odometry is exact: its
        errors would be those of an estimator, which depend on the robot and its gait.
        """
        return SensorSettings(
            imu=ImuSettings(
                acceleration_noise=0.03,
                acceleration_bias=0.05,
                acceleration_walk=2e-3,
                angular_velocity_noise=3e-3,
                angular_velocity_bias=5e-3,
                angular_velocity_walk=1e-4,
                orientation_noise=2e-3,
            ),
            encoders=EncoderSettings(
                position_noise=2e-4,
                position_resolution=3.834951969714103e-4,  # 2 pi / 2^14
                velocity_noise=0.02,
                velocity_resolution=1e-3,
            ),
            joint_torque=JointTorqueSettings(noise=0.05, bias=0.05, resolution=0.01),
            foot_force=FootForceSettings(noise=0.5, bias=1.0, resolution=0.1),
        )


def _what_a_terrain_is(value: Any) -> str:
    """'' if the value may be a terrain; the simulator makes and validates the terrain itself."""
    is_shape = hasattr(value, 'parts')  # terrains too; importing the classes would load the kernels
    if is_shape or (isinstance(value, (str, os.PathLike, Mapping, list, tuple)) and value):
        return ''
    return 'the name of a terrain, the path of a YAML file, a mapping, a list of shapes or a Terrain'


@dataclass(frozen=True)
class SimulatorSettings(ParameterSet):
    """Settings of a simulation. They are immutable; `replace` returns a changed copy."""

    contact: str = param(
        'auto',
        "contact model; auto: 'impulse', or 'none' for a fixed base",
        choices=CONTACTS,
        aliases={'spring-damper': 'spring_damper', 'spring': 'spring_damper'},
        dynamic=True,
    )
    terrain: Any = param(
        'flat',
        'name, path of a YAML file, mapping, shapes or Terrain',
        kind='other',
        check=_what_a_terrain_is,
        dynamic=True,
    )
    dt: float = param(1e-3, 'time step', unit='s', above=0.0)
    gravity: Vector3 | None = param(
        None, "gravity in world axes; empty: the model's", kind='vector', size=3, unit='m/s^2'
    )
    mu: float = param(
        0.5, 'Coulomb friction coefficient of terrain without its own', unit='-', low=0.0, dynamic=True
    )
    restitution: float = param(
        0.0, 'restitution of terrain without its own', unit='-', low=0.0, high=1.0, dynamic=True
    )
    friction: str = param(
        'cone',
        'friction model; pyramid: x and y are limited separately',
        choices=('cone', 'pyramid'),
        dynamic=True,
    )
    max_sweeps: int = param(
        100,
        'maximum number of Gauss-Seidel sweeps per contact solve',
        low=1,
        high=1_000_000,
        dynamic=True,
    )
    tolerance: float = param(
        1e-6,
        'residual at which the contact solver has converged',
        unit='m/s',
        above=0.0,
        dynamic=True,
    )
    correction: float = param(
        0.8,
        'share of a penetration that is corrected per time step',
        unit='-',
        low=0.0,
        high=1.0,
        dynamic=True,
    )
    stiffness: float = param(5e5, 'K of spring-damper contact', unit='N/m^1.5', above=0.0, dynamic=True)
    damping: float = param(5e3, 'D of spring-damper contact', unit='N s/m^1.5', above=0.0, dynamic=True)
    substeps: int | None = param(
        None,
        'sub-steps of spring-damper contact per time step; none: chosen automatically',
        kind='integer',
        low=1,
        high=100_000,
        dynamic=True,
    )
    integrator: str = param('semi_implicit', "integrator; rk4 requires contact 'none'", choices=INTEGRATORS)
    momentum_correction: bool = param(
        True, 'conserve linear and angular momentum exactly in steps without contact forces', dynamic=True
    )
    forward_dynamics: str = param(
        'aba',
        'aba: articulated-body algorithm; cholesky: LLT of the mass matrix, or LDLT if LLT fails',
        choices=FORWARD_DYNAMICS,
        dynamic=True,
    )
    joint_friction: str = param(
        'stick',
        'stick: Coulomb friction with stiction; explicit: computed from the velocity before the step',
        choices=('stick', 'explicit', 'none'),
        dynamic=True,
    )
    joint_limits: bool = param(True, 'enforce joint position limits', dynamic=True)
    motor_limits: bool = param(
        True, "limit torques by the effort limit and the motor's torque-speed curve", dynamic=True
    )
    latency: float = param(0.0, 'latency of commands', unit='s', low=0.0, high=1.0, dynamic=True)
    sensors: SensorSettings = group(SensorSettings, 'sensor errors')
    seed: int = param(0, 'random seed of all noise', low=0, high=2**63 - 1)
    energy_limit: float = param(
        1e4,
        'kinetic energy per kg of robot mass above which the simulation has diverged',
        unit='J/kg',
        above=0.0,
        infinite=True,
    )

    def _across(self) -> list[str]:
        if self.integrator == 'rk4' and self.contact not in ('auto', 'none'):
            return [
                f"integrator is 'rk4' with contact {self.contact!r}; expected contact='none', "
                "since rk4 does not support contacts, or integrator='semi_implicit'"
            ]
        return []

    @staticmethod
    def from_yaml(path: str | os.PathLike[str]) -> SimulatorSettings:
        """Read the settings below the key `simulator:` of a YAML file; docs/sensors.md has an example.

        Raises:
            ArgumentError: the file cannot be read or is invalid; lists all problems.
        """
        from quad_dynamics.simulation.settings_reader import read_settings

        return read_settings(path)

    def to_yaml(self) -> str:
        """The text of a YAML file from which `from_yaml` reads equal settings.

        Raises:
            ArgumentError: the terrain is an object that cannot be written.
        """
        from quad_dynamics.simulation.settings_reader import write_settings

        return write_settings(self)
