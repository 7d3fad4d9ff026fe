# SPDX-License-Identifier: Apache-2.0
"""Instrumental variables: base parameters without the bias that noise in the motion causes.

Least squares takes the regressor Y as exact. But accelerations are differentiated positions, and their
noise makes Y^T Y too large: inertia comes out too small. With instruments Z that know the motion but not
its noise,

    x = (Z^T W Y)^-1 Z^T W y

has no such bias (Janot, Vandanjon, Gautier, T-CST 2014). Z is the regressor of a motion without noise:
first that of the smoothed log, in which noise is left only within the band of the motion; then that of a
simulation with the estimate, driven by the logged torques in closed loop (`closed_loop`), again and again
until nothing changes.

With a floating base the smoothed motion of the base is part of Z, for nobody knows the controller that
holds it on its feet: its instruments are free of what is faster than the motion, no more. Joints are
simulated where the forces at the feet were measured; else (modes 'projection' and 'base') smoothed.
"""

from __future__ import annotations

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
_SAME = 1e-3  # mean square change of a base parameter, in standard deviations, that is none


def instrumental(
    equations: Equations, freedom: Freedom, settings: ClosedLoopSettings | None = None
) -> Solution:
    """Estimate base parameters with instruments.

    Args:
        equations: of the samples; any mode, fixed and floating base.
        freedom: what is free.
        settings: of smoothing and simulation.

    Raises:
        ArgumentError: no samples, nothing that they determine, or instruments that know too little.
    """
    freedom = textbook_freedom(freedom)
    loop = ClosedLoop(equations, settings)
    normal = equations.accumulate()[0]
    estimator = _Estimator(equations, find_base_parameters(normal, freedom), noise_variance(normal, freedom))
    fit = estimator.estimate(loop.smoothed())
    note = f'instruments: smoothed motion (cutoff {loop.cutoff:.3g} Hz)'
    if loop.simulates:
        fit, words = _iterate(estimator, loop, fit)
        note += f'; {words}'
    else:
        note += f", for joints cannot be simulated in the mode '{equations.mode}'"
    found = solution_of(fit, 'iv')
    return replace(found, choices=(*found.choices, note))


def _iterate(estimator: _Estimator, loop: ClosedLoop, fit: BaseFit) -> tuple[BaseFit, str]:
    """Instruments from simulations with the last estimate, until it settles; and how that went, in words."""
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
    """How x follows from base parameters, and how far these may be from the prior.

    Returns:
        (size, rank) N: x = x0 + N d changes the base parameters by d, and else as little as possible.
        (rank, rank) information of a weak prior of d: bodies are as the model says, to 100 %. It keeps what
        the data hardly determine from becoming absurd.
    """
    G, weak, _ = base.least_change()
    return np.asarray(base.freedom.T @ G), weak


class _Estimator:
    """Sums over samples for any instruments."""

    def __init__(self, equations: Equations, base: BaseParameters, noise: float) -> None:
        if not base.rank:
            raise ArgumentError('the samples determine nothing that is free; expected motion')
        self.equations, self.base, self.noise = equations, base, noise
        self.N, weak = least_change(base)
        self.weak = noise * weak
        self.b0 = base.B @ base.freedom.x0[base.freedom.lead]

    def x(self, b: Floats) -> Floats:
        """(size,) all unknowns with the base parameters b, those nearest to the prior."""
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
