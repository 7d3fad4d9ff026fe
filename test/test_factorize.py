# SPDX-License-Identifier: Apache-2.0
"""Solving with a symmetric matrix: LLT, and LDLT where LLT fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import SOME, Case, model_of
from closeness import assert_close
from states import random_state


def indefinite(seed: int, size: int = 12) -> np.ndarray:
    """A symmetric matrix with eigenvalues of both signs, well away from zero."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(size, size)))
    values = rng.uniform(0.5, 5.0, size) * np.where(np.arange(size) % 2, -1.0, 1.0)
    A = Q @ np.diag(values) @ Q.T
    return 0.5 * (A + A.T)


@pytest.mark.parametrize('case', SOME, ids=str)
def test_mass_matrix_by_llt(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, b = random_state(model, seed)
    M = qd.mass_matrix(model, q)
    factorization = qd.factorize(M)
    assert factorization.method == 'llt'
    assert_close(M @ factorization.solve(b), b, what='one right side')
    B = np.stack([b, u], axis=1)
    assert_close(M @ factorization.solve(B), B, what='two right sides')


@pytest.mark.parametrize('matrix_seed', range(10))
def test_indefinite_matrix_falls_back_to_ldlt(qd: Any, matrix_seed: int) -> None:
    A = indefinite(matrix_seed)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(A)  # it does fail
    b = np.random.default_rng(matrix_seed).normal(size=len(A))
    factorization = qd.factorize(A)
    assert factorization.method == 'ldlt'
    assert_close(A @ factorization.solve(b), b)


def test_saddle_matrix_needs_pivots(qd: Any) -> None:
    """Zeros on the diagonal: LDLT without pivoting would divide by zero."""
    A, b = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 3.0])
    assert_close(qd.factorize(A).solve(b), [3.0, 2.0])
    J = np.random.default_rng(0).normal(size=(3, 6))
    saddle = np.block([[np.eye(6), J.T], [J, np.zeros((3, 3))]])
    b = np.arange(9.0)
    assert_close(saddle @ qd.factorize(saddle).solve(b), b)


def test_singular_matrix_is_an_error(qd: Any) -> None:
    """Never infinities or NaN in silence."""
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises((qd.QuadDynamicsError, np.linalg.LinAlgError), match=r'(?i)singular'):
        qd.factorize(singular).solve(np.ones(2))


@pytest.mark.parametrize(
    'bad',
    [
        np.ones((2, 3)),
        np.ones(4),
        np.array([[1.0, np.nan], [np.nan, 1.0]]),
        np.array([[1.0, 2.0], [0.0, 1.0]]),
    ],
    ids=['oblong', 'vector', 'nan', 'unsymmetric'],
)
def test_bad_matrix(qd: Any, bad: np.ndarray) -> None:
    with pytest.raises(qd.ArgumentError, match='M'):
        qd.factorize(bad)


def test_input_is_kept(qd: Any) -> None:
    A = indefinite(0)
    before = A.copy()
    b = np.ones(len(A))
    qd.factorize(A).solve(b)
    assert np.array_equal(A, before)
    assert np.array_equal(b, np.ones(len(A)))


@pytest.mark.parametrize('case', SOME[:4], ids=str)
def test_forward_dynamics_with_impossible_parameters(qd: Any, case: Case, seed: int) -> None:
    """A body of negative mass makes M indefinite: LDLT solves it all the same, and a warning says so."""
    model = model_of(case)
    pi = model.pi.copy()
    pi[-10:] *= -5.0
    model = model.with_pi(pi, check=False)
    q, u, du = random_state(model, seed)
    M = qd.mass_matrix(model, q)
    assert np.linalg.eigvalsh(M)[0] < 0.0
    tau = qd.inverse_dynamics(model, q, u, du)
    with pytest.warns(qd.FactorizationWarning, match='LDLT'):
        found = qd.forward_dynamics(model, q, u, tau, method='cholesky')
    assert_close(found, du, 1e-8)  # nothing keeps such a matrix away from being singular
