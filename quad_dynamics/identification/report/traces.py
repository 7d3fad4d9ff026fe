# SPDX-License-Identifier: Apache-2.0
"""What the pictures of a report show: torques of a few seconds, residuals of everything, their spectrum.

It is gathered in one pass over the samples, and its size does not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.identification.equations.equations import Equations

Floats = npt.NDArray[np.float64]

_DETAIL = 4.0  # length of what is shown of torques [s]
_POINTS = 400  # at most, of a line in a picture
_BINS = 120  # of time, over the whole recording
_CELLS = 60  # of histograms
_WIDEST = 5.0  # standard deviations of the residuals before that a histogram shows
_SPECTRUM = 128  # samples of a stretch whose spectrum is taken


@dataclass(frozen=True, eq=False)
class Traces:
    """Torques and residuals of the joints; where there are no joint rows, of the base.

    Attributes:
        names: of the k rows.
        units: of each row.
        time: (n,) of the stretch that is shown in detail [s].
        measured: (n, k) torques in it.
        before: (n, k) predicted with the model as it was.
        after: (n, k) predicted with what was found.
        bin_time: (b,) since the beginning, over all recordings [s].
        bin_before: (b, k) RMS of residuals in bins of time; NaN where a bin holds none.
        bin_after: (b, k) likewise.
        edges: (cells + 1, k) of histograms of residuals.
        counts_before: (cells, k) of histograms.
        counts_after: (cells, k) likewise.
        frequency: (f,) of the spectrum [Hz]; empty where no stretch is long enough.
        spectrum: (3, f) mean over rows of the power of what was measured, and of residuals before and after.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    time: Floats
    measured: Floats
    before: Floats
    after: Floats
    bin_time: Floats
    bin_before: Floats
    bin_after: Floats
    edges: Floats
    counts_before: Floats
    counts_after: Floats
    frequency: Floats
    spectrum: Floats


def gather_traces(equations: Equations, before: Floats, after: Floats) -> Traces:
    """Gather what the pictures show.

    Args:
        equations: of the samples that are shown.
        before: (size,) unknowns of the model as it was.
        after: (size,) unknowns that were found.
    """
    gatherer = _Gatherer(equations)
    for (rows, r_before), (_, r_after) in zip(
        equations.residuals(before), equations.residuals(after), strict=True
    ):
        gatherer.add(rows, r_before, r_after)
    return gatherer.traces()


