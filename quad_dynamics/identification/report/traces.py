# SPDX-License-Identifier: Apache-2.0
"""Data of the plots of a report: torques of a few seconds, all residuals, and their spectrum.

They are collected in one pass over the samples, and their size does not depend on the number of samples. No
line crosses the gap between two segments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bools, Floats, Ints
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.report.segments import Survey, Timeline, survey
from quad_dynamics.identification.validation.held_out import blocks_of

_DETAIL = 4.0  # duration of the detailed torques [s]
_POINTS = 800  # largest number of points of a line
_BINS = 120  # of time, over the whole recording
_PER_BIN = 3  # smallest number of samples in a bin
_CELLS, _FEW = 60, 300  # cells of histograms; half as many for fewer samples than this
_MOST_RESIDUALS = 4096  # samples of the histograms
_WIDEST = 0.995  # share of residuals in the range of a histogram
_SPECTRUM = 128, 32  # largest and smallest number of samples of a spectrum
_LEAST_USED = 0.5  # share of a row's samples in a spectrum that must be used


@dataclass(frozen=True, eq=False)
class Traces:
    """Torques and residuals of the joints; without joint rows, of the base.

    Attributes:
        names: of the k rows.
        units: of each row.
        survey: of the samples.
        time: (n,) of the detailed torques [s]; NaN between two segments. If there are several, the time
            between them is removed, and it begins at 0.
        breaks: (m,) times at which a segment ends and the next one begins [s].
        measured: (n, k) detailed torques; NaN between two segments, as in the following.
        before: (n, k) predicted with the original model.
        after: (n, k) predicted with the solution.
        used: (n, k) whether rows are used; true between two segments.
        bin_edges: (b + 1,) of bins of time, recordings one after another [s].
        bin_before: (b, k) RMS of residuals in bins of time; NaN if no row is used.
        bin_after: (b, k) the same for the solution.
        bin_empty: (b,) bins without any sample.
        bin_unused: (b, k) bins with samples of which no row is used.
        judged: (m, 2) begins and ends of what is held out and judged [s].
        margins: (m, 2) the same for the margins of held-out blocks, which are neither fitted nor judged.
        share: (k,) share of used rows.
        edges: (cells + 1, k) of histograms of residuals.
        counts_before: (cells, k) of histograms.
        counts_after: (cells, k) the same for the solution.
        frequency: (f,) of the spectrum [Hz]; empty if no segment is long enough, or too few rows are used.
        spectrum: (3, f) mean over rows of the power of the measurements, and of residuals before and after.
            Residuals of unused rows are interpolated.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    survey: Survey
    time: Floats
    breaks: Floats
    measured: Floats
    before: Floats
    after: Floats
    used: Bools
    bin_edges: Floats
    bin_before: Floats
    bin_after: Floats
    bin_empty: Bools
    bin_unused: Bools
    judged: Floats
    margins: Floats
    share: Floats
    edges: Floats
    counts_before: Floats
    counts_after: Floats
    frequency: Floats
    spectrum: Floats

    @property
    def seconds(self) -> float:
        """Duration of the detailed torques [s]."""
        shown = self.time[np.isfinite(self.time)]
        return float(np.ptp(shown)) if len(shown) else 0.0


def gather_traces(equations: Equations, before: Floats, after: Floats, held_out: bool = False) -> Traces:
    """Collect the data of the plots.

    Args:
        equations: of the samples that are shown.
        before: (size,) unknowns of the original model.
        after: (size,) identified unknowns.
        held_out: whether blocks of these samples were held out; then they are marked.
    """
    gatherer = _Gatherer(equations, held_out)
    for (rows, r_before), (_, r_after) in zip(
        equations.residuals(before), equations.residuals(after), strict=True
    ):
        gatherer.add(rows, r_before, r_after)
    return gatherer.traces()


