# SPDX-License-Identifier: Apache-2.0
"""All settings of the control laws, each declared once: default, unit, meaning, bounds."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet


@dataclass(frozen=True)
class ControlSettings(ParameterSet):
    """Settings of control. They are immutable; `replace` returns a changed copy."""

    kp: tuple[float, ...] = param(
        (),
        'position gain of the drives: one per joint, or one for all; empty: `default_gains`',
        kind='numbers',
        unit='N m/rad',
        low=0.0,
        dynamic=True,
    )
    kd: tuple[float, ...] = param(
        (),
        'velocity gain of the drives, likewise',
        kind='numbers',
        unit='N m s/rad',
        low=0.0,
        dynamic=True,
    )
    mu: float = param(
        0.4, 'friction coefficient assumed for the feet', unit='-', low=0.0, high=5.0, dynamic=True
    )
    contact_threshold: float = param(
        0.25,
        'force on a foot, over its share of the weight, above which it is in contact',
        unit='-',
        low=0.0,
        high=1.0,
        dynamic=True,
    )
    fold_time: float = param(
        0.8,
        'time to fold the legs by 2 rad or more; extended if joint velocity limits require it',
        unit='s',
        low=0.1,
        high=10.0,
        dynamic=True,
    )
    rise_time: float = param(
        1.2,
        'time to rise; extended if joint velocity limits require it',
        unit='s',
        low=0.1,
        high=20.0,
        dynamic=True,
    )
    stand_height: float = param(
        1.0,
        "height of the hips above the feet, relative to the model's standing pose",
        unit='-',
        low=0.3,
        high=1.2,
    )
    omega: float = param(
        20.0, 'natural frequency of computed torque', unit='rad/s', low=0.0, high=500.0, dynamic=True
    )
    zeta: float = param(1.0, 'damping ratio of computed torque', unit='-', low=0.0, high=10.0, dynamic=True)
    observer_gain: float = param(
        50.0, 'bandwidth of the momentum observer', unit='1/s', above=0.0, high=2000.0, dynamic=True
    )
    torque_share: float = param(
        1.0, 'usable share of the effort limits', unit='-', low=0.0, high=1.0, dynamic=True
    )
    max_tilt: float = param(
        1.0,
        'tilt of the base above which the robot is considered fallen',
        unit='rad',
        above=0.0,
        high=3.2,
        dynamic=True,
    )
    velocity_margin: float = param(
        1.5,
        'joint velocity over its limit that is a fault, unless it is below sqrt(g / leg length)',
        unit='-',
        low=1.0,
        high=100.0,
        dynamic=True,
    )
    position_margin: float = param(
        0.1,
        'excess of a joint position over its limit that is a fault',
        unit='rad',
        low=0.0,
        high=10.0,
        dynamic=True,
    )
    fade_angle: float = param(
        0.05,
        'distance from a position limit at which torque towards it starts to fade',
        unit='rad',
        above=0.0,
        high=1.0,
        dynamic=True,
    )
    fade_velocity: float = param(
        0.1,
        'range below the velocity limit, as a share of it, in which accelerating torque fades',
        unit='-',
        above=0.0,
        high=1.0,
        dynamic=True,
    )