class _Gatherer:
    """Adds chunk after chunk."""

    def __init__(self, equations: Equations) -> None:
        model = equations.columns.model
        self.equations, self.get = equations, equations.samples.layout.get
        self.of_joints = equations.mode != 'base'
        self.first = equations.rows - model.nj if self.of_joints else 0
        self.names: tuple[str, ...] = model.joint_names
        self.units = tuple('N' if prismatic else 'N m' for prismatic in model.is_prismatic)
        if not self.of_joints:
            self.names = ('force x', 'force y', 'force z', 'moment x', 'moment y', 'moment z')
            self.units = ('N',) * 3 + ('N m',) * 3
        self.total, self.done = len(equations.samples), 0
        k = len(self.names)
        self.sums, self.counts = np.zeros((2, _BINS, k)), np.zeros((_BINS, k))
        self.bin_time = np.full(_BINS, np.nan)
        self.elapsed, self.last = 0.0, -np.inf
        self.edges, self.histograms = np.zeros((_CELLS + 1, k)), np.zeros((2, _CELLS, k))
        self.detail: list[Floats] = []
        self.power: list[Floats] = []
        self.frequency: Floats = np.empty(0)
        self.pending: Floats = np.empty((0, 2 + 3 * k))

    def add(self, rows: Floats, before: Floats, after: Floats) -> None:
        """Take one chunk."""
        use = self.equations.use(rows)[:, self.first :] > 0.0
        residuals = np.stack([before, after])[:, :, self.first :]
        measured = self._measured(rows)
        time = self._continued(self.get(rows, 'time'))
        self._add_bins(time, residuals, use)
        self._add_histograms(residuals, use)
        self._add_detail(time, measured, residuals)
        self._add_spectra(rows, measured, residuals)
        self.done += len(rows)

    def _measured(self, rows: Floats) -> Floats:
        if self.of_joints:
            return np.array(self.get(rows, 'tau'))
        J = self.equations.foot_jacobians(rows)[:, :, :6]
        return np.asarray(np.einsum('nkv,nk->nv', J, self.get(rows, 'force')))

    def _continued(self, time: Floats) -> Floats:
        """Times that go on where the last recording ended."""
        steps = np.diff(time, prepend=self.last if np.isfinite(self.last) else time[0])
        self.last = float(time[-1])
        made = self.elapsed + np.cumsum(np.maximum(steps, 0.0))
        self.elapsed = float(made[-1])
        return np.asarray(made)

    def _add_bins(self, time: Floats, residuals: Floats, use: npt.NDArray[np.bool_]) -> None:
        bins = (self.done + np.arange(len(time))) * _BINS // max(self.total, 1)
        for b in np.unique(bins):
            here = bins == b
            self.sums[:, b] += np.sum(residuals[:, here] ** 2 * use[here], axis=1)
            self.counts[b] += use[here].sum(axis=0)
            if np.isnan(self.bin_time[b]):
                self.bin_time[b] = time[here][0]

    def _add_histograms(self, residuals: Floats, use: npt.NDArray[np.bool_]) -> None:
        if not self.done:
            size = np.sqrt(np.mean(residuals**2, axis=1)).max(axis=0)
            size = np.maximum(size, 1e-9)
            self.edges = np.linspace(-1.0, 1.0, _CELLS + 1)[:, None] * size * 0.6 * _WIDEST
        for i in range(2):
            for k in range(residuals.shape[2]):
                values = residuals[i, use[:, k], k]
                self.histograms[i, :, k] += np.histogram(values, self.edges[:, k])[0]

    def _add_detail(self, time: Floats, measured: Floats, residuals: Floats) -> None:
        begun = bool(self.detail)
        if not begun and self.done + len(time) <= self.total // 2:
            return
        start = self.detail[0][0, 0] if begun else time[max(self.total // 2 - self.done - 1, 0)]
        here = (time >= start) & (time <= start + _DETAIL)
        if here.any():
            parts = [time[:, None], measured, measured - residuals[0], measured - residuals[1]]
            self.detail.append(np.concatenate([part[here] for part in parts], axis=1))

    def _add_spectra(self, rows: Floats, measured: Floats, residuals: Floats) -> None:
        """Spectra of stretches of equal length; what is left over waits for the next chunk."""
        from scipy.signal import periodogram

        ids = np.stack([self.get(rows, 'block'), self.get(rows, 'time')], axis=1)
        values = np.concatenate([measured, residuals[0], residuals[1]], axis=1)
        pending = np.concatenate([self.pending, np.concatenate([ids, values], axis=1)])
        while len(pending) >= _SPECTRUM:
            part = pending[:_SPECTRUM]
            changes = np.flatnonzero(np.diff(part[:, 0]))
            if len(changes):  # a stretch ends here
                pending = pending[changes[-1] + 1 :]
                continue
            pending = pending[_SPECTRUM:]
            rate = 1.0 / float(part[1, 1] - part[0, 1])
            f, power = periodogram(part[:, 2:], rate, window='hann', detrend='constant', axis=0)
            if not len(self.frequency):
                self.frequency = f[1:]
            if np.isclose(f[1], self.frequency[0]):
                self.power.append(power[1:].reshape(len(f) - 1, 3, -1).mean(axis=2).T)
        self.pending = pending

    def traces(self) -> Traces:
        """All of it."""
        k = len(self.names)
        detail = np.concatenate([np.empty((0, 3 * k + 1)), *self.detail])
        detail = detail[:: max(1, -(-len(detail) // _POINTS))]
        with np.errstate(invalid='ignore', divide='ignore'):
            bins = np.sqrt(self.sums / self.counts)
        filled = ~np.isnan(self.bin_time)
        spectrum = np.mean(self.power, axis=0) if self.power else np.empty((3, 0))
        measured, before, after = np.split(detail[:, 1:], 3, axis=1)
        return Traces(
            names=self.names,
            units=self.units,
            time=detail[:, 0],
            measured=measured,
            before=before,
            after=after,
            bin_time=self.bin_time[filled],
            bin_before=bins[0][filled],
            bin_after=bins[1][filled],
            edges=self.edges,
            counts_before=self.histograms[0],
            counts_after=self.histograms[1],
            frequency=self.frequency if self.power else np.empty(0),
            spectrum=spectrum,
        )
