# SPDX-License-Identifier: Apache-2.0
"""Extended Kalman filter of the unknowns, for online identification.

The state is that of a `Chart`, so every body is physically consistent at all times. It is a random walk,
because the payload of the robot may change. The measurements are the whitened rows of each sample.

It is an information filter: the information of the samples is kept as L = sum of Y^T Y and l = sum of Y^T y,
in x, where it is exact. The usual filter keeps it in s, linearised at the state at the time of each sample,
and becomes overconfident in wrong values while s changes much. Here s is recomputed from all information, by
Gauss-Newton steps on

    |s / spread|^2 + (x(s)^T L x(s) - 2 l^T x(s)) / scale.

The scale of the noise is estimated from innovations. It divides all sums, so samples that arrived while it
was wrong do no harm later. A drift with the variance Q in some time removes information: L <- L - L J q (1 +
q J^T L J q)^-1 q J^T L, with q = sqrt(Q) and J = dx/ds. Outliers (samples whose innovation is too large for
its covariance) have less weight, the less the larger they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.baselines.belief import BeliefSettings
from quad_dynamics.identification.baselines.chart import Chart
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.freedom import Freedom, textbook_freedom
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.model import Model
from quad_dynamics.parameters.parameter import param

_LARGEST_STEP = 0.3  # of a logarithmic Cholesky factor in one iteration
_LARGEST = 3.0  # bound of the factors: e^3 is twenty times as large
_STILL = 0.01  # a step of fewer standard deviations is the last one
_ITERATIONS = 8
_DRIFT_TIME = 0.1  # period of the removal of information [s]
_LEAST_SCALE, _LARGEST_SCALE = 1e-2, 1e4  # bounds of the variance of the rows, if it is adapted


@dataclass(frozen=True)
class KalmanSettings(BeliefSettings):
    """Prior and drift of the filter."""

    inertia_drift: float = param(
        1e-4,
        'standard deviation of the change of inertia within a second',
        unit='1/sqrt(s)',
        low=0.0,
        high=1.0,
    )
    friction_drift: float = param(
        1e-3,
        'likewise of friction, as a part of its standard deviation at the beginning',
        unit='1/sqrt(s)',
        low=0.0,
        high=1.0,
    )
    correlation: float = param(
        1.0,
        'neighbouring samples whose errors depend on each other, as those of filtered signals do',
        unit='samples',
        low=1.0,
        high=1e4,
    )
    gate: float = param(
        1e-4, 'samples whose innovation is less likely than this count less', unit='-', above=0.0, high=0.5
    )
    adapt: float = param(
        0.01,
        'share of the last sample in the estimated variance of the rows; 0: as the equations say',
        unit='-',
        low=0.0,
        high=1.0,
    )
    together: int = param(
        8, 'samples that are taken in at once, where so many are given', unit='-', low=1, high=1000
    )


class KalmanFilter:
    """Estimates of all free unknowns, sample by sample.

    Attributes:
        chart: coordinates of the state.
        s: (n,) state.
        samples: number of processed samples.
        doubtful: number of outliers, which have less weight.
        scale: variance of the whitened rows; 1 if the noise of the equations is correct.
    """

    def __init__(
        self, equations: Equations, freedom: Freedom, settings: KalmanSettings | None = None
    ) -> None:
        """Start with the prior.

        Args:
            equations: used to whiten rows of samples; their own samples are not used.
            freedom: the free unknowns.
            settings: prior, drift, gate.

        Raises:
            ArgumentError: a body is only partly free.
        """
        self.settings = settings or KalmanSettings()
        self.equations, self.chart = equations, Chart(freedom)
        self.samples = self.doubtful = 0
        self.scale = 1.0
        self.s = np.zeros(self.chart.size)
        self._free = np.flatnonzero(freedom.free)
        self._x0 = freedom.x0
        first = self.chart.spread(self.settings.inertia_std, self.settings.friction_std)
        self._spread = first
        inertia = np.arange(self.chart.size) < self.chart.n_inertia
        self._q = np.where(inertia, self.settings.inertia_drift, self.settings.friction_drift * first)
        n = len(self._free)
        self._L, self._l = np.zeros((n, n)), np.zeros(n)
        self._A = np.diag(first**-2.0)  # information of the state, including the prior
        self._gate = float(chdtri(equations.rows, self.settings.gate))
        self._time: float | None = None
        self._waiting = 0.0

    @property
    def _unit(self) -> float:
        """Variance of a whitened row for uncorrelated errors."""
        return self.scale * self.settings.correlation

    # ---------------------------------------------------------------- results

    @property
    def x(self) -> Floats:
        """(size,) all unknowns; those that are not free have the values of the model."""
        return self.chart.x(self.s)

    @property
    def P(self) -> Floats:
        """(n, n) covariance of the state."""
        return np.asarray(np.linalg.inv(self._A))

    @property
    def std(self) -> Floats:
        """(size,) standard deviations of x; 0 if not free."""
        J = self.chart.jacobian(self.s)
        half = np.linalg.solve(np.linalg.cholesky(self._A), J.T)
        return np.asarray(np.sqrt(np.sum(half**2, axis=0)))

    def model(self) -> Model:
        """The estimated robot: consistent, and without negative friction."""
        columns, x = self.equations.columns, self.x
        changed = columns.model.with_pi(x[columns.slices['pi']])
        return changed.with_friction(x[columns.slices['viscous']], x[columns.slices['coulomb']])

    def solution(self) -> Solution:
        """The current estimate as a solution."""
        notes = [f'{self.samples} samples, of which {self.doubtful} counted less']
        return self.chart.solution(self.s, self.P, self._spread, 'ekf', notes)

    # ---------------------------------------------------------------- samples

    def update(self, rows: Floats) -> None:
        """Process samples, in time order.

        Args:
            rows: (n, width) of the layout of the equations' samples.
        """
        for begin in range(0, len(rows), self.settings.together):
            part = rows[begin : begin + self.settings.together]
            Y, y = self.equations.whitened(part)
            self._pass_time(float(self.equations.samples.layout.get(part, 'time')[-1]))
            self._take(Y[..., self._free], y - Y @ self._x0)
            self._move()
            self.samples += len(part)

    def _pass_time(self, time: float) -> None:
        """Remove information for the elapsed time; none for a gap, or another bag."""
        passed = 0.0 if self._time is None else time - self._time
        self._time = time
        self._waiting += passed if 0.0 < passed < 1.0 else 0.0
        if self._waiting < _DRIFT_TIME or not self._q.any():
            return
        q = self._q * np.sqrt(self._waiting / self._unit)
        J = self.chart.jacobian(self.s)[self._free] * q
        self._waiting = 0.0
        LJ = self._L @ J
        inner = np.eye(self.chart.size) + J.T @ LJ
        taken = np.linalg.solve(inner, np.column_stack([LJ.T, J.T @ self._l]))
        self._L -= LJ @ taken[:, :-1]
        self._L = 0.5 * (self._L + self._L.T)
        self._l -= LJ @ taken[:, -1]

    def _take(self, Y: Floats, y: Floats) -> None:
        """Add the information of samples: (n, rows, free) and (n, rows), relative to the prior."""
        n, r, size = Y.shape
        unit = self._unit
        innovation = y - Y @ (self.x - self._x0)[self._free]
        H = Y.reshape(n * r, size) @ self.chart.jacobian(self.s)[self._free]
        half = np.linalg.solve(np.linalg.cholesky(self._A), H.T).reshape(-1, n, r)
        S = np.einsum('kni,knj->nij', half, half) + unit * np.eye(r)
        distance = np.einsum('ni,ni->n', innovation, np.linalg.solve(S, innovation[..., None])[..., 0])
        weights = np.minimum(1.0, self._gate / np.maximum(distance, 1e-300))
        self.doubtful += int(np.count_nonzero(weights < 1.0))
        flat = (Y * np.sqrt(weights)[:, None, None]).reshape(n * r, size)
        self._L += flat.T @ flat
        self._l += flat.T @ (y * np.sqrt(weights)[:, None]).ravel()
        if self.settings.adapt > 0.0:
            seen = self.scale * float(np.mean(np.minimum(distance, 4.0 * self._gate))) / r
            share = 1.0 - (1.0 - self.settings.adapt) ** n
            self.scale = float(
                np.clip(self.scale + share * (seen - self.scale), _LEAST_SCALE, _LARGEST_SCALE)
            )

    # ---------------------------------------------------------------- state

    def _cost(self, s: Floats) -> float:
        d = (self.chart.x(s) - self._x0)[self._free]
        return float(np.sum((s / self._spread) ** 2) + d @ (self._L @ d - 2.0 * self._l) / self._unit)

    def _move(self) -> None:
        """Update the state from all information."""
        cost = self._cost(self.s)
        for _ in range(_ITERATIONS):
            J = self.chart.jacobian(self.s)[self._free]
            d = (self.chart.x(self.s) - self._x0)[self._free]
            self._A = J.T @ self._L @ J / self._unit
            self._A = 0.5 * (self._A + self._A.T)
            self._A[np.diag_indices_from(self._A)] += self._spread**-2.0
            gradient = J.T @ (self._l - self._L @ d) / self._unit - self.s / self._spread**2
            step = self._bounded_step(gradient)
            far = float(np.max(np.abs(step[: self.chart.n_inertia]), initial=0.0))
            step *= min(1.0, _LARGEST_STEP / max(far, 1e-300))
            size = float(np.sqrt(step @ self._A @ step))
            s, new = self._shortened(step, cost)
            if not new < cost:
                break
            self.s, cost = s, new
            if size < _STILL:
                break

    def _bounded_step(self, gradient: Floats) -> Floats:
        """Gauss-Newton step within bounds: coordinates that would cross their bound stop at it."""
        lower, free = self.chart.lower - self.s, np.ones(self.chart.size, dtype=bool)
        step = np.zeros(self.chart.size)
        for _ in range(10):
            held = np.flatnonzero(~free)
            part = self._A[np.ix_(free, free)]
            step[free] = np.linalg.solve(part, gradient[free] - self._A[np.ix_(free, held)] @ step[held])
            low = np.flatnonzero(free & (step < lower))
            if not len(low):
                break
            step[low] = lower[low]
            free[low] = False
        return np.maximum(step, lower)

    def _shortened(self, step: Floats, cost: float) -> tuple[Floats, float]:
        """The state after the step, or after a half, a quarter, ... of it, if that reduces the cost."""
        inertia = slice(0, self.chart.n_inertia)
        for power in range(6):
            s = self.s + 0.5**power * step
            s[inertia] = np.clip(s[inertia], -_LARGEST, _LARGEST)
            new = self._cost(s)
            if new < cost:
                break
        return s, new


def kalman(equations: Equations, freedom: Freedom, settings: KalmanSettings | None = None) -> Solution:
    """The filter after all samples of the equations, as in online use.

    Args:
        equations: of the samples; any mode, fixed and floating base.
        freedom: the free unknowns.
        settings: of the filter.

    Raises:
        ArgumentError: a body is only partly free.
    """
    estimator = KalmanFilter(equations, textbook_freedom(freedom), settings)
    for rows in equations.samples.chunks():
        estimator.update(rows)
    return estimator.solution()
