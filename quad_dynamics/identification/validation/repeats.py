# SPDX-License-Identifier: Apache-2.0
"""Detection of repeated motion: errors on a repetition are not valid for new motion.

Positions and velocities of all joints are compared in windows of a few seconds, at every time shift. With the
positions (or velocities) z of a window, each joint scaled to unit size, and y of the other recording,

    mismatch = min over shifts of |z - y|^2 / |z - mean z|^2.

The mismatch is about 1 or more for different motion and 0 for the same. Sensor noise and tracking errors add
to it, so it has to be small, not zero. Windows in which the robot is at rest are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.interpolate import CubicSpline
from scipy.ndimage import uniform_filter1d

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.model.model import Model

_RATE = 50.0  # of the comparison [Hz]; joints of walking robots move at up to about 10 Hz
_WINDOW = 4.0  # [s]: several steps of a gait, so that another pace is detected
_MOST_WINDOWS = 48
# Roots of the mismatch below which motion is the same. A robot repeats a trajectory to about 5 % in positions
# and 10 % in velocities; steps that are 20 % longer, or 3 % faster, exceed these values.
_SAME_POSITION = 0.12
_SAME_VELOCITY = 0.22
_RESTING = 0.1  # a window with less than this fraction of the highest speed is at rest
_SLOWEST = 0.05  # joints that move less than this fraction of the most active one have less weight
_OVERLAP = 0.4  # fraction of a window that must be known, and that the other recording must cover
_GAP = 2.5  # samples this many median steps apart are not adjacent
_SEAM = 8  # samples of a chunk that are also processed with the next one
_MOST_REPEATED = 0.5  # share of windows at which a recording is a repetition


@dataclass(frozen=True)
class Repetition:
    """How much of a recording is contained in another one.

    Attributes:
        windows: number of windows in which the robot moves.
        repeated: number of these windows that are also in the other recording.
        shift: time shift between the two at the best agreement [s]; NaN if there is none.
    """

    windows: int
    repeated: int
    shift: float

    @property
    def share(self) -> float:
        """Share of the moving windows that is repeated; 0 if nothing moves."""
        return self.repeated / self.windows if self.windows else 0.0

    @property
    def is_repetition(self) -> bool:
        """Whether the recording contains no new motion."""
        return self.share >= _MOST_REPEATED


def refuse_repetition(
    training: Samples, validation: Samples, model: Model, name: str, hashes: tuple[Sequence[str], str]
) -> Repetition:
    """Check that a validation recording contains new motion.

    Args:
        training: samples of the training recordings.
        validation: samples of the validation recording.
        model: robot.
        name: of the validation recording, for messages.
        hashes: SHA-256 of each training recording, and of the validation recording.

    Raises:
        ArgumentError: it is the same file, or repeats the same motion.
    """
    why = 'errors on it would say nothing about new motion; expected a recording of another trajectory'
    if hashes[1] in hashes[0]:
        raise ArgumentError(f'{name}: is also a training recording (same SHA-256); {why}')
    found = find_repetition(training, validation, model)
    if found.is_repetition:
        raise ArgumentError(
            f'{name}: repeats the training trajectory in {100.0 * found.share:.0f} % of its motion '
            f'(shifted by {found.shift:+.2f} s); {why}'
        )
    return found


def find_repetition(training: Samples, validation: Samples, model: Model) -> Repetition:
    """Search for the motion of one recording in another.

    Args:
        training: samples of the training recordings.
        validation: samples of the recording to check.
        model: robot.
    """
    old = [_Track(*parts) for parts in _on_grid(training, model)]
    new = [_Track(*parts) for parts in _on_grid(validation, model)]
    scales = _scales(new)
    windows = [window for track in new for window in _windows(track)]
    if scales is None or not old or not windows:
        return Repetition(0, 0, float('nan'))
    fastest = max(map(_speed, windows))
    keep = np.unique(np.linspace(0, len(windows) - 1, _MOST_WINDOWS).round().astype(int))
    moving = repeated = 0
    best, best_shift = np.inf, float('nan')
    searches = [_Search(track, scales) for track in old]
    for window in (windows[i] for i in keep):
        if _speed(window) <= _RESTING * fastest:
            continue
        moving += 1
        position, velocity, shift = min(
            (search.find(window) for search in searches), key=lambda m: m[0] + m[1]
        )
        if np.sqrt(position) < _SAME_POSITION and np.sqrt(velocity) < _SAME_VELOCITY:
            repeated += 1
            if position + velocity < best:
                best, best_shift = position + velocity, shift
    return Repetition(moving, repeated, best_shift)


# ---------------------------------------------------------------- recordings on an even grid


@dataclass(frozen=True, eq=False)
class _Track:
    """One recording on a uniform grid: (n,) which points are known, (n, nj) positions and velocities.

    Attributes:
        start: index of the first point.
    """

    known: Floats
    q: Floats
    v: Floats
    start: int = 0


def _on_grid(samples: Samples, model: Model) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Values on the grid, for each recording; time restarts with each recording."""
    get, nj = samples.layout.get, model.nj
    cells: list[tuple[int, Floats]] = []
    rest = np.empty((0, samples.layout.width))
    for chunk in samples.chunks():
        rows = np.concatenate([rest, chunk])
        steps = np.diff(get(rows, 'time'))
        apart = (steps <= 0.0) | (steps > _GAP * np.median(steps)) | (np.diff(get(rows, 'segment')) != 0.0)
        ends = [*(np.flatnonzero(apart) + 1), len(rows)]
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            if begin and steps[begin - 1] <= 0.0 and cells:
                yield _filled(cells, nj)
                cells = []
            part = rows[begin:end]
            values = np.concatenate([get(part, 'q')[:, -nj:], get(part, 'u')[:, -nj:]], axis=1)
            cells += _between_samples(get(part, 'time'), values)
        rest = rows[max(ends[-2] if len(ends) > 1 else 0, len(rows) - _SEAM) :]
    if cells:
        yield _filled(cells, nj)


