# SPDX-License-Identifier: Apache-2.0
"""Settings for the processing of raw channels into samples."""

# ruff: noqa: RUF009 (param returns what dataclasses.field returns)

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.model.urdf import Vector3
from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet

BASES = ('auto', 'odom', 'imu')
VELOCITIES = ('auto', 'positions')
STANCES = ('auto', 'forces', 'flags', 'kinematics', 'all')


@dataclass(frozen=True)
class SignalSettings(ParameterSet):
    """Filters, derivatives, delays, and selection of samples."""

    cutoff: float | None = param(
        None, 'of the low-pass filter; none: chosen by spectra and fits', kind='number', unit='Hz', above=0.0
    )
    order: int = param(4, 'of the Butterworth filter, which runs forwards and backwards', low=1, high=10)
    sample_rate: float | None = param(
        None,
        'of the samples that are kept; none: three times the cutoff',
        kind='number',
        unit='Hz',
        above=0.0,
    )
    delay: float | None = param(
        None,
        'of torques behind positions; none: estimated',
        kind='number',
        unit='s',
        low=-0.1,
        high=0.1,
    )
    force_delay: float | None = param(
        None,
        'of foot forces behind positions; none: estimated',
        kind='number',
        unit='s',
        low=-0.1,
        high=0.1,
    )
    longest_delay: float = param(
        0.03, 'that is looked for, in both directions', unit='s', above=0.0, high=0.1
    )
    gap: float = param(5.0, 'beyond so many periods something is missing', unit='-', low=1.5)
    rest_velocity: float | None = param(
        None,
        'below which the direction of friction is unknown; none: from the noise',
        kind='number',
        unit='rad/s',
        low=0.0,
    )
    velocity: str = param(
        'auto',
        'where velocities of joints and base are from; auto: as measured, where they agree with positions; '
        'positions: measured velocities are ignored',
        choices=VELOCITIES,
    )
    base: str = param(
        'auto', 'where the motion of the base is from; auto: odom where there is one', choices=BASES
    )
    imu_link: str | None = param(None, 'link that carries the IMU; none: the base', kind='text')
    imu_position: Vector3 = param((0.0, 0.0, 0.0), 'of the IMU in the frame of its link', unit='m')
    stance: str = param(
        'auto',
        'how feet on the ground are found; auto: by forces, else contact flags, else kinematics, else all',
        choices=STANCES,
    )
    # Treating a foot in the air as in stance costs little; missing a foot that carries is an error.
    touch: float = param(0.03, 'a foot stands with so much of the weight', unit='-', above=0.0, high=1.0)
    lift: float = param(
        0.015, 'a foot that stands is lifted below so much of the weight', unit='-', low=0.0, high=1.0
    )
    shortest: float = param(1.0, 'recording with moving joints that is accepted', unit='s', above=0.0)
    chunk: float = param(20.0, 'time that is worked on at once', unit='s', low=1.0, high=600.0)

    def _across(self) -> list[str]:
        if self.lift > self.touch:
            return [f'lift is {self.lift:g}; expected at most touch, {self.touch:g}']
        return []
