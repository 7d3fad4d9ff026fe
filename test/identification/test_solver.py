# SPDX-License-Identifier: Apache-2.0
"""The consistent solver against Clarabel, and against data that make no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closeness import assert_close
from identification_data import robot
from reference_clarabel import pseudo_inertia as pseudo_inertia_by_definition
from reference_clarabel import solve_conic

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import NOT_NEGATIVE, make_columns
from quad_dynamics.identification.solvers.consistent import solve_consistent
from quad_dynamics.identification.solvers.freedom import Freedom, make_freedom
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.pseudo_inertia import (
    BASIS,
    inconsistent_bodies,
    margins,
    nearest_consistent,
    pi_of_pseudo_inertia,
    pseudo_inertia,
)
from quad_dynamics.model.inertia import about_com, pi_of, principal_moments


def is_consistent(pi: Floats) -> bool:
    """Mass, and principal moments that fulfil the triangle inequality: without pseudo-inertia."""
    mass, _, inertia = about_com(pi.reshape(-1, 10))
    moments = principal_moments(inertia)
    return bool(
        np.all(mass > 0.0)
        and np.all(moments[:, 0] > 0.0)
        and np.all(2.0 * moments[:, 2] < moments.sum(axis=1))
    )


def random_sums(freedom: Freedom, rng: np.random.Generator, rows: int, far: float = 1.0) -> NormalEquations:
    """Sums of equations that have nothing to do with a robot, about as precise as its priors are."""
    size = freedom.columns.size
    unit = np.maximum(np.abs(freedom.x0), 1e-3)
    Y = rng.standard_normal((rows, size)) / unit
    y = Y @ (freedom.x0 + far * unit * rng.standard_normal(size)) + rng.standard_normal(rows)
    return NormalEquations(Y.T @ Y, Y.T @ y, float(y @ y), rows)


# ---------------------------------------------------------------- pseudo-inertia


@pytest.mark.parametrize('seed', range(3))
def test_pseudo_inertia_is_the_second_moment_of_a_cloud_of_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    masses, points = rng.uniform(0.1, 1.0, 20), rng.standard_normal((20, 3))
    ones = np.concatenate([points, np.ones((20, 1))], axis=1)
    expected = np.einsum('k,ki,kj->ij', masses, ones, ones)
    com = masses @ points / masses.sum()
    inertia = np.zeros((3, 3))
    for m, r in zip(masses, points - com, strict=True):
        inertia += m * (r @ r * np.eye(3) - np.outer(r, r))
    pi = pi_of(masses.sum(), com, inertia)
    assert_close(pseudo_inertia(pi), expected, 1e-13)
    assert_close(pi_of_pseudo_inertia(expected), pi, 1e-13)
    assert_close(np.einsum('a,aij->ij', pi, BASIS), pseudo_inertia_by_definition(pi), 1e-13)


@pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')
def test_nearest_consistent_keeps_mass_and_com_of_the_thigh_of_mini_cheetah(qd: Any) -> None:
    model = qd.load_model('mini_cheetah_leg')
    columns = make_columns(model)
    assert inconsistent_bodies(columns.prior[:30], model.body_names) == ['FL_thigh']
    freedom = make_freedom(columns)
    assert is_consistent(freedom.x0[:30])
    assert any("body 'FL_thigh'" in note and 'triangle inequality' in note for note in freedom.notes)
    assert_close(freedom.x0[:14], columns.prior[:14], 1e-14)
    # The least principal moment is 4 % too small; no other number of the file may move more than that.
    assert np.abs(freedom.x0 - columns.prior).max() < 0.05 * np.abs(columns.prior[14:20]).max()


@pytest.mark.parametrize(
    'pi',
    [np.zeros(10), np.r_[1.0, np.zeros(9)], np.r_[-1.0, np.ones(9)], np.r_[2.0, 0.2, 0, 0, -np.ones(6)]],
    ids=['massless', 'point', 'negative', 'nonsense'],
)
def test_nearest_consistent_of_anything_is_consistent(pi: Floats) -> None:
    assert margins(nearest_consistent(pi)[None])[0] > 5e-4


# ---------------------------------------------------------------- against Clarabel


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('weight', [100.0, 1.0, 1e-2])
def test_the_minimum_is_that_of_clarabel(seed: int, weight: float) -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    freedom = make_freedom(columns, ['inertia', 'friction', 'offset', 'rotor'])
    rng = np.random.default_rng(seed)
    rows = (20, 60, 400)[seed % 3]  # fewer than there are unknowns, a few more, many
    normal = random_sums(freedom, rng, rows, far=(0.3, 3.0)[seed % 2])
    scales = friction_scales(columns)
    x = solve_consistent(normal, freedom, weight, scales)
    assert is_consistent(x[:30])
    T = freedom.T
    H = T.T @ normal.YtY @ T + np.diag(1.0 / scales[freedom.lead] ** 2)
    g = T.T @ (normal.Yty - normal.YtY @ freedom.x0)
    bounded = np.array([group in NOT_NEGATIVE for group in freedom.groups])
    expected = solve_conic(H, g, freedom.x0[freedom.lead], 3, weight, bounded)
    # Clarabel stops at 1e-10 of the function or so, which is flat around its minimum: the more so, the less
    # it weighs.
    unit = np.maximum(np.abs(freedom.x0[freedom.lead]), 1e-3)
    assert_close(x[freedom.lead] / unit, expected / unit, 1e-5 if weight >= 1.0 else 1e-4)

    def value(v: Floats) -> float:
        z = v - freedom.x0[freedom.lead]
        D = 0.0
        for i in range(3):
            P, P0 = (pseudo_inertia_by_definition(u[10 * i : 10 * i + 10]) for u in (v, freedom.x0))
            ratio = np.linalg.solve(P0, P)
            D += np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0
        return float(0.5 * z @ H @ z - g @ z + weight * D)

    ours, theirs = value(x[freedom.lead]), value(np.maximum(expected, np.where(bounded, 0.0, -np.inf)))
    assert ours <= theirs + 1e-7 * (1.0 + abs(theirs))


@pytest.mark.parametrize('seed', range(3))
def test_without_weight_only_consistency_is_left(seed: int) -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    freedom = make_freedom(columns, ['inertia', 'friction'])
    normal = random_sums(freedom, np.random.default_rng(seed), 400, far=3.0)
    scales = friction_scales(columns)
    x = solve_consistent(normal, freedom, 0.0, scales)
    T = freedom.T
    H = T.T @ normal.YtY @ T + np.diag(1.0 / scales[freedom.lead] ** 2)
    g = T.T @ (normal.Yty - normal.YtY @ freedom.x0)
    bounded = np.array([group in NOT_NEGATIVE for group in freedom.groups])
    expected = solve_conic(H, g, freedom.x0[freedom.lead], 3, 0.0, bounded)
    z, w = x[freedom.lead] - freedom.x0[freedom.lead], expected - freedom.x0[freedom.lead]
    ours, theirs = (float(0.5 * v @ H @ v - g @ v) for v in (z, w))
    # The barrier that is left is 1e-9 of what the data can gain, for each of 12 eigenvalues.
    assert ours <= theirs + 1e-7 * abs(theirs)
    assert is_consistent(x[:30])


# ---------------------------------------------------------------- nonsense


def garbage(freedom: Freedom, rng: np.random.Generator) -> NormalEquations:
    """Sums of anything: few rows or many, of any scale, rank and noise, far from every possible body."""
    size = freedom.columns.size
    rows = int(rng.choice([1, 3, 20, 60, 300]))
    unit = np.maximum(np.abs(freedom.x0), 1e-6) if rng.random() < 0.5 else np.ones(size)
    rank = int(rng.integers(1, size + 1))
    Y = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, size)) / unit
    Y[:, rng.random(size) < 0.2] = 0.0
    Y *= 10.0 ** rng.uniform(-8.0, 8.0)
    if rng.random() < 0.3:
        Y *= 10.0 ** rng.uniform(-6.0, 6.0, size)
    far = 10.0 ** rng.uniform(-2.0, 4.0)
    y = Y @ (far * unit * rng.standard_normal(size)) + 10.0 ** rng.uniform(-8.0, 8.0) * rng.standard_normal(
        rows
    )
    return NormalEquations(Y.T @ Y, Y.T @ y, float(y @ y), rows)


def check_garbage(seeds: range) -> None:
    columns = make_columns(robot('mini_cheetah_leg'))
    freedoms = [
        make_freedom(columns),
        make_freedom(columns, ['FL_calf', 'friction']),
        make_freedom(columns, ['inertia']),
    ]
    scales = friction_scales(columns)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        freedom = freedoms[seed % 3]
        normal = garbage(freedom, rng)
        weight = float(rng.choice([0.0, 1e-6, 1e-2, 1.0, 1e3, 1e6]))
        x = solve_consistent(normal, freedom, weight, scales, noise=10.0 ** rng.uniform(-6.0, 6.0))
        assert np.isfinite(x).all(), seed
        assert is_consistent(x[:30]), seed
        assert not inconsistent_bodies(x[:30], columns.model.body_names), seed
        assert x[freedom.bounded].min(initial=0.0) >= 0.0, seed
        columns.model.with_pi(x[:30])  # its own check is passed


def test_solutions_of_garbage_are_consistent() -> None:
    check_garbage(range(60))


@pytest.mark.slow
def test_solutions_of_many_garbage_data_sets_are_consistent() -> None:
    check_garbage(range(60, 180))
