# SPDX-License-Identifier: Apache-2.0
"""Limits of what is plausible: around the model, kept by the solver, set by the user."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identification_data import TYPICAL, changed, equations_of, make_samples, robot
from scipy.optimize import minimize

import quad_dynamics as qd
from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.cli.identify_command import _mass
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.solvers.confidence import find_confidence
from quad_dynamics.identification.solvers.consistent import solve_consistent
from quad_dynamics.identification.solvers.consistent_problem import ConsistentProblem
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.link_extents import link_extents
from quad_dynamics.identification.solvers.plausible import (
    MassRange,
    immobile_mass,
    make_limits,
    mass_belief,
    root_mass,
    within,
)
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.pseudo_inertia import pseudo_inertia
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.plausibility import implausible

TRUST = 0.3


def masses_of(columns: Any, x: Any) -> Any:
    return x[columns.slices['pi']][::10]


@pytest.fixture(scope='module')
def leg() -> Any:
    return robot('mini_cheetah_leg')


@pytest.mark.parametrize('name', ['mini_cheetah', 'go2', 'two_link_arm', 'panda'])
def test_the_model_is_inside(name: str) -> None:
    model = robot(name)
    columns = make_columns(model)
    limits = make_limits(columns, columns.prior, TRUST)
    assert (limits.slack(columns.prior) > 0.0).all()
    assert not limits.reached(columns.prior)


@pytest.mark.parametrize('name', ['mini_cheetah', 'go2'])
def test_centres_of_mass_and_joints_are_inside_the_boxes(name: str) -> None:
    model = robot(name)
    boxes = link_extents(model)
    pi = model.pi.reshape(-1, 10)
    com = pi[:, 1:4] / pi[:, :1]
    assert (boxes[:, 0] < com).all()
    assert (com < boxes[:, 1]).all()
    assert (boxes[:, 1] - boxes[:, 0] < 1.0).all()  # no part of these robots is a metre long
    calf = model.body_names.index('FL_calf' if 'FL_calf' in model.body_names else 'FL_shank')
    foot = model.frames[model.foot_names[0]].p
    assert (boxes[calf, 0] < foot).all()
    assert (foot < boxes[calf, 1]).all()


def test_solution_keeps_the_limits_and_is_the_best_that_does(leg: Any) -> None:
    """Against a general solver (SLSQP) of the same problem, in the masses alone."""
    columns = make_columns(leg)
    heavy = leg.with_pi(4.0 * leg.pi)  # far beyond what is plausible
    samples, _ = make_samples(heavy, 0, 4.0, 100.0)
    normal = equations_of(samples, columns, TYPICAL).accumulate()[0]
    names = tuple(name for name in columns.names if name.endswith('.m'))
    freedom = make_freedom(columns, names, trust=TRUST)
    freedom = freedom.only({'inertia'})
    x = solve_consistent(normal, freedom, 0.0, friction_scales(columns))
    limits = freedom.limits
    assert limits is not None
    assert limits.slack(x).min() > -1e-9
    assert any('robot' in text for text in limits.reached(x))

    def cost(z: Any) -> float:
        y = freedom.x(z)
        return float(y @ normal.YtY @ y - 2.0 * y @ normal.Yty) / normal.yty

    def real(z: Any) -> Any:
        P = pseudo_inertia(freedom.x(z)[columns.slices['pi']].reshape(-1, 10))
        return np.linalg.eigvalsh(P)[:, 0] * 1e6

    kept = [{'type': 'ineq', 'fun': lambda z: limits.slack(freedom.x(z))}, {'type': 'ineq', 'fun': real}]
    best = minimize(cost, np.zeros(freedom.nz), constraints=kept, method='SLSQP', options={'ftol': 1e-14})
    assert cost((x - freedom.x0)[freedom.lead]) == pytest.approx(best.fun, rel=1e-4)


def test_a_robot_that_differs_as_robots_do_reaches_no_limit() -> None:
    model = robot('mini_cheetah')
    columns = make_columns(model)
    samples, _ = make_samples(changed(model, 3, 0.1), 3, 6.0, 60.0)
    normal = equations_of(samples, columns, TYPICAL).accumulate()[0]
    x = solve_consistent(normal, make_freedom(columns, trust=TRUST), 10.0, friction_scales(columns))
    free = solve_consistent(normal, make_freedom(columns), 10.0, friction_scales(columns))
    np.testing.assert_allclose(x, free, atol=1e-6)


def test_mass_that_the_user_gives(leg: Any) -> None:
    columns = make_columns(leg)
    samples, _ = make_samples(changed(leg, 1, 0.3), 1, 4.0, 100.0)
    normal = equations_of(samples, columns, TYPICAL).accumulate()[0]
    fixed = immobile_mass(columns)
    middle = fixed + 1.3 * masses_of(columns, columns.prior).sum()
    given = MassRange(middle - 0.01, middle + 0.01)
    freedom = make_freedom(columns, trust=TRUST, mass=given)
    assert any('scaled by 1.3' in note for note in freedom.notes)
    x = solve_consistent(normal, freedom, 10.0, friction_scales(columns))
    assert given.low - 1e-9 < masses_of(columns, x).sum() + fixed < given.high + 1e-9


def test_a_mass_below_that_of_what_is_held() -> None:
    columns = make_columns(qd.load_model('go2', floating_base=False))
    whole = qd.load_model('go2').total_mass
    assert immobile_mass(columns) + masses_of(columns, columns.prior).sum() == pytest.approx(whole)
    with pytest.raises(ArgumentError, match=r'what does not move has 7\.277 kg; expected the mass'):
        within(columns, columns.prior, MassRange(1.0, 2.0))


@pytest.mark.parametrize(
    ('text', 'low', 'high'), [('15.0+-0.5', 14.5, 15.5), ('15±1', 14.0, 16.0), ('10', 9.7, 10.3)]
)
def test_mass_on_the_command_line(text: str, low: float, high: float) -> None:
    assert (_mass(text).low, _mass(text).high) == pytest.approx((low, high))


@pytest.mark.parametrize('text', ['heavy', '-3', '5+-7', '0', '1e400', 'nan'])
def test_no_mass(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match='is not a mass; expected a value'):
        _mass(text)


def test_tied_legs_keep_limits() -> None:
    model = robot('mini_cheetah')
    columns = make_columns(model)
    freedom = make_freedom(columns, tie_legs=True, trust=TRUST)
    freedom = replace(freedom, optional=frozenset())
    samples, _ = make_samples(changed(model, 2, 0.2), 2, 3.0, 60.0)
    normal = equations_of(samples, columns, TYPICAL).accumulate()[0]
    x = solve_consistent(normal, freedom, 10.0, friction_scales(columns))
    assert freedom.limits is not None
    assert freedom.limits.slack(x).min() > 0.0


# ---------------------------------------------------------------- what is known of the whole robot


def test_the_mass_of_a_fixed_robot_is_known_to_half_its_limit() -> None:
    model = robot('panda')
    columns = make_columns(model)
    row = mass_belief(columns, columns.prior, TRUST)
    limits = make_limits(columns, columns.prior, TRUST)
    heaviest = limits.texts.index(next(text for text in limits.texts if text.startswith('mass of the robot')))
    assert row is not None
    assert row.shape == (1, columns.size)
    # room below: 1 - 1 / (1 + error) of the mass
    mass = float(masses_of(columns, columns.prior).sum())
    error = 1.0 / (1.0 - limits.room[heaviest] / mass) - 1.0
    assert 1.0 / row[0].max() == pytest.approx(0.5 * error * mass)
    assert mass_belief(make_columns(robot('go2')), make_columns(robot('go2')).prior, TRUST) is None


def test_a_belief_counts_like_a_row_of_data(leg: Any) -> None:
    """One measurement of the mass with this standard deviation, beside the others."""
    columns = make_columns(leg)
    samples, _ = make_samples(changed(leg, 1, 0.3), 0, 4.0, 100.0)
    normal = equations_of(samples, columns, TYPICAL).accumulate()[0]
    believing = make_freedom(columns, ('inertia',), trust=TRUST)
    assert believing.beliefs is not None
    [row] = believing.beliefs
    y = float(row @ believing.x0)
    measured = NormalEquations(
        normal.YtY + np.outer(row, row), normal.Yty + y * row, normal.yty + y * y, normal.n + 1
    )
    scales = friction_scales(columns)
    x = solve_consistent(normal, believing, 10.0, scales)
    expected = solve_consistent(measured, replace(believing, beliefs=None), 10.0, scales)
    without = solve_consistent(normal, replace(believing, beliefs=None), 10.0, scales)
    np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-9)
    off = [abs(float(row @ (each - believing.x0))) for each in (x, without)]
    assert off[0] < 0.7 * off[1]


def test_the_mass_is_as_sure_as_the_belief(leg: Any) -> None:
    columns = make_columns(leg)
    samples, _ = make_samples(changed(leg, 1, 0.3), 0, 4.0, 100.0)
    equations = equations_of(samples, columns, TYPICAL)
    normal = equations.accumulate()[0]
    freedom = make_freedom(columns, ('inertia',), trust=TRUST)
    deviations = []
    for each in (freedom, replace(freedom, beliefs=None)):
        x = solve_consistent(normal, each, 10.0, friction_scales(columns))
        problem = ConsistentProblem(normal, each, friction_scales(columns), 1.0)
        sure = find_confidence(problem, normal, x, 10.0, None, None, each)
        assert freedom.beliefs is not None
        row = freedom.beliefs[0] @ each.T
        deviations.append(float(np.sqrt(row @ sure.covariance @ row)))
    # in standard deviations of the belief; the spread of models is estimated, and not that of the weight
    assert deviations[0] < 1.2
    assert deviations[0] < 0.8 * deviations[1]


def test_limits_that_data_hardly_go_beyond_are_no_warning(leg: Any) -> None:
    columns = make_columns(leg)
    limits = make_limits(columns, columns.prior, TRUST)
    nothing = np.full(columns.size, np.nan)
    no = np.zeros(columns.size, dtype=bool)
    at = columns.prior.copy()
    at[columns.slices['pi']] *= 1.096  # where the limit of the whole robot is
    warned = []
    for factor in (1.10, 1.20):
        asked = columns.prior.copy()
        asked[columns.slices['pi']] *= factor
        solution = Solution(columns, at, ~no, no, nothing, nothing, nothing, asked=asked)
        warned.append(
            any('the data ask for a robot beyond' in text for text in implausible(solution, limits))
        )
    assert warned == [False, True]


def heavier(model: Any, factor: float) -> Solution:
    """A solution whose bodies are all heavier than the model says."""
    columns = make_columns(model)
    x = columns.prior.copy()
    x[columns.slices['pi']] *= factor
    nothing, no = np.full(columns.size, np.nan), np.zeros(columns.size, dtype=bool)
    return Solution(columns, x, ~no, no, nothing, nothing, nothing)


def test_a_mass_that_changes_is_one_quantity() -> None:
    """Percentage and kilograms are those of everything that moves; the fixed base is told apart."""
    solution = heavier(robot('ur5'), 1.25)
    before, after = solution.moving_masses
    root = root_mass(solution.columns.model)
    assert root > 1.0
    assert after == pytest.approx(1.25 * before)
    (text,) = implausible(solution, None)
    assert f'moving links changes by +25 %, from {before:.4g} to {after:.4g} kg' in text
    assert f'(with the fixed base: {before + root:.4g} to {after + root:.4g} kg)' in text
    assert 'Weigh the robot, and give --mass' in text
    (text,) = implausible(heavier(qd.load_model('go2'), 1.25), None)
    assert re.search(r'the mass of the robot changes by \+25 %, from [\d.]+ to [\d.]+ kg\. Weigh', text)


@pytest.mark.parametrize(
    ('low', 'high', 'expected'),
    [(1.2, 1.3, 'but the URDF has'), (0.5, 1.5, 'which allows that. Weigh the robot more accurately')],
)
def test_a_mass_that_was_given_is_not_asked_for(leg: Any, low: float, high: float, expected: str) -> None:
    solution = heavier(leg, 1.25)
    whole = solution.moving_masses[0] + root_mass(leg)
    (text,) = implausible(solution, None, MassRange(low * whole, high * whole))
    assert 'give --mass' not in text
    assert f'--mass is {low * whole:.4g} to {high * whole:.4g} kg' in text
    assert expected in text
