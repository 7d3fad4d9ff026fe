# SPDX-License-Identifier: Apache-2.0
"""Time series of a run, at the rate of the controller."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats

# The arrays of the file.
SAVED = ('t', 'q', 'u', 'tau', 'foot_forces', 'cmd', 'gait', 'contact')


@dataclass(frozen=True, eq=False)
class Traces:
    """One row per control period: the true state at its end, and the command in it.

    Attributes:
        t: (n,) end of the period [s].
        q: (n, nq) configuration.
        u: (n, nv) velocity.
        tau: (n, nj) torques of the motors [N m].
        foot_forces: (n, feet, 3) from the ground on the feet, in world axes [N].
        cmd: (n, 3) velocity that was commanded, in the heading frame [m/s, m/s, rad/s].
        gait: (n,) name of the gait.
        contact: (n, feet) feet assumed by the controller to be in contact.
        period: (n,) of the gait [s].
        update_us: (n,) wall-clock time of the update, NaN if the controller was not called [us].
    """

    t: Floats
    q: Floats
    u: Floats
    tau: Floats
    foot_forces: Floats
    cmd: Floats
    gait: npt.NDArray[np.str_]
    contact: npt.NDArray[np.bool_]
    period: Floats
    update_us: Floats

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays of `SAVED` to an npz file; an existing file is overwritten."""
        with Path(path).open('wb') as file:
            np.savez_compressed(file, **{name: getattr(self, name) for name in SAVED})
