# SPDX-License-Identifier: Apache-2.0
"""Choose the cutoff of the low-pass filter by the predictions of fits.

Spectra show where motion ends and noise begins, but not whether the equation of motion is valid there:
impacts, contact chatter and flexible parts also move the joints. So each cutoff is tested. A fit with this
cutoff to a part of the time must predict the forces below a lower cutoff, in the rest of the time, as well as
a fit with the lower cutoff. If it does not, signals above the lower cutoff have biased the unknowns, and the
lower one is tried.

All fits are evaluated on the same signals, because a filter also removes noise, and errors after different
filters are not comparable. All unknowns are free, including the inertia of the legs: these are the unknowns
that absorb effects that are not rigid-body motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.signals.delay import Delays
from quad_dynamics.identification.signals.signal_report import RefusedCutoff, SignalReport
from quad_dynamics.identification.signals.signals import Logs
from quad_dynamics.identification.solvers.consistent import solve_consistent
from quad_dynamics.identification.solvers.first_fit import first_fit
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.prior import friction_scales

_STEP = 1.6  # factor between candidate cutoffs
_BELOW = 2  # number of lower cutoffs at which each candidate is tested
_FOLDS = 4  # parts of the time; each is left out once
_MOST, _LEAST = 600, 100  # largest and smallest number of samples of a fit
_WEIGHT = 1e-2  # of the prior
_PASSES = 2  # passes of a fit, to estimate the noise
# A cutoff is rejected if errors below a lower cutoff are larger by this factor and this many standard errors.
_WORSE, _SURE = 1.03, 2.0


@dataclass(frozen=True, eq=False)
class _Band:
    """Fits with one cutoff.

    Attributes:
        cutoff: [Hz].
        sums: normal equations of each part of the time; None for a part without samples.
        x: (size,) for each part: the fit to all other parts; None if there is none.
    """

    cutoff: float
    sums: list[NormalEquations | None]
    x: list[Floats | None]


def lower_cutoff(
    logs: Logs,
    first: tuple[Samples, SignalReport],
    delays: Delays,
    columns: Columns,
    mode: str,
    freedom: Freedom,
) -> tuple[tuple[Samples, SignalReport], Delays]:
    """Samples, report and delays after a filter with a lower cutoff; unchanged if none is needed.

    Args:
        logs: recordings.
        first: samples and report for the cutoff of the spectra.
        delays: that were corrected in these samples.
        columns: the unknowns.
        mode: mode of the equations.
        freedom: which unknowns may change.
    """
    chosen, refused = CutoffJudge(logs, delays, columns, mode, freedom).choose(first[0])
    if not refused:
        return first, delays
    delays = logs.find_delays(chosen)
    return logs.samples(chosen, delays, refused), delays


class CutoffJudge:
    """Makes the fits, each one once."""

    def __init__(self, logs: Logs, delays: Delays, columns: Columns, mode: str, freedom: Freedom) -> None:
        """Prepare the fits; nothing is computed yet.

        Args:
            logs: recordings.
            delays: that are corrected.
            columns: the unknowns.
            mode: mode of the equations.
            freedom: which unknowns may change.
        """
        self._logs, self._delays = logs, delays
        self._columns, self._mode, self._freedom = columns, mode, freedom
        durations = [len(log.grid) * log.grid.period for log in logs.logs]
        self._begins, self._length = np.cumsum([0.0, *durations[:-1]]), sum(durations)
        self._first_segments = np.cumsum([0, *(len(log.grid.segments) for log in logs.logs[:-1])])
        self._bands: dict[float, _Band | None] = {}

    def choose(self, samples: Samples) -> tuple[float, tuple[RefusedCutoff, ...]]:
        """The highest cutoff that passes the test, and the rejected ones, starting from that of the spectra.

        Args:
            samples: filtered with the cutoff of the spectra.
        """
        cutoff, refused = self._logs.spectral_cutoff, []
        self._bands[cutoff] = self._fits(cutoff, samples)
        while (factor := self._worse(cutoff)) > 1.0:
            refused.append(RefusedCutoff(cutoff, factor))
            cutoff = _lower(cutoff)
        return cutoff, tuple(refused)

    def _worse(self, cutoff: float) -> float:
        """Factor by which fits with a cutoff predict worse than those with lower ones; 1: not significant."""
        own, lower, worst = self._band(cutoff), cutoff, 1.0
        for _ in range(_BELOW):
            lower = _lower(lower)
            judge = self._band(lower)
            if own is None or judge is None:
                break
            worst = max(worst, _factor(own, judge))
        return worst

    def _band(self, cutoff: float) -> _Band | None:
        """Fits with a cutoff; None if it is too low or leaves too few samples."""
        if cutoff not in self._bands:
            lowest = min(self._logs.lowest_cutoff, self._logs.spectral_cutoff)
            self._bands[cutoff] = self._fits(cutoff, self._samples(cutoff)) if cutoff >= lowest else None
        return self._bands[cutoff]

    def _samples(self, cutoff: float) -> Samples:
        try:
            return self._logs.samples(cutoff, self._delays)[0]
        except ArgumentError:  # no samples are left
            return Samples(self._columns.model)

    def _fits(self, cutoff: float, samples: Samples) -> _Band | None:
        if len(samples) < _LEAST:
            return None
        rows = _thinned(samples)
        equations, x = first_fit(self._some(rows), self._columns, self._mode, self._freedom, _PASSES)
        part, scales = self._part_of(samples, rows), friction_scales(self._columns)
        sums = [self._sums(rows[part == k], equations, x) for k in range(_FOLDS)]
        fits: list[Floats | None] = [None] * _FOLDS
        for k in range(_FOLDS):
            others = [one for i, one in enumerate(sums) if one is not None and i != k]
            if others:
                fits[k] = solve_consistent(sum(others[1:], others[0]), self._freedom, _WEIGHT, scales)
        return _Band(cutoff, sums, fits)

    def _sums(self, rows: Floats, equations: Equations, x: Floats) -> NormalEquations | None:
        if not len(rows):
            return None
        own = Equations(self._some(rows), self._columns, self._mode, equations.noise)
        return own.accumulate(1, x)[0]

    def _some(self, rows: Floats) -> Samples:
        samples = Samples(self._columns.model)
        samples.append(rows)
        return samples

    def _part_of(self, samples: Samples, rows: Floats) -> npt.NDArray[np.int64]:
        """(n,) part of the time of each sample; the same for all cutoffs."""
        segment, time = (samples.layout.get(rows, name).reshape(-1) for name in ('segment', 'time'))
        recording = np.searchsorted(self._first_segments, segment, side='right') - 1
        at = (self._begins[recording] + time) / self._length
        return np.clip((_FOLDS * at).astype(np.int64), 0, _FOLDS - 1)


def _thinned(samples: Samples) -> Floats:
    """(n, width) a subset of the samples, evenly spaced."""
    every, done, picked = max(1, -(-len(samples) // _MOST)), 0, []
    for rows in samples.chunks():
        picked.append(rows[(-done) % every :: every])
        done += len(rows)
    return np.concatenate(picked)


def _lower(cutoff: float) -> float:
    """The next candidate [Hz]."""
    return round(cutoff / _STEP, 1)


def _factor(own: _Band, judge: _Band) -> float:
    """Ratio of prediction errors, on the signals of the judge; 1 if not significantly larger."""
    logs = [
        0.5 * np.log(_error(x, sums) / _error(best, sums))
        for sums, best, x in zip(judge.sums, judge.x, own.x, strict=True)
        if sums is not None and best is not None and x is not None
    ]
    if len(logs) < 2:
        return 1.0
    mean, error = float(np.mean(logs)), float(np.std(logs, ddof=1)) / np.sqrt(len(logs))
    return float(np.exp(mean)) if mean > max(np.log(_WORSE), _SURE * error) else 1.0


def _error(x: Floats, sums: NormalEquations) -> float:
    """Residual sum of squares."""
    return max(sums.yty - 2.0 * float(x @ sums.Yty) + float(x @ sums.YtY @ x), 1e-300)
