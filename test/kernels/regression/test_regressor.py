# SPDX-License-Identifier: Apache-2.0
"""The regressor is the derivative of inverse dynamics by the parameters; sums of it over a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, SOME, TREES, Case, load, model_of
from closeness import assert_close
from reference_rotors import description, random_rotors
from states import random_state

over_all = pytest.mark.parametrize('case', ALL, ids=str)
GEARED = [Case('go2', True), Case('panda', False), *TREES[:4]]


def geared(case: Case) -> Any:
    """The case with random rotors."""
    rotors = description(random_rotors(case.urdf, seed=2))
    return load(case.urdf, floating_base=case.floating_base, description=rotors)


def batch(model: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, u, du), each (count, ...)."""
    q, u, du = zip(*(random_state(model, seed) for seed in range(count)), strict=True)
    return np.array(q), np.array(u), np.array(du)


@over_all
def test_times_parameters_is_inverse_dynamics(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, seed)
    Y = qd.regressor(model, q, u, du)
    assert Y.shape == (model.nv, 10 * model.nb)
    assert_close(Y @ model.pi, qd.inverse_dynamics(model, q, u, du))


@over_all
def test_friction_columns(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    rng = np.random.default_rng(seed)
    model = model.with_friction(rng.uniform(0, 2, model.nj), rng.uniform(0, 1, model.nj))
    q, u, du = random_state(model, seed)
    Y = qd.regressor(model, q, u, du, friction=True)
    parameters = np.concatenate([model.pi, model.viscous, model.coulomb])
    assert Y.shape == (model.nv, parameters.size)
    assert_close(Y @ parameters, qd.inverse_dynamics(model, q, u, du, friction=True))


@pytest.mark.parametrize('case', GEARED, ids=str)
@pytest.mark.parametrize('friction', [False, True], ids=['smooth', 'friction'])
def test_rotor_columns(qd: Any, case: Case, seed: int, friction: bool) -> None:
    model = geared(case)
    q, u, du = random_state(model, seed)
    Y = qd.regressor(model, q, u, du, friction=friction, rotors=True)
    parts = [model.pi + model.rotor_pi]
    parts += [model.viscous, model.coulomb] if friction else []
    parameters = np.concatenate([*parts, model.rotor_inertia])
    assert Y.shape == (model.nv, parameters.size)
    assert_close(Y @ parameters, qd.inverse_dynamics(model, q, u, du, friction=friction))


@pytest.mark.parametrize('case', GEARED, ids=str)
def test_links_only_without_rotors(qd: Any, case: Case, seed: int) -> None:
    model = geared(case)
    q, u, du = random_state(model, seed)
    expected = qd.inverse_dynamics(model.without_rotors(), q, u, du)
    assert_close(qd.regressor(model, q, u, du) @ model.pi, expected)


@pytest.mark.parametrize('case', SOME, ids=str)
def test_depends_on_geometry_alone(qd: Any, case: Case) -> None:
    """Other parameters, same regressor; and inverse dynamics of a model with other parameters is Y @ pi."""
    model = model_of(case)
    q, u, du = random_state(model, 0)
    pi = model.pi * np.random.default_rng(0).uniform(0.5, 1.5, model.pi.size)
    other = model.with_pi(pi, check=False)
    Y = qd.regressor(model, q, u, du)
    assert np.array_equal(qd.regressor(other, q, u, du), Y)
    assert_close(qd.inverse_dynamics(other, q, u, du), Y @ pi)


@pytest.mark.parametrize('case', GEARED, ids=str)
@pytest.mark.parametrize('columns', [{}, {'friction': True}, {'friction': True, 'rotors': True}], ids=str)
def test_accumulated(qd: Any, case: Case, columns: dict[str, bool]) -> None:
    """Normal equations of a batch, as if the regressors had been stacked."""
    model = geared(case)
    q, u, du = batch(model, 7)
    tau = np.random.default_rng(0).normal(scale=20.0, size=(7, model.nv))
    found = qd.accumulate_regressor(model, q, u, du, tau, **columns)
    Y = np.vstack([qd.regressor(model, *state, **columns) for state in zip(q, u, du, strict=True)])
    y = tau.ravel()
    assert_close(found.YtY, Y.T @ Y, what='YtY')
    assert_close(found.Yty, Y.T @ y, what='Yty')
    assert_close(found.yty, y @ y, what='yty')
    assert found.n == 7
    assert np.array_equal(found.YtY, found.YtY.T)


@pytest.mark.parametrize('case', GEARED[:3], ids=str)
@pytest.mark.parametrize('per_sample', [False, True], ids=['one_weight', 'weight_per_sample'])
def test_accumulated_with_weights(qd: Any, case: Case, per_sample: bool) -> None:
    """Weights of rows; those of weight zero are left out."""
    model = geared(case)
    q, u, du = batch(model, 7)
    rng = np.random.default_rng(0)
    tau = rng.normal(scale=20.0, size=(7, model.nv))
    weights = rng.uniform(0.0, 2.0, (7, model.nv) if per_sample else model.nv)
    weights[..., 1] = 0.0
    found = qd.accumulate_regressor(model, q, u, du, tau, friction=True, weights=weights)
    Y = np.vstack([qd.regressor(model, *state, friction=True) for state in zip(q, u, du, strict=True)])
    y, w = tau.ravel(), np.broadcast_to(weights, (7, model.nv)).ravel()
    assert_close(found.YtY, Y.T @ (w[:, None] * Y), what='YtY')
    assert_close(found.Yty, Y.T @ (w * y), what='Yty')
    assert_close(found.yty, y @ (w * y), what='yty')


def test_sums_can_be_added(qd: Any) -> None:
    model = geared(GEARED[0])
    q, u, du = batch(model, 6)
    tau = np.random.default_rng(0).normal(size=(6, model.nv))
    whole = qd.accumulate_regressor(model, q, u, du, tau)
    one, two = (qd.accumulate_regressor(model, q[s], u[s], du[s], tau[s]) for s in (slice(2), slice(2, 6)))
    added = one + two
    assert_close(added.YtY, whole.YtY)
    assert_close(added.Yty, whole.Yty)
    assert added.n == whole.n == 6
