# SPDX-License-Identifier: Apache-2.0
"""Blocked cross-validation: selects the free groups and the prior weight by held-out errors.

The data are divided into folds, which are blocks of time. Each fold is predicted from the normal equations of
all others. Everything is computed from these sums, so many choices can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.solvers.consistent import WEIGHTS, path
from quad_dynamics.identification.solvers.consistent_problem import ConsistentProblem
from quad_dynamics.identification.solvers.freedom import OPTIONAL, TRUNK, Freedom

# Prior weight of bodies that are not free.
FIXED = float('inf')
_MU = 1e-4  # friction barrier; smaller differences do not affect any choice
_TOLERANCE = 1e-3
# Prior weight while groups are selected: a relative error of the model of 30 %.
_FIRST_WEIGHT = 10.0
# Groups that few robots need must be more significant: improvements in standard errors.
_RARE = {'asymmetric': 2.0, 'stribeck': 2.0}
# The weight may be this many factors of ten above the best: with filtered noise, standard errors are
# uncertain.
_CLIMB = 1
# Relative improvements below this are ignored, however significant they are.
_WORTH = 1e-3
# A larger weight may increase the error by at most this fraction, however uncertain the difference is.
_RISE = 0.02

_BODIES = frozenset({'inertia', TRUNK})
# Inertia is freed only if the improvement is this significant: the best of many weights may help by chance.
_SURE_OF_BODIES = 2.0
# Legs are freed in addition to the trunk only if the improvement is significant and large.
_SURE_OF_LEGS = 2.0
_WORTH_LEGS = 0.01

_MEANING = {
    'viscous': 'viscous friction',
    'coulomb': 'Coulomb friction',
    'offset': 'offsets of the torques',
    'rotor': 'rotor inertia',
    'asymmetric': 'viscous friction that differs between the directions',
    'stribeck': 'Stribeck friction',
    'bias': 'bias of the force sensors',
}


@dataclass(frozen=True, eq=False)
class Choice:
    """The selection.

    Attributes:
        groups: free groups.
        weight: of the prior of the bodies; FIXED if these are not free.
        words: the reason of each decision.
    """

    groups: frozenset[str]
    weight: float
    words: tuple[str, ...]


class CrossValidation:
    """Prediction errors on left-out folds, for any choice of groups and weights.

    Attributes:
        folds: normal equations of each fold.
        freedom: all unknowns that may be free.
        seen: groups that have an effect on the data.
    """

    def __init__(
        self, folds: Sequence[NormalEquations], freedom: Freedom, scales: Floats, noise: float
    ) -> None:
        """Prepare the cross-validation; nothing is computed yet.

        Args:
            folds: normal equations of each fold.
            freedom: all unknowns that may be free.
            scales: (size,) prior standard deviations of all unknowns except inertia.
            noise: variance of the whitened rows.
        """
        self.folds = [fold for fold in folds if fold.n > 0]
        self.freedom, self.scales, self.noise = freedom, scales, noise
        total = sum(self.folds[1:], self.folds[0])
        length = np.diag(freedom.T.T @ total.YtY @ freedom.T)
        self.seen = frozenset(g for g, size in zip(freedom.groups, length, strict=True) if size > 0.0)
        self.training = [_minus(total, fold) for fold in self.folds]
        self._near: dict[tuple[int, float, bool], Floats] = {}  # solutions for warm starts

    def errors(self, groups: Collection[str], weights: Sequence[float]) -> Floats:
        """(weights, folds) mean squared errors on the left-out folds, relative to the noise.

        Args:
            groups: free groups.
            weights: in decreasing order.
        """
        freedom = self.freedom.only(groups)
        columns = []
        for k, (training, fold) in enumerate(zip(self.training, self.folds, strict=True)):
            if freedom.nz == 0:
                columns.append([self._error(freedom.x0, fold)] * len(weights))
                continue
            problem = ConsistentProblem(training, freedom, self.scales, self.noise)
            start = self._near.get((k, weights[0], 'inertia' in groups))
            xs = [problem.x(y, _MU) for y in path(problem, weights, _MU, _TOLERANCE, start)]
            self._near[k, weights[0], 'inertia' in groups] = xs[0]
            columns.append([self._error(x, fold) for x in xs])
        return np.array(columns).T

    def _error(self, x: Floats, fold: NormalEquations) -> float:
        total = fold.yty - 2.0 * float(x @ fold.Yty) + float(x @ fold.YtY @ x)
        return max(total, 0.0) / fold.n / self.noise


def _minus(total: NormalEquations, fold: NormalEquations) -> NormalEquations:
    """The normal equations of all folds but one."""
    return NormalEquations(
        total.YtY - fold.YtY, total.Yty - fold.Yty, max(total.yty - fold.yty, 0.0), total.n - fold.n
    )


def choose(validation: CrossValidation, weight: float | None = None, least: float = 0.0) -> Choice:
    """Select groups and weight.

    Args:
        validation: with all unknowns that may be free.
        weight: of the prior, if it is given.
        least: smallest prior weight; below it, the model would have no influence.
    """
    freedom = validation.freedom
    present = frozenset(freedom.groups)
    optional = freedom.optional - _BODIES  # these are selected last
    if len(validation.folds) < 3:
        words = ('cross-validation: too little data to leave any out; nothing optional was freed',)
        return Choice(present - optional, 1.0 if weight is None else weight, words)
    base = present - optional
    groups, found = _choose_groups(
        validation,
        base,
        present & optional & validation.seen,
        _FIRST_WEIGHT if weight is None else weight,
    )
    weights = tuple(w for w in WEIGHTS if w >= least) if weight is None else (weight,)
    groups, bodies = _choose_bodies(validation, groups, weights)
    chosen, more = _choose_weight(validation, groups, weights)
    if chosen == FIXED:
        groups -= _BODIES
    return Choice(groups, chosen, (*found, *bodies, *more))


def _choose_bodies(
    validation: CrossValidation, groups: frozenset[str], weights: Sequence[float]
) -> tuple[frozenset[str], list[str]]:
    """With a floating base, free only the trunk, which carries payloads, unless freeing the legs helps too.

    With a robot on its feet, bodies can hardly be separated: small changes of several bodies fit the noise.
    """
    freedom = validation.freedom
    if 'inertia' not in groups & freedom.optional or not freedom.has_trunk_and_legs:
        return groups, []
    trunk = groups - {'inertia'} | {TRUNK}
    few, many = (validation.errors(each, weights) for each in (trunk, groups))
    least = few[np.argmin(few.mean(axis=1))], many[np.argmin(many.mean(axis=1))]
    gain = 1.0 - np.sqrt(np.mean(least[1]) / max(float(np.mean(least[0])), 1e-300))
    if is_better(least[1], least[0], _SURE_OF_LEGS) and gain > _WORTH_LEGS:
        return groups, [f'inertia of the legs: free, held-out error is {100 * gain:.3g} % lower with it']
    return trunk, ['inertia of the legs: as in the model, held-out error hardly falls with it']


def _choose_groups(
    validation: CrossValidation, groups: frozenset[str], optional: frozenset[str], weight: float
) -> tuple[frozenset[str], list[str]]:
    """Free the optional groups that improve predictions, one after the other, the most common ones first."""
    words: dict[str, str] = {}
    if not optional:
        return groups, []
    errors = validation.errors(groups, (weight,))[0]
    accepted: list[str] = []
    for name in (name for name in OPTIONAL if name in optional):
        tried = validation.errors(groups | {name}, (weight,))[0]
        words[name] = f'{_MEANING[name]}: not free, held-out error does not fall'
        if is_better(tried, errors, _RARE.get(name, 1.0)):
            groups, errors = groups | {name}, tried
            accepted.append(name)
    # A group may have been accepted only in place of one that was added later.
    for name in accepted:
        without = validation.errors(groups - {name}, (weight,))[0]
        if not is_better(errors, without):
            groups, errors = groups - {name}, without
            continue
        gain = 1.0 - np.sqrt(np.mean(errors) / max(float(np.mean(without)), 1e-300))
        words[name] = f'{_MEANING[name]}: free, held-out error is {100 * gain:.3g} % lower with it'
    return groups, list(words.values())


def is_better(new: Floats, old: Floats, sure: float = 1.0) -> bool:
    """Whether errors decrease by a relevant amount, and by more than `sure` standard errors of the decrease.

    The decrease is a factor, because folds differ: one that is hard to predict must not dominate.
    """
    factors = np.log(np.maximum(old, 1e-300) / np.maximum(new, 1e-300))
    return bool(
        np.mean(factors) > sure * np.std(factors, ddof=1) / np.sqrt(len(factors))
        and np.mean(old - new) > _WORTH * np.mean(old)
    )


def _choose_weight(
    validation: CrossValidation, groups: frozenset[str], weights: Sequence[float]
) -> tuple[float, list[str]]:
    """The largest weight whose error is not significantly above the smallest one."""
    if not groups & _BODIES:
        return FIXED, ['inertia: not free']
    errors = validation.errors(groups, weights)
    if len(weights) == 1:
        return weights[0], [f'prior weight {weights[0]:g}: as given']
    fixed = validation.errors(groups - _BODIES, (1.0,))
    errors = np.concatenate([fixed, errors])
    names = [FIXED, *weights]
    means = errors.mean(axis=1)
    asked = not validation.freedom.optional & _BODIES  # requested by name: free, whether it helps or not
    best = 1 + int(np.argmin(means[1:]))
    best_words = f'least held-out error {np.sqrt(means[best]):.4g} of the noise at weight {names[best]:g}'
    if not (asked or is_better(errors[best], errors[0], _SURE_OF_BODIES)):
        return FIXED, [f'inertia: kept as in the model, for freeing it does not help ({best_words})']
    for i in range(max(1, best - _CLIMB), best + 1):
        rise = errors[i] - errors[best]
        sure = np.std(rise, ddof=1) / np.sqrt(errors.shape[1])
        if np.mean(rise) <= min(sure, _RISE * means[best]):
            break
    gain = 1.0 - np.sqrt(means[i] / means[0])
    return names[i], [
        f'inertia: free, held-out error falls by {100 * gain:.3g} % against that of the model',
        f'prior weight {names[i]:g}: largest within one standard error of the best ({best_words})',
    ]
