# SPDX-License-Identifier: Apache-2.0
"""The safe state: no torque, and all joints come to rest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]


class Damping:
    """A robot that stands sinks to the ground with it, slowly enough not to break.

    Attributes:
        kd: (nj,) gain of the drives that damps [N m s/rad]; None: that of the drives, whatever it is.
    """

    def __init__(self, model: Model, kd: npt.ArrayLike | None = None) -> None:
        self._nj = model.nj
        self.kd = None if kd is None else np.array(np.broadcast_to(np.asarray(kd, float), (model.nj,)))

    def update(self, state: RobotState) -> Setpoint:
        """No torque, zero velocity; `state` may be anything, for this must work when nothing else does."""
        return Setpoint(np.zeros(self._nj), None, np.zeros(self._nj))
