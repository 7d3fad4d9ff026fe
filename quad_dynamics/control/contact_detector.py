# SPDX-License-Identifier: Apache-2.0
"""Which feet carry load, from measured forces that react to our own torques.

A foot that is assumed not to carry gets no load, so its force drops; it rises again when the foot is assumed
to carry. A plain threshold would make the contact state chatter. Forces are therefore smoothed, and a foot
stops carrying only below half of the threshold.
"""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.control.contact_forces import foot_points
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model

_SMOOTHING = 0.03  # time constant [s]
_LONGEST_GAP = 1.0  # between two states; after a longer gap, or if time goes back, it restarts [s]


class ContactDetector:
    """The feet that carry load; all of them at the start and if forces are not measured."""

    def __init__(self, model: Model) -> None:
        self._points = foot_points(model)
        self.reset()

    def reset(self) -> None:
        """Restart."""
        count = self._points.count
        self._time = math.nan
        self._share = np.ones(count)
        self._carries = np.ones(count, dtype=np.bool_)

    def update(self, state: RobotState, threshold: float) -> tuple[int, ...]:
        """Indices into foot_names of the feet that carry load.

        Args:
            state: measured state.
            threshold: force at which a foot carries, relative to its share of the weight.
        """
        points = self._points
        if state.foot_forces is None or not points.count:
            return tuple(range(points.count))
        dt = state.time - self._time
        if not 0.0 <= dt <= _LONGEST_GAP:
            self.reset()
            dt = 0.0
        self._time = state.time
        share = (state.foot_forces @ points.up) * (points.count / points.weight)
        self._share += (1.0 - math.exp(-dt / _SMOOTHING)) * (share - self._share)
        self._carries = self._share > np.where(self._carries, 0.5, 1.0) * threshold
        return tuple(np.flatnonzero(self._carries).tolist())
