# SPDX-License-Identifier: Apache-2.0
"""Noise of joint signals, and the cutoff that keeps their motion and little noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.signals.filters import noise_level
from quad_dynamics.identification.signals.grid import Grid

_WINDOW = 2.0  # length of the windows whose spectra are averaged [s]
_BAND = 1.0  # bandwidth of the smoothing of spectra [Hz]
_CLEAR = 3.0  # ratio of spectrum to noise above which there is motion
_ENERGY = 0.999  # share of the squared velocities below the cutoff divided by _ABOVE
_ABOVE = 3.0
# Products of velocities have twice their frequency. The cutoff is this far above most motion, whatever the
# noise.
_MOST, _LEAST_ABOVE = 0.99, 2.5
_BULK = 0.95  # share of the squared velocities that no cutoff may reach
_LIVELIER = 0.75  # quantile of the joints
LOWEST, HIGHEST = 5.0, 0.2  # bounds of the cutoff [Hz], and relative to the rate


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Spectra and noise of one recording.

    Attributes:
        rate: [Hz].
        position_noise: (nj,) standard deviations.
        velocity_noise: (nj,); infinite if no velocities were measured.
        torque_noise: (nj,).
        frequency: (n,) [Hz].
        velocity: (n, nj) power density of the velocities, measured or from positions.
        measured: whether velocities were measured.
    """

    rate: float
    position_noise: Floats
    velocity_noise: Floats
    torque_noise: Floats
    frequency: Floats
    velocity: Floats
    measured: bool

    def fused_noise(self) -> Floats:
        """(n, nj) power density of the noise of velocities fused from positions and velocities."""
        from_positions = np.outer(2.0 * math.pi * self.frequency, self.position_noise) ** 2
        inverse = 1.0 / np.maximum(from_positions, 1e-300) + 1.0 / np.maximum(self.velocity_noise**2, 1e-300)
        return 2.0 / (inverse * self.rate)

    def velocity_noise_below(self, cutoff: float) -> Floats:
        """(nj,) standard deviation of velocities after a low-pass filter."""
        below = self.frequency <= cutoff
        step = self.frequency[1] - self.frequency[0]
        level: Floats = np.sqrt(np.sum(self.fused_noise()[below], axis=0) * step)
        return level


def measure_spectrum(grid: Grid) -> Spectrum | None:
    """Noise and spectra of a recording; None if it has no segment of sufficient length."""
    size = round(_WINDOW * grid.rate)
    levels: dict[str, list[Floats]] = {'position': [], 'velocity': [], 'effort': []}
    total: Floats | None = None
    count = 0
    frequency = np.empty(0)
    for _, begin, end, rows in grid.windows(size):
        for name, found in levels.items():
            if name in grid and end - begin >= 16:
                found.append(noise_level(grid.get(rows, name)) ** 2)
        if end - begin < size:
            continue
        name = 'velocity' if 'velocity' in grid else 'position'
        frequency, power = scipy.signal.periodogram(
            grid.get(rows, name), grid.rate, window='hann', detrend='linear', axis=0
        )
        if name == 'position':
            power = power * (2.0 * math.pi * frequency[:, None]) ** 2
        power = np.log(np.maximum(power, 1e-300))
        total = power if total is None else total + power
        count += 1
    if total is None:
        return None
    noise = {name: np.sqrt(np.mean(found, axis=0)) for name, found in levels.items() if found}
    unknown = np.full_like(noise['position'], np.inf)
    return Spectrum(
        grid.rate,
        noise['position'],
        noise.get('velocity', unknown),
        noise['effort'],
        frequency,
        np.exp(total / count + np.euler_gamma),
        'velocity' in grid,
    )


def choose_cutoff(spectra: Sequence[Spectrum]) -> float:
    """The cutoff that spectra suggest [Hz].

    It is three times the frequency below which nearly all of the motion is, but not above the frequency where
    the motion of the faster joints falls to the noise level.

    Args:
        spectra: of all recordings.
    """
    chosen = []
    for one in spectra:
        ends, share = _motion(one)
        nearly_all, most = (one.frequency[np.argmax(share >= part, axis=0)] for part in (_ENERGY, _MOST))
        cutoff = np.maximum(np.minimum(_ABOVE * nearly_all, one.frequency[ends]), _LEAST_ABOVE * most)
        chosen.append(float(np.clip(np.quantile(cutoff, _LIVELIER), LOWEST, HIGHEST * one.rate)))
    # one filter for all; rounded to tenths
    return max(round(min(chosen), 1), 0.1)


def lowest_cutoff(spectra: Sequence[Spectrum]) -> float:
    """The cutoff below which the motion itself would be filtered, and products of velocities wrong [Hz].

    Args:
        spectra: of all recordings.
    """
    found = []
    for one in spectra:
        _, share = _motion(one)
        bulk = one.frequency[np.argmax(share >= _BULK, axis=0)]
        found.append(float(np.quantile(_LEAST_ABOVE * bulk, _LIVELIER)))
    return max(*found, LOWEST)


def _motion(one: Spectrum) -> tuple[npt.NDArray[np.int64], Floats]:
    """Frequency where the motion of each joint ends, (nj,); and its share below each frequency, (n, nj)."""
    step = one.frequency[1] - one.frequency[0]
    width = max(1, round(_BAND / step))
    smooth = scipy.signal.fftconvolve(one.velocity, np.full((width, 1), 1.0 / width), mode='same', axes=0)
    own = 2.0 * one.velocity_noise**2 / one.rate if one.measured else one.fused_noise()
    clear = (smooth - own) / np.maximum(one.fused_noise(), 1e-300) > _CLEAR - 1.0
    clear[0] = True
    # the first band without motion is its end
    ends = np.where(clear.all(axis=0), len(clear) - 1, np.argmin(clear, axis=0))
    energy = np.maximum(smooth - own, 0.0)
    energy[np.arange(len(energy))[:, None] >= np.maximum(ends, 1)] = 0.0
    return ends, np.cumsum(energy, axis=0) / np.maximum(np.sum(energy, axis=0), 1e-300)
