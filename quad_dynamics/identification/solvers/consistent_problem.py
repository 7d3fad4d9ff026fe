# SPDX-License-Identifier: Apache-2.0
"""The cost function of the consistent solver, with its derivatives, in well-scaled coordinates.

In double precision, the sum of a precise data term and a weak prior loses the prior to rounding errors, where
the data contain no information. Therefore the coordinates y are chosen such that the prior is 1 (to second
order) and the data term is diagonal.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.prior import prior_precision
from quad_dynamics.identification.solvers.pseudo_inertia import BASIS, pseudo_inertia

# Eigenvalues of the data term, in units of the prior, below this fraction of the largest are rounding errors.
_RANK = 1e-12
_INWARD = 0.8  # fraction of the way from the prior to a given start that is used
_START = 1e-2  # friction of a start from zero, in standard deviations of its prior


class ConsistentProblem:
    """One data set with its priors, to be solved for several weights.

    Attributes:
        freedom: the free unknowns.
        noise: s^2, variance of the whitened rows.
        scales: (size,) prior standard deviations of all unknowns except inertia.
        values: (nz,) curvature of the data term along each y; 0 where the data contain no information.
        c: (nz,) negative gradient of the data term at y = 0.
        Z: (nz, nz) z = Z y.
        L: (nz, nz) factor of the prior's curvature.
        V: (nz, nz) eigenvectors: y = V^T L^T z.
        gain: largest possible decrease of the data term.
        B: (bodies, 10, nz) inertial parameters of each body as functions of y.
        E: (bodies, 10, 4, 4) pseudo-inertia of each body as a function of its inertial parameters.
        bounded: indices of unknowns that cannot be negative.
        C: (n, nz) these unknowns and the slacks of the plausibility limits as functions of y; floor is their
            value at y = 0.
        ridge: (nz, nz) curvature of the weak priors.
    """

    def __init__(self, normal: NormalEquations, freedom: Freedom, scales: Floats, noise: float) -> None:
        """Transform everything into coordinates in which it is diagonal.

        Args:
            normal: normal equations.
            freedom: the free unknowns.
            scales: (size,) prior standard deviations of all unknowns except inertia.
            noise: variance of the whitened rows.
        """
        self.freedom, self.noise, self.scales = freedom, noise, scales
        T, x0 = freedom.T, freedom.x0
        H = T.T @ normal.YtY @ T / noise
        g = T.T @ (normal.Yty - normal.YtY @ x0) / noise
        # z = L^-T V y: the prior is the identity, and the data term is diagonal.
        self.L = _root(prior_precision(freedom, scales))
        inverse = np.linalg.inv(self.L)
        scaled = inverse @ H @ inverse.T
        values, self.V = np.linalg.eigh(0.5 * (scaled + scaled.T))
        signal = values > _RANK * max(float(values.max(initial=0.0)), 1e-300)
        self.values = np.where(signal, values, 0.0)
        self.c = np.where(signal, self.V.T @ (inverse @ g), 0.0)
        self.Z = inverse.T @ self.V
        gain = float(np.sum(self.c[signal] ** 2 / self.values[signal])) / 2.0
        self.gain = gain
        self.precision = np.diag(H) + 1.0 / scales[freedom.lead] ** 2
        self._priors(scales)

    def _priors(self, scales: Floats) -> None:
        """Bodies, bounds and weak priors, all as functions of y."""
        freedom = self.freedom
        pi_rows = freedom.T.reshape(-1, freedom.nz)
        bodies = freedom.bodies
        rows = (10 * bodies[:, None] + np.arange(10)).reshape(-1)
        self.B = (pi_rows[rows] @ self.Z).reshape(len(bodies), 10, freedom.nz)
        self.B2 = self.B.reshape(-1, freedom.nz)
        P0 = pseudo_inertia(freedom.x0[rows].reshape(-1, 10))
        L = np.linalg.cholesky(P0)
        inverse = np.linalg.inv(L)
        # Basis of P0^-1/2 P P0^-1/2, in which every prior is the identity.
        self.E = np.einsum('bij,ajk,blk->bail', inverse, BASIS, inverse)
        self.trace = np.einsum('baii->ba', self.E)
        self.bounded = freedom.bounded
        self.C = freedom.T[self.bounded] @ self.Z
        self.floor = freedom.x0[self.bounded]
        if freedom.limits is not None:
            slopes = freedom.limits.rows @ freedom.T
            concern = np.any(slopes != 0.0, axis=1)
            slacks = slopes[concern] / freedom.limits.room[concern, None]  # those of the prior are 1
            self.C = np.concatenate([self.C, slacks @ self.Z])
            self.floor = np.concatenate([self.floor, np.ones(len(slacks))])
        weak = 1.0 / scales[freedom.lead] ** 2
        self.weak = weak
        F = np.concatenate([np.sqrt(weak)[:, None] * self.Z, freedom.soft @ freedom.T @ self.Z])
        self.ridge = F.T @ F

    # ---------------------------------------------------------------- the function

    def shape(self, y: Floats) -> Floats:
        """(bodies, 4, 4) P_i relative to its prior."""
        return np.asarray(np.eye(4) + self.combine(self.B @ y))

    def combine(self, delta: Floats) -> Floats:
        """(bodies, 4, 4) matrices of changes (bodies, 10) of inertial parameters."""
        return np.asarray((delta[:, None] @ self.E.reshape(-1, 10, 16)).reshape(-1, 4, 4))

    def slack(self, y: Floats) -> Floats:
        """Friction, rotors and the slacks of plausibility limits, which cannot be negative."""
        return np.asarray(self.floor + self.C @ y)

    def value(self, y: Floats, weight: float, mu: float) -> float:
        """The cost with its barriers; inf outside."""
        slack = self.slack(y)
        if np.any(slack <= 0.0):
            return np.inf
        try:
            L = np.linalg.cholesky(self.shape(y))
        except np.linalg.LinAlgError:
            return np.inf
        D = np.sum((self.B @ y) * self.trace) - 2.0 * np.sum(np.log(np.einsum('bii->bi', L)))
        data = 0.5 * float(self.values @ y**2) - float(self.c @ y) + 0.5 * float(y @ self.ridge @ y)
        return data + weight * float(D) - mu * float(np.sum(np.log(slack)))

    def gradient(self, y: Floats, weight: float, tau: float, mu: float, inverse: Floats) -> Floats:
        """(nz,) gradient of `value`, with a separate factor tau of the log-det terms.

        Args:
            y: (nz,).
            weight: of the divergences.
            tau: of the log-det terms; the weight, or more while it decreases.
            mu: weight of the friction barrier.
            inverse: (bodies, 4, 4) of `shape`.
        """
        # tr(E) - tr(P^-1 E) = tr((P - 1) P^-1 E), without cancellation near the prior.
        moved = self.combine(self.B @ y) @ inverse
        flat = self.E.reshape(-1, 10, 16) @ moved.reshape(-1, 16, 1)
        slopes = (weight - tau) * self.trace + tau * flat[..., 0]
        data = self.values * y - self.c + self.ridge @ y
        return np.asarray(data + slopes.reshape(-1) @ self.B2 - mu * (1.0 / self.slack(y)) @ self.C)

    def curvature(self, K: Floats) -> Floats:
        """(nz, nz) tr(K E_a K E_b), summed over bodies: the Hessian of -log det P for K = P^-1."""
        KE, nb = K[:, None] @ self.E, len(K)
        each = KE.reshape(nb, 10, 16) @ np.swapaxes(KE, 2, 3).reshape(nb, 10, 16).swapaxes(1, 2)
        return np.asarray(self.B2.T @ (each @ self.B).reshape(-1, self.freedom.nz))

    def hessian(self, K: Floats, stiffness: Floats) -> Floats:
        """(nz, nz) Hessian of data and priors, with the curvature for K and the stiffnesses of the bounds."""
        result = self.ridge + self.curvature(K)
        result += (self.C.T * stiffness) @ self.C
        result[np.diag_indices(len(result))] += self.values
        return np.asarray(result)

    # ---------------------------------------------------------------- to and fro

    def start(self, x: Floats | None = None) -> Floats:
        """(nz,) y of the prior or of x, with a little friction if there is none."""
        z = np.zeros(self.freedom.nz) if x is None else (x - self.freedom.x0)[self.freedom.lead]
        if x is not None and self.freedom.limits is not None:
            z = _INWARD * z  # steps from a reached limit would be short; the prior is inside
        for row, x0 in zip(self.bounded, self.floor[: len(self.bounded)], strict=True):
            k = int(np.flatnonzero(self.freedom.T[row])[0])
            least = _START / np.sqrt(self.weak[k])
            z[k] = max(z[k], least - x0)
        return np.asarray(self.V.T @ (self.L.T @ z))

    def x(self, y: Floats, mu: float) -> Floats:
        """(size,) all unknowns; friction that is positive only because of the barrier is set to zero."""
        x = self.freedom.x(self.Z @ y)
        first = [np.flatnonzero(self.freedom.T[row])[0] for row in self.bounded]
        size = 1.0 / np.sqrt(self.precision[first])
        x[self.bounded] = np.where(x[self.bounded] < 2.0 * np.sqrt(mu) * size, 0.0, x[self.bounded])
        return x


def _root(precision: Floats) -> Floats:
    """L with L L^T = matrix; lower triangular up to scaling."""
    d = np.sqrt(np.diag(precision))
    scaled = precision / np.outer(d, d)
    for jitter in (0.0, 1e-14, 1e-12, 1e-10):
        try:
            return np.asarray(d[:, None] * np.linalg.cholesky(scaled + jitter * np.eye(len(d))))
        except np.linalg.LinAlgError:  # a nearly singular body
            continue
    return np.diag(d)
