# SPDX-License-Identifier: Apache-2.0
"""How sure a solution is: standard deviations and 95 % intervals.

Near the truth, an estimate that weighs data (Hessian H) and prior (Hessian W) is wrong by

    A (noise of the sums + W (model - truth)),    A = (H + W)^-1,

so that its covariance is A (meat + W Sigma W) A. The meat of the sandwich is estimated from residuals,
cluster by cluster, for errors that were filtered depend on their neighbours. Sigma is how far
models are from the truth, estimated from how far this one was found to be.
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
# An unknown is identified where its standard deviation, by noise and by what the model may have wrong, is
# below this part of what it was before the data.
_NEWS = 0.3
_SOFT = 0.3  # see `prior_precision`
_TYPICAL = 0.2  # relative error of inertial parameters of models
_SMALLEST = 0.03  # models are not better than this
_HELD = 0.1  # relative error of bodies that were not freed, for that did not help
_HOLD = 1e8  # weight that holds bodies where they are
_LEAST_FREEDOM = 4.0  # degrees of freedom of the t distribution, at least


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure a solution is.

    Attributes:
        std: (size,) standard deviations; NaN where not free.
        low: (size,) lower end of the 95 % interval.
        high: (size,) upper end.
        identified: (size,) which unknowns the data determine alone.
        covariance: (nz, nz) of the free unknowns.
        freedom: which these are.
    """

    std: Floats
    low: Floats
    high: Floats
    identified: Bools
    covariance: Floats
    freedom: Freedom

    def of(self, chosen: Freedom) -> Confidence:
        """The same, of fewer free unknowns."""
        keep = [self.freedom.names.index(name) for name in chosen.names]
        std, low, high = (np.where(chosen.free, each, np.nan) for each in (self.std, self.low, self.high))
        covariance = self.covariance[np.ix_(keep, keep)]
        return Confidence(std, low, high, self.identified & chosen.free, covariance, chosen)


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
    """Find how sure a solution is.

    Bodies that were not freed are wrong all the same, though not by much, and what was found is wrong by
    them.

    Args:
        problem: with all bodies that could be free.
        normal: sums over samples.
        x: (size,) the solution.
        weight: of the prior of the bodies.
        meat: (size, size) from `Equations.scores`; None for errors that do not depend on each other.
        equations: whose clusters in time are counted; None likewise.
        chosen: what was free.
        discrepancy: (size, size) from `discrepancy_scores`; None: friction is of the form that is fitted.
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
    v_data, v_prior, v_before = (_variances(freedom, each) for each in (by_data, by_prior, before))
    free = freedom.free
    std = np.where(free, np.sqrt(v_data + v_prior), np.nan)
    known = free & (v_data + v_prior < _NEWS**2 * v_before)
    reach = float(stdtrit(max(clusters - 1.0, _LEAST_FREEDOM), _LEVEL)) * std
    low, high = x - reach, x + reach
    _cut(problem, low)
    return Confidence(std, low, high, known, by_data + by_prior, freedom).of(chosen)


def _variances(freedom: Freedom, covariance: Floats) -> Floats:
    """(size,) of all unknowns, from the covariance of the free ones."""
    return np.asarray(np.maximum(np.einsum('ij,jk,ik->i', freedom.T, covariance, freedom.T), 0.0))


def count_clusters(equations: Equations) -> float:
    """Number of clusters in time whose errors are taken as independent."""
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
    """(nz, nz) covariance of truth about model, in y: its shape is assumed, its size estimated.

    An estimate moves by R (truth - model) + noise. The size is that for which this explains the movement of
    the bodies that was found.

    Args:
        problem: that was solved.
        x: (size,) the solution.
        R: (nz, nz) resolution.
        noise: (nz, nz) covariance by the noise.
        chosen: what was free.
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
    # What a model of typical quality would do counts as much as two directions that moved.
    explained = float(np.trace(M @ R @ bodies @ R.T)) + 2.0
    size = (float(y @ M @ y) - float(np.trace(M @ noise)) + 2.0 * _TYPICAL**2) / explained
    sizes = np.where(np.isin(freedom.lead, chosen.lead), np.sqrt(np.clip(size, _SMALLEST**2, 1.0)), _HELD)
    sizes[~inertial] = 1.0
    return _believed(problem, back @ (_inverse(precision) * np.outer(sizes, sizes)) @ back.T)


def _believed(problem: ConsistentProblem, spread: Floats) -> Floats:
    """(nz, nz) the same spread in y, given what is known of combinations of unknowns."""
    freedom = problem.freedom
    if freedom.beliefs is None:
        return np.asarray(spread)
    G = freedom.beliefs @ freedom.T @ problem.Z
    gain = spread @ G.T
    return np.asarray(spread - gain @ np.linalg.solve(np.eye(len(G)) + G @ gain, gain.T))


def _noise_of_sums(
    problem: ConsistentProblem, H: Floats, A: Floats, meat: Floats | None, n: int, clusters: float
) -> Floats:
    """(nz, nz) covariance of Y^T r, in y, with what the fit itself takes from the residuals put back."""
    directions = float(np.trace(A @ H))
    if meat is None:
        return np.asarray(H * n / max(n - directions, 1.0))
    M = _in_y(problem, meat)
    # How much more errors that depend on each other spread than independent ones: rows count for fewer.
    inflation = max(float(np.trace(A @ M)) / max(directions, 1e-300), 1e-3)
    effective = n / inflation
    correction = effective / max(effective - directions, 0.2 * effective)
    return np.asarray(M * correction * clusters / max(clusters - 1.0, 1.0))


def _in_y(problem: ConsistentProblem, meat: Floats) -> Floats:
    """(nz, nz) covariance of Y^T r of all unknowns, in y, where the data say anything."""
    to_y = problem.freedom.T @ problem.Z
    signal = problem.values > 0.0
    return np.asarray(to_y.T @ meat @ to_y / problem.noise**2 * np.outer(signal, signal))


def _cut(problem: ConsistentProblem, low: Floats) -> None:
    """No interval goes where no friction, mass or moment can be."""
    columns = problem.freedom.columns
    low[problem.bounded] = np.maximum(low[problem.bounded], 0.0)
    pi = low[columns.slices['pi']].reshape(-1, 10)
    pi[:, [0, 4, 6, 9]] = np.maximum(pi[:, [0, 4, 6, 9]], 0.0)


def _inverse(matrix: Floats) -> Floats:
    """Of a positive matrix whose directions differ by many orders of magnitude."""
    d = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, V = np.linalg.eigh(matrix * np.outer(d, d))
    values = np.maximum(values, 1e-13 * values.max(initial=1e-300))
    scaled = d[:, None] * V
    return np.asarray((scaled / values) @ scaled.T)
