# SPDX-License-Identifier: Apache-2.0
"""What a controller knows about the robot at one time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RobotState:
    """The measured state.

    Attributes:
        time: when it was measured [s].
        q: (nq,) configuration.
        u: (nv,) velocity.
        foot_forces: (feet, 3) from the ground on the feet, in world axes [N]; None if nobody measures them.
        tau: (nj,) torques of the motors [N m or N].
    """

    time: float
    q: Floats
    u: Floats
    foot_forces: Floats | None
    tau: Floats
