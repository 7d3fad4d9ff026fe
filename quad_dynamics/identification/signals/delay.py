# SPDX-License-Identifier: Apache-2.0
"""Delay of torques and forces relative to positions, estimated from the fit of the equation of motion.

For a delay d the equation is Y x = tau(t + d). The best fit over x is computed for several d, and predicts
the torques. At the correct d, the residual torques are uncorrelated with the rate of the predicted torques:
h(d) = g^T (I - P) tau(t + d) = 0, with this rate g and the projection P onto the range of Y. Noise of torques
does not enter g, so it does not move the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.signals.delay_rows import (
    BaseRows,
    ContactRows,
    JointRows,
    Rows,
    SampleChunks,
)
from quad_dynamics.identification.signals.sampling import Plan

_FINE = 0.1  # step between candidate delays, relative to the period of the cutoff
_COARSEST = 2.5e-3  # upper bound of this step [s]
_SURE = 2.0  # a delay is significant above this many standard errors
_SMALLEST = 1e-4  # residual delay that is ignored [s]
_WORST = 1.5e-3  # standard error above which a delay is not determined [s]


@dataclass(frozen=True)
class Delay:
    """A delay.

    Attributes:
        value: that is corrected [s].
        estimate: [s]; NaN if it was given or could not be estimated.
        error: standard error of the estimate [s]; NaN as above, and after a correction by a fit.
        how: 'given', 'estimated', 'not significant', 'not found' or 'none'.
    """

    value: float
    estimate: float
    error: float
    how: str

    @property
    def may_move(self) -> bool:
        """Whether it is an estimate that a fit can improve."""
        return self.how not in ('given', 'none')

    def moved(self, left: float) -> Delay:
        """Corrected by a residual delay; unchanged if that is negligible, or if the delay was given."""
        if not self.may_move or abs(left) < _SMALLEST:
            return self
        return Delay(self.value + left, self.value + left, float('nan'), 'estimated')

    @staticmethod
    def given(value: float) -> Delay:
        """A given delay."""
        return Delay(value, float('nan'), float('nan'), 'given')


class Delays(NamedTuple):
    """Delays of torques and of foot forces relative to positions."""

    torque: Delay
    force: Delay

    @property
    def may_move(self) -> bool:
        """Whether one of them is an estimate that a fit can improve."""
        return self.torque.may_move or self.force.may_move

    def moved(self, torque: float, force: float) -> Delays:
        """Corrected by residual delays [s]; unchanged if these are negligible."""
        return Delays(self.torque.moved(torque), self.force.moved(force))


NO_DELAY = Delay(0.0, float('nan'), float('nan'), 'none')
_NOT_FOUND = Delay(0.0, float('nan'), float('nan'), 'not found')


class _Fit:
    """Normal equations of A x = C(d) for several d at once, and of the rates g."""

    def __init__(self, tried: Floats, size: int) -> None:
        self.tried = tried
        self.AtA, self.AtC = np.zeros((size, size)), np.zeros((size, len(tried)))
        self.CtC, self.rows = np.zeros(len(tried)), 0
        self.Atg, self.gtC, self.gtg = np.zeros(size), np.zeros(len(tried)), 0.0
        self._root = np.empty((0, 0))

    def add(self, A: Floats, C: Floats) -> None:
        """Add rows (n, size) and (n, tried)."""
        self.AtA += A.T @ A
        self.AtC += A.T @ C
        self.CtC += np.sum(C * C, axis=0)
        self.rows += int(np.count_nonzero(np.any(A != 0.0, axis=1)))

    def add_rates(self, A: Floats, C: Floats, g: Floats) -> None:
        """Add rates (n,) of the same rows."""
        self.Atg += A.T @ g
        self.gtC += g @ C
        self.gtg += float(g @ g)

    def finish(self) -> None:
        """Factor of the pseudo-inverse of AtA, without directions that the rows do not determine."""
        scale = np.sqrt(np.maximum(np.diag(self.AtA), 1e-300))
        values, vectors = np.linalg.eigh(self.AtA / np.outer(scale, scale))
        kept = values > 1e-9 * max(float(values[-1]), 1e-300)
        self._root = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]

    def best(self) -> tuple[int, Floats]:
        """Index of the delay with the best fit, and its x."""
        parts_ = self._root.T @ self.AtC
        i = int(np.argmin(self.CtC - np.sum(parts_ * parts_, axis=0)))
        return i, self._root @ parts_[:, i]

    def delay(self) -> Delay:
        """The delay at which residuals are uncorrelated with rates."""
        parts_, rate = self._root.T @ self.AtC, self._root.T @ self.Atg
        h = CubicSpline(self.tried, self.gtC - rate @ parts_)
        free = self.rows - self._root.shape[1] - 1
        roots = h.roots(extrapolate=False)
        roots = roots[h(roots, 1) > 0.0]  # torques shifted further are larger where they increase
        if free < 10 or not len(roots):
            return _NOT_FOUND
        value = float(roots[np.argmin(h.antiderivative()(roots))])
        left = CubicSpline(self.tried, self.CtC - np.sum(parts_ * parts_, axis=0))
        variance = max(float(left(value)), 0.0) / free
        spread = max(self.gtg - float(rate @ rate), 0.0)
        error = float(np.sqrt(variance * spread) / h(value, 1))
        if error > _WORST:
            return Delay(0.0, value, error, 'not found')
        if abs(value) < _SURE * error:
            return Delay(0.0, value, error, 'not significant')
        return Delay(value, value, error, 'estimated')


def tried_delays(longest: float, cutoff: float) -> Floats:
    """(k,) candidate delays [s]."""
    count = int(np.ceil(longest / min(_FINE / cutoff, _COARSEST)))
    return np.linspace(-longest, longest, 2 * max(count, 3) + 1)


def find_delay(chunks: SampleChunks, rows: Rows) -> Delay:
    """Estimate the delay of one kind of signals.

    Args:
        chunks: samples of all recordings.
        rows: creates the equations.
    """
    tried = tried_delays(chunks.longest, chunks.cutoff)
    fit = _Fit(tried, rows.columns.size)
    for chunk in chunks:
        equations = rows.equations(chunk, 0)
        fit.add(*equations.weighted(tried))
    fit.finish()
    if not fit.rows:
        return _NOT_FOUND
    best, x = fit.best()
    for chunk in chunks:
        equations = rows.equations(chunk, 0)
        fit.add_rates(*equations.weighted(tried), rows.rates(chunk, equations, x, float(tried[best])))
    return fit.delay()


def estimate_delays(
    plans: Sequence[Plan], longest: float, force_delay: float | None, torque_delay: float | None, forces: bool
) -> Delays:
    """Estimate the delays of torques and of foot forces relative to positions.

    Args:
        plans: of all recordings.
        longest: largest delay to consider [s].
        force_delay: if it is known [s].
        torque_delay: if it is known [s].
        forces: whether forces of all feet were measured.
    """
    columns, chunks = make_columns(plans[0].model), SampleChunks(plans, longest)
    force = NO_DELAY
    if forces:
        force = find_delay(chunks, BaseRows(columns)) if force_delay is None else Delay.given(force_delay)
    if torque_delay is not None:
        return Delays(Delay.given(torque_delay), force)
    unknown = plans[0].model.floating_base and not forces
    rows = ContactRows(columns) if unknown else JointRows(columns, force.value)
    return Delays(find_delay(chunks, rows), force)
