# SPDX-License-Identifier: Apache-2.0
"""Search for the Stribeck velocity, which changes the equations themselves.

For each candidate, the normal equations are computed again and all other unknowns are fitted. The cost is
then a function of one number, which is minimised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples

_MOST_SAMPLES = 6000  # samples that are used in the search
_PIECE = 200  # samples that stay together
_GRID = 6  # number of initial candidates: there may be several minima
_TOLERANCE = 1e-3  # of the logarithm of the velocity


def with_stribeck_velocity(equations: Equations, velocity: float) -> Equations:
    """The same equations with another Stribeck velocity [rad/s or m/s]."""
    columns = replace(equations.columns, stribeck_velocity=velocity)
    return Equations(equations.samples, columns, equations.mode, equations.noise)


def search_stribeck_velocity(
    equations: Equations, cost: Callable[[Equations], float], low: float, high: float
) -> float:
    """The velocity of the best fit [rad/s or m/s].

    Args:
        equations: of all samples; if there are many, an excerpt is used.
        cost: of equations, after fitting all other unknowns.
        low: lowest velocity [rad/s or m/s].
        high: highest velocity.
    """
    part = _excerpt(equations)

    def at(logarithm: float) -> float:
        return cost(with_stribeck_velocity(part, float(np.exp(logarithm))))

    grid = np.linspace(np.log(low), np.log(high), _GRID)
    best = int(np.argmin([at(value) for value in grid]))
    found = minimize_scalar(
        at,
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]),
        method='bounded',
        options={'xatol': _TOLERANCE},
    )
    return float(np.exp(found.x))


def _excerpt(equations: Equations) -> Equations:
    """Equations of parts distributed over the samples; of all samples if they are few."""
    samples = equations.samples
    if len(samples) <= _MOST_SAMPLES:
        return equations
    every, part = -(-len(samples) // _MOST_SAMPLES), Samples(equations.columns.model)
    for k, rows in enumerate(samples.chunks(_PIECE)):
        if k % every == 0:
            part.append(rows)
    return Equations(part, equations.columns, equations.mode, equations.noise)
