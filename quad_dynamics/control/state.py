# SPDX-License-Identifier: Apache-2.0
"""The input of a controller at one time."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.array_types import Floats


@dataclass(frozen=True, eq=False)
class RobotState:
    """The measured state.

    Attributes:
        time: when it was measured [s].
        q: (nq,) configuration.
        u: (nv,) velocity.
        foot_forces: (feet, 3) from the ground on the feet, in world axes [N]; None if they are not measured.
        tau: (nj,) torques of the motors [N m or N].
    """

    time: float
    q: Floats
    u: Floats
    foot_forces: Floats | None
    tau: Floats
