# SPDX-License-Identifier: Apache-2.0
"""Confidence of a solution: standard deviations and 95 % intervals.

Near the true values, the error of an estimate with the Hessians H of the data and W of the prior is

    A (noise of the sums + W (model - truth)),    A = (H + W)^-1,

so its covariance is A (meat + W Sigma W) A. The meat of this sandwich estimator is computed from residuals,
cluster by cluster, because filtered errors are correlated. Sigma is the covariance of the errors of models,
estimated from the distance between this solution and its model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.equations.equations import CLUSTER, Equations
from quad_dynamics.identification.solvers.consistent import least_weight
from quad_dynamics.identification.solvers.consistent_problem import ConsistentProblem
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.prior import prior_precision

_LEVEL = 0.975
# An unknown, or a combination, is identified if its standard deviation, including noise and errors of the
# model, is below this fraction of that of the prior.
_NEWS = 0.3
_SOFT = 0.3  # see `prior_precision`
_TYPICAL = 0.2  # relative error of inertial parameters of models
_SMALLEST = 0.03  # lower bound of this error
_HELD = 0.1  # relative error of bodies that were not freed
_HOLD = 1e8  # weight that holds bodies at their prior
_LEAST_FREEDOM = 4.0  # lower bound of the degrees of freedom of the t distribution


@dataclass(frozen=True, eq=False)
class Confidence:
    """Confidence of a solution.

    Attributes:
        std: (size,) standard deviations; NaN if not free.
        low: (size,) lower end of the 95 % interval.
        high: (size,) upper end.
        identified: (size,) which unknowns the data determine on their own.
        covariance: (nz, nz) of the free unknowns.
        before: (nz, nz) their covariance without the data.
        freedom: the free unknowns.
    """

    std: Floats
    low: Floats
    high: Floats
    identified: Bools
    covariance: Floats
    before: Floats
    freedom: Freedom

    def of_combinations(self, B: Floats) -> tuple[Floats, Bools]:
        """Standard deviations of combinations B z (n, nz), and which of them the data determine."""
        variances = variances_of(B, self.covariance)
        return np.sqrt(variances), _determined(variances, variances_of(B, self.before))

    def of(self, chosen: Freedom) -> Confidence:
        """The same for fewer free unknowns."""
        keep = [self.freedom.names.index(name) for name in chosen.names]
        std, low, high = (np.where(chosen.free, each, np.nan) for each in (self.std, self.low, self.high))
        covariance, before = (each[np.ix_(keep, keep)] for each in (self.covariance, self.before))
        return Confidence(std, low, high, self.identified & chosen.free, covariance, before, chosen)


def find_confidence(
    problem: ConsistentProblem,
    normal: NormalEquations,
    x: Floats,
    weight: float,
    meat: Floats | None,
    equations: Equations | None,
    chosen: Freedom,
    discrepancy: Floats | None = None,
) -> Confidence:
    """Compute the confidence of a solution.

    Bodies that were not freed have small errors, too, and these propagate to the free unknowns.

    Args:
        problem: with all bodies that could be free.
        normal: normal equations.
        x: (size,) the solution.
        weight: of the prior of the bodies.
        meat: (size, size) from `Equations.scores`; None for uncorrelated errors.
        equations: whose clusters in time are counted; None for uncorrelated errors.
        chosen: the unknowns that were free.
        discrepancy: (size, size) from `discrepancy_scores`; None: friction has the assumed form.
    """
    freedom, Z = problem.freedom, problem.Z
    H = np.diag(problem.values)
    held = ~np.isin(freedom.bodies, chosen.bodies)
    weights = np.where(held, _HOLD, max(weight, least_weight(problem)))
    W = problem.curvature(np.sqrt(weights)[:, None, None] * np.eye(4)) + problem.ridge
    A = _inverse(H + W)
    clusters = float(normal.n) if equations is None else count_clusters(equations)
    noise = _noise_of_sums(problem, H, A, meat, normal.n, clusters)
    before = _spread_of_models(problem, x, A @ H, A @ noise @ A, chosen)
    by_data, by_prior = Z @ A @ noise @ A @ Z.T, Z @ A @ W @ before @ W @ A @ Z.T
    if discrepancy is not None:
        by_data = by_data + Z @ A @ _in_y(problem, discrepancy) @ A @ Z.T
    before = Z @ before @ Z.T
    v_data, v_prior, v_before = (variances_of(freedom.T, each) for each in (by_data, by_prior, before))
    free = freedom.free
    std = np.where(free, np.sqrt(v_data + v_prior), np.nan)
    known = free & _determined(v_data + v_prior, v_before)
    reach = float(stdtrit(max(clusters - 1.0, _LEAST_FREEDOM), _LEVEL)) * std
    low, high = x - reach, x + reach
    _cut(problem, low)
    return Confidence(std, low, high, known, by_data + by_prior, before, freedom).of(chosen)


def variances_of(B: Floats, covariance: Floats) -> Floats:
    """(n,) variances of combinations B z (n, nz), from the covariance of z."""
    return np.asarray(np.maximum(np.einsum('ij,jk,ik->i', B, covariance, B), 0.0))


def _determined(after: Floats, before: Floats) -> Bools:
    """Whether the data determine unknowns or combinations, from their variances with and without the data."""
    return np.asarray(after < _NEWS**2 * before)


def count_clusters(equations: Equations) -> float:
    """Number of clusters in time whose errors are considered independent."""
    layout, count, last = equations.samples.layout, 0, None
    for rows in equations.samples.chunks():
        keys = np.stack([layout.get(rows, 'segment'), np.floor(layout.get(rows, 'time') / CLUSTER)], axis=1)
        count += int(np.count_nonzero(np.any(keys[1:] != keys[:-1], axis=1)))
        count += int(last is None or not np.array_equal(last, keys[0]))
        last = keys[-1]
    return float(count)


def _spread_of_models(
    problem: ConsistentProblem, x: Floats, R: Floats, noise: Floats, chosen: Freedom
) -> Floats:
    """(nz, nz) covariance of the true values about the model, in y: assumed shape, estimated scale.

    The estimate differs from the model by R (truth - model) + noise. The scale is the one that explains this
    difference for the bodies.

    Args:
        problem: that was solved.
        x: (size,) the solution.
        R: (nz, nz) resolution matrix.
        noise: (nz, nz) covariance caused by noise.
        chosen: the unknowns that were free.
    """
    freedom = problem.freedom
    unit = np.linalg.inv(problem.L).T @ problem.V  # z = unit y
    back = problem.V.T @ problem.L.T  # y = back z
    precision = prior_precision(freedom, problem.scales, _SOFT)
    inertial = np.array([group == 'inertia' for group in freedom.groups], dtype=bool)
    own = np.outer(inertial, inertial)
    bodies = back @ (_inverse(precision) * own) @ back.T
    M = unit.T @ (precision * own) @ unit
    y = back @ (x - freedom.x0)[freedom.lead]
    # Regularisation: a model of typical quality counts as much as two directions.
    explained = float(np.trace(M @ R @ bodies @ R.T)) + 2.0
    size = (float(y @ M @ y) - float(np.trace(M @ noise)) + 2.0 * _TYPICAL**2) / explained
    sizes = np.where(np.isin(freedom.lead, chosen.lead), np.sqrt(np.clip(size, _SMALLEST**2, 1.0)), _HELD)
    sizes[~inertial] = 1.0
    return _believed(problem, back @ (_inverse(precision) * np.outer(sizes, sizes)) @ back.T)


def _believed(problem: ConsistentProblem, spread: Floats) -> Floats:
    """(nz, nz) the same covariance in y, conditioned on the known combinations of unknowns."""
    freedom = problem.freedom
    if freedom.beliefs is None:
        return np.asarray(spread)
    G = freedom.beliefs @ freedom.T @ problem.Z
    gain = spread @ G.T
    return np.asarray(spread - gain @ np.linalg.solve(np.eye(len(G)) + G @ gain, gain.T))


def _noise_of_sums(
    problem: ConsistentProblem, H: Floats, A: Floats, meat: Floats | None, n: int, clusters: float
) -> Floats:
    """(nz, nz) covariance of Y^T r, in y, corrected for the degrees of freedom of the fit."""
    directions = float(np.trace(A @ H))
    if meat is None:
        return np.asarray(H * n / max(n - directions, 1.0))
    M = _in_y(problem, meat)
    # Variance of correlated errors relative to that of independent ones: the effective number of rows is
    # smaller.
    inflation = max(float(np.trace(A @ M)) / max(directions, 1e-300), 1e-3)
    effective = n / inflation
    correction = effective / max(effective - directions, 0.2 * effective)
    return np.asarray(M * correction * clusters / max(clusters - 1.0, 1.0))


def _in_y(problem: ConsistentProblem, meat: Floats) -> Floats:
    """(nz, nz) covariance of Y^T r of all unknowns, in y, where the data contain information."""
    to_y = problem.freedom.T @ problem.Z
    signal = problem.values > 0.0
    return np.asarray(to_y.T @ meat @ to_y / problem.noise**2 * np.outer(signal, signal))


def _cut(problem: ConsistentProblem, low: Floats) -> None:
    """Limit intervals to non-negative friction, masses and moments of inertia."""
    columns = problem.freedom.columns
    low[problem.bounded] = np.maximum(low[problem.bounded], 0.0)
    pi = low[columns.slices['pi']].reshape(-1, 10)
    pi[:, [0, 4, 6, 9]] = np.maximum(pi[:, [0, 4, 6, 9]], 0.0)


def _inverse(matrix: Floats) -> Floats:
    """Inverse of a positive definite matrix with eigenvalues of very different magnitudes."""
    d = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, V = np.linalg.eigh(matrix * np.outer(d, d))
    values = np.maximum(values, 1e-13 * values.max(initial=1e-300))
    scaled = d[:, None] * V
    return np.asarray((scaled / values) @ scaled.T)
