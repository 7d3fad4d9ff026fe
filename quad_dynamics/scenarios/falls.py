# SPDX-License-Identifier: Apache-2.0
"""Detection of falls."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import leg_length
from quad_dynamics.array_types import Floats
from quad_dynamics.simulation.log import Log
from quad_dynamics.simulation.simulator import Simulator

MAX_TILT = 1.0  # of the base against upright [rad]
LOW = 0.6  # drop of the base from standing height that counts as a fall, in leg lengths


class FallDetector:
    """A robot has fallen if its trunk touches the ground, tilts by more than 1 rad, or is too low.

    All links that are fixed to the base belong to the trunk, except feet.
    """

    def __init__(self, sim: Simulator) -> None:
        model = sim.model
        assert model.standing is not None
        self._terrain, self._lowest = sim.terrain, float(model.standing[2]) - LOW * leg_length(model)
        self._trunk = np.array(
            [
                i
                for i, point in enumerate(sim.contact_points)
                if model.frames[point.link].body == 0 and point.link not in model.foot_names
            ],
            dtype=np.int64,
        )
        self._touched = math.nan

    def look(self, sim: Simulator) -> None:
        """Check whether the trunk touched the ground in the last step."""
        if math.isnan(self._touched) and np.count_nonzero(sim.contact_forces[self._trunk]):
            self._touched = sim.time

    def first(self, log: Log) -> float:
        """Time of the fall, in a part of the log or from a detected touch; NaN if it did not fall [s]."""
        fallen = is_down(log.q, np.asarray(self._terrain.height(log.q[:, 0], log.q[:, 1])), self._lowest)
        times = [float(log.time[np.argmax(fallen)])] if fallen.any() else []
        if not math.isnan(self._touched):
            times.append(self._touched)
        return min(times, default=math.nan)


def is_down(q: Floats, ground: Floats, lowest: float) -> npt.NDArray[np.bool_]:
    """Whether the base is tilted too much, or too low.

    Args:
        q: (n, nq) configurations.
        ground: (n,) height of the ground below [m].
        lowest: height of the base above the ground below which it is too low [m].
    """
    upright = 1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2)  # cosine of the tilt
    down = (upright < math.cos(MAX_TILT)) | (q[:, 2] - ground < lowest)
    return np.asarray(down, dtype=np.bool_)