def _between_samples(time: Floats, values: Floats) -> list[tuple[int, Floats]]:
    """Index of the first grid point in a segment of samples, and (n, k) values on the grid."""
    first, last = math.ceil(time[0] * _RATE - 1e-6), math.floor(time[-1] * _RATE + 1e-6)
    if last < first or len(time) < 2:
        return []
    grid = np.arange(first, last + 1) / _RATE
    per_cell = max(round(1.0 / (_RATE * float(time[1] - time[0]))), 1)
    if per_cell > 1:  # the mean of neighbours has less noise
        values = np.asarray(uniform_filter1d(values, per_cell, axis=0, mode='nearest'))
    return [(first, np.asarray(CubicSpline(time, values)(grid)))]


def _filled(cells: list[tuple[int, Floats]], nj: int) -> tuple[Floats, Floats, Floats]:
    """(n,) which points of the grid are known, (n, nj) positions and velocities; 0 where they are not."""
    size = max(first + len(values) for first, values in cells)
    known, both = np.zeros(size), np.zeros((size, 2 * nj))
    for first, values in cells:
        skip = max(-first, 0)
        known[first + skip : first + len(values)] = 1.0
        both[first + skip : first + len(values)] = values[skip:]
    return known, both[:, :nj], both[:, nj:]


