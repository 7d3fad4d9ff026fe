# SPDX-License-Identifier: Apache-2.0
"""Gains of the joint drives: from the settings, or default gains for the robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quad_dynamics.api.drives import default_gains
from quad_dynamics.array_types import Floats
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

__all__ = ['default_gains', 'drive_gains']


def drive_gains(model: Model, settings: ControlSettings, dt: float = 1e-3) -> tuple[Floats, Floats]:
    """Gains (kp, kd) of the drives, each (nj,).

    Args:
        model: robot.
        settings: kp and kd: () for `default_gains`, one number for all joints, or nj numbers.
        dt: time step of the drives [s].

    Raises:
        ArgumentError: wrong number of gains.
    """
    by_weight = default_gains(model, dt)
    kp = _for_joints(model, 'kp', settings.kp, by_weight[0])
    return kp, _for_joints(model, 'kd', settings.kd, by_weight[1])


def _for_joints(model: Model, name: str, given: Sequence[float], default: Floats) -> Floats:
    if len(given) == 0:
        return default
    if len(given) not in (1, model.nj):
        raise ArgumentError(
            f'{name} has {len(given)} numbers; expected none, one, or {model.nj}, one for each joint'
        )
    return np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), (model.nj,)))
