# SPDX-License-Identifier: Apache-2.0
"""What a controller asks of the joint drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats


@dataclass(eq=False)
class Setpoint:
    """Targets of the drives, which give tau + kp (q - q_j) + kd (qd - qd_j).

    Attributes:
        tau: (nj,) feed-forward torques [N m or N].
        q: (nj,) positions to hold [rad or m]; None: kp does not act.
        qd: (nj,) velocities to follow [rad/s or m/s]; None: zero where q is given, else kd does not act.
        feet_down: (feet,) bool, which feet are meant to carry; None if the law has no opinion.
    """

    tau: Floats
    q: Floats | None = None
    qd: Floats | None = None
    feet_down: npt.NDArray[np.bool_] | None = None
