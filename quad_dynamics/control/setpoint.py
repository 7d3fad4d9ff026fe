# SPDX-License-Identifier: Apache-2.0
"""The command of a controller to the joint drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats


@dataclass(eq=False)
class Setpoint:
    """Targets of the drives, which apply tau + kp (q - q_j) + kd (qd - qd_j).

    Attributes:
        tau: (nj,) feed-forward torques [N m or N].
        q: (nj,) positions to hold [rad or m]; None: kp has no effect.
        qd: (nj,) velocities to track [rad/s or m/s]; None: zero if q is given, else kd has no effect.
        feet_down: (feet,) bool, which feet should carry load; None if the law does not determine it.
    """

    tau: Floats
    q: Floats | None = None
    qd: Floats | None = None
    feet_down: npt.NDArray[np.bool_] | None = None
