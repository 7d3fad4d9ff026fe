# SPDX-License-Identifier: Apache-2.0
"""Solving with a mass matrix: LLT, and LDLT if LLT fails."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.validation import check_finite, to_floats
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError, FactorizationWarning
from quad_dynamics.kernels.cholesky import factor_llt, solve_llt, solve_symmetric

# Maximum asymmetry that counts as rounding, relative to the largest element.
_ASYMMETRY = 1e-9


@dataclass(frozen=True, eq=False)
class Factorization:
    """A factored symmetric matrix.

    Attributes:
        method: 'llt' for M = L L^T; 'ldlt' for M = L D L^T with pivoting (Bunch and Kaufman 1977), if LLT
            failed.
        failed_row: the row with the first pivot that is not positive; -1 if there is none.
    """

    method: str
    failed_row: int
    _lower: Floats
    _diagonal: Floats | None = None

    def solve(self, b: npt.ArrayLike) -> Floats:
        """x with M x = b, for b (n,) or (n, k).

        Raises:
            ArgumentError: a wrong shape, a value that is not finite, or a singular matrix.
        """
        n = self._size()
        right = to_floats('b', b)
        if right.ndim not in (1, 2) or right.shape[0] != n:
            raise ArgumentError(f'b has the shape {right.shape}; expected ({n},) or ({n}, k)')
        check_finite('b', right)
        if self._diagonal is None:
            x = right.T.copy()
            solve_llt.run(n, 1 if x.ndim == 1 else len(x), self._lower, x)
            return x.T
        return self._solve_ldlt(right)

    def _size(self) -> int:
        """Number of rows of the matrix, validated for the kernel.

        Raises:
            ArgumentError: it was not made by `factorize`, or was modified.
        """
        lower, diagonal = self._lower, self._diagonal
        for part in (lower,) if diagonal is None else (lower, diagonal):
            plain = type(part) is np.ndarray and part.dtype == np.float64 and part.flags.carray
            if not plain or part.ndim != 2 or part.shape != (len(lower), len(lower)):
                raise ArgumentError(
                    'the factorization was built or modified by hand; expected the result of factorize(M)'
                )
        return len(lower)

    def _solve_ldlt(self, b: Floats) -> Floats:
        # L is a row permutation of a triangular matrix, D has 1 x 1 and 2 x 2 blocks: small, so solved
        # densely.
        try:
            y = np.linalg.solve(self._lower, b)
            return np.linalg.solve(self._lower.T, np.linalg.solve(self._diagonal, y))  # type: ignore[arg-type]
        except np.linalg.LinAlgError as error:
            raise ArgumentError('the matrix is singular; expected an invertible matrix') from error


def factorize(M: npt.ArrayLike) -> Factorization:
    """Factor a symmetric matrix by LLT, or by LDLT if it is not positive definite.

    Args:
        M: (n, n) symmetric.

    Raises:
        ArgumentError: not square, not symmetric, or not finite.
    """
    matrix = to_floats('M', M)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f'M has the shape {matrix.shape}; expected a square matrix')
    check_finite('M', matrix)
    asymmetry = np.abs(matrix - matrix.T).max(initial=0.0)
    if asymmetry > _ASYMMETRY * np.abs(matrix).max(initial=0.0):
        raise ArgumentError(f'M differs from its transpose by {asymmetry:.3g}; expected a symmetric matrix')
    return _factor(matrix)


def _factor(matrix: Floats) -> Factorization:
    """Factor a valid matrix."""
    lower = matrix.copy()
    status = factor_llt.run(len(matrix), lower)
    if status == 0:
        return Factorization('llt', -1, lower)
    from scipy.linalg import ldl

    lower, diagonal = (np.ascontiguousarray(part) for part in ldl(matrix, lower=True)[:2])
    return Factorization('ldlt', status - 1, lower, diagonal)


def solve_all(M: Floats, b: Floats) -> Floats:
    """x with M x = b, for one matrix (n, n) or a batch (N, n, n); warns if LLT failed.

    Raises:
        ArgumentError: a matrix is singular.
    """
    n, x = M.shape[-1], np.array(b, order='C')
    matrices = np.ascontiguousarray(M.reshape(-1, n, n))
    failed = np.zeros(len(matrices))
    if solve_symmetric.run(n, len(matrices), matrices, x, np.empty((n + 1, n)), failed):
        report_failure(n, n)
    if failed.any():
        report_failure(int(failed[np.argmax(failed > 0.0)]) - 1, n)
    return x


def report_failure(row: int, n: int) -> None:
    """Warn that LLT of an n x n mass matrix failed at a row and LDLT was used; row n: LDLT failed, too.

    Raises:
        ArgumentError: the matrix is singular.
    """
    if row == n:
        raise ArgumentError('the matrix is singular; expected an invertible matrix')
    warnings.warn(
        f'the mass matrix is not positive definite: LLT failed at row {row}, LDLT was used. '
        'The inertial parameters are not physically consistent.',
        FactorizationWarning,
        stacklevel=3,
    )
