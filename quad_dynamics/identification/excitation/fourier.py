# SPDX-License-Identifier: Apache-2.0
"""Finite Fourier series that begin and end at rest, and the naive motions for comparison.

A coordinate moves as s(t) = rest + offset + sum_k a_k sin(k w t) + b_k cos(k w t) with s = rest, ds = 0 and
dds = 0 at t = 0, and so at the end of each period (Swevers et al. 1997). These are three linear constraints;
the remaining free parameters are optimised.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from quad_dynamics.array_types import Floats

_LONGEST_FADE = 2.0  # naive motions fade in and out within this time [s]


class Fourier:
    """Fourier series of one period.

    Attributes:
        period: [s].
        harmonics: their number.
        size: number of free parameters of a coordinate.
    """

    def __init__(self, period: float, harmonics: int) -> None:
        """Prepare the series.

        Args:
            period: [s].
            harmonics: at least 2.
        """
        self.period, self.harmonics = period, harmonics
        k = np.arange(1, harmonics + 1)
        # equal parameters give equal velocities of all harmonics; otherwise the highest would dominate
        scale = np.concatenate([[1.0], 1.0 / k, 1.0 / k])
        zero = np.zeros(harmonics)
        at_rest = np.array([[1.0, *zero, *np.ones(harmonics)], [0.0, *k, *zero], [0.0, *zero, *k**2]])
        self._free = scale[:, None] * null_space(at_rest * scale)
        self.size = self._free.shape[1]

    def basis(self, time: Floats) -> Floats:
        """(3, n, size) basis functions of the free parameters: positions, velocities, accelerations.

        Args:
            time: (n,) [s].
        """
        w = 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        angle = time[:, None] * w
        sin, cos = np.sin(angle), np.cos(angle)
        one, zero = np.ones((len(time), 1)), np.zeros((len(time), 1))
        whole = [
            np.concatenate([one, sin, cos], axis=1),
            np.concatenate([zero, w * cos, -w * sin], axis=1),
            np.concatenate([zero, -(w**2) * sin, -(w**2) * cos], axis=1),
        ]
        return np.asarray(np.stack(whole) @ self._free)


def sines(time: Floats, count: int, period: float, harmonics: int) -> Floats:
    """(3, n, count) one sine for each coordinate, each with another frequency, and their derivatives.

    Args:
        time: (n,) from 0 to the end [s].
        count: number of coordinates.
        period: of the lowest sine [s].
        harmonics: ratio of the highest to the lowest frequency.
    """
    order = 1.0 + (harmonics - 1.0) * np.arange(count) / max(count - 1, 1)
    phase = 2.0 * np.pi / period * order * time[:, None]
    return _faded(time, np.sin(phase))


def chirps(time: Floats, count: int, period: float, harmonics: int) -> Floats:
    """(3, n, count) one chirp for each coordinate: every second one descends, and end frequencies differ.

    Args:
        time: (n,) from 0 to the end [s].
        count: number of coordinates.
        period: of the lowest frequency [s].
        harmonics: ratio of the highest to the lowest frequency.
    """
    order = np.arange(count)
    highest = 1.0 + (harmonics - 1.0) * (0.5 + 0.5 * (order + 1.0) / count)
    # otherwise they would be combinations of two
    clock = np.where(order % 2, time[-1] - time[:, None], time[:, None])
    phase = 2.0 * np.pi / period * (clock + 0.5 * (highest - 1.0) / time[-1] * clock**2)
    return _faded(time, np.sin(phase))


def _faded(time: Floats, wave: Floats) -> Floats:
    """A wave that fades in and out smoothly, with derivatives by differences; time is evenly spaced."""
    fade = min(_LONGEST_FADE, 0.25 * float(time[-1]))
    s = np.clip(np.minimum(time, time[-1] - time) / fade, 0.0, 1.0)
    window = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    x = wave * window[:, None]
    dt = float(time[1] - time[0])
    velocity = np.gradient(x, dt, axis=0)
    return np.stack([x, velocity, np.gradient(velocity, dt, axis=0)])
