# SPDX-License-Identifier: Apache-2.0
"""Nonlinear fit in coordinates in which all bodies are consistent by construction: see `Chart`.

The samples enter through a square root of their normal equations: with YtY = R^T R and Yty = R^T d, the sum
of squares of all rows is |R x - d|^2 plus a constant. The prior adds |s / spread|^2. The Stribeck velocity
changes the sums themselves; it is searched in an outer loop (`stribeck`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.belief import BeliefSettings
from quad_dynamics.identification.baselines.chart import Chart
from quad_dynamics.identification.baselines.stribeck import search_stribeck_velocity, with_stribeck_velocity
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.freedom import Freedom, textbook_freedom
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import noise_variance
from quad_dynamics.parameters.parameter import param

_LEAST = 1e-14  # eigenvalues of the normal equations below this fraction of the largest are rounding errors
_ROUGH = 1e-8  # tolerance of fits during the search
_INSIDE = 0.05  # distance of the start from bounds, in standard deviations: on them, steps are too short


@dataclass(frozen=True)
class NonlinearSettings(BeliefSettings):
    """Prior, and parameters of the search."""

    stribeck: bool = param(True, 'search for the Stribeck velocity, where Stribeck friction is free')
    stribeck_low: float = param(0.005, 'lowest Stribeck velocity', unit='rad/s', above=0.0)
    stribeck_high: float = param(1.0, 'highest', unit='rad/s', above=0.0)
    iterations: int = param(100, 'at most', unit='-', low=1, high=10_000)

    def _across(self) -> list[str]:
        if self.stribeck_low >= self.stribeck_high:
            return [f'stribeck_low is {self.stribeck_low:g}; expected less than stribeck_high']
        return []


def root_form(normal: NormalEquations) -> tuple[Floats, Floats, float]:
    """R (r, size) and d (r,) with YtY = R^T R, Yty = R^T d; and the residual sum of squares."""
    values, vectors = np.linalg.eigh(normal.YtY)
    keep = values > _LEAST * max(float(values[-1]), 1e-300)
    root = np.sqrt(values[keep])
    R = root[:, None] * vectors[:, keep].T
    d = (vectors[:, keep].T @ normal.Yty) / root
    return R, d, max(normal.yty - float(d @ d), 0.0)


@dataclass(frozen=True, eq=False)
class ChartFit:
    """A fit of the coordinates of a chart.

    Attributes:
        s: (size,) coordinates.
        covariance: (size, size) of s, from data and prior.
        cost: half the sum of squares of whitened residuals and of the prior.
        iterations: number of iterations.
    """

    s: Floats
    covariance: Floats
    cost: float
    iterations: int


def fit_normal(
    normal: NormalEquations,
    chart: Chart,
    spread: Floats,
    noise: float = 1.0,
    start: Floats | None = None,
    iterations: int = 100,
    tolerance: float = 1e-12,
) -> ChartFit:
    """Fit s to normal equations by a trust-region method, with exact derivatives.

    Args:
        normal: normal equations of whitened rows.
        chart: coordinates.
        spread: (size,) standard deviations of the prior.
        noise: variance of the whitened rows.
        start: (size,) initial coordinates; None for the prior.
        iterations: upper bound.
        tolerance: relative, of cost and step.
    """
    R, d, rest = root_form(normal)
    R, d, rest = R / np.sqrt(noise), d / np.sqrt(noise), rest / noise

    def residual(t: Floats) -> Floats:
        return np.concatenate([R @ chart.x(t * spread) - d, t])

    def jacobian(t: Floats) -> Floats:
        return np.concatenate([(R @ chart.jacobian(t * spread)) * spread, np.eye(chart.size)])

    begin = np.zeros(chart.size) if start is None else start / spread
    lower = chart.lower / spread
    found = least_squares(
        residual,
        np.maximum(begin, lower + _INSIDE),
        jacobian,
        bounds=(lower, np.inf),
        xtol=tolerance,
        ftol=tolerance,
        gtol=tolerance,
        max_nfev=iterations,
    )
    J = jacobian(found.x)
    covariance = np.linalg.inv(J.T @ J) * np.outer(spread, spread)
    return ChartFit(found.x * spread, covariance, float(found.cost) + 0.5 * rest, int(found.njev))


def nonlinear(equations: Equations, freedom: Freedom, settings: NonlinearSettings | None = None) -> Solution:
    """Fit all free unknowns.

    Args:
        equations: of the samples; any mode, fixed and floating base.
        freedom: the free unknowns.
        settings: prior, and search.

    Returns:
        The solution; `columns.stribeck_velocity` is the estimated one.

    Raises:
        ArgumentError: nothing is free, or a body is only partly free.
    """
    settings = settings or NonlinearSettings()
    freedom = textbook_freedom(freedom)
    if not freedom.nz:
        raise ArgumentError('nothing is free; expected at least one unknown to fit')
    first = Chart(freedom)
    spread = first.spread(settings.inertia_std, settings.friction_std)
    noise = noise_variance(equations.accumulate()[0], freedom)
    last = np.zeros(first.size)

    def cost(candidate: Equations) -> float:
        nonlocal last
        normal = candidate.accumulate()[0]
        fit = fit_normal(normal, first, spread, noise, last, settings.iterations, _ROUGH)
        last = fit.s
        return fit.cost

    notes = []
    if settings.stribeck and 'stribeck' in freedom.groups:
        low, high = settings.stribeck_low, settings.stribeck_high
        velocity = search_stribeck_velocity(equations, cost, low, high)
        equations = with_stribeck_velocity(equations, velocity)
        notes.append(f'Stribeck velocity {velocity:.3g} rad/s')
    chart = Chart(replace(freedom, columns=equations.columns))
    fit = fit_normal(equations.accumulate()[0], chart, spread, noise, last, settings.iterations)
    return chart.solution(
        fit.s, fit.covariance, spread, 'nonlinear', [f'{fit.iterations} iterations', *notes]
    )
