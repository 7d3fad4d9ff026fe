# SPDX-License-Identifier: Apache-2.0
"""Unconstrained coordinates of consistent inertia: the logarithmic Cholesky factor, ten numbers per body.

The pseudo-inertia P = [[S, h], [h^T, m]], S = int r r^T dm, of a body is positive definite exactly if its
inertia is physically consistent. With an upper triangular factor of the prior, P0 = U0 U0^T,

    P = U0 V V^T U0^T,   V = e^a [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]],

theta = [a, d1, d2, d3, s12, s23, s13, t1, t2, t3] reaches every consistent P, and no other. It is 0 at P0,
and its components are relative changes: 0.1 is large, whatever the size of the body.

Rucker and Wensing, Smooth parameterization of rigid-body inertia, RA-L 2022.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.solvers.pseudo_inertia import margins, pi_of_pseudo_inertia, pseudo_inertia

SIZE = 10  # numbers per body
# Entries of V without the common factor e^a: positions of d, s and t.
_DIAGONAL = ((0, 1, 2), (0, 1, 2))
_ABOVE = ((0, 1, 0, 0, 1, 2), (1, 2, 2, 3, 3, 3))


class LogCholesky:
    """Bodies in logarithmic Cholesky coordinates; several may share one theta.

    Attributes:
        pi0: (n, 10) parameters at theta = 0.
        owner: (n,) theta of each body.
    """

    def __init__(
        self,
        pi0: Floats,
        names: Sequence[str],
        owner: Ints | None = None,
        images: Floats | None = None,
    ) -> None:
        """Use the parameters as the origin.

        Args:
            pi0: (n, 10) parameters.
            names: of the n bodies.
            owner: (n,) theta of each body; None: each has its own.
            images: (n, 3, 3) orthogonal maps from the frame of the first body of that theta, for example for
                another leg; None: the same frame.

        Raises:
            ArgumentError: a body is not physically consistent; the message names it.
        """
        for i in np.flatnonzero(~(margins(pi0) > 0.0))[:1]:
            raise ArgumentError(
                f"body '{names[i]}' is not physically consistent; expected a positive definite pseudo-inertia"
            )
        self.pi0 = np.array(pi0)
        self.owner = np.arange(len(pi0)) if owner is None else owner
        P0 = pseudo_inertia(self.pi0)
        self._F = np.linalg.cholesky(P0[:, ::-1, ::-1])[:, ::-1, ::-1].copy()
        self._leads = np.array(
            [np.flatnonzero(self.owner == k)[0] for k in range(self.count)], dtype=np.int64
        )
        if images is not None:
            for i in np.flatnonzero(self._leads[self.owner] != np.arange(len(pi0))):
                self._F[i] = _turned(P0[i], images[i], self._F[self._leads[self.owner[i]]])

    @property
    def count(self) -> int:
        """Number of thetas."""
        return int(self.owner.max()) + 1 if len(self.owner) else 0

    def pi(self, theta: Floats) -> Floats:
        """(n, 10) parameters at theta (count, 10); theta = 0 gives pi0 to rounding errors."""
        F = self._F @ _factor(theta)[self.owner]
        return pi_of_pseudo_inertia(F @ np.swapaxes(F, -1, -2))

    def jacobian(self, theta: Floats) -> Floats:
        """(n, 10, 10) derivative of the parameters of each body with respect to its theta."""
        V = _factor(theta)
        dV = np.zeros((len(theta), SIZE, 4, 4))
        dV[:, 0] = V
        scale = np.exp(theta[:, 0])
        for k, (i, j) in enumerate(zip(*_DIAGONAL, strict=True), start=1):
            dV[:, k, i, j] = V[:, i, j]
        for k, (i, j) in enumerate(zip(*_ABOVE, strict=True), start=4):
            dV[:, k, i, j] = scale
        F = np.swapaxes(self._F @ V[self.owner], 1, 2)
        half = self._F[:, None] @ dV[self.owner] @ F[:, None]
        dP = half + np.swapaxes(half, 2, 3)
        return np.swapaxes(pi_of_pseudo_inertia(dP), 1, 2)

    def theta(self, pi: Floats) -> Floats:
        """(count, 10) theta of consistent parameters (n, 10); of bodies that share one, that of the first."""
        P = pseudo_inertia(pi[self._leads])
        U = np.linalg.cholesky(P[:, ::-1, ::-1])[:, ::-1, ::-1]
        V = np.linalg.solve(self._F[self._leads], U)
        scale = V[:, 3, 3]
        V = V / scale[:, None, None]
        parts = [np.log(scale)[:, None], np.log(V[(slice(None), *_DIAGONAL)]), V[(slice(None), *_ABOVE)]]
        return np.concatenate(parts, axis=1)


def _turned(P0: Floats, image: Floats, lead: Floats) -> Floats:
    """A factor F of P0 = F F^T that is as close as possible to the image of the factor of the first body.

    If P0 is the image of the first body, F is the image of its factor.
    """
    M = np.eye(4)
    M[:3, :3] = image
    values, vectors = np.linalg.eigh(P0)
    root = (vectors * np.sqrt(values)) @ vectors.T
    left, _, right = np.linalg.svd(np.linalg.solve(root, M @ lead))
    return np.asarray(root @ left @ right)


def _factor(theta: Floats) -> Floats:
    """(n, 4, 4) V of theta (n, 10)."""
    V = np.zeros((len(theta), 4, 4))
    V[(slice(None), *_DIAGONAL)] = np.exp(theta[:, 1:4])
    V[(slice(None), *_ABOVE)] = theta[:, 4:]
    V[:, 3, 3] = 1.0
    return V * np.exp(theta[:, 0])[:, None, None]