class _Gatherer:
    """Collects the data chunk by chunk."""

    def __init__(self, equations: Equations, held_out: bool) -> None:
        model = equations.columns.model
        self.equations, self.get = equations, equations.samples.layout.get
        self.of_joints = equations.mode != 'base'
        self.first = equations.rows - model.nj if self.of_joints else 0
        self.names: tuple[str, ...] = model.joint_names
        self.units = tuple('N' if prismatic else 'N m' for prismatic in model.is_prismatic)
        if not self.of_joints:
            self.names = ('force x', 'force y', 'force z', 'moment x', 'moment y', 'moment z')
            self.units = ('N',) * 3 + ('N m',) * 3
        self.blocks = blocks_of(equations.samples) if held_out else None
        self.survey, self.done = survey(equations.samples), 0
        self.timeline = Timeline(equations.samples)
        k = len(self.names)
        self.bins = _Bins(self.survey, k)
        self.detail = _Detail(self.survey)
        self.spectra = _Spectra(self.survey, k)
        self.judged, self.margins = _Spans(self.survey), _Spans(self.survey)
        self.residuals: list[Floats] = []
        self.used: list[Bools] = []
        self.counted = np.zeros(k)

    def add(self, rows: Floats, before: Floats, after: Floats) -> None:
        """Add one chunk."""
        use = self.equations.use(rows)[:, self.first :] > 0.0
        residuals = np.stack([before, after])[:, :, self.first :]
        measured = self._measured(rows)
        time, starts = self.timeline.add(rows)
        index = self.done + np.arange(len(rows))
        if self.blocks is not None:
            judged = self.blocks.judged(index)
            self.judged.add(time, judged)
            self.margins.add(time, self.blocks.held(index) & ~judged)
        self.bins.add(time, residuals, use)
        self.detail.add(self.done, time, starts, measured, residuals, use)
        self.spectra.add(time, starts, measured, residuals, use)
        every = max(1, -(-self.survey.samples // _MOST_RESIDUALS))
        kept = index % every == 0
        self.residuals.append(residuals[:, kept])
        self.used.append(use[kept])
        self.counted += use.sum(axis=0)
        self.done += len(rows)

    def _measured(self, rows: Floats) -> Floats:
        if self.of_joints:
            return np.array(self.get(rows, 'tau'))
        J = self.equations.foot_jacobians(rows)[:, :, :6]
        return np.asarray(np.einsum('nkv,nk->nv', J, self.get(rows, 'force')))

    def traces(self) -> Traces:
        """The collected data."""
        edges, histograms = _histograms(np.concatenate(self.residuals, axis=1), np.concatenate(self.used))
        time, breaks, measured, before, after, used = self.detail.lines(len(self.names))
        frequency, spectrum = self.spectra.mean()
        return Traces(
            names=self.names,
            units=self.units,
            survey=self.survey,
            time=time,
            breaks=breaks,
            measured=measured,
            before=before,
            after=after,
            used=used,
            bin_edges=self.bins.edges,
            bin_before=self.bins.rms(0),
            bin_after=self.bins.rms(1),
            bin_empty=self.bins.samples == 0.0,
            bin_unused=(self.bins.counts == 0.0) & (self.bins.samples > 0.0)[:, None],
            judged=self.judged.spans(),
            margins=self.margins.spans(),
            share=self.counted / max(self.done, 1),
            edges=edges,
            counts_before=histograms[0],
            counts_after=histograms[1],
            frequency=frequency,
            spectrum=spectrum,
        )


class _Spans:
    """Times in which a condition holds for adjacent samples."""

    def __init__(self, found: Survey) -> None:
        self.half = 0.5 * found.period
        self.found: list[list[float]] = []
        self.inside = False

    def add(self, time: Floats, holds: Bools) -> None:
        """Add some samples."""
        begins, ends = runs(holds)
        for begin, end in zip(begins, ends, strict=True):
            if begin > 0 or not self.inside:
                self.found.append([time[begin] - self.half, 0.0])
            self.found[-1][1] = time[end - 1] + self.half
        self.inside = bool(holds[-1]) if len(holds) else self.inside

    def spans(self) -> Floats:
        """(m, 2) begins and ends [s]."""
        return np.array(self.found).reshape(-1, 2)


def runs(holds: Bools) -> tuple[Ints, Ints]:
    """First indices of runs of true values, and one past their last."""
    steps = np.diff(np.concatenate([[0], holds.astype(int), [0]]))
    return np.flatnonzero(steps > 0), np.flatnonzero(steps < 0)


class _Bins:
    """Mean squares of residuals in bins of time of equal length."""

    def __init__(self, found: Survey, k: int) -> None:
        period = max(found.period, 1e-9)
        length = max(found.end - found.begin, 0.0) + period  # the period of the last sample is included
        n = int(np.clip(length / (_PER_BIN * period), 1, _BINS))
        self.edges = found.begin + length * np.arange(n + 1) / n
        self.sums, self.counts = np.zeros((2, n, k)), np.zeros((n, k))
        self.samples = np.zeros(n)

    def add(self, time: Floats, residuals: Floats, use: Bools) -> None:
        """Add some samples; those at the last edge belong to the last bin."""
        n = len(self.samples)
        bins = np.clip(np.searchsorted(self.edges, time, side='right') - 1, 0, n - 1)
        for b in np.unique(bins):
            here = bins == b
            self.sums[:, b] += np.sum(residuals[:, here] ** 2 * use[here], axis=1)
            self.counts[b] += use[here].sum(axis=0)
            self.samples[b] += here.sum()

    def rms(self, i: int) -> Floats:
        """(b, k) root mean squares of residuals before (0) or after (1)."""
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.asarray(np.sqrt(self.sums[i] / self.counts))


class _Detail:
    """Samples around the middle one."""

    def __init__(self, found: Survey) -> None:
        wanted = round(_DETAIL / found.period) + 1 if found.period else _POINTS
        n = min(wanted, _POINTS, found.samples)
        self.first = (found.samples - n) // 2
        self.last = self.first + n
        self.period = found.period
        self.parts: list[tuple[Floats, Bools, Floats, Bools]] = []

    def add(
        self, done: int, time: Floats, starts: Bools, measured: Floats, residuals: Floats, use: Bools
    ) -> None:
        """Add those of some samples that are shown."""
        here = slice(max(self.first - done, 0), max(self.last - done, 0))
        values = np.concatenate([measured, measured - residuals[0], measured - residuals[1]], axis=1)
        self.parts.append((time[here], starts[here], values[here], use[here]))

    def lines(self, k: int) -> tuple[Floats, Floats, Floats, Floats, Floats, Bools]:
        """Times, breaks, and (n, k) measured, before, after, used; NaN and true between two segments."""
        time = np.concatenate([part[0] for part in self.parts] or [np.empty(0)])
        starts = np.concatenate([part[1] for part in self.parts] or [np.empty(0, dtype=bool)])
        values = np.concatenate([np.empty((0, 3 * k)), *(part[2] for part in self.parts)])
        used = np.concatenate([np.empty((0, k), dtype=bool), *(part[3] for part in self.parts)])
        at = np.flatnonzero(starts)
        at = at[at > 0]
        breaks = np.empty(0)
        if len(at):
            time = np.cumsum(np.r_[0.0, np.where(starts[1:], self.period, np.diff(time))])
            breaks = 0.5 * (time[at - 1] + time[at])
        time, values = np.insert(time, at, np.nan), np.insert(values, at, np.nan, axis=0)
        measured, before, after = np.split(values, 3, axis=1)
        return time, breaks, measured, before, after, np.insert(used, at, True, axis=0)


class _Spectra:
    """Mean of spectra of equal numbers of adjacent samples; remaining samples wait for the next chunk.

    Unused rows may have large residuals, which would dominate the mean. They are interpolated from the used
    ones. If most samples of a row are unused, its spectrum does not count.
    """

    def __init__(self, found: Survey, k: int) -> None:
        most, least = _SPECTRUM
        self.size = min(most, 2 ** int(np.log2(max(found.longest, 1))))
        self.enough = self.size >= least and found.period > 0.0
        self.period = found.period
        self.rows = k
        self.pending: Floats = np.empty((0, 4 * k + 1))
        self.frequency: Floats = np.empty(0)
        self.power: list[Floats] = []

    def add(self, time: Floats, starts: Bools, measured: Floats, residuals: Floats, use: Bools) -> None:
        """Add some samples."""
        if not self.enough:
            return
        values = np.concatenate([time[:, None], measured, residuals[0], residuals[1], use], axis=1)
        for i, part in enumerate(np.split(values, np.flatnonzero(starts))):
            self.pending = part if i else np.concatenate([self.pending, part])
            while len(self.pending) >= self.size:
                self._take(self.pending[: self.size])
                self.pending = self.pending[self.size :]

    def _take(self, values: Floats) -> None:
        from scipy.signal import periodogram

        if not np.isclose(values[1, 0] - values[0, 0], self.period, rtol=1e-2):
            return  # a recording with another rate has other frequencies
        parts = values[:, 1:].reshape(self.size, 4, self.rows)
        use = parts[:, 3] > 0.0
        kept = use.mean(axis=0) >= _LEAST_USED
        if not kept.any():
            return
        signals = parts[:, :3, kept]
        for j, used in enumerate(use[:, kept].T):
            for i in (1, 2):
                signals[:, i, j] = np.interp(values[:, 0], values[used, 0], signals[used, i, j])
        f, power = periodogram(signals, 1.0 / self.period, window='hann', detrend='constant', axis=0)
        self.frequency = f[1:]
        self.power.append(power[1:].mean(axis=2).T)

    def mean(self) -> tuple[Floats, Floats]:
        """(f,) frequencies and (3, f) powers."""
        return self.frequency, np.mean(self.power, axis=0) if self.power else np.empty((3, 0))


def _histograms(residuals: Floats, use: Bools) -> tuple[Floats, Floats]:
    """(cells + 1, k) edges and (2, cells, k) counts of (2, n, k) residuals of used rows."""
    k = residuals.shape[2]
    cells = _CELLS if len(use) >= _FEW else _CELLS // 2
    edges, counts = np.zeros((cells + 1, k)), np.zeros((2, cells, k))
    for j in range(k):
        values = residuals[:, use[:, j], j]
        size = float(np.quantile(np.abs(values), _WIDEST, axis=1).max()) if values.size else 0.0
        edges[:, j] = np.linspace(-1.0, 1.0, cells + 1) * max(1.05 * size, 1e-9)
        for i in range(2):
            counts[i, :, j] = np.histogram(values[i], edges[:, j])[0]
    return edges, counts
