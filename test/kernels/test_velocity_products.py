# SPDX-License-Identifier: Apache-2.0
"""The configuration-space form: products and squares of velocities with matrices of the configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import SOME, TREES, Case, model_of, plain_of
from closeness import assert_close
from states import random_state

SMALL = [*SOME[:5], TREES[11]]  # B has nv^2 (nv - 1) / 2 entries
pytestmark = pytest.mark.parametrize('case', SMALL, ids=str)


def products(u: np.ndarray) -> np.ndarray:
    """(nv (nv - 1) / 2,) u_i u_j for i < j, row by row."""
    i, j = np.triu_indices(len(u), 1)
    return u[i] * u[j]


def test_products_and_squares_give_the_nonlinear_effects(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    B, C = qd.velocity_product_matrices(model, q)
    assert B.shape == (model.nv, model.nv * (model.nv - 1) // 2)
    assert C.shape == (model.nv, model.nv)
    expected = qd.nonlinear_effects(model, q, u) - qd.gravity(model, q)
    assert_close(B @ products(u) + C @ u**2, expected)


def test_matrices_against_unit_velocities(qd: Any, case: Case, seed: int) -> None:
    """A quadratic form is known from its values at unit vectors and at sums of two of them."""
    model, plain = model_of(case), plain_of(case)
    q, _, _ = random_state(model, seed)
    B, C = qd.velocity_product_matrices(model, q)
    g, unit = plain.nonlinear_effects(q, np.zeros(model.nv)), np.eye(model.nv)
    squares = np.stack([plain.nonlinear_effects(q, e) - g for e in unit], axis=1)
    assert_close(C, squares, what='C')
    rng = np.random.default_rng(seed)
    pairs = list(zip(*np.triu_indices(model.nv, 1), strict=True))
    for column in rng.choice(len(pairs), size=min(10, len(pairs)), replace=False):
        i, j = pairs[column]
        expected = plain.nonlinear_effects(q, unit[i] + unit[j]) - g - squares[:, i] - squares[:, j]
        assert_close(B[:, column], expected, what=f'B of {i}, {j}', scale=float(np.abs(B).max()))
