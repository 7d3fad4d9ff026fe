# SPDX-License-Identifier: Apache-2.0
"""Segments of samples, and their smoothed motion.

Smoothing has no phase: a local polynomial is fitted around each sample (Savitzky and Golay), up to the ends
of a segment, but not across them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.samples import CHUNK, SampleLayout, Samples

_ORDER = 5  # of the polynomials
_MOST_POWER = 0.99  # share of the power of the velocities that is certainly motion
_MARGIN = 4.0  # ratio of the cutoff to the highest frequency of that part


def segments(samples: Samples, most: int = CHUNK) -> Iterator[Floats]:
    """Rows of one segment after the other, each evenly spaced; long ones in chunks of `most` rows."""
    get, rest = samples.layout.get, np.empty((0, samples.layout.width))
    for chunk in samples.chunks():
        rows = np.concatenate([rest, chunk])
        parts = np.split(rows, _ends(get(rows, 'time'), get(rows, 'segment')))
        for part in parts[:-1]:
            yield from _pieces(part, most)
        rest = parts[-1]
        while len(rest) >= 2 * most:  # the end waits for more rows of the same segment
            yield rest[:most]
            rest = rest[most:]
    if len(rest):
        yield from _pieces(rest, most)


def _ends(time: Floats, block: Floats) -> npt.NDArray[np.int64]:
    """Indices where a new segment begins, or where rows of a segment were left out."""
    if len(time) < 3:
        return np.flatnonzero(np.diff(block)) + 1
    step = np.diff(time)
    usual = np.median(step)
    return np.flatnonzero((np.diff(block) != 0.0) | (np.abs(step - usual) > 0.5 * usual)) + 1


def _pieces(rows: Floats, most: int) -> Iterator[Floats]:
    yield from np.array_split(rows, -(-len(rows) // most))


def period(layout: SampleLayout, rows: Floats) -> float:
    """Time between samples of a segment [s]; 0 for a single one."""
    time = layout.get(rows, 'time')
    return float(time[-1] - time[0]) / (len(time) - 1) if len(time) > 1 else 0.0


def motion_cutoff(samples: Samples, nj: int) -> float:
    """Frequency below which all of the motion is [Hz]; inf if no segment is long enough.

    It is four times the frequency below which 99 % of the power of the joint velocities lie.

    Args:
        samples: of any motion.
        nj: number of joints.
    """
    highest, weights = [], []
    for rows in segments(samples):
        dt = period(samples.layout, rows)
        if len(rows) < 16 or dt <= 0.0:
            continue
        u = samples.layout.get(rows, 'u')[:, -nj:]
        window = np.hanning(len(rows))[:, None]
        power = np.abs(np.fft.rfft((u - u.mean(axis=0)) * window, axis=0)) ** 2
        part = np.cumsum(power.sum(axis=1))
        index = int(np.searchsorted(part, _MOST_POWER * part[-1]))
        highest.append(np.fft.rfftfreq(len(rows), dt)[index])
        weights.append(part[-1])
    if not highest or sum(weights) <= 0.0:
        return float('inf')
    return float(_MARGIN * np.average(highest, weights=weights))


def smooth(values: Floats, dt: float, cutoff: float) -> Floats:
    """(n, k) low-pass filtered signals; unchanged if the segment is too short.

    Args:
        values: (n, k) evenly spaced.
        dt: time between them [s].
        cutoff: at which amplitudes are halved [Hz].
    """
    if dt <= 0.0 or cutoff * dt >= 0.25:
        return values.copy()
    # Schafer, What is a Savitzky-Golay filter? 2011: cutoff and half length of the window.
    half = round(((_ORDER + 1) / (2.0 * cutoff * dt) + 4.6) / 3.2)
    half = min(half, (len(values) - 1) // 2)
    if 2 * half + 1 <= _ORDER + 1:
        return values.copy()
    return np.asarray(scipy.signal.savgol_filter(values, 2 * half + 1, _ORDER, axis=0, mode='interp'))


def smooth_motion(layout: SampleLayout, rows: Floats, cutoff: float) -> Floats:
    """Rows of one segment with smoothed q, u and du.

    Args:
        layout: of the rows.
        rows: (n, width).
        cutoff: [Hz].
    """
    dt, smoothed = period(layout, rows), rows.copy()
    for name in ('q', 'u', 'du'):
        layout.get(smoothed, name)[...] = smooth(layout.get(rows, name), dt, cutoff)
    q = layout.get(smoothed, 'q')
    if q.shape[1] > layout.sizes['tau']:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return smoothed
