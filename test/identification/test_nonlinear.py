# SPDX-License-Identifier: Apache-2.0
"""Logarithmic Cholesky factors, the chart of all free unknowns, fits in it, Stribeck velocity and delay."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from identification_data import QUIET, Levels, changed, equations_of, make_samples, robot

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.chart import Chart
from quad_dynamics.identification.baselines.log_cholesky import LogCholesky
from quad_dynamics.identification.baselines.nonlinear import (
    NonlinearSettings,
    fit_normal,
    nonlinear,
    root_form,
)
from quad_dynamics.identification.baselines.stribeck import with_stribeck_velocity
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.pseudo_inertia import margins, pi_of_pseudo_inertia

SEEDS = [0, 1, 2]


def central_difference(f: Any, s: Any, h: float = 1e-6) -> Any:
    return np.stack([(f(s + h * e) - f(s - h * e)) / (2.0 * h) for e in np.eye(len(s))], axis=-1)


def rms(equations: Equations, x: Any) -> float:
    return float(np.sqrt(np.mean(np.concatenate([r for _, r in equations.residuals(x)]) ** 2)))


# ---------------------------------------------------------------- one body


@pytest.mark.parametrize('seed', SEEDS)
def test_factors_are_those_of_pinocchio(seed: int) -> None:
    # At the prior P0 = 1 our relative factors are the absolute ones that Pinocchio has.
    theta = np.random.default_rng(seed).normal(size=10) * 0.5
    body = LogCholesky(pi_of_pseudo_inertia(np.eye(4))[None], ['ball'])
    reference = pin.LogCholeskyParameters(theta)
    np.testing.assert_allclose(
        body.pi(theta[None])[0], reference.toDynamicParameters(), rtol=1e-12, atol=1e-14
    )
    jacobian = reference.calculateJacobian()
    np.testing.assert_allclose(body.jacobian(theta[None])[0], jacobian, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize('seed', SEEDS)
def test_any_numbers_are_a_body_that_can_exist(seed: int) -> None:
    model = robot('mini_cheetah')
    bodies = LogCholesky(model.pi.reshape(-1, 10), model.body_names)
    theta = np.random.default_rng(seed).normal(size=(model.nb, 10)) * 1.5
    pi = bodies.pi(theta)
    assert (margins(pi) > 0.0).all()
    # Rounding of a round trip grows with the condition of P, e^(2 * 2 * 1.5 * 3) at most.
    np.testing.assert_allclose(bodies.theta(pi), theta, atol=1e-6)
    np.testing.assert_allclose(bodies.pi(np.zeros_like(theta)), bodies.pi0, rtol=1e-13, atol=1e-16)


def test_impossible_prior_is_refused_by_name() -> None:
    pi = robot('mini_cheetah_leg').pi.reshape(-1, 10).copy()
    pi[1, 4] = 10.0  # Ixx larger than Iyy + Izz
    with pytest.raises(ArgumentError, match="body 'FL_thigh' is not physically consistent"):
        LogCholesky(pi, robot('mini_cheetah_leg').body_names)


# ---------------------------------------------------------------- all unknowns


@pytest.mark.parametrize(
    ('free', 'tie'),
    [((), False), (('inertia', 'friction'), True), (('trunk', 'friction'), False), (('friction',), True)],
    ids=['all', 'tied', 'payload', 'friction'],
)
def test_chart(free: tuple[str, ...], tie: bool) -> None:
    columns = make_columns(robot('mini_cheetah'))
    freedom = make_freedom(columns, free, tie)
    chart = Chart(freedom)
    s = np.random.default_rng(0).normal(size=chart.size) * 0.2
    assert chart.size == freedom.nz == len(chart.names)
    x = chart.x(s)
    assert np.array_equal(x[~freedom.free], freedom.x0[~freedom.free])
    assert (margins(x[columns.slices['pi']].reshape(-1, 10)) > 0.0).all()
    np.testing.assert_allclose(chart.s(x), s, atol=1e-12)
    np.testing.assert_allclose(chart.x(np.zeros_like(s)), freedom.x0, rtol=1e-12, atol=1e-14)
    # Error of central differences: h^2 of third derivatives of order 1, and rounding 1e-16 / h.
    np.testing.assert_allclose(chart.jacobian(s), central_difference(chart.x, s), atol=1e-8)
    # Tied bodies of a robot whose legs are alike stay alike.
    z = np.linalg.lstsq(freedom.T, x - freedom.x0, rcond=None)[0]
    np.testing.assert_allclose(freedom.T @ z, x - freedom.x0, atol=1e-12)


def test_tied_legs_that_differ_stay_consistent() -> None:
    model = changed(robot('mini_cheetah'), 5, amount=0.5)
    chart = Chart(make_freedom(make_columns(model), ('inertia',), tie_legs=True))
    s = np.random.default_rng(1).normal(size=chart.size)
    assert (margins(chart.x(s)[: 10 * model.nb].reshape(-1, 10)) > 0.0).all()
    np.testing.assert_allclose(chart.x(0.0 * s), chart.freedom.x0, rtol=1e-10, atol=1e-13)


def test_body_that_is_free_in_part_is_refused() -> None:
    columns = make_columns(robot('mini_cheetah'))
    with pytest.raises(ArgumentError, match="body 'FL_calf' is free in part"):
        Chart(make_freedom(columns, ('FL_calf.m',)))


def test_bounds_are_those_of_friction() -> None:
    columns = make_columns(robot('mini_cheetah'))
    chart = Chart(make_freedom(columns, ('friction', 'offset')))
    x = chart.x(np.where(np.isfinite(chart.lower), chart.lower, -1.0))
    assert np.abs(x[columns.slices['viscous']]).max() == np.abs(x[columns.slices['coulomb']]).max() == 0.0
    assert (x[columns.slices['offset']] == -1.0).all()


# ---------------------------------------------------------------- fits


def test_root_form_is_the_sum_of_squares() -> None:
    model = robot('mini_cheetah_leg')
    samples, x_true = make_samples(changed(model, 1), seed=3, seconds=5.0, noise=Levels(tau=0.1))
    normal = equations_of(samples, make_columns(model), Levels(tau=0.1)).accumulate()[0]
    R, d, rest = root_form(normal)
    x = x_true + 0.1
    plain = normal.yty - 2.0 * x @ normal.Yty + x @ normal.YtY @ x
    np.testing.assert_allclose(np.sum((R @ x - d) ** 2) + rest, plain, rtol=1e-9)


@pytest.mark.parametrize('name', ['mini_cheetah_leg', 'ur5', 'mini_cheetah'])
def test_fit_finds_the_robot(name: str) -> None:
    model = robot(name)
    levels = Levels(tau=0.02, force=0.1)
    truth = changed(model, 1)
    samples, x_true = make_samples(truth, seed=3, seconds=20.0, noise=levels)
    fresh, _ = make_samples(truth, seed=4, seconds=5.0)
    columns = make_columns(model)
    solution = nonlinear(
        equations_of(samples, columns, levels), make_freedom(columns, ('inertia', 'friction'))
    )
    check = equations_of(fresh, columns, QUIET)
    # CAD errors are 30 to 100 times as large as noise over the root of the number of samples leaves.
    assert rms(check, solution.x) < 0.03 * rms(check, columns.prior)
    assert (margins(solution.part('pi').reshape(-1, 10)) > 0.0).all()
    coulomb = columns.slices['coulomb']
    np.testing.assert_allclose(solution.x[coulomb], x_true[coulomb], rtol=0.05)
    assert solution.model().total_mass > 0.0
    # z-scores of all friction: with 95 % intervals about one of twenty is outside.
    part = slice(columns.slices['viscous'].start, coulomb.stop)
    z = (solution.x - x_true)[part] / solution.std[part]
    assert np.mean(np.abs(z) < 1.96) > 0.8


def test_result_is_a_minimum() -> None:
    model = robot('mini_cheetah_leg')
    samples, _ = make_samples(changed(model, 1), seed=3, seconds=5.0, noise=Levels(tau=0.1))
    columns = make_columns(model)
    chart = Chart(make_freedom(columns, ('inertia', 'friction')))
    normal = equations_of(samples, columns, Levels(tau=0.1)).accumulate()[0]
    spread = chart.spread(0.3)
    fit = fit_normal(normal, chart, spread)

    def cost(s: Any) -> Any:
        x = chart.x(s)
        data = normal.yty - 2.0 * x @ normal.Yty + x @ normal.YtY @ x
        return np.array(0.5 * data + 0.5 * np.sum((s / spread) ** 2))

    assert abs(fit.cost - cost(fit.s)) < 1e-9 * fit.cost
    gradient = central_difference(cost, fit.s) * spread
    inside = fit.s > chart.lower + 1e-6
    # Rounding of the cost, some 1e-12, over h = 1e-6.
    assert np.abs(gradient[inside]).max() < 1e-4


def test_pure_noise_still_gives_real_bodies() -> None:
    model = robot('mini_cheetah_leg')
    samples, _ = make_samples(model, seed=1, seconds=2.0, noise=Levels(tau=20.0))
    columns = make_columns(model)
    equations = equations_of(samples, columns, Levels(tau=0.01))  # and it is believed
    solution = nonlinear(equations, make_freedom(columns, ('inertia', 'friction')))
    assert (margins(solution.part('pi').reshape(-1, 10)) > 0.0).all()
    assert (solution.part('viscous') >= 0.0).all()
    assert (solution.part('coulomb') >= 0.0).all()


# ---------------------------------------------------------------- what is not linear


def test_stribeck_velocity_is_found() -> None:
    model = robot('mini_cheetah_leg')
    levels = Levels(tau=0.01)
    samples, x_true = make_samples(
        changed(model, 1), 3, noise=levels, extra={'stribeck': 0.2}, stribeck_velocity=0.3
    )
    columns = make_columns(model)  # believes 0.1
    freedom = make_freedom(columns, ('inertia', 'friction', 'stribeck'))
    solution = nonlinear(equations_of(samples, columns, levels), freedom)
    assert solution.columns.stribeck_velocity == pytest.approx(0.3, rel=0.05)
    part = columns.slices['stribeck']
    np.testing.assert_allclose(solution.x[part], x_true[part], rtol=0.1)


@pytest.mark.parametrize('delay_ms', [-3, 2])
def test_delay_is_found(delay_ms: int) -> None:
    # It is linear in x for small delays, by the rate of the torques; there are no steps of friction in these.
    model = robot('mini_cheetah_leg').with_friction(None, np.zeros(3))
    truth = changed(model, 1).with_friction(None, np.zeros(3))
    fine, _ = make_samples(truth, seed=3, seconds=20.0, rate=1000.0)
    rows, get = fine.all(), fine.layout.get
    late, tau = rows[10:-10].copy(), get(rows, 'tau')
    get(late, 'tau')[...] = tau[10 - delay_ms : len(rows) - 10 - delay_ms]
    get(late, 'dtau')[...] = (tau[15 - delay_ms :][: len(late)] - tau[5 - delay_ms :][: len(late)]) / 0.01
    samples = Samples(model)
    samples.append(late[::10])
    columns = make_columns(model)
    freedom = make_freedom(columns, ('inertia', 'viscous'))
    solution = nonlinear(equations_of(samples, columns, QUIET), freedom)
    # What is left are second derivatives: 3 ms squared at up to 1.5 Hz, against the first ones.
    assert solution.part('delay')[0] == pytest.approx(1e-3 * delay_ms, abs=1e-4)


def test_only_the_right_velocity_explains_stribeck_friction() -> None:
    model = robot('mini_cheetah_leg')
    samples, x = make_samples(model, seed=3, seconds=2.0, extra={'stribeck': 0.2}, stribeck_velocity=0.3)
    equations = equations_of(samples, make_columns(model), QUIET)
    assert rms(with_stribeck_velocity(equations, 0.3), x) < 1e-12
    assert rms(equations, x) > 1e-3


def test_nothing_free_is_refused() -> None:
    model = robot('two_link_arm')
    samples, _ = make_samples(model, seed=3, seconds=1.0)
    columns = make_columns(model)
    freedom = dataclasses.replace(make_freedom(columns, ('friction',)).only(()), optional=frozenset())
    with pytest.raises(ArgumentError, match='nothing is free'):
        nonlinear(equations_of(samples, columns, QUIET), freedom)
    with pytest.raises(ArgumentError, match='stribeck_low'):
        NonlinearSettings(stribeck_low=2.0)
