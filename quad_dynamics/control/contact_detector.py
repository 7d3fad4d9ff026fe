# SPDX-License-Identifier: Apache-2.0
"""Which feet carry, from measured forces that answer to our own torques.

A foot that is not counted on gets no load, so that its force falls, and rises again when it is counted on: a
threshold alone makes feet chatter. Forces are therefore smoothed, and a foot that carries is given up at half
of the threshold only.
"""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.control.contact_forces import foot_points
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model

_SMOOTHING = 0.03  # time constant [s]
_LONGEST_GAP = 1.0  # between two states; after more, or back in time, it begins anew [s]


class ContactDetector:
    """The feet that carry; in the beginning, and where nobody measures forces, all of them."""

    def __init__(self, model: Model) -> None:
        self._points = foot_points(model)
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        count = self._points.count
        self._time = math.nan
        self._share = np.ones(count)
        self._carries = np.ones(count, dtype=np.bool_)

    def update(self, state: RobotState, threshold: float) -> tuple[int, ...]:
        """Indices into foot_names of the feet that carry.

        Args:
            state: measured state.
            threshold: share of a foot's part of the weight, from which on it carries.
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
