# SPDX-License-Identifier: Apache-2.0
"""One table of all methods."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import identification_worlds as worlds
import numpy as np
import pytest
import yaml
from identification_data import Levels, changed, equations_of, make_samples, robot

from quad_dynamics.cli.identify_summary import print_summary
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.identification.baselines.compare import (
    Comparison,
    _cells,
    compare,
    distance_to,
    methods_for,
)
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.number_text import number
from quad_dynamics.identification.pipeline import IdentifySettings, identify
from quad_dynamics.identification.report.html_report import errors_table
from quad_dynamics.identification.report.parameters_file import parameters_text
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.solve import SolveSettings
from quad_dynamics.identification.validation.validation import Validation, pooled, validate

ALL = ['consistent', 'ols', 'wls', 'irls', 'tls', 'ml', 'iv', 'output_error', 'nonlinear', 'ekf']
FREE = ('inertia', 'friction')
LEVELS = Levels(q=1e-4, u=0.005, du=0.2, tau=0.05, force=0.5, base=0.02)


def table(name: str, mode: str, free: tuple[str, ...] = FREE, other: bool = True) -> Comparison:
    model = robot(name)
    truth, columns = changed(model, 1), make_columns(model)
    samples, x = make_samples(truth, seed=3, seconds=8.0, noise=LEVELS, feet=mode != 'projection')
    fresh, _ = make_samples(truth, seed=4, seconds=3.0, noise=LEVELS, feet=mode != 'projection')
    validate = equations_of(fresh, columns, LEVELS, mode) if other else None
    freedom = make_freedom(columns, free)
    return compare(equations_of(samples, columns, LEVELS, mode), validate, columns, freedom, truth=x)


@pytest.mark.parametrize(
    ('name', 'mode'),
    [
        ('mini_cheetah_leg', 'fixed'),
        pytest.param('ur5', 'fixed', marks=pytest.mark.slow),
        pytest.param('mini_cheetah', 'forces', marks=pytest.mark.slow),
        pytest.param('mini_cheetah', 'projection', marks=pytest.mark.slow),
    ],
)
def test_all_methods_in_one_table(name: str, mode: str) -> None:
    result = table(name, mode)
    assert (
        [outcome.method for outcome in result.outcomes]
        == ['as it was', *ALL]
        == [row[0] for row in result.rows]
    )
    assert {len(row) for row in result.rows} == {len(result.head)}
    before = result.outcomes[0].errors
    assert before is not None
    joints = slice(None) if mode == 'fixed' else slice(2, None)
    for outcome in result.outcomes[1:]:
        if mode == 'projection' and outcome.method == 'output_error':
            assert outcome.failure == "joints cannot be simulated in the mode 'projection'; expected 'forces'"
            continue
        assert not outcome.failure, f'{outcome.method}: {outcome.failure}'
        assert outcome.errors is not None
        if outcome.method in ('consistent', 'nonlinear', 'ekf'):
            assert outcome.consistent == result.bodies
            assert outcome.negative == 0
        if mode != 'projection' or outcome.method in ('consistent', 'iv', 'nonlinear', 'ekf'):
            assert outcome.errors.after[joints].mean() < before.after[joints].mean()


def test_held_out_without_another_recording() -> None:
    result = table('mini_cheetah_leg', 'fixed', other=False)
    assert result.on == 'held-out blocks'
    assert not any(outcome.failure for outcome in result.outcomes)


def test_table_is_the_same_every_time_but_for_the_clock() -> None:
    first, second = (table('two_link_arm', 'fixed') for _ in range(2))
    assert first.rows == second.rows
    head, rows = first.timed()
    assert 'time [s]' in head
    assert {len(row) for row in rows} == {len(head)}
    assert 'time' not in ' '.join(first.head)
    text = first.text()
    assert text.splitlines()[0] == 'errors on samples of other recordings'
    assert len(text.splitlines()) == 2 + len(first.rows)


def test_method_that_fails_says_why_and_the_others_go_on() -> None:
    # Mass alone of one link: no logarithmic Cholesky factor can do that.
    result = table('mini_cheetah_leg', 'fixed', free=('FL_calf.m', 'friction'))
    failed = {outcome.method: outcome.failure for outcome in result.outcomes if outcome.failure}
    assert set(failed) == {'nonlinear', 'ekf'}
    assert "body 'FL_calf' is free in part" in failed['ekf']
    assert any("failed: body 'FL_calf'" in row[-1] for row in result.rows)


def test_only_some_methods() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    samples, _ = make_samples(changed(model, 1), seed=3, seconds=5.0, noise=LEVELS)
    equations = equations_of(samples, columns, LEVELS)
    result = compare(equations, None, columns, make_freedom(columns, FREE), methods=['ols', 'iv'])
    assert [row[0] for row in result.rows] == ['as it was', 'ols', 'iv']
    assert 'distance' not in result.head
    assert list(methods_for()) == ALL


def test_first_rows_are_the_errors_of_the_validation(tmp_path: Path) -> None:
    """The same blocks, folds and settings as in the summary, and one pooled figure wherever it is told."""
    world = worlds.World(3, 'two_link_arm', seconds=8.0)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    settings = IdentifySettings(compare=True, folds=4, solve=SolveSettings(trust=0.2))
    result = identify([path], truth.model, settings)
    assert result.comparison is not None
    assert result.validation is not None
    assert_first_rows(result.comparison, result.validation)
    whole = pooled(result.validation.errors)
    cells = dict(zip(result.comparison.head, result.comparison.rows[1], strict=True))
    saved = yaml.safe_load(parameters_text(result))['validation']['pooled']
    assert cells['all joints [N m]'] == number(saved['after']) == number(whole.rms[1])
    assert cells['all joints [%]'] == f'{100.0 * saved["relative_after"]:.2f}'
    stream = io.StringIO()
    print_summary(Terminal(stream), result)
    row = re.search(r'  all joints \[N m\] .*', stream.getvalue())
    assert row is not None
    assert [number(x, 3) for x in whole.rms] == [row[0].split()[k] for k in (4, 7, 10)]
    assert errors_table(result.validation.errors).rows[-1][5] == number(whole.rms[1], 3)


def assert_first_rows(comparison: Comparison, validation: Validation) -> None:
    before, after = (outcome.errors for outcome in comparison.outcomes[:2])
    assert before is not None
    assert after is not None
    np.testing.assert_array_equal(before.after, validation.errors.before)
    np.testing.assert_array_equal(after.after, validation.errors.after)


@pytest.mark.slow
@pytest.mark.parametrize('free', [('payload', 'bias'), ('payload',), ()])
def test_bias_is_fitted_as_in_the_validation(free: tuple[str, ...]) -> None:
    """For all methods, if the default method has freed it; () leaves the choice to cross-validation."""
    model = robot('mini_cheetah')
    truth, columns = changed(model, 1), make_columns(model)
    samples, _ = make_samples(truth, seed=3, seconds=4.0, noise=LEVELS)
    fresh, _ = make_samples(truth, seed=4, seconds=3.0, noise=LEVELS)
    freedom, validate_on = make_freedom(columns, free), equations_of(fresh, columns, LEVELS)
    compared = compare(
        equations_of(samples, columns, LEVELS), validate_on, columns, freedom, methods=['consistent']
    )
    solution = compared.outcomes[1].solution
    assert solution is not None
    assert_first_rows(compared, validate(validate_on, solution, 'walk_2'))


def test_trailing_zeros_are_kept() -> None:
    """2.100 below 2.101, not 2.1."""
    model = robot('two_link_arm')
    columns = make_columns(model)
    samples, _ = make_samples(model, seed=3, seconds=5.0, noise=LEVELS)
    equations = equations_of(samples, columns, LEVELS)
    (first,) = compare(equations, equations, columns, make_freedom(columns), methods=[]).outcomes
    assert first.errors is not None
    errors = replace(first.errors, after=np.full_like(first.errors.after, 2.1))
    head, rows = _cells([replace(first, errors=errors)], bodies=2, with_truth=False)
    assert rows[0][head.index('all joints [N m]')] == '2.100'


def test_too_few_samples_are_no_reason_to_fail(tmp_path: Path) -> None:
    world = worlds.World(3, 'two_link_arm', seconds=2.4)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    result = identify([path], truth.model, IdentifySettings(compare=True))
    assert result.comparison is None
    assert any('too few to compare methods' in text for text in result.warnings)


def test_distance_is_zero_at_the_truth() -> None:
    model = robot('mini_cheetah')
    columns = make_columns(model)
    freedom = make_freedom(columns, FREE)
    assert distance_to(columns.prior, columns.prior, freedom) == 0.0
    x = columns.prior.copy()
    x[columns.slices['viscous']] *= 1.1
    n = np.count_nonzero(freedom.free & (np.arange(columns.size) < columns.slices['offset'].start))
    assert distance_to(columns.prior, x, freedom) == pytest.approx(0.1 * np.sqrt(model.nj / n))
