# SPDX-License-Identifier: Apache-2.0
"""The default method from samples to a solution: the noise of the rows first, then the unknowns."""

from __future__ import annotations

from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.first_fit import first_fit
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import SolveSettings, solve

FOLDS = 8  # blocks of time for cross-validation


def fit(
    samples: Samples,
    columns: Columns,
    mode: str,
    freedom: Freedom,
    folds: int = FOLDS,
    settings: SolveSettings | None = None,
) -> tuple[Equations, Solution]:
    """Equations with the noise of their rows, and the solution.

    Args:
        samples: measured motion and forces.
        columns: the unknowns.
        mode: mode of the equations.
        freedom: which unknowns may change.
        folds: number of blocks of time for cross-validation.
        settings: of the solver.
    """
    equations, x = first_fit(samples, columns, mode, freedom)
    return equations, solve(equations.accumulate(folds, x), equations, columns, freedom, settings, x)
