# SPDX-License-Identifier: Apache-2.0
"""Least squares against numpy and scipy on stacked rows; and the default against it, on arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from closeness import assert_close
from identification_data import TYPICAL, changed, equations_of, make_samples, robot
from identification_motions import Motion, Unknown, arm, columns_of, equations_of_arm, record

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.baselines.least_squares import irls, ols, tls, unweighted, wls
from quad_dynamics.identification.baselines.maximum_likelihood import maximum_likelihood
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.freedom import Freedom, make_freedom
from quad_dynamics.identification.solvers.pseudo_inertia import inconsistent_bodies
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import solve

# Sums lose half the digits of the rows that they are made of; conditions here are up to 100.
SUMS = 1e-8


def problem(name: str, seed: int, mode: str | None = None) -> tuple[Equations, Freedom]:
    """Noisy equations of a robot that differs from its model."""
    model = robot(name)
    samples, _ = make_samples(changed(model, seed), seed, seconds=5.0, noise=TYPICAL)
    equations = equations_of(samples, make_columns(model), TYPICAL, mode)
    return equations, make_freedom(equations.columns).only({'inertia', 'viscous', 'coulomb', 'offset'})


def stacked(equations: Equations, freedom: Freedom) -> tuple[Floats, Floats]:
    """Rows that count of all samples, for the values of the free unknowns; what is fixed is taken off."""
    rows = equations.samples.all()
    Y, y = equations.whitened(rows)
    y = y - Y @ (freedom.x0 - freedom.T @ freedom.x0[freedom.lead])
    use = equations.use(rows).reshape(-1) > 0.0
    return (Y.reshape(-1, Y.shape[2]) @ freedom.T)[use], y.reshape(-1)[use]


def predicted(solution: Solution, freedom: Freedom, Y: Floats) -> Floats:
    return np.asarray(Y @ solution.x[freedom.lead])


def best_fit(Y: Floats, y: Floats) -> Floats:
    return np.asarray(Y @ np.linalg.lstsq(Y, y, rcond=1e-9)[0])


# ---------------------------------------------------------------- against numpy and scipy


@pytest.mark.parametrize('name', ['two_link_arm', 'mini_cheetah_leg', 'ur5'])
def test_ols_is_that_of_numpy(name: str, seed: int) -> None:
    equations, freedom = problem(name, seed)
    Y, y = stacked(unweighted(equations), freedom)
    assert_close(predicted(ols(equations, freedom), freedom, Y), best_fit(Y, y), SUMS)


@pytest.mark.parametrize('name', ['kinova', 'panda'])
def test_ols_is_that_of_numpy_where_some_columns_are_but_rounding(name: str, seed: int) -> None:
    columns = columns_of(arm(name))
    equations = equations_of_arm(record(arm(name), RICH, Unknown(), seed), columns, RICH)
    freedom = make_freedom(columns).only({'inertia', 'viscous', 'coulomb', 'offset'})
    Y, y = stacked(unweighted(equations), freedom)
    assert_close(predicted(ols(equations, freedom), freedom, Y), best_fit(Y, y), 1e-5)


def test_wls_weighs_rows_by_what_ols_leaves(seed: int) -> None:
    equations, freedom = problem('mini_cheetah_leg', seed)
    Y, y = stacked(unweighted(equations), freedom)
    joint = np.tile(np.arange(3), len(equations.samples))[
        equations.use(equations.samples.all()).ravel() > 0.0
    ]
    r = y - best_fit(Y, y)
    w = 1.0 / np.array([np.sqrt(np.mean(r[joint == j] ** 2)) for j in range(3)])[joint]
    assert_close(predicted(wls(equations, freedom), freedom, Y), best_fit(Y * w[:, None], y * w) / w, 1e-6)


def test_standard_deviations_of_ols_are_those_of_textbooks(seed: int) -> None:
    equations, freedom = problem('two_link_arm', seed)
    Y, y = stacked(unweighted(equations), freedom)
    solution = ols(equations, freedom)
    k = freedom.names.index('joint1.viscous')
    others = np.delete(Y, k, axis=1)
    left = Y[:, k] - best_fit(others, Y[:, k])  # what no other column explains
    rank = np.linalg.matrix_rank(Y / np.maximum(np.linalg.norm(Y, axis=0), 1e-300), 1e-8)
    s2 = np.sum((y - best_fit(Y, y)) ** 2) / (len(y) - rank)
    assert solution.identified[freedom.lead[k]]
    assert solution.std[freedom.lead[k]] == pytest.approx(np.sqrt(s2 / (left @ left)), rel=1e-6)


def test_irls_is_the_huber_estimate_and_withstands_outliers() -> None:
    equations, freedom = problem('two_link_arm', 0)
    rows = equations.samples.all()
    tau = equations.samples.layout.get(rows, 'tau')
    tau[::20] += 5.0
    samples = Samples(equations.columns.model)
    samples.append(rows)
    spoiled = Equations(samples, equations.columns, 'fixed', equations.noise)
    good, bad, robust = (predicted(s, freedom, stacked(unweighted(equations), freedom)[0]) for s in (
        ols(equations, freedom), ols(spoiled, freedom), irls(spoiled, freedom)
    ))  # fmt: skip
    assert np.linalg.norm(robust - good) < 0.3 * np.linalg.norm(bad - good)


def test_tls_is_the_least_singular_vector(seed: int) -> None:
    equations, freedom = problem('two_link_arm', seed)
    solution = tls(equations, freedom)
    Y, y = stacked(unweighted(equations), freedom)
    joint = np.tile(np.arange(2), len(equations.samples))[
        equations.use(equations.samples.all()).ravel() > 0.0
    ]
    r = y - best_fit(Y, y)
    w = 1.0 / np.array([np.sqrt(np.mean(r[joint == j] ** 2)) for j in range(2)])[joint]
    Y, y = Y * w[:, None], y * w
    first = [freedom.names.index(c.text.split()[0]) for c in solution.combinations]
    error = 0.01 * np.sqrt(np.mean(Y[:, first] ** 2, axis=0))
    v = np.linalg.svd(np.column_stack([Y[:, first] / error, y]))[2][-1]
    expected = -v[:-1] / v[-1] / error
    assert_close([c.value for c in solution.combinations], expected, 1e-6)


def test_maximum_likelihood_is_that_of_a_numerical_search() -> None:
    """Minimum of log det of the covariance of the residuals: what the likelihood becomes."""
    equations, freedom = problem('two_link_arm', 1)
    rows = equations.samples.all()
    equations.samples.layout.get(rows, 'use')[...] = 1.0
    tau = equations.samples.layout.get(rows, 'tau')
    shared = np.random.default_rng(0).standard_normal((len(rows), 1))
    tau += shared * [0.5, 0.3]
    samples = Samples(equations.columns.model)
    samples.append(rows)
    plain = unweighted(Equations(samples, equations.columns, 'fixed', equations.noise))
    solution = maximum_likelihood(plain, freedom)
    first = [freedom.names.index(c.text.split()[0]) for c in solution.combinations]
    Y, y = plain.whitened(rows)
    Y = (Y @ freedom.T)[..., first]

    def cost(b: Floats) -> float:
        r = y - Y @ b
        return float(np.linalg.slogdet(r.T @ r / len(r))[1])

    found = np.array([c.value for c in solution.combinations])
    best = scipy.optimize.minimize(cost, found, method='BFGS', options={'gtol': 1e-9})
    assert cost(found) <= best.fun + 1e-6
    assert cost(found) < cost(np.array([c.value for c in ols(plain, freedom).combinations])) - 1e-3


@pytest.mark.parametrize('method', [ols, wls, irls, tls, maximum_likelihood])
def test_every_method_takes_a_floating_base_and_names_impossible_bodies(method: Any) -> None:
    equations, freedom = problem('mini_cheetah', 0)
    solution = method(equations, freedom)
    assert np.isfinite(solution.x).all()
    assert np.isfinite(solution.std[solution.free]).all()
    assert np.isnan(solution.std[~solution.free]).all()
    bad = inconsistent_bodies(solution.part('pi'), equations.columns.model.body_names)
    assert bad
    assert any(all(name in words for name in bad) for words in solution.choices)


def test_what_data_leave_open_stays_near_the_model() -> None:
    """Without noise and with a true model, nothing moves, though a third of the unknowns is undetermined."""
    model = robot('mini_cheetah_leg')
    samples, truth = make_samples(model, 0, seconds=5.0)
    columns = make_columns(model)
    equations = equations_of(samples, columns, TYPICAL)
    solution = ols(equations, make_freedom(columns).only({'inertia', 'viscous', 'coulomb'}))
    scale = np.maximum(np.abs(truth), 1e-3)
    assert np.abs((solution.x - truth) / scale).max() < 1e-6


# ---------------------------------------------------------------- the default against least squares

RICH = Motion(seconds=25.0, amplitude=1.0, speed=0.6, noise=0.02, memory=0.02)
POOR = Motion(seconds=4.0, amplitude=0.15, speed=0.5, noise=0.1, memory=0.02)
GEARED = 100.0  # so that a rotor acts on its own joint alone


def held_out(
    name: str, train: Motion, unknown: Unknown, amount: float, seed: int
) -> tuple[float, float, float]:
    """Errors of torques of another, rich motion [N m]: of the model, of least squares, of the default."""
    model = arm(name)._replace(rotor_gear=np.full(arm(name).nj, GEARED))
    columns = columns_of(model)
    freedom = make_freedom(columns)
    consistent = model.with_pi(freedom.x0[columns.slices['pi']])
    nothing = np.zeros(model.nj)
    truth = changed(consistent, seed, amount).with_friction(nothing, nothing)
    equations = equations_of_arm(record(truth, train, unknown, seed), columns, train)
    other = equations_of_arm(record(truth, RICH, unknown, seed + 100), columns, RICH)
    default = solve(equations.accumulate(5), equations, columns, freedom)
    assert not inconsistent_bodies(default.part('pi'), model.body_names)

    def error(x: Floats) -> float:
        return float(np.sqrt(np.mean(np.concatenate([r.ravel() for _, r in other.residuals(x)]) ** 2)))

    return error(freedom.x0), error(ols(equations, freedom).x), error(default.x)


ARMS = [
    ('ur5', 0),
    *(
        pytest.param(*arm_and_seed, marks=pytest.mark.slow)
        for arm_and_seed in (('kinova', 1), ('panda', 2), ('kinova', 3))
    ),
]
CASES = {
    'friction and offset unknown': (Unknown(0.1, 0.05, 0.0), 0.3),
    'a wrong model and rotors that it has not': (Unknown(0.2, 0.05, 0.5), 1.0),
    'a good model': (Unknown(0.0, 0.0, 0.0), 0.1),
}


@pytest.mark.parametrize('case', CASES)
@pytest.mark.parametrize(('name', 'seed'), ARMS)
def test_the_default_is_as_good_as_least_squares_where_this_does_not_overfit(
    name: str, seed: int, case: str
) -> None:
    before, plain, default = held_out(name, RICH, *CASES[case], seed)
    assert default < 1.1 * plain
    assert default < before


@pytest.mark.parametrize('case', CASES)
@pytest.mark.parametrize(('name', 'seed'), ARMS)
def test_the_default_is_twice_as_good_where_least_squares_overfits(name: str, seed: int, case: str) -> None:
    before, plain, default = held_out(name, POOR, *CASES[case], seed)
    assert plain > 2.0 * before  # that is what overfitting is
    assert default < 0.5 * plain
    assert default < 2.5 * before
