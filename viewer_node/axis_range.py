# SPDX-License-Identifier: Apache-2.0
"""Axis ranges with round limits that change only when necessary."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Floats

_TOO_WIDE = 3.0  # a range that is wider than needed by this factor is narrowed


class AxisRange:
    """The range of one axis.

    Attributes:
        low: lower end.
        high: upper end.
    """

    def __init__(self, least: float) -> None:
        """Start about zero.

        Args:
            least: smallest range, so that noise does not fill the plot.
        """
        self._least = least
        self.low, self.high = _rounded(-0.5 * least, 0.5 * least)

    def fit(self, values: Floats) -> bool:
        """Extend it to all finite values; whether it changed."""
        finite = values[np.isfinite(values)]
        if len(finite) == 0:
            return False
        low, high = float(finite.min()), float(finite.max())
        if high - low < self._least:
            middle = 0.5 * (low + high)
            low, high = middle - 0.5 * self._least, middle + 0.5 * self._least
        fits = self.low <= finite.min() and finite.max() <= self.high
        if fits and self.high - self.low < _TOO_WIDE * (high - low):
            return False
        room = 0.1 * (high - low)
        self.low, self.high = _rounded(low - room, high + room)
        return True


def _rounded(low: float, high: float) -> tuple[float, float]:
    """The range, widened to multiples of a round step: 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 5.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= 0.999 * rough)
    return step * math.floor(low / step), step * math.ceil(high / step)
