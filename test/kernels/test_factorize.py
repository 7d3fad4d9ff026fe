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


@pytest.mark.filterwarnings('ignore::quad_dynamics.errors.FactorizationWarning')
@pytest.mark.parametrize('matrix_seed', range(20))
def test_compiled_solver_pivots(matrix_seed: int) -> None:
    """What forward dynamics and the simulator solve with: any regular symmetric matrix, a batch at once."""
    from quad_dynamics.api.factorization import solve_all

    rng = np.random.default_rng(matrix_seed)
    n = int(rng.integers(1, 30))
    A = rng.normal(size=(3, n, n))
    A += A.transpose(0, 2, 1)
    A[0] *= ~np.eye(n, dtype=bool) if n % 2 == 0 else 1.0  # no diagonal at all: blocks of two by two
    A[2] = A[2] @ A[2]  # positive definite: LLT
    b = rng.normal(size=(3, n))
    before = A.copy()
    x = solve_all(A, b)
    assert np.array_equal(A, before)
    for matrix, right, found in zip(A, b, x, strict=True):
        error = np.abs(matrix @ found - right).max()
        assert error < 1e-12 * n * (1.0 + np.abs(matrix).max() * np.abs(found).max())


def test_compiled_solver_refuses_singular_matrices(qd: Any) -> None:
    from quad_dynamics.api.factorization import solve_all

    for singular in (np.zeros((3, 3)), np.array([[1.0, 2.0], [2.0, 4.0]])):
        with pytest.raises(qd.ArgumentError, match='singular'):
            solve_all(singular, np.ones(len(singular)))


@pytest.mark.parametrize(
    'lower',
    [
        np.eye(3)[:1],
        np.eye(3, dtype=np.float32),
        np.eye(3, dtype='>f8'),
        np.eye(6)[::2, ::2],
        np.float64(1.0),
        [[1.0]],
        None,
    ],
    ids=['oblong', 'float32', 'swapped', 'strided', 'number', 'list', 'none'],
)
def test_factorization_built_by_hand(qd: Any, lower: Any) -> None:
    """It would be read beyond its end."""
    for method, diagonal in (('llt', None), ('ldlt', np.eye(3))):
        with pytest.raises(qd.ArgumentError, match='by hand'):
            qd.Factorization(method, -1, lower, diagonal).solve(np.ones(3))


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
