# SPDX-License-Identifier: Apache-2.0
"""Maximum likelihood on base parameters, with a full covariance of the rows of a sample.

Parameters and covariance are estimated alternately: least squares with the last covariance, then the
covariance of the residuals (Swevers et al.: Optimal robot excitation and identification, T-RA 1997). The rows
are already whitened, because errors of foot forces enter different rows in each pose, which a constant
covariance cannot represent.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.baselines.least_squares import fit_base, solution_of, x_of
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.freedom import Freedom, textbook_freedom
from quad_dynamics.identification.solvers.solution import Solution

_ROUNDS = 10
_STILL = 1e-6  # relative change of the solution at convergence
_CHUNK = 512  # samples whose regressors are in memory at once


def maximum_likelihood(equations: Equations, freedom: Freedom) -> Solution:
    """Maximum likelihood for normal errors with an unknown covariance between rows.

    Args:
        equations: of the samples.
        freedom: the free unknowns.

    Raises:
        ArgumentError: no free unknown can be determined.
    """
    freedom = textbook_freedom(freedom)
    fit = fit_base(equations.accumulate()[0], freedom)
    for _ in range(_ROUNDS):
        x = x_of(fit)
        last, fit = fit, fit_base(_sums(equations, _covariance(equations, x)), freedom)
        if len(last.b) == len(fit.b) and np.linalg.norm(fit.b - last.b) <= _STILL * np.linalg.norm(fit.b):
            break
    return solution_of(fit, 'ml')


def _covariance(equations: Equations, x: Floats) -> Floats:
    """(rows, rows) covariance of the residuals of whitened rows, from samples in which both rows are used."""
    k = equations.rows
    sums, counts = np.zeros((k, k)), np.zeros((k, k))
    for rows in equations.samples.chunks(_CHUNK):
        Y, y = equations.whitened(rows)
        use = equations.use(rows)
        r = (y - Y @ x) * use
        sums += r.T @ r
        counts += use.T @ use
    result = sums / np.maximum(counts, 1.0)
    # Pairs from different samples may be inconsistent; and rows without any error would dominate.
    values, V = np.linalg.eigh(result)
    values = np.maximum(values, 1e-10 * max(float(values[-1]), 1e-300))
    return np.asarray((V * values) @ V.T)


def _sums(equations: Equations, covariance: Floats) -> NormalEquations:
    """Normal equations of the used rows, whitened by their covariance."""
    p, n = equations.columns.size, 0
    YtY, Yty, yty = np.zeros((p, p)), np.zeros(p), 0.0
    for rows in equations.samples.chunks(_CHUNK):
        Y, y = equations.whitened(rows)
        use = equations.use(rows) > 0.0
        for pattern in np.unique(use, axis=0):
            chosen, own = np.all(use == pattern, axis=1), np.flatnonzero(pattern)
            if not len(own):
                continue
            whiten = np.linalg.inv(np.linalg.cholesky(covariance[np.ix_(own, own)]))
            A = (whiten @ Y[np.ix_(chosen, own)]).reshape(-1, p)
            b = (y[np.ix_(chosen, own)] @ whiten.T).reshape(-1)
            YtY += A.T @ A
            Yty += A.T @ b
            yty += float(b @ b)
            n += len(b)
    return NormalEquations(YtY, Yty, yty, n)
