# SPDX-License-Identifier: Apache-2.0
"""Zero-phase filters and derivatives for evenly spaced rows.

All terms of the equation of motion pass the same low-pass filter, forwards and backwards, so both sides of
the equation change in the same way. Derivatives are central differences, which are exact far beyond the
cutoff. `scipy.signal` is loaded when it is first used: that takes half a second.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy

from quad_dynamics.array_types import Floats

HALF = 6  # rows on each side that a central difference needs
_NOTHING = 1e-12  # threshold below which an impulse response is negligible


@lru_cache(maxsize=4)
def _difference(order: int) -> Floats:
    """(2 HALF + 1,) weights of the central difference that is exact for polynomials of degree 2 HALF.

    One side is (-1)^(k + 1) (m!)^2 / ((m - k)! (m + k)!) times 1 / k or 2 / k^2.
    """
    m, f = HALF, math.factorial
    side = [(-1) ** (k + 1) * f(m) ** 2 / (f(m - k) * f(m + k)) * order / k**order for k in range(1, m + 1)]
    if order == 1:
        return np.array([*[-c for c in side[::-1]], 0.0, *side])
    return np.array([*side[::-1], -2.0 * sum(side), *side])


def derivative(values: Floats, period: float, order: int = 1) -> Floats:
    """Derivative of rows.

    Args:
        values: (n, k).
        period: between rows [s].
        order: 1 or 2.

    Returns:
        (n - 2 HALF, k); the first row belongs to row HALF.
    """
    weights = _difference(order) / period**order
    n = len(values) - 2 * HALF
    result = np.zeros((max(n, 0), values.shape[1]))
    for offset, weight in enumerate(weights):
        if weight:
            result += weight * values[offset : offset + len(result)]
    return result


@lru_cache(maxsize=64)
def _design(order: int, share: float) -> Floats:
    """Sections of a Butterworth filter, from its cutoff relative to half the rate."""
    return np.asarray(scipy.signal.butter(order, share, output='sos'), dtype=np.float64)


class LowPass:
    """Butterworth filter, run forwards and backwards: no delay, half the amplitude at the cutoff.

    Attributes:
        cutoff: [Hz].
        order: of the filter in one direction.
        rate: of the rows [Hz].
        reach: rows after which the impulse response is negligible.
    """

    def __init__(self, cutoff: float, order: int, rate: float) -> None:
        self.cutoff, self.order, self.rate = cutoff, order, rate
        self._sos = _design(order, cutoff / (0.5 * rate))
        _, poles, _ = scipy.signal.butter(order, cutoff / (0.5 * rate), output='zpk')
        slowest = float(np.max(np.abs(poles)))
        self.reach = math.ceil(math.log(_NOTHING) / math.log(slowest)) if slowest > 0.0 else order
        self._pad = min(self.reach, math.ceil(3.0 * rate / cutoff))
        self._edge = max(2, round(0.3 * rate / cutoff))

    def __call__(self, values: Floats) -> Floats:
        """Filter rows (n, k); they are extended at both ends by reflection about a line."""
        filtered: Floats = scipy.signal.sosfiltfilt(
            self._sos, _continued(values, self._pad, self._edge), axis=0, padlen=0
        )
        pad = min(self._pad, len(values) - 1)
        return filtered[pad : len(filtered) - pad]

    @property
    def slope_noise(self) -> float:
        """Variance of the derivative of white noise, relative to that of the noise [1/s^2].

        It is (2 pi f)^2, over all f below the cutoff.
        """
        return (2.0 * math.pi * self.cutoff) ** 2 * 2.0 * self.cutoff / (3.0 * self.rate)

    def share(self, marks: npt.NDArray[np.bool_]) -> Floats:
        """(n, k) share of each filtered row that comes from marked rows, by the absolute filter weights."""
        impulse = np.zeros((2 * self._pad + 1, 1))
        impulse[self._pad] = 1.0
        weights = np.abs(scipy.signal.sosfiltfilt(self._sos, impulse, axis=0, padlen=0))
        shares: Floats = np.zeros(marks.shape)
        moved = np.any(marks, axis=0)
        if np.any(moved):
            full = scipy.signal.oaconvolve(marks[:, moved].astype(np.float64), weights, mode='full', axes=0)
            shares[:, moved] = full[self._pad : self._pad + len(marks)]
        return shares


def _continued(values: Floats, pad: int, edge: int) -> Floats:
    """Rows extended by `pad` at both ends: reflected about the end of the line through the last `edge` rows.

    A reflection about the last row itself would propagate its noise into all extended rows.
    """
    pad, edge = min(pad, len(values) - 1), min(edge, len(values))
    before = 2.0 * _end_of_line(values[:edge][::-1]) - values[pad:0:-1]
    after = 2.0 * _end_of_line(values[-edge:]) - values[-2 : -pad - 2 : -1]
    return np.concatenate([before, values, after])


def _end_of_line(values: Floats) -> Floats:
    """(k,) the last value of the straight line through rows (n, k)."""
    x = np.arange(len(values)) - 0.5 * (len(values) - 1)
    slope = x @ values / max(float(x @ x), 1e-300)
    line: Floats = values.mean(axis=0) + slope * x[-1]
    return line


def blend(slow: Floats, fast: Floats, corner: Floats, rate: float) -> Floats:
    """Low frequencies of one signal and high frequencies of another signal of the same quantity.

    With white noise of standard deviation s_p on positions and s_v on velocities, the optimal velocity
    weights the derivative of positions with 1 / (1 + (w / corner)^2), corner = s_v / s_p, and the measured
    velocity with the remainder. This is a first-order filter, run forwards and backwards.

    Args:
        slow: (n, k).
        fast: (n, k).
        corner: (k,) [rad/s]; infinite: only `slow`; 0: only `fast`.
        rate: of the rows [Hz].
    """
    result = slow.copy()
    result[:, corner == 0.0] = fast[:, corner == 0.0]
    for one in np.unique(corner[np.isfinite(corner) & (corner > 0.0)]):
        share = float(one) / (math.pi * rate)
        if share >= 0.9:  # above the frequencies of the rows
            continue
        columns = np.flatnonzero(corner == one)
        difference = slow[:, columns] - fast[:, columns]
        pad = min(len(difference) - 1, math.ceil(6.0 * rate / one))
        low = scipy.signal.sosfiltfilt(_design(1, share), difference, axis=0, padtype='odd', padlen=pad)
        result[:, columns] = fast[:, columns] + low
    return result


def noise_level(values: Floats) -> Floats:
    """(k,) standard deviation of white noise on smooth rows, from their sixth differences.

    The largest twentieth is ignored, because of jumps; the rest of a normal distribution has 0.759 of the
    variance.
    """
    if len(values) < 12:
        return np.zeros(values.shape[1])
    squares = np.sort(np.diff(values, 6, axis=0) ** 2, axis=0)
    kept = squares[: max(1, int(0.95 * len(squares)))]
    level: Floats = np.sqrt(kept.mean(axis=0) / (924.0 * 0.759))
    return level
