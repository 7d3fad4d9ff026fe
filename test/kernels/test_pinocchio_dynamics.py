# SPDX-License-Identifier: Apache-2.0
"""Dynamics against Pinocchio, for published robots and random trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, Case, model_of, pinocchio_of
from closeness import assert_close
from states import random_state, random_wrenches

pytestmark = pytest.mark.parametrize('case', ALL, ids=str)


def test_parameters(case: Case) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    assert_close(model.pi, pin.pi(model.body_names))
    assert (model.nq, model.nv, model.nj) == (pin.nq, pin.nv, pin.nj)


def test_mass_matrix(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, _, _ = random_state(model, seed)
    M = qd.mass_matrix(model, q)
    assert_close(M, pinocchio_of(case).mass_matrix(q))
    assert np.array_equal(M, M.T)


def test_inverse_dynamics(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, seed)
    assert_close(qd.inverse_dynamics(model, q, u, du), pinocchio_of(case).inverse_dynamics(q, u, du))


def test_inverse_dynamics_with_external_forces(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, seed)
    f_ext = random_wrenches(sorted(model.frames), seed, count=6)  # merged links and the root among them
    assert_close(
        qd.inverse_dynamics(model, q, u, du, f_ext=f_ext),
        pinocchio_of(case).inverse_dynamics(q, u, du, f_ext),
    )


@pytest.mark.parametrize('method', ['aba', 'cholesky'])
def test_forward_dynamics(qd: Any, case: Case, seed: int, method: str) -> None:
    model = model_of(case)
    q, u, tau = random_state(model, seed)
    f_ext = random_wrenches(sorted(model.frames), seed)
    expected = pinocchio_of(case).forward_dynamics(q, u, tau, f_ext)
    assert_close(qd.forward_dynamics(model, q, u, tau, f_ext=f_ext, method=method), expected)
    assert_close(
        qd.forward_dynamics(model, q, u, tau, method=method), pinocchio_of(case).forward_dynamics(q, u, tau)
    )


def test_forward_dynamics_of_joint_torques(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, tau = random_state(model, seed)
    generalised = np.concatenate([np.zeros(model.nv - model.nj), tau[-model.nj :]])
    expected = pinocchio_of(case).forward_dynamics(q, u, generalised)
    assert_close(qd.forward_dynamics(model, q, u, tau[-model.nj :]), expected)


def test_coriolis_matrix(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    assert_close(qd.coriolis_matrix(model, q, u), pinocchio_of(case).coriolis_matrix(q, u))


def test_gravity_and_nonlinear_effects(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, u, _ = random_state(model, seed)
    assert_close(qd.gravity(model, q), pin.gravity(q), what='gravity')
    assert_close(qd.nonlinear_effects(model, q, u), pin.nonlinear_effects(q, u), what='nonlinear effects')


def test_energy(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    kinetic, potential = qd.energy(model, q, u)
    expected = pinocchio_of(case).energy(q, u)
    assert_close(kinetic, expected[0], what='kinetic')
    assert_close(potential, expected[1], what='potential')


def test_regressor(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, seed)
    Y = qd.regressor(model, q, u, du)
    assert_close(Y, pinocchio_of(case).regressor(q, u, du, model.body_names))
