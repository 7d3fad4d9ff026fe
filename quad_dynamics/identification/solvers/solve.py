# SPDX-License-Identifier: Apache-2.0
"""The default method: from normal equations to a solution with its confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.equations.discrepancy import discrepancy_scores
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.base_parameters import BaseParameters, find_base_parameters
from quad_dynamics.identification.solvers.confidence import Confidence, find_confidence
from quad_dynamics.identification.solvers.consistent import solve_problem
from quad_dynamics.identification.solvers.consistent_problem import ConsistentProblem
from quad_dynamics.identification.solvers.cross_validation import FIXED, CrossValidation, choose
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.loose_friction import find_loose_friction, words_of_loose
from quad_dynamics.identification.solvers.plausible import TRUST
from quad_dynamics.identification.solvers.prior import ROTOR, friction_scales
from quad_dynamics.identification.solvers.separability import Trade, find_trade, gravity_rows
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet

# Groups that are uncertain even if they are not freed: that freeing them did not help does not make them
# known.
_UNKNOWN = ('inertia', 'viscous', 'coulomb', 'offset', 'rotor', 'bias')
_SMALL_OFFSET = 0.02  # scale of offsets that are not free, relative to their prior
_OTHER_ROTOR = 0.2  # relative error of rotors that are not free; of the moved inertia if no rotor is known
_SHOWN = 4  # number of limits that are named
_COST = 0.2  # relative increase of held-out errors above which offsets are not held


@dataclass(frozen=True)
class SolveSettings(ParameterSet):
    """Settings of the default method."""

    prior_weight: float | None = param(
        None,
        'trust in the inertia of the model, 1 / (relative standard deviation)^2; by default cross-validation',
        kind='number',
        unit='-',
        low=0.0,
        high=1e12,
    )
    trust: float = param(
        TRUST,
        'relative error of the masses of links in the model, as a standard deviation',
        unit='-',
        above=0.0,
        high=100.0,
    )


def solve(
    folds: Sequence[NormalEquations],
    equations: Equations | None,
    columns: Columns,
    freedom: Freedom,
    settings: SolveSettings | None = None,
    x_robust: Floats | None = None,
) -> Solution:
    """Identify: select by cross-validation, solve, and compute the confidence.

    Args:
        folds: normal equations of blocks of time.
        equations: of the same samples, for correlated errors; None: errors are independent.
        columns: the unknowns.
        freedom: the unknowns that may change.
        settings: of the method.
        x_robust: (size,) first solution that was used for the sums.

    Raises:
        ArgumentError: no data, or sums of other unknowns.
    """
    settings = settings or SolveSettings()
    total = _total(folds, columns)
    scales = friction_scales(columns)
    noise = noise_variance(total, freedom)
    least = 0.9 / settings.trust**2
    choice = choose(CrossValidation(folds, freedom, scales, noise), settings.prior_weight, least)
    chosen = freedom.only(choice.groups)
    weight = 0.0 if choice.weight == FIXED else choice.weight
    if chosen.nz == 0:
        return _nothing_free(freedom, choice.words)
    fitter = _Fitter(total, equations, freedom, scales, noise, weight, x_robust)
    x, sure = fitter.fit(chosen)
    words = (*freedom.notes, *choice.words)
    held: list[int] = []  # holding one joint may make others less certain
    while len(loose := find_loose_friction(chosen, x, sure.std, scales)):
        held, chosen = [*held, *loose], chosen.without(loose)
        x, sure = fitter.fit(chosen)
    words = (*words, *words_of_loose(columns, held))
    trade = find_trade(total, chosen, sure.std, scales) if 'offset' in freedom.optional else None
    if trade is not None:
        chosen, told = _without_trade(folds, fitter, chosen, trade)
        x, sure = fitter.fit(chosen, trade)
        words = (*words, told)
    asked, reached = fitter.ask(chosen, x)
    solution = _solution(chosen, x, sure, find_base_parameters(total, chosen), weight, (*words, *reached))
    return replace(solution, asked=asked)


@dataclass(frozen=True, eq=False)
class _Fitter:
    """Computes fits and their confidence; see `solve`."""

    total: NormalEquations
    equations: Equations | None
    freedom: Freedom
    scales: Floats
    noise: float
    weight: float
    x_robust: Floats | None

    def fit(self, chosen: Freedom, trade: Trade | None = None) -> tuple[Floats, Confidence]:
        """(size,) the unknowns for the selected groups, and their confidence."""
        equations, x_robust = self.equations, self.x_robust
        problem = ConsistentProblem(self.total, chosen, self.scales, self.noise)
        x = solve_problem(problem, self.weight)
        meat = None if equations is None else equations.scores(x, x_robust)
        missed = None if equations is None else discrepancy_scores(equations, x, x_robust)
        wide = ConsistentProblem(self.total, self._wide(chosen), self._spreads(chosen, trade), self.noise)
        return x, find_confidence(wide, self.total, x, self.weight, meat, equations, chosen, missed)

    def ask(self, chosen: Freedom, x: Floats) -> tuple[Floats | None, tuple[str, ...]]:
        """(size,) the solution without limits if x has reached any, and these limits; None if it has not."""
        reached = [] if chosen.limits is None else list(chosen.limits.reached(x))
        if not reached:
            return None, ()
        more = f' and {len(reached) - _SHOWN} more' if len(reached) > _SHOWN else ''
        free = ConsistentProblem(self.total, replace(chosen, limits=None), self.scales, self.noise)
        words = f'limits of what is plausible that are reached: {", ".join(reached[:_SHOWN])}{more}'
        return solve_problem(free, self.weight), (words,)

    def _wide(self, chosen: Freedom) -> Freedom:
        """The selected unknowns, and those that are uncertain although not free: their errors propagate."""
        wide = self.freedom.only({*chosen.groups, *_UNKNOWN})
        return replace(wide, holds=chosen.holds)

    def _spreads(self, chosen: Freedom, trade: Trade | None) -> Floats:
        """(size,) prior standard deviations; smaller for offsets and rotors that are not free."""
        scales, slices = self.scales.copy(), self.freedom.columns.slices
        offsets, rotors = slices['offset'], slices['rotor']
        if 'offset' not in chosen.groups:
            scales[offsets] *= _SMALL_OFFSET
        elif trade is not None and chosen.holds is None:
            scales[trade.offsets] *= _SMALL_OFFSET
        if 'rotor' not in chosen.groups:
            known, moved = self.freedom.x0[rotors], scales[rotors] / ROTOR
            scales[rotors] = _OTHER_ROTOR * np.where(known > 0.0, known, moved)
        return scales


def _without_trade(
    folds: Sequence[NormalEquations], fitter: _Fitter, chosen: Freedom, trade: Trade
) -> tuple[Freedom, str]:
    """Hold offsets that are inseparable from gravity, or gravity if offsets are needed; with a message."""
    held, weights = chosen.without(trade.offsets), (fitter.weight,)
    free_error, held_error = (
        float(np.mean(CrossValidation(folds, each, fitter.scales, fitter.noise).errors(each.groups, weights)))
        for each in (chosen, held)
    )
    rise = np.sqrt(held_error / max(free_error, 1e-300)) - 1.0
    if rise <= _COST:
        return held, trade.words('offset')
    rows = gravity_rows(fitter.total, chosen, trade, fitter.scales)
    why = f'; without offsets, held-out errors would be {100.0 * rise:.0f} % larger, so that they are free'
    return replace(chosen, holds=rows), trade.words('mean torque of gravity', why)


def _solution(
    chosen: Freedom, x: Floats, sure: Confidence, base: BaseParameters, weight: float, words: tuple[str, ...]
) -> Solution:
    return Solution(
        columns=chosen.columns,
        x=x,
        free=chosen.free,
        identified=sure.identified,
        std=sure.std,
        low=sure.low,
        high=sure.high,
        combinations=base.combinations(x, *sure.of_combinations(base.B)),
        condition=base.condition,
        method='consistent',
        prior_weight=weight,
        choices=words,
    )


def noise_variance(normal: NormalEquations, freedom: Freedom) -> float:
    """Variance of the whitened rows that no free unknown explains."""
    scaled_rank, rss = least_residual(normal, freedom)
    # Without any noise, the prior would have no weight, and rounding errors would decide.
    least = 1e-10 * normal.yty / max(normal.n, 1)
    return max(rss / max(normal.n - scaled_rank, 1), least, 1e-300)


def least_residual(normal: NormalEquations, freedom: Freedom) -> tuple[int, float]:
    """Rank of the equations, and the smallest sum of squares, ignoring physical consistency."""
    T, x0 = freedom.T, freedom.x0
    H = T.T @ normal.YtY @ T
    g = T.T @ (normal.Yty - normal.YtY @ x0)
    start = normal.yty - 2.0 * float(x0 @ normal.Yty) + float(x0 @ normal.YtY @ x0)
    length = np.sqrt(np.maximum(np.diag(H), 0.0))
    d = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)
    values, V = np.linalg.eigh(H * np.outer(d, d))
    good = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    c = V.T @ (d * g)
    return int(good.sum()), max(start - float(np.sum(c[good] ** 2 / values[good])), 0.0)


def _total(folds: Sequence[NormalEquations], columns: Columns) -> NormalEquations:
    # Without foot forces, the number of unknown forces is subtracted: the number of rows may be negative.
    if not any(fold.n > 0 for fold in folds):
        raise ArgumentError(
            'there are no data to identify from: no row of any sample can be used. Rows of joints near rest '
            'do not count; without foot forces, at least as many joints must move as forces are unknown'
        )
    total = sum(folds[1:], folds[0])
    if len(total.Yty) != columns.size:
        raise ArgumentError(f'the sums have {len(total.Yty)} unknowns; expected {columns.size}')
    if not (np.isfinite(total.YtY).all() and np.isfinite(total.Yty).all()):
        raise ArgumentError('the sums hold numbers that are not finite')
    return total


def _nothing_free(freedom: Freedom, words: tuple[str, ...]) -> Solution:
    nothing = np.full(freedom.columns.size, np.nan)
    no = np.zeros(freedom.columns.size, dtype=bool)
    return Solution(
        freedom.columns, freedom.x0, no, no, nothing, nothing, nothing, choices=(*freedom.notes, *words)
    )
