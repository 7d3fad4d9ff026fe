# SPDX-License-Identifier: Apache-2.0
"""Settings of closed-loop simulations along the log."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet


@dataclass(frozen=True)
class ClosedLoopSettings(ParameterSet):
    """Controller that keeps the joints near the log."""

    bandwidth: float = param(
        0.0,
        'natural frequency of the controller where no gains are given; 0: four times the cutoff',
        unit='Hz',
        low=0.0,
        high=500.0,
    )
    damping: float = param(1.0, 'its damping ratio', unit='-', above=0.0, high=10.0)
    kp: tuple[float, ...] = param(
        (),
        'gains of the real controller, one for each joint; none: from the bandwidth',
        kind='numbers',
        unit='N m/rad',
        low=0.0,
    )
    kd: tuple[float, ...] = param((), 'likewise', kind='numbers', unit='N m s/rad', low=0.0)
    cutoff: float = param(
        0.0,
        'what is faster is no motion of the robot; 0: from the spectrum of the velocities',
        unit='Hz',
        low=0.0,
    )
