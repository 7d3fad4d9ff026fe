# SPDX-License-Identifier: Apache-2.0
"""Joint friction: viscous and Coulomb, counted in the motor torque."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import SOME, Case, model_of
from closeness import assert_close
from states import random_state

pytestmark = pytest.mark.parametrize('case', SOME, ids=str)


def rough(case: Case, seed: int) -> Any:
    """The case with random friction."""
    rng, model = np.random.default_rng(seed), model_of(case)
    return model.with_friction(viscous=rng.uniform(0, 2, model.nj), coulomb=rng.uniform(0, 1, model.nj))


def test_formula(qd: Any, case: Case, seed: int) -> None:
    model = rough(case, seed)
    _, u, _ = random_state(model, seed)
    u[-1] = 0.0
    qd_j = u[-model.nj :]
    found = qd.friction_torque(model, u)
    assert_close(found, model.viscous * qd_j + model.coulomb * np.sign(qd_j), 1e-15)
    assert found[-1] == 0.0  # no Coulomb torque at rest


def test_in_inverse_dynamics(qd: Any, case: Case, seed: int) -> None:
    model = rough(case, seed)
    q, u, du = random_state(model, seed)
    added = qd.inverse_dynamics(model, q, u, du, friction=True) - qd.inverse_dynamics(model, q, u, du)
    expected = np.concatenate([np.zeros(model.nv - model.nj), qd.friction_torque(model, u)])
    # a difference of torques of some 1e3 N m, rounded at 1e-16
    scale = float(np.abs(qd.inverse_dynamics(model, q, u, du)).max())
    assert_close(added, expected, 1e-13, scale=scale)


@pytest.mark.parametrize('method', ['aba', 'cholesky'])
def test_in_forward_dynamics(qd: Any, case: Case, seed: int, method: str) -> None:
    """Friction takes its part of the torque: the same as less torque without friction."""
    model = rough(case, seed)
    q, u, tau = random_state(model, seed)
    less = tau.copy()
    less[-model.nj :] -= qd.friction_torque(model, u)
    found = qd.forward_dynamics(model, q, u, tau, friction=True, method=method)
    assert_close(found, qd.forward_dynamics(model, q, u, less, method=method))


def test_takes_energy_away(qd: Any, case: Case, seed: int) -> None:
    model = rough(case, seed)
    _, u, _ = random_state(model, seed)
    assert qd.friction_torque(model, u) @ u[-model.nj :] > 0.0
