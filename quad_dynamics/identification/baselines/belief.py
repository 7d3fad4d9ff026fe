# SPDX-License-Identifier: Apache-2.0
"""Priors of the methods that have one."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet


@dataclass(frozen=True)
class BeliefSettings(ParameterSet):
    """Standard deviations of the prior."""

    inertia_std: float = param(
        0.3,
        'relative standard deviation of the inertia of bodies before the data',
        unit='-',
        above=0.0,
        high=10.0,
    )
    friction_std: float = param(
        1.0,
        'standard deviation of friction before the data, over the torque of a brisk motion',
        unit='-',
        above=0.0,
        high=10.0,
    )
