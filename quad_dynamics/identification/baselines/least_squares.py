# SPDX-License-Identifier: Apache-2.0
"""Least squares on base parameters: ordinary, weighted, reweighted, total. Bodies may be inconsistent.

Undetermined unknowns are as close as possible to the model, in the metric of its prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import Noise
from quad_dynamics.identification.solvers.base_parameters import BaseParameters, find_base_parameters
from quad_dynamics.identification.solvers.confidence import variances_of
from quad_dynamics.identification.solvers.freedom import Freedom, textbook_freedom
from quad_dynamics.identification.solvers.pseudo_inertia import inconsistent_bodies
from quad_dynamics.identification.solvers.solution import Solution

_MOTION_ERROR = 0.01  # of the columns in total least squares, relative
_MOST_SAMPLES = 20_000  # from which the noise of rows is estimated
_ROUNDS = 20  # of reweighting
_STILL = 1e-6  # relative change of the solution at which reweighting ends


@dataclass(frozen=True, eq=False)
class BaseFit:
    """A fit of base parameters.

    Attributes:
        base: the combinations.
        b: (rank,) their values.
        covariance: (rank, rank).
    """

    base: BaseParameters
    b: Floats
    covariance: Floats


def ols(equations: Equations, freedom: Freedom) -> Solution:
    """Ordinary least squares: all rows have the same weight, in N and N m.

    Args:
        equations: of the samples.
        freedom: the free unknowns.

    Raises:
        ArgumentError: no free unknown can be determined.
    """
    freedom = textbook_freedom(freedom)
    fit = fit_base(unweighted(equations).accumulate()[0], freedom)
    return solution_of(fit, 'ols')


def wls(equations: Equations, freedom: Freedom) -> Solution:
    """Weighted least squares: rows are weighted by their noise after ordinary least squares."""
    freedom = textbook_freedom(freedom)
    fit = fit_base(_weighted(equations, freedom).accumulate()[0], freedom)
    return solution_of(fit, 'wls')


def irls(equations: Equations, freedom: Freedom) -> Solution:
    """Weighted least squares, in which rows with large residuals have less weight (Huber)."""
    freedom = textbook_freedom(freedom)
    fit = fit_base(unweighted(equations).accumulate()[0], freedom)
    for _ in range(_ROUNDS):
        x = x_of(fit)
        weighted = weighted_by(equations, x, robust=True)
        last, fit = fit, fit_base(weighted.accumulate(x_robust=x)[0], freedom)
        if len(last.b) == len(fit.b) and np.linalg.norm(fit.b - last.b) <= _STILL * np.linalg.norm(fit.b):
            break
    return solution_of(fit, 'irls')


def tls(equations: Equations, freedom: Freedom) -> Solution:
    """Total least squares: columns of the motion have errors, too, of a hundredth of their size."""
    freedom = textbook_freedom(freedom)
    normal = _weighted(equations, freedom).accumulate()[0]
    fit = fit_base(normal, freedom)
    first = fit.base.first
    H, g, yty = _absolute(normal, freedom)
    joined = np.block([[H[np.ix_(first, first)], g[first, None]], [g[None, first], np.array([[yty]])]])
    # In units of their errors. Those of the rows are 1, because of the weighting.
    error = np.append(_MOTION_ERROR * np.sqrt(np.diag(joined)[:-1] / normal.n), 1.0)
    v = np.linalg.eigh(joined / np.outer(error, error))[1][:, 0] / error
    if abs(v[-1] * error[-1]) < 1e-12:
        raise ArgumentError('total least squares has no solution: the torques take no part in the dependence')
    return solution_of(BaseFit(fit.base, -v[:-1] / v[-1], fit.covariance), 'tls')


METHODS: dict[str, Callable[[Equations, Freedom], Solution]] = {
    'ols': ols,
    'wls': wls,
    'irls': irls,
    'tls': tls,
}


# ---------------------------------------------------------------- parts


def unweighted(equations: Equations) -> Equations:
    """The same equations with equal weights of all rows."""
    force = equations.noise.force if equations.mode == 'projection' else 0.0
    noise = Noise(np.ones_like(equations.noise.base), np.ones_like(equations.noise.joints), force)
    return Equations(equations.samples, equations.columns, equations.mode, noise)


def _weighted(equations: Equations, freedom: Freedom) -> Equations:
    """The same equations, with the noise of each row after ordinary least squares."""
    return weighted_by(equations, x_of(fit_base(unweighted(equations).accumulate()[0], freedom)))


def weighted_by(equations: Equations, x: Floats, robust: bool = False) -> Equations:
    """The same equations, with the noise of each row for a solution.

    Args:
        equations: of the samples.
        x: (size,) solution.
        robust: whether to use medians, which outliers do not affect.
    """
    plain = unweighted(equations)
    every = max(1, len(plain.samples) // _MOST_SAMPLES)
    parts, used = [], []
    for rows, r in plain.residuals(x):
        parts.append(r[::every])
        used.append(plain.use(rows)[::every])
    r, use = np.concatenate(parts), np.concatenate(used) > 0.0
    std = np.array([_spread(r[use[:, i], i], robust) for i in range(r.shape[1])])
    std = np.maximum(std, 1e-6 * max(float(std.max()), 1e-12))
    n_base = len(equations.noise.base)
    joints = std[n_base:] if plain.rows > n_base else equations.noise.joints
    noise = Noise(std[:n_base], joints, plain.noise.force)
    return Equations(equations.samples, equations.columns, equations.mode, noise)


def _spread(values: Floats, robust: bool) -> float:
    if not len(values):
        return 0.0
    return float(1.4826 * np.median(np.abs(values)) if robust else np.sqrt(np.mean(values**2)))


def _absolute(normal: NormalEquations, freedom: Freedom) -> tuple[Floats, Floats, float]:
    """Normal equations for values of the free unknowns, not changes: T^T Y^T Y T, T^T Y^T y and y^T y."""
    rest = freedom.x0 - freedom.T @ freedom.x0[freedom.lead]
    g = freedom.T.T @ (normal.Yty - normal.YtY @ rest)
    yty = normal.yty - 2.0 * float(rest @ normal.Yty) + float(rest @ normal.YtY @ rest)
    return np.asarray(freedom.T.T @ normal.YtY @ freedom.T), np.asarray(g), yty


def fit_base(normal: NormalEquations, freedom: Freedom) -> BaseFit:
    """Least squares of base parameters.

    Raises:
        ArgumentError: no free unknown can be determined.
    """
    base = find_base_parameters(normal, freedom)
    if base.rank == 0:
        raise ArgumentError('none of the free unknowns can be determined: no row of the data depends on them')
    H, g, yty = _absolute(normal, freedom)
    first = base.first
    length = np.sqrt(np.diag(H)[first])
    inverse = np.linalg.inv(H[np.ix_(first, first)] / np.outer(length, length)) / np.outer(length, length)
    b = inverse @ g[first]
    rss = max(yty - float(g[first] @ b), 0.0)
    return BaseFit(base, b, inverse * rss / max(normal.n - base.rank, 1))


def x_of(fit: BaseFit) -> Floats:
    """(size,) all unknowns: of those that fit, the closest to the model."""
    freedom = fit.base.freedom
    G, _, _ = fit.base.least_change()
    return freedom.x(G @ (fit.b - fit.base.B @ freedom.x0[freedom.lead]))


def solution_of(fit: BaseFit, method: str) -> Solution:
    """A fit with its confidence, and the names of inconsistent bodies."""
    base, freedom = fit.base, fit.base.freedom
    columns = freedom.columns
    x = x_of(fit)
    G, _, before = base.least_change()
    by_data = G @ fit.covariance @ G.T
    left = np.eye(freedom.nz) - G @ base.B
    T = freedom.T
    total = by_data + left @ before @ left.T
    free = freedom.free
    std = np.where(free, np.sqrt(variances_of(T, total)), np.nan)
    alone = np.zeros(freedom.nz, dtype=bool)
    alone[base.first] = base.shown.sum(axis=1) == 1
    # An unknown that is part of several combinations is not determined.
    alone &= base.shown.sum(axis=0) == 1
    identified = np.asarray((T != 0.0) @ alone) & free
    reach = float(stdtrit(30, 0.975)) * std
    words = list(freedom.notes)
    bad = inconsistent_bodies(x[columns.slices['pi']], columns.model.body_names)
    if bad:
        words.append(f'bodies that cannot exist: {", ".join(bad)}')
    return Solution(
        columns=columns,
        x=x,
        free=free,
        identified=identified,
        std=std,
        low=x - reach,
        high=x + reach,
        combinations=base.combinations(
            x, np.sqrt(variances_of(base.B, total)), np.ones(base.rank, dtype=bool)
        ),
        condition=base.condition,
        method=method,
        prior_weight=0.0,
        choices=tuple(words),
    )
