# SPDX-License-Identifier: Apache-2.0
"""Closed-loop output error: finds the robot by simulation, with less bias than least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from controlled_robot import closed_loop_samples, real_gains
from identification_data import QUIET, Levels, changed, equations_of, make_samples, robot, smooth_motion

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.closed_loop_settings import ClosedLoopSettings
from quad_dynamics.identification.baselines.least_squares import ols
from quad_dynamics.identification.baselines.output_error import output_error
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.freedom import make_freedom

FREE = ('inertia', 'friction')


def rms(equations: Equations, x: Any) -> float:
    return float(np.sqrt(np.mean(np.concatenate([r for _, r in equations.residuals(x)]) ** 2)))


@pytest.mark.parametrize('name', ['two_link_arm', 'mini_cheetah_leg', 'ur5', 'mini_cheetah'])
def test_finds_the_robot_from_cad(name: str) -> None:
    model = robot(name)
    truth, columns = changed(model, 1), make_columns(model)
    samples, _ = make_samples(truth, seed=3, seconds=10.0)
    solution = output_error(equations_of(samples, columns, QUIET), make_freedom(columns, FREE))
    fresh, _ = make_samples(truth, seed=99, seconds=5.0)
    check = equations_of(fresh, columns, QUIET)
    # Smoothing takes 0.1 % of the fastest part of the motion; signs of friction are those of the log.
    assert rms(check, solution.x) < 0.02 * rms(check, columns.prior)
    assert solution.method == 'output_error'


@pytest.mark.parametrize(
    ('name', 'levels'),
    [
        ('mini_cheetah_leg', Levels(q=1e-4, u=0.01, du=2.0, tau=0.02)),
        ('ur5', Levels(q=1e-4, u=0.01, du=3.0, tau=0.2)),
        ('mini_cheetah', Levels(q=1e-4, u=0.01, du=2.0, tau=0.05, force=0.5, base=0.3)),
    ],
    ids=['mini_cheetah_leg', 'ur5', 'mini_cheetah'],
)
def test_less_bias_than_least_squares(name: str, levels: Levels) -> None:
    model = robot(name)
    truth, columns = changed(model, 1), make_columns(model)
    freedom = make_freedom(columns, FREE)
    samples, _ = make_samples(truth, seed=3, seconds=20.0, noise=levels)
    equations = equations_of(samples, columns, levels)
    fresh, _ = make_samples(truth, seed=99, seconds=5.0)
    check = equations_of(fresh, columns, QUIET)
    assert rms(check, output_error(equations, freedom).x) < 0.7 * rms(check, ols(equations, freedom).x)


def test_gains_of_the_real_controller() -> None:
    # The simulated controller commands about what the real one would.
    model = robot('two_link_arm')
    truth, columns = changed(model, 1), make_columns(model)
    samples, _ = closed_loop_samples(truth, 0, (400.0, 40.0), encoder=3e-4)
    start = smooth_motion(truth, np.zeros(1), np.random.default_rng(0))[0][0]
    kp, kd = real_gains(truth, start, (400.0, 40.0))
    settings = ClosedLoopSettings(kp=tuple(kp.tolist()), kd=tuple(kd.tolist()))
    equations = equations_of(samples, columns, Levels(tau=0.05))
    freedom = make_freedom(columns, FREE)
    fresh, _ = make_samples(truth, seed=99, seconds=5.0)
    check = equations_of(fresh, columns, QUIET)
    assert rms(check, output_error(equations, freedom, settings).x) < rms(check, ols(equations, freedom).x)


def test_start_is_where_it_begins() -> None:
    model = robot('mini_cheetah_leg')
    truth, columns = changed(model, 1), make_columns(model)
    samples, x = make_samples(truth, seed=3, seconds=5.0)
    equations, freedom = equations_of(samples, columns, QUIET), make_freedom(columns, FREE)
    near, far = output_error(equations, freedom, start=x), output_error(equations, freedom)
    assert rms(equations, near.x) < 1e-2 * rms(equations, columns.prior)
    assert rms(equations, near.x) <= rms(equations, far.x) < 1e-2 * rms(equations, columns.prior)


@pytest.mark.parametrize('mode', ['projection', 'base'])
def test_modes_in_which_nothing_can_be_simulated_say_so(mode: str) -> None:
    model = robot('mini_cheetah')
    columns = make_columns(model)
    samples, _ = make_samples(model, seed=3, seconds=1.0)
    with pytest.raises(ArgumentError, match=f"joints cannot be simulated in the mode '{mode}'"):
        output_error(equations_of(samples, columns, QUIET, mode), make_freedom(columns, FREE))


def test_nothing_to_learn_is_said() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    with pytest.raises(ArgumentError, match='no samples'):
        output_error(equations_of(Samples(model), columns, QUIET), make_freedom(columns, FREE))


def test_same_input_same_output() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    samples, _ = make_samples(changed(model, 1), seed=3, seconds=3.0, noise=Levels(tau=0.05, du=0.5))
    equations, freedom = equations_of(samples, columns, QUIET), make_freedom(columns, FREE)
    np.testing.assert_array_equal(output_error(equations, freedom).x, output_error(equations, freedom).x)
