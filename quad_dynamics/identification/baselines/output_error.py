# SPDX-License-Identifier: Apache-2.0
"""Closed-loop output error: the parameters with which a simulated robot needs the logged torques.

The joints are simulated along the log, in closed loop (`closed_loop`), with the parameters x. The forces of
the simulated motion, Y(q_sim) x, are compared with the measured ones. In closed loop the motion hardly
depends on x, so Y(q_sim) is the sensitivity, and each Gauss-Newton step is a linear fit (Gautier, Janot,
Vandanjon, DIDIM, T-CST 2013; CLOE of the benchmark BIRDy). Noise of differentiated positions has no effect,
because accelerations are those of the simulation.

Base parameters are fitted, so bodies need not be physically consistent. With a floating base, the base and
the foot forces are as logged, and joints are simulated; the base rows are compared, too. Without measured
forces ('projection'), or without joints ('base'), simulation is not possible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.closed_loop import ClosedLoop
from quad_dynamics.identification.baselines.closed_loop_settings import ClosedLoopSettings
from quad_dynamics.identification.baselines.instrumental import least_change
from quad_dynamics.identification.baselines.least_squares import BaseFit, solution_of
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.base_parameters import find_base_parameters
from quad_dynamics.identification.solvers.freedom import Freedom, textbook_freedom
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import noise_variance

_ITERATIONS = 15
_HALVINGS = 6
_SAME = 1e-4  # relative change of the cost at convergence
_WORSE = 1e-2  # relative increase of the cost that a step may cause: the sensitivity is not exact


def output_error(
    equations: Equations,
    freedom: Freedom,
    settings: ClosedLoopSettings | None = None,
    start: Floats | None = None,
) -> Solution:
    """Fit base parameters by simulation.

    Args:
        equations: of the samples; a fixed base, or a floating one with measured forces.
        freedom: the free unknowns.
        settings: of the simulation.
        start: (size,) initial unknowns; None for the prior.

    Raises:
        ArgumentError: simulation is not possible, the start diverges, or nothing is determined.
    """
    freedom = textbook_freedom(freedom)
    loop = ClosedLoop(equations, settings)
    x = freedom.x0 if start is None else start
    normal = _simulated_sums(loop, x)
    base = find_base_parameters(normal, freedom)
    if not base.rank:
        raise ArgumentError('the samples determine nothing that is free; expected motion')
    N, weak = least_change(base)
    weak = weak * noise_variance(normal, freedom)
    cost, used = _cost(normal, x), 1
    while used < _ITERATIONS:
        pull = weak @ (base.B @ (x - freedom.x0)[freedom.lead])
        H = N.T @ normal.YtY @ N + weak
        step = N @ np.linalg.solve(H, N.T @ (normal.Yty - normal.YtY @ x) - pull)
        found, tried = _shortened(loop, x, step, cost)
        used += tried
        if found is None:
            break
        change = abs(found[2] - cost)
        x, normal, cost = found
        if change < _SAME * cost:
            break
    noise = cost / max(normal.n - base.rank, 1)
    covariance = np.asarray(noise * np.linalg.inv(N.T @ normal.YtY @ N + weak), dtype=np.float64)
    solution = solution_of(BaseFit(base, base.B @ x[freedom.lead], covariance), 'output_error')
    return replace(solution, choices=(*solution.choices, f'{used} simulations'))


def _shortened(
    loop: ClosedLoop, x: Floats, step: Floats, cost: float
) -> tuple[tuple[Floats, NormalEquations, float] | None, int]:
    """The first of the full step, its half, ... that does not increase the cost; and simulations."""
    for power in range(_HALVINGS):
        candidate = x + 0.5**power * step
        try:
            normal = _simulated_sums(loop, candidate)
        except ArgumentError:  # it diverges: the step is too long
            continue
        new = _cost(normal, candidate)
        if new < (1.0 + _WORSE) * cost:
            return (candidate, normal, new), power + 1
    return None, _HALVINGS


def _simulated_sums(loop: ClosedLoop, x: Floats) -> NormalEquations:
    """Normal equations with the simulated motion and the logged forces."""
    logged = loop.equations
    simulated = Samples(logged.columns.model)
    for _, rows in loop.simulated(x):
        simulated.append(rows)
    return Equations(simulated, logged.columns, logged.mode, logged.noise).accumulate()[0]


def _cost(normal: NormalEquations, x: Floats) -> float:
    return normal.yty - 2.0 * float(x @ normal.Yty) + float(x @ normal.YtY @ x)
