# SPDX-License-Identifier: Apache-2.0
"""Instrumental variables: less bias than least squares where the motion is noisy; smoothing, simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from controlled_robot import closed_loop_samples
from identification_data import QUIET, Levels, changed, equations_of, make_samples, robot
from scipy.signal import savgol_filter
from slow_variants import slow_but

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.closed_loop import ClosedLoop
from quad_dynamics.identification.baselines.closed_loop_settings import ClosedLoopSettings
from quad_dynamics.identification.baselines.instrumental import instrumental, least_change
from quad_dynamics.identification.baselines.least_squares import ols
from quad_dynamics.identification.baselines.smoothing import motion_cutoff, segments, smooth
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.base_parameters import find_base_parameters
from quad_dynamics.identification.solvers.freedom import make_freedom

FREE = ('inertia', 'friction')


def rms(equations: Equations, x: Any) -> float:
    return float(np.sqrt(np.mean(np.concatenate([r for _, r in equations.residuals(x)]) ** 2)))


# ---------------------------------------------------------------- bias


TWO_LINK_ARM = ('two_link_arm', 'fixed', Levels(q=1e-4, u=0.01, du=3.0, tau=0.05))
PROJECTION = ('mini_cheetah', 'projection', Levels(q=1e-4, u=0.01, du=2.0, tau=0.05, base=0.3))


@pytest.mark.parametrize(
    ('name', 'mode', 'levels'),
    slow_but(
        [TWO_LINK_ARM, PROJECTION],
        [
            TWO_LINK_ARM,
            ('mini_cheetah_leg', 'fixed', Levels(q=1e-4, u=0.01, du=2.0, tau=0.02)),
            ('ur5', 'fixed', Levels(q=1e-4, u=0.01, du=3.0, tau=0.2)),
            ('mini_cheetah', 'forces', Levels(q=1e-4, u=0.01, du=2.0, tau=0.05, force=0.5, base=0.3)),
            PROJECTION,
            ('mini_cheetah', 'base', Levels(q=1e-4, u=0.01, du=2.0, tau=0.05, force=0.5, base=0.3)),
        ],
    ),
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_less_bias_than_least_squares(name: str, mode: str, levels: Levels) -> None:
    # The mean of estimates from several data sets: noise is less than in each, a bias is not.
    model = robot(name)
    truth, columns = changed(model, 1), make_columns(model)
    freedom = make_freedom(columns, FREE)
    seeds = range(3, 5 if model.floating_base else 8)
    found = {'ols': [], 'iv': []}
    for seed in seeds:
        samples, _ = make_samples(truth, seed, seconds=12.0, noise=levels, feet=mode != 'projection')
        equations = equations_of(samples, columns, levels, mode)
        found['ols'].append(ols(equations, freedom).x)
        found['iv'].append(instrumental(equations, freedom).x)
    fresh, _ = make_samples(truth, seed=99, seconds=5.0)
    check = equations_of(fresh, columns, QUIET, mode)
    bias = {method: rms(check, np.mean(estimates, axis=0)) for method, estimates in found.items()}
    # 2.5 to 8 times less was seen; what is left is mostly noise of few data sets.
    assert bias['iv'] < 0.6 * bias['ols']


@pytest.mark.parametrize('name', slow_but(['two_link_arm'], ['mini_cheetah_leg', 'two_link_arm']))
def test_noise_that_went_through_a_controller(name: str) -> None:
    model = robot(name)
    truth, columns = changed(model, 1), make_columns(model)
    freedom = make_freedom(columns, FREE)
    errors = {'ols': [], 'iv': []}
    fresh, _ = make_samples(truth, seed=99, seconds=5.0)
    check = equations_of(fresh, columns, QUIET)
    for seed in range(3):
        samples, _ = closed_loop_samples(truth, seed, (400.0, 40.0), encoder=1e-3)
        equations = equations_of(samples, columns, Levels(tau=0.05))
        errors['ols'].append(rms(check, ols(equations, freedom).x))
        errors['iv'].append(rms(check, instrumental(equations, freedom).x))
    assert np.mean(errors['iv']) < 0.75 * np.mean(errors['ols'])


@pytest.mark.parametrize('name', ['ur5', 'mini_cheetah'])
def test_without_noise_it_is_the_truth(name: str) -> None:
    model = robot(name)
    truth, columns = changed(model, 1), make_columns(model)
    samples, _ = make_samples(truth, seed=3, seconds=10.0)
    equations = equations_of(samples, columns, QUIET)
    solution = instrumental(equations, make_freedom(columns, FREE))
    # The weak prior is all that differs; it weighs as the noise does, which is next to none.
    assert rms(equations, solution.x) < 1e-4 * rms(equations, columns.prior)
    assert solution.method == 'iv'
    assert 'simulated' in solution.choices[-1]


def test_intervals_hold_the_truth() -> None:
    model, levels = robot('mini_cheetah_leg'), Levels(tau=0.05)
    truth, columns = changed(model, 1), make_columns(model)
    inside = []
    for seed in range(10):
        samples, x = make_samples(truth, seed, seconds=5.0, noise=levels)
        solution = instrumental(equations_of(samples, columns, levels), make_freedom(columns, FREE))
        part = slice(columns.slices['viscous'].start, columns.slices['coulomb'].stop)
        inside += list((solution.low[part] <= x[part]) & (x[part] <= solution.high[part]))
    # 60 intervals of 95 %: 57 +- 1.7 are expected.
    assert np.mean(inside) > 0.85


def test_nothing_to_learn_is_said() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    with pytest.raises(ArgumentError, match='no samples'):
        instrumental(equations_of(Samples(model), columns, QUIET), make_freedom(columns, FREE))


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize('tie', [False, True], ids=['free', 'tied'])
def test_least_change_changes_base_parameters_by_what_is_asked(tie: bool) -> None:
    model = robot('mini_cheetah')
    columns = make_columns(model)
    freedom = make_freedom(columns, FREE, tie)
    samples, _ = make_samples(model, seed=3, seconds=5.0)
    base = find_base_parameters(equations_of(samples, columns, QUIET).accumulate()[0], freedom)
    N, weak = least_change(base)
    # Rounding: base parameters are sums of unknowns that differ by up to 1e5.
    np.testing.assert_allclose(base.B @ N[freedom.lead], np.eye(base.rank), atol=1e-6)
    assert (np.linalg.eigvalsh(0.5 * (weak + weak.T)) > 0.0).all()


@pytest.mark.parametrize('name', ['mini_cheetah_leg', 'ur5', 'mini_cheetah'])
def test_simulation_with_the_true_model_follows_the_log(name: str) -> None:
    model = changed(robot(name), 1)
    samples, x = make_samples(model, seed=3, seconds=5.0, rate=200.0)
    equations = equations_of(samples, make_columns(model), QUIET)
    loop = ClosedLoop(equations, ClosedLoopSettings(cutoff=60.0))  # nothing to smooth
    get = samples.layout.get
    (logged, simulated), *more = loop.simulated(x)
    assert not more
    # Between samples all is interpolated: (5 ms)^2 / 8 of second derivatives, here some 1e3 rad/s^4.
    np.testing.assert_allclose(get(simulated, 'du'), get(logged, 'du'), atol=0.03)
    np.testing.assert_allclose(get(simulated, 'q'), get(logged, 'q'), atol=1e-5)


def test_simulation_does_not_depend_on_how_it_is_cut() -> None:
    # The loop forgets: pieces that are simulated together are as one long simulation.
    model = robot('mini_cheetah_leg')
    samples, _ = make_samples(changed(model, 1), seed=3, seconds=4.0, noise=Levels(tau=0.05, q=1e-3))
    columns = make_columns(model)
    equations = equations_of(samples, columns, QUIET)
    rows = samples.all()
    late = Samples(model)
    late.append(rows[137:])
    parts = [
        ClosedLoop(part).simulated(columns.prior) for part in (equations, equations_of(late, columns, QUIET))
    ]
    whole, rest = (np.concatenate([simulated for _, simulated in part]) for part in parts)
    # Smoothing differs near the end that was cut off; e^-8 is left of how the loop began.
    np.testing.assert_allclose(
        samples.layout.get(rest, 'q')[100:], samples.layout.get(whole, 'q')[237:], atol=2e-4
    )


def test_wrong_gains_are_refused() -> None:
    model = robot('mini_cheetah_leg')
    samples, _ = make_samples(model, seed=3, seconds=2.0)
    equations = equations_of(samples, make_columns(model), QUIET)
    with pytest.raises(ArgumentError, match='kp has 2 numbers; expected one for each of 3 joints'):
        ClosedLoop(equations, ClosedLoopSettings(kp=(1.0, 2.0)))


def test_model_that_cannot_move_runs_away() -> None:
    model = robot('mini_cheetah_leg')
    samples, _ = make_samples(model, seed=3, seconds=2.0)
    columns = make_columns(model)
    loop = ClosedLoop(equations_of(samples, columns, QUIET))
    x = columns.prior.copy()
    x[columns.slices['pi']] *= -1.0  # negative masses
    x[columns.slices['rotor']] *= -1.0
    with pytest.raises(ArgumentError, match=r"the simulation runs away at .* joint 'FL_"):
        list(loop.simulated(x))


# ---------------------------------------------------------------- smoothing


def test_stretches_are_the_blocks() -> None:
    model = robot('two_link_arm')
    source, _ = make_samples(model, seed=0, seconds=120.0)
    rows = source.all()
    source.layout.get(rows, 'segment')[...] = np.repeat([0, 1, 2, 3], [5000, 1, 4000, 2999])
    samples = Samples(model)
    for part in np.array_split(rows, 7):
        samples.append(part)
    parts = list(segments(samples, most=1500))
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    assert all(len(np.unique(samples.layout.get(part, 'segment'))) == 1 for part in parts)
    assert max(len(part) for part in parts) <= 1500


def test_cutoff_follows_the_motion() -> None:
    model = robot('two_link_arm')
    samples, _ = make_samples(model, seed=0, seconds=30.0, noise=Levels(u=0.05))
    # Sines of 0.1 to 1.5 Hz; four times the highest that matters.
    assert 2.0 < motion_cutoff(samples, model.nj) < 8.0
    t = np.arange(3000) / 100.0
    slow, fast = np.sin(2 * np.pi * 1.0 * t)[:, None], np.sin(2 * np.pi * 30.0 * t)[:, None]
    np.testing.assert_allclose(smooth(slow, 0.01, 5.0), slow, atol=2e-3)
    assert np.abs(smooth(fast, 0.01, 5.0)[50:-50]).max() < 0.1
    reference = savgol_filter(slow[:, 0], 41, 5, mode='interp')
    np.testing.assert_allclose(smooth(slow, 0.01, 5.0)[:, 0], reference, atol=1e-12)
    np.testing.assert_array_equal(smooth(slow[:3], 0.01, 5.0), slow[:3])  # too short
