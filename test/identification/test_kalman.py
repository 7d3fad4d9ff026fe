# SPDX-License-Identifier: Apache-2.0
"""The extended Kalman filter: converges to the truth, is as sure as it may be, and survives bad samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from identification_data import QUIET, Levels, changed, equations_of, make_samples, robot
from slow_variants import slow_but

from quad_dynamics.identification.baselines.chart import Chart
from quad_dynamics.identification.baselines.kalman import KalmanFilter, KalmanSettings, kalman
from quad_dynamics.identification.baselines.nonlinear import fit_normal
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.base_parameters import find_base_parameters
from quad_dynamics.identification.solvers.freedom import Freedom, make_freedom
from quad_dynamics.identification.solvers.pseudo_inertia import margins

FREE = ('inertia', 'friction')
LEVELS = Levels(tau=0.05, force=0.3)


def rms(equations: Equations, x: Any) -> float:
    return float(np.sqrt(np.mean(np.concatenate([r for _, r in equations.residuals(x)]) ** 2)))


def drawn(model: Any, freedom: Freedom, seed: int) -> Any:
    """A robot as the filter believes them to be: drawn from its prior, friction a third as wide."""
    chart = Chart(freedom)
    spread = chart.spread(0.3, 0.1)
    s = np.random.default_rng(seed).normal(size=chart.size) * spread
    x, slices = chart.x(np.maximum(s, chart.lower)), freedom.columns.slices
    return model.with_pi(x[slices['pi']]).with_friction(x[slices['viscous']], x[slices['coulomb']])


# ---------------------------------------------------------------- convergence


@pytest.mark.parametrize(
    ('name', 'free', 'tie'),
    [
        ('mini_cheetah_leg', FREE, False),
        ('ur5', FREE, False),
        pytest.param('mini_cheetah', ('trunk', 'friction'), False, marks=pytest.mark.slow),
        ('mini_cheetah', FREE, True),
    ],
    ids=['leg', 'ur5', 'payload', 'tied'],
)
def test_converges_and_knows_how_far(name: str, free: tuple[str, ...], tie: bool) -> None:
    model = robot(name)
    columns = make_columns(model)
    freedom = make_freedom(columns, free, tie)
    distances, settings = [], KalmanSettings(inertia_drift=0.0, friction_drift=0.0, adapt=0.0)
    for seed in range(2):
        truth = drawn(model, freedom, seed)
        samples, x = make_samples(truth, seed=3 + seed, seconds=6.0, noise=LEVELS)
        fresh, _ = make_samples(truth, seed=40, seconds=2.0)
        equations, check = equations_of(samples, columns, LEVELS), equations_of(fresh, columns, QUIET)
        estimator = KalmanFilter(equations, freedom, settings)
        estimator.update(samples.all())
        # Noise of 0.05 N m over 6 s leaves 0.002 to 0.008; the leg's CAD errors are 0.06 to 0.2.
        assert rms(check, estimator.x) < 0.2 * rms(check, columns.prior)
        assert (margins(estimator.x[columns.slices['pi']].reshape(-1, 10)) > 0.0).all()
        # Normalised error of what the data determine, 1 on average for a filter that is right about itself.
        base = find_base_parameters(equations.accumulate()[0], freedom)
        B = base.B @ estimator.chart.jacobian(estimator.s)[freedom.lead]
        error = base.B @ (estimator.x - x)[freedom.lead]
        distances.append(error @ np.linalg.solve(B @ estimator.P @ B.T, error) / base.rank)
    # With some 20 to 50 base parameters of each robot, 1 +- 0.2; less where the prior is too wide.
    assert 0.3 < np.mean(distances) < 1.6


def test_is_the_batch_fit_where_nothing_drifts() -> None:
    # An independent solver on the sums of all samples finds the same state and covariance.
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    freedom = make_freedom(columns, FREE)
    samples, _ = make_samples(changed(model, 2), seed=3, seconds=5.0, noise=LEVELS)
    equations = equations_of(samples, columns, LEVELS)
    settings = KalmanSettings(inertia_drift=0.0, friction_drift=0.0, adapt=0.0, gate=1e-300)
    estimator = KalmanFilter(equations, freedom, settings)
    estimator.update(samples.all())
    spread = estimator.chart.spread(0.3)
    fit = fit_normal(equations.accumulate()[0], estimator.chart, spread)
    std = np.sqrt(np.diag(fit.covariance))
    # The filter ends within a hundredth of a standard deviation, and its last iteration may lag.
    assert np.abs((estimator.s - fit.s) / std).max() < 0.1
    np.testing.assert_allclose(np.sqrt(np.diag(estimator.P)), std, rtol=0.05)


def test_std_is_that_of_the_errors() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    freedom = make_freedom(columns, FREE)
    part = slice(columns.slices['viscous'].start, columns.slices['coulomb'].stop)
    z = []
    for seed in range(8):
        samples, x = make_samples(changed(model, seed), seed=seed, seconds=5.0, noise=LEVELS)
        solution = kalman(equations_of(samples, columns, LEVELS), freedom)
        z.append(((solution.x - x) / solution.std)[part])
        assert solution.identified[part].all()
    # 48 numbers: 1 +- 0.1 for normal ones; some depend on each other.
    assert 0.6 < np.std(z) < 1.5


def test_follows_a_change() -> None:
    # Half a kilogram on the trunk after five seconds.
    model = robot('mini_cheetah')
    pi = model.pi.copy()
    pi[0] += 0.5
    loaded = model.with_pi(pi)
    columns = make_columns(model)
    before, _ = make_samples(model, seed=3, seconds=5.0, noise=LEVELS)
    after, _ = make_samples(loaded, seed=4, seconds=15.0, noise=LEVELS)
    settings = KalmanSettings(inertia_drift=0.03)
    equations = equations_of(before, columns, LEVELS)
    estimator = KalmanFilter(equations, make_freedom(columns, ('trunk',)), settings)
    estimator.update(before.all())
    assert estimator.x[0] == pytest.approx(3.3, abs=0.05)
    rows = after.all()
    after.layout.get(rows, 'time')[...] += 5.0
    estimator.update(rows)
    assert estimator.x[0] == pytest.approx(3.8, abs=0.05)
    assert estimator.model().total_mass == pytest.approx(loaded.total_mass, abs=0.05)


# ---------------------------------------------------------------- bad samples, long runs


def test_outliers_count_less() -> None:
    model = robot('mini_cheetah_leg')
    truth, columns = changed(model, 1), make_columns(model)
    freedom = make_freedom(columns, FREE)
    samples, _ = make_samples(truth, seed=3, seconds=10.0, noise=LEVELS)
    rows = samples.all()
    bad = np.random.default_rng(0).choice(len(rows), 50, replace=False)
    samples.layout.get(rows, 'tau')[bad] += 50.0
    fresh, _ = make_samples(truth, seed=40, seconds=2.0)
    check = equations_of(fresh, columns, QUIET)
    estimator = KalmanFilter(equations_of(samples, columns, LEVELS), freedom, KalmanSettings(adapt=0.0))
    estimator.update(rows)
    clean = KalmanFilter(equations_of(samples, columns, LEVELS), freedom, KalmanSettings(adapt=0.0))
    clean.update(samples.all())
    assert estimator.doubtful >= 50
    assert rms(check, estimator.x) < 3.0 * rms(check, clean.x) + 0.01


def test_noise_that_is_larger_than_believed_is_noticed() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    samples, _ = make_samples(changed(model, 1), seed=3, seconds=20.0, noise=Levels(tau=0.2))
    estimator = KalmanFilter(equations_of(samples, columns, LEVELS), make_freedom(columns, FREE))
    estimator.update(samples.all())
    # (0.2 / 0.05)^2 = 16, averaged over the last hundred samples of three rows.
    assert estimator.scale == pytest.approx(16.0, rel=0.4)


@pytest.mark.parametrize('seed', slow_but([0], [0, 1]))
def test_long_runs_do_not_blow_up(seed: int) -> None:
    # Motion, then rest for minutes, with nonsense in between: 8,000 samples.
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    samples, _ = make_samples(changed(model, seed), seed=seed, seconds=10.0, noise=LEVELS)
    settings = KalmanSettings(inertia_drift=0.01, friction_drift=0.01)
    estimator = KalmanFilter(equations_of(samples, columns, LEVELS), make_freedom(columns, FREE), settings)
    rows, get = samples.all(), samples.layout.get
    rest = rows.copy()
    for name in ('u', 'du', 'sign', 'use'):
        get(rest, name)[...] = 0.0
    rng, first = np.random.default_rng(seed), np.diag(estimator.P).copy()
    for turn in range(8):
        part = (rows if turn % 4 == 0 else rest).copy()
        get(part, 'time')[...] += 10.0 * turn
        if turn % 4 == 3:
            get(part, 'tau')[...] = 100.0 * rng.standard_normal(get(part, 'tau').shape)
            get(part, 'use')[...] = 1.0
        estimator.update(part)
        x = estimator.x
        assert np.isfinite(x).all()
        assert (margins(x[columns.slices['pi']].reshape(-1, 10)) > 0.0).all()
        assert (x[columns.slices['viscous']] >= 0.0).all()
        assert (x[columns.slices['coulomb']] >= 0.0).all()
        P = estimator.P
        assert (np.linalg.eigvalsh(0.5 * (P + P.T)) > 0.0).all()
        assert (np.diag(P) <= first * (1.0 + 1e-9)).all()
    estimator.model()


def test_one_by_one_is_as_all_together() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    samples, _ = make_samples(changed(model, 1), seed=3, seconds=3.0, noise=LEVELS)
    freedom, rows = make_freedom(columns, FREE), samples.all()
    equations = equations_of(Samples(model), columns, LEVELS)  # as in a node: no samples of its own
    together, single = KalmanFilter(equations, freedom), KalmanFilter(equations, freedom)
    together.update(rows)
    for k in range(len(rows)):
        single.update(rows[k : k + 1])
    assert single.samples == together.samples == len(rows)
    std = np.sqrt(np.diag(single.P))
    assert np.abs((single.s - together.s) / std).max() < 0.3  # gates and scale see other states on the way
