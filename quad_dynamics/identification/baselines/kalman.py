# SPDX-License-Identifier: Apache-2.0
"""Extended Kalman filter of the unknowns, for robots that are watched while they move.

The state is that of a `Chart`: every body is physically consistent at every moment. It is a random walk,
for what the robot carries may change. The measurement is the whitened rows of each sample.

It is an information filter: what the samples say is kept as L = sum of Y^T Y and l = sum of Y^T y, in x,
in which it is exact. The usual filter keeps it in s, linearised where s was when they came, and becomes
sure of wrong values as long as s moves much. Here s is found anew from all that is known, by steps of
Gauss and Newton on

    |s / spread|^2 + (x(s)^T L x(s) - 2 l^T x(s)) / scale.

The scale of the noise is learnt from innovations. As it divides all sums, samples that came while it was
wrong do no harm later. A drift with the variance Q within a while takes information away: L <- L - L J q
(1 + q J^T L J q)^-1 q J^T L, with q = sqrt(Q) and J = dx/ds. Samples that cannot be (their innovation is
too large for its covariance) count less, the less the larger they are.
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
_LARGEST = 3.0  # factors beyond this are those of no robot: e^3 is twenty times as large
_STILL = 0.01  # a step of fewer standard deviations is the last
_ITERATIONS = 8
_DRIFT_TIME = 0.1  # after which information is taken away [s]
_LEAST_SCALE, _LARGEST_SCALE = 1e-2, 1e4  # of the variance of the rows, where it is adapted


@dataclass(frozen=True)
class KalmanSettings(BeliefSettings):
    """What is believed before the data, and how fast it may change."""

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
        chart: the coordinates that are the state.
        s: (n,) state.
        samples: how many were taken in.
        doubtful: how many of them counted less.
        scale: variance of the whitened rows; 1 if the equations are right about their noise.
    """

    def __init__(
        self, equations: Equations, freedom: Freedom, settings: KalmanSettings | None = None
    ) -> None:
        """Begin with what is believed before the data.

        Args:
            equations: what makes whitened rows of samples; its own samples are not used.
            freedom: what is free.
            settings: uncertainty at the beginning, drift, gate.

        Raises:
            ArgumentError: a body is free in part.
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
        self._A = np.diag(first**-2.0)  # information of the state, prior included
        self._gate = float(chdtri(equations.rows, self.settings.gate))
        self._time: float | None = None
        self._waiting = 0.0

    @property
    def _unit(self) -> float:
        """Variance of a whitened row, if its errors were independent of those of its neighbours."""
        return self.scale * self.settings.correlation

    # ---------------------------------------------------------------- results

    @property
    def x(self) -> Floats:
        """(size,) all unknowns; those that are not free as the model says."""
        return self.chart.x(self.s)

    @property
    def P(self) -> Floats:
        """(n, n) covariance of the state."""
        return np.asarray(np.linalg.inv(self._A))

    @property
    def std(self) -> Floats:
        """(size,) standard deviations of x; 0 where not free."""
        J = self.chart.jacobian(self.s)
        half = np.linalg.solve(np.linalg.cholesky(self._A), J.T)
        return np.asarray(np.sqrt(np.sum(half**2, axis=0)))

    def model(self) -> Model:
        """The robot as it is estimated: consistent, no friction negative."""
        columns, x = self.equations.columns, self.x
        changed = columns.model.with_pi(x[columns.slices['pi']])
        return changed.with_friction(x[columns.slices['viscous']], x[columns.slices['coulomb']])

    def solution(self) -> Solution:
        """What is known now, as a solution."""
        notes = [f'{self.samples} samples, of which {self.doubtful} counted less']
        return self.chart.solution(self.s, self.P, self._spread, 'ekf', notes)

    # ---------------------------------------------------------------- samples

    def update(self, rows: Floats) -> None:
        """Take in samples, in the order of time.

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
        """Take information away for the time that passed; none for a gap, or another bag."""
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
        """Add what samples say: (n, rows, free) and (n, rows), measured from the prior."""
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
        """Let the state follow all that is known."""
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
        """Step of Gauss and Newton that keeps the bounds: what would pass its bound ends on it."""
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
        """The state after the step, or after a half, a quarter, ... of it, where that lowers the cost."""
        inertia = slice(0, self.chart.n_inertia)
        for power in range(6):
            s = self.s + 0.5**power * step
            s[inertia] = np.clip(s[inertia], -_LARGEST, _LARGEST)
            new = self._cost(s)
            if new < cost:
                break
        return s, new


def kalman(equations: Equations, freedom: Freedom, settings: KalmanSettings | None = None) -> Solution:
    """The filter after all samples of the equations, as it would have been live.

    Args:
        equations: of the samples; any mode, fixed and floating base.
        freedom: what is free.
        settings: of the filter.

    Raises:
        ArgumentError: a body is free in part.
    """
    estimator = KalmanFilter(equations, textbook_freedom(freedom), settings)
    for rows in equations.samples.chunks():
        estimator.update(rows)
    return estimator.solution()
