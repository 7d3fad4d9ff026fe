# SPDX-License-Identifier: Apache-2.0
"""Instrumental variables: base parameters without the bias caused by noise in the motion.

Least squares treats the regressor Y as exact. But accelerations are differentiated positions, and their noise
makes Y^T Y too large, so inertia is underestimated. With instruments Z that are correlated with the motion
but not with its noise,

    x = (Z^T W Y)^-1 Z^T W y

has no such bias (Janot, Vandanjon, Gautier, T-CST 2014). Z is the regressor of a noise-free motion: first
that of the smoothed log, which has noise only in the band of the motion; then that of a simulation with the
estimate, driven by the logged torques in closed loop (`closed_loop`), repeated until convergence.

With a floating base, the smoothed motion of the base is part of Z, because the controller that balances it is
unknown: its instruments are only free of noise above the band of the motion. Joints are simulated if the foot
forces were measured; otherwise (modes 'projection' and 'base') they are smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.closed_loop import ClosedLoop
from quad_dynamics.identification.baselines.closed_loop_settings import ClosedLoopSettings
from quad_dynamics.identification.baselines.least_squares import BaseFit, solution_of
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.base_parameters import BaseParameters, find_base_parameters
from quad_dynamics.identification.solvers.freedom import Freedom, textbook_freedom
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import noise_variance

_CHUNK = 256  # samples whose regressors are in memory at once
_ITERATIONS = 10
_SAME = 1e-3  # mean square change of base parameters at convergence, in standard deviations


def instrumental(
    equations: Equations, freedom: Freedom, settings: ClosedLoopSettings | None = None
) -> Solution:
    """Estimate base parameters with instrumental variables.

    Args:
        equations: of the samples; any mode, fixed and floating base.
        freedom: the free unknowns.
        settings: of smoothing and simulation.

    Raises:
        ArgumentError: no samples, nothing is determined, or the instruments are too weak.
    """
    freedom = textbook_freedom(freedom)
    loop = ClosedLoop(equations, settings)
    normal = equations.accumulate()[0]
    estimator = _Estimator(equations, find_base_parameters(normal, freedom), noise_variance(normal, freedom))
    fit = estimator.estimate(loop.smoothed())
    smooth = math.isfinite(loop.cutoff)
    note = f'instruments: {f"smoothed motion (cutoff {loop.cutoff:.3g} Hz)" if smooth else "filtered motion"}'
    if loop.simulates:
        fit, words = _iterate(estimator, loop, fit)
        note += f'; {words}'
    else:
        note += f", because joints cannot be simulated in the mode '{equations.mode}'"
    found = solution_of(fit, 'iv')
    return replace(found, choices=(*found.choices, note))


def _iterate(estimator: _Estimator, loop: ClosedLoop, fit: BaseFit) -> tuple[BaseFit, str]:
    """Instruments from simulations with the last estimate, until convergence; and a note about it."""
    last = np.inf
    for k in range(1, _ITERATIONS + 1):
        try:
            new = estimator.estimate(loop.simulated(estimator.x(fit.b)))
        except ArgumentError as error:
            return fit, f'{k - 1} simulations, then {error}'
        step = new.b - fit.b
        change = float(step @ np.linalg.solve(new.covariance, step)) / len(step)
        if not change < last:
            return fit, f'{k - 1} simulations, then they did not settle'
        fit, last = new, change
        if change < _SAME:
            break
    return fit, f'then simulated motion ({k} simulations)'


def least_change(base: BaseParameters) -> tuple[Floats, Floats]:
    """Map from base parameters to x, and the prior of base parameters.

    Returns:
        (size, rank) N: x = x0 + N d changes the base parameters by d, and the rest as little as possible.
        (rank, rank) information of a weak prior of d: the bodies of the model are 100 % wrong. It keeps
        weakly determined parameters plausible.
    """
    G, weak, _ = base.least_change()
    return np.asarray(base.freedom.T @ G), weak


class _Estimator:
    """Normal equations for any instruments."""

    def __init__(self, equations: Equations, base: BaseParameters, noise: float) -> None:
        if not base.rank:
            raise ArgumentError('the samples determine nothing that is free; expected motion')
        self.equations, self.base, self.noise = equations, base, noise
        self.N, weak = least_change(base)
        self.weak = noise * weak
        self.b0 = base.B @ base.freedom.x0[base.freedom.lead]

    def x(self, b: Floats) -> Floats:
        """(size,) all unknowns with the base parameters b, closest to the prior."""
        return np.asarray(self.base.freedom.x0 + self.N @ (b - self.b0))

    def estimate(self, pairs: Iterable[tuple[Floats, Floats]]) -> BaseFit:
        """Base parameters from logged rows and rows of instruments."""
        rank = self.base.rank
        ZY, ZZ, Zy = np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros(rank)
        for logged, without_noise in pairs:
            for k in range(0, len(logged), _CHUNK):
                Y, y = self.equations.whitened(logged[k : k + _CHUNK])
                Z, _ = self.equations.whitened(without_noise[k : k + _CHUNK])
                A, B = (np.reshape(part @ self.N, (-1, rank)) for part in (Y, Z))
                ZY += B.T @ A
                ZZ += B.T @ B
                Zy += B.T @ (y - Y @ self.base.freedom.x0).ravel()
        try:
            change = np.linalg.solve(ZY + self.weak, Zy)
            half = np.linalg.solve(ZY + self.weak, np.linalg.cholesky(ZZ + self.weak))
        except np.linalg.LinAlgError as error:
            raise ArgumentError('the instruments know too little of the motion; expected more') from error
        return BaseFit(self.base, self.b0 + change, np.asarray(self.noise * half @ half.T))
