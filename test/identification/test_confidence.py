# SPDX-License-Identifier: Apache-2.0
"""Confidence: intervals hold what they promise, choices are those that help, and what is missing is said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from closeness import assert_close
from identification_data import Levels, changed, equations_of, make_samples, robot
from identification_motions import coloured

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.discrepancy import discrepancy_scores
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.base_parameters import find_base_parameters
from quad_dynamics.identification.solvers.freedom import Freedom, make_freedom
from quad_dynamics.identification.solvers.missing import what_is_missing
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import SolveSettings, solve

LEVELS = Levels(tau=0.05, force=0.5, base=0.02)
RATE = 100.0


def noisy(samples: Samples, model: Any, seed: int, memory: float) -> Samples:
    """The samples with noise on torques and forces that depends on itself for a while [s]."""
    rng = np.random.default_rng(seed + 5000)
    rows, get = samples.all(), samples.layout.get
    for name, level in (('tau', LEVELS.tau), ('force', LEVELS.force)):
        part = get(rows, name)
        part += level * coloured(*part.shape, memory * RATE, rng)
    result = Samples(model)
    result.append(rows)
    return result


def identify(
    name: str,
    seed: int,
    amount: float = 0.3,
    seconds: float = 20.0,
    memory: float = 0.03,
    free: Iterable[str] = (),
    extra: dict[str, float] | None = None,
) -> tuple[Solution, Floats, Equations, Freedom]:
    """A robot that differs from its model, identified; and the truth."""
    model = robot(name)
    samples, truth = make_samples(changed(model, seed, amount), seed, seconds, RATE, extra=extra)
    equations = equations_of(noisy(samples, model, seed, memory), make_columns(model), LEVELS)
    freedom = make_freedom(equations.columns, tuple(free))
    return solve(equations.accumulate(5), equations, equations.columns, freedom), truth, equations, freedom


def true_combinations(solution: Solution, truth: Floats, equations: Equations, freedom: Freedom) -> Floats:
    """Values of the base parameters for the truth."""
    groups = {group for group, lead in zip(freedom.groups, freedom.lead, strict=True) if solution.free[lead]}
    base = find_base_parameters(equations.accumulate()[0], freedom.only(groups))
    assert [c.text for c in solution.combinations] == base.texts()
    return np.asarray(base.B @ truth[base.freedom.lead])


def coverage(name: str, seeds: range, amount: float, seconds: float, memory: float) -> tuple[float, float]:
    """Share of truth inside 95 % intervals: of identified unknowns and combinations; and of all others."""
    hits, others = [], []
    for seed in seeds:
        solution, truth, equations, freedom = identify(name, seed, amount, seconds, memory)
        inside = (solution.low <= truth) & (truth <= solution.high)
        hits += list(inside[solution.identified])
        others += list(inside[solution.free & ~solution.identified])
        for found, true in zip(
            solution.combinations, true_combinations(solution, truth, equations, freedom), strict=True
        ):
            hits.append(abs(found.value - true) < 1.96 * found.std)
    return float(np.mean(hits)), float(np.mean(others))


# ---------------------------------------------------------------- intervals


@pytest.mark.slow
def test_intervals_cover_the_truth() -> None:
    """12 data sets of some 30 numbers that depend on each other; the slow test is the exact one."""
    sure, others = coverage('mini_cheetah_leg', range(12), 0.3, 10.0, 0.0)
    assert 0.85 < sure < 0.995
    assert others > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'sets', 'amount', 'seconds'),
    [
        ('mini_cheetah_leg', 40, 0.2, 20.0),
        ('mini_cheetah_leg', 13, 0.6, 10.0),
        ('mini_cheetah', 3, 0.3, 20.0),
    ],
)
def test_intervals_cover_the_truth_of_many_data_sets(
    name: str, sets: int, amount: float, seconds: float
) -> None:
    sure, _ = coverage(name, range(1000, 1000 + sets), amount, seconds, 0.03)
    assert 0.90 <= sure <= 0.98


def test_what_did_not_help_is_not_known_for_that() -> None:
    """Rotors and offsets that are not free make inertia as uncertain as they are."""
    solution, _, equations, freedom = identify('mini_cheetah_leg', 1000, amount=0.2, seconds=10.0)
    columns, sums = equations.columns, equations.accumulate(5)
    for kind in ('rotor', 'offset'):
        assert not solution.free[columns.slices[kind]].any()
        surer = solve(sums, equations, columns, freedom.only(set(freedom.groups) - {kind}))
        ratio = (solution.std / surer.std)[columns.slices['pi']]
        assert np.nanmin(ratio) > 0.99
        assert np.nanmax(ratio) > 1.2


def test_residuals_depend_on_speed_and_load_where_friction_is_of_another_form_alone() -> None:
    """Noise does not pass for it, even where it is as large as what the load varies by."""
    solution, _, equations, freedom = identify('mini_cheetah_leg', 0, amount=0.2, seconds=10.0)
    assert not discrepancy_scores(equations, solution.x).any()
    rows, get = equations.samples.all(), equations.samples.layout.get
    tau = get(rows, 'tau')
    tau += 0.2 * np.abs(tau) * np.sign(get(rows, 'u')[:, -3:])  # friction of harmonic drives
    other = Samples(equations.columns.model)
    other.append(rows)
    equations = equations_of(other, equations.columns, LEVELS)
    found = solve(equations.accumulate(5), equations, equations.columns, freedom)
    assert discrepancy_scores(equations, found.x).any()
    assert np.median((found.std / solution.std)[solution.identified & found.free]) > 1.1


def test_friction_at_zero_has_an_interval_on_one_side() -> None:
    solution, truth, _, _ = identify('mini_cheetah_leg', 0, free=['inertia', 'friction', 'stribeck'])
    part = solution.columns.slices['stribeck']
    assert np.all(solution.x[part] >= 0.0)
    assert np.all(solution.low[part] >= 0.0)
    assert np.all(solution.high[part] > 0.0)
    assert np.all(solution.low[part] <= truth[part])


def test_what_is_not_free_has_no_interval_and_stays() -> None:
    solution, _, _, freedom = identify('mini_cheetah_leg', 0, free=['friction'])
    fixed = ~solution.free
    assert np.isnan(solution.std[fixed]).all()
    assert np.array_equal(solution.x[fixed], freedom.x0[fixed])
    assert not solution.identified[fixed].any()
    assert {solution.columns.names[i].split('.')[1] for i in np.flatnonzero(solution.free)} >= {
        'viscous',
        'coulomb',
    }


def test_an_unknown_that_no_data_touch_stays_and_is_not_identified() -> None:
    """One joint stands still, and its row does not count."""
    model = robot('mini_cheetah_leg')
    samples, _ = make_samples(model, 0, 5.0, RATE)
    rows, get = samples.all(), samples.layout.get
    for name in ('u', 'du', 'sign', 'use'):
        get(rows, name)[:, 0] = 0.0
    get(rows, 'q')[:, 0] = 0.3
    still = Samples(model)
    still.append(rows)
    columns = make_columns(model)
    equations = equations_of(still, columns, LEVELS)
    freedom = make_freedom(columns, ['inertia', 'friction'])
    solution = solve(equations.accumulate(5), equations, columns, freedom)
    for kind in ('viscous', 'coulomb'):
        k = columns.slices[kind].start
        assert solution.x[k] == pytest.approx(
            model.viscous[0] if kind == 'viscous' else model.coulomb[0], rel=1e-3
        )
        assert not solution.identified[k]
        assert solution.std[k] > 0.0
    words = what_is_missing(solution, still, 'fixed')
    assert any(re.match(r'FL_hip_joint \(it moved by 0 rad\) stood still', word) for word in words)


def test_combinations_are_determined_by_the_criterion_of_unknowns() -> None:
    """A combination that is a single unknown counts as this unknown does."""
    solution, _, _, _ = identify('mini_cheetah_leg', 3, seconds=5.0, extra={'offset': 0.1})
    single = {each.text: each.identified for each in solution.combinations if ' ' not in each.text}
    unknowns = dict(zip(solution.columns.names, solution.identified, strict=True))
    assert single == {name: unknowns[name] for name in single}
    assert set(single.values()) == {False, True}


# ---------------------------------------------------------------- choices


def test_what_helps_is_freed_and_what_does_not_is_not() -> None:
    solution, truth, _, _ = identify('mini_cheetah_leg', 3, extra={'offset': 0.1})
    kinds = {solution.columns.names[i].split('.')[1] for i in np.flatnonzero(solution.free)}
    assert {'viscous', 'coulomb', 'offset'} <= kinds
    assert 'stribeck' not in kinds
    part = solution.columns.slices['offset']
    assert np.all(np.abs(solution.x[part] - truth[part]) < 0.03)
    text = '\n'.join(solution.choices)
    assert 'offsets of the torques: free' in text
    assert 'Stribeck friction: not free' in text
    assert 'prior weight' in text


def test_a_good_model_is_kept_where_the_data_say_nothing() -> None:
    """A second of small noisy motion does not move the bodies of a model that is right."""
    model = robot('mini_cheetah_leg')
    samples, truth = make_samples(model, 1, 1.0, RATE)
    rows = noisy(samples, model, 1, 0.03).all()
    get = samples.layout.get
    get(rows, 'tau')[...] += 0.3 * np.random.default_rng(0).standard_normal((len(rows), 3))
    poor = Samples(model)
    poor.append(rows)
    columns = make_columns(model)
    equations = equations_of(poor, columns, Levels(tau=0.3))
    solution = solve(equations.accumulate(5), equations, columns, make_freedom(columns))
    mass = solution.part('pi')[::10]
    assert_close(mass, truth[columns.slices['pi']][::10], 0.2)


def test_a_given_weight_is_taken() -> None:
    _, _, equations, freedom = identify('mini_cheetah_leg', 0, seconds=5.0)
    settings = SolveSettings(prior_weight=50.0)
    solution = solve(equations.accumulate(5), equations, equations.columns, freedom, settings)
    assert solution.prior_weight == 50.0


def test_the_same_data_give_the_same_solution_to_the_bit() -> None:
    first, _, equations, freedom = identify('mini_cheetah_leg', 0, seconds=5.0)
    second = solve(equations.accumulate(5), equations, equations.columns, freedom)
    for name in ('x', 'std', 'low', 'high'):
        assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
    assert first.choices == second.choices


def test_sums_without_data_are_refused() -> None:
    columns = make_columns(robot('mini_cheetah_leg'))
    nothing = NormalEquations(np.zeros((columns.size, columns.size)), np.zeros(columns.size), 0.0, 0)
    with pytest.raises(ArgumentError, match='no data'):
        solve([nothing] * 5, None, columns, make_freedom(columns))
    small = NormalEquations(np.eye(3), np.zeros(3), 1.0, 5)
    with pytest.raises(ArgumentError, match='3 unknowns'):
        solve([small], None, columns, make_freedom(columns))


def test_what_is_missing_names_the_motion_that_would_help() -> None:
    model = robot('mini_cheetah')
    samples, _ = make_samples(model, 0, 5.0, RATE)
    rows, get = samples.all(), samples.layout.get
    get(rows, 'q')[:, 3:7] = [0.0, 0.0, 0.0, 1.0]
    for name in ('u', 'du'):
        get(rows, name)[:, :6] = 0.0
        get(rows, name)[:, 6:] *= 0.01
    level = Samples(model)
    level.append(rows)
    columns = make_columns(model)
    equations = equations_of(level, columns, LEVELS)
    solution = solve(
        equations.accumulate(5), equations, columns, make_freedom(columns, ['inertia', 'friction'])
    )
    text = '\n'.join(what_is_missing(solution, level, 'forces'))
    assert 'roll and pitch it' in text
    assert 'viscous friction of FL_hip_joint (' in text
    assert text.count('viscous friction of') == text.count('swing faster') == 1  # all joints in one sentence
    assert 'not determined one by one' in text
    assert re.search(r'FL_hip \((all|m.*?)\)', text)  # never its name alone
    assert 'the torques of the joints' not in text
    text = '\n'.join(what_is_missing(solution, level, 'base'))
    assert 'friction and torque offsets of all joints: no force on the base depends on them' in text
    assert text.count('friction') == 1  # nothing else is said of what these equations cannot see
