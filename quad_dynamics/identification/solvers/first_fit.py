# SPDX-License-Identifier: Apache-2.0
"""A first solution and the noise of its rows, found by alternating between the two."""

from __future__ import annotations

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise, fit_noise, largest_change
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.consistent import solve_consistent
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.prior import friction_scales

# Upper bound of the number of fits, and the change of the noise at which they end.
_NOISE_PASSES, _SAME_NOISE = 8, 0.2
# Prior weight until the noise is known: it is small, so that effects of the unknowns are not taken for noise.
_FIRST_WEIGHT = 1e-3


def first_fit(
    samples: Samples, columns: Columns, mode: str, freedom: Freedom, passes: int = _NOISE_PASSES
) -> tuple[Equations, Floats]:
    """Equations with the noise of their rows, and a first solution (size,).

    Args:
        samples: measured motion and forces.
        columns: the unknowns.
        mode: mode of the equations.
        freedom: which unknowns may change.
        passes: maximum number of fits.
    """
    noise = first_noise(columns, mode == 'projection')
    scales = friction_scales(columns)
    x = columns.prior
    for k in range(passes):
        equations = Equations(samples, columns, mode, noise)
        (total,) = equations.accumulate(1, x if k else None)
        x = solve_consistent(total, freedom, _FIRST_WEIGHT, scales)
        before, noise = noise, fit_noise(equations, x)
        if largest_change(before, noise) < _SAME_NOISE:
            break
    return Equations(samples, columns, mode, noise), x
