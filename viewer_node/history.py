# SPDX-License-Identifier: Apache-2.0
"""The last seconds of some signals."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats


class History:
    """A ring of samples of n signals; a missing value is NaN."""

    def __init__(self, n: int, duration: float, rate: float) -> None:
        """Start empty.

        Args:
            n: number of signals.
            duration: that is kept [s].
            rate: at which samples come at most [Hz].
        """
        self._duration = duration
        self._rows = np.full((max(int(duration * rate * 1.1) + 2, 8), n + 1), np.nan)
        self._count = 0

    def add(self, time: float, values: Floats) -> None:
        """Add a sample: time [s] and values (n,). Decreasing time clears the history."""
        if self._count and time <= self._last_time:
            if time == self._last_time:
                return
            self.clear()
        row = self._rows[self._count % len(self._rows)]
        row[0], row[1:] = time, values
        self._count += 1

    def clear(self) -> None:
        """Forget everything."""
        self._count = 0

    @property
    def _last_time(self) -> float:
        return float(self._rows[(self._count - 1) % len(self._rows), 0])

    def columns(self) -> Floats:
        """(n + 1, samples): times [s], then the signals, of the last seconds; oldest first."""
        n = min(self._count, len(self._rows))
        rows = self._rows[np.arange(self._count - n, self._count) % len(self._rows)]
        if n:
            rows = rows[rows[:, 0] >= rows[-1, 0] - self._duration]
        return np.ascontiguousarray(rows.T)
