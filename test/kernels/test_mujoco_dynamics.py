# SPDX-License-Identifier: Apache-2.0
"""Mass matrix and bias force against MuJoCo."""

from __future__ import annotations

from typing import Any

import pytest
from cases import PUBLISHED, TREES, Case, physical_of
from closeness import assert_close
from states import random_state

pytestmark = pytest.mark.parametrize('case', PUBLISHED + TREES[:8], ids=str)


def test_mass_matrix(qd: Any, case: Case, seed: int) -> None:
    model, mujoco = physical_of(case)
    q, _, _ = random_state(model, seed)
    assert_close(qd.mass_matrix(model, q), mujoco.mass_matrix(q))


def test_nonlinear_effects(qd: Any, case: Case, seed: int) -> None:
    model, mujoco = physical_of(case)
    q, u, _ = random_state(model, seed)
    assert_close(qd.nonlinear_effects(model, q, u), mujoco.nonlinear_effects(q, u))


def test_total_mass(case: Case) -> None:
    model, mujoco = physical_of(case)
    # MuJoCo drops the root of a fixed base, which is no body of ours either
    assert_close(model.total_mass, mujoco.total_mass())
