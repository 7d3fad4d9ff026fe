# SPDX-License-Identifier: Apache-2.0
"""The safe state: no torque, and all joints come to rest."""

from __future__ import annotations

import numpy as np

from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model


class Damping:
    """Damps all joints; a standing robot sinks slowly to the ground."""

    phase = ''

    def __init__(self, model: Model) -> None:
        self._nj = model.nj

    def start(self, state: RobotState) -> None:
        """No state to store."""

    def update(self, state: RobotState | None) -> Setpoint:
        """Zero torque and zero velocity, with or without a state: this must work when nothing else does."""
        return Setpoint(np.zeros(self._nj), None, np.zeros(self._nj))

    def change(self, settings: ControlSettings) -> None:
        """Nothing to change: the gains belong to the drives."""