def _windows(track: _Track) -> Iterator[_Track]:
    """Windows of a recording, overlapping by half; a short recording is one window."""
    n, size = len(track.known), min(int(_WINDOW * _RATE), len(track.known))
    for begin in range(0, n - size + 1, max(size // 2, 1)):
        part = slice(begin, begin + size)
        if track.known[part].mean() >= _OVERLAP:
            yield _Track(track.known[part], track.q[part], track.v[part], begin)


def _speed(window: _Track) -> float:
    """Typical speed of all joints together; the median, because a single jump is not motion."""
    return float(np.median(np.linalg.norm(window.v[window.known > 0.0], axis=1)))


def _scales(tracks: Sequence[_Track]) -> tuple[Floats, Floats] | None:
    """(nj,) standard deviation of positions, and RMS of velocities; None if nothing moves."""
    q = np.concatenate([track.q[track.known > 0.0] for track in tracks] or [np.zeros((0, 1))])
    v = np.concatenate([track.v[track.known > 0.0] for track in tracks] or [np.zeros((0, 1))])
    if not len(q) or not np.any(q.std(axis=0) > 0.0) or not np.any(v):
        return None
    sizes = q.std(axis=0), np.sqrt(np.mean(v**2, axis=0))
    return np.maximum(sizes[0], _SLOWEST * sizes[0].max()), np.maximum(sizes[1], _SLOWEST * sizes[1].max())


# ---------------------------------------------------------------- search


class _Search:
    """Finds windows in a recording, by correlation with Fourier transforms."""

    def __init__(self, track: _Track, scales: tuple[Floats, Floats]) -> None:
        self.scales, self.n = scales, len(track.known)
        self.size = next_fast_len(self.n + int(_WINDOW * _RATE), real=True)
        self.known = self._transform(track.known)
        self.parts = []
        for values, scale in zip((track.q, track.v), scales, strict=True):
            z = values / scale * track.known[:, None]
            self.parts.append((self._transform(z), self._transform(np.sum(z**2, axis=1))))

    def find(self, window: _Track) -> tuple[float, float, float]:
        """Mismatch of positions and of velocities at the best shift, and this shift [s]."""
        size = len(window.known)
        lags = np.arange(-size + 1, self.n)
        covered = self._correlate(self._transform(window.known), self.known)[lags]
        mismatches = []
        for (other, other_square), values, scale in zip(
            self.parts, (window.q, window.v), self.scales, strict=True
        ):
            z = values / scale * window.known[:, None]
            square = np.sum(z**2, axis=1)
            cross = self._correlate(self._transform(z), other).sum(axis=1)[lags]
            mine = self._correlate(self._transform(square), self.known)[lags]
            yours = self._correlate(self._transform(window.known), other_square)[lags]
            moved = window.known[:, None] * (z - z[window.known > 0.0].mean(axis=0))
            per_cell = float(np.sum(moved**2)) / max(float(window.known.sum()), 1.0)
            difference = np.maximum(mine + yours - 2.0 * cross, 0.0)
            mismatches.append(difference / np.maximum(covered * per_cell, 1e-12))
        enough = covered >= _OVERLAP * min(float(window.known.sum()), self.n)
        both = np.where(enough, mismatches[0] + mismatches[1], np.inf)
        k = int(np.argmin(both))
        if not np.isfinite(both[k]):
            return np.inf, np.inf, float('nan')
        finer = [_between(mismatch, k) for mismatch in mismatches]
        return finer[0], finer[1], float(window.start - lags[k]) / _RATE

    def _transform(self, values: Floats) -> npt.NDArray[np.complex128]:
        return np.asarray(rfft(values, self.size, axis=0))

    def _correlate(self, a: npt.NDArray[np.complex128], b: npt.NDArray[np.complex128]) -> Floats:
        """Sum over t of a[t] b[t + lag]; negative lags are at the end."""
        return np.asarray(irfft(np.conj(a) * b, self.size, axis=0))


def _between(values: Floats, k: int) -> float:
    """Minimum near index k, by a parabola through three values."""
    if not 0 < k < len(values) - 1:
        return float(values[k])
    left, mid, right = values[k - 1 : k + 2]
    bend = left - 2.0 * mid + right
    if bend <= 0.0:
        return float(mid)
    return float(max(mid - (left - right) ** 2 / (8.0 * bend), 0.0))
