# SPDX-License-Identifier: Apache-2.0
"""Coordinates s of all free unknowns in which every inertia is physically consistent.

For each free body, ten of them are its logarithmic Cholesky factor, relative to the prior. The others are
friction, rotors and biases themselves, with bounds if they cannot be negative. s = 0 is the prior.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.log_cholesky import LogCholesky
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.solution import Solution

_LEARNT = 0.2  # an unknown is identified if its uncertainty is reduced to this fraction


class Chart:
    """x as a smooth function of s.

    Attributes:
        freedom: free and tied unknowns.
        size: number of coordinates.
        n_inertia: number of logarithmic Cholesky factors, which come first.
        names: of each coordinate, such as 'FL_calf.theta0' and 'FL_calf_joint.viscous'.
        lower: (size,) bounds; -inf if there is none.
    """

    def __init__(self, freedom: Freedom) -> None:
        """Determine the coordinates.

        Raises:
            ArgumentError: a body is only partly free, or its prior is not consistent.
        """
        self.freedom = freedom
        columns = freedom.columns
        inertia = np.array([group == 'inertia' for group in freedom.groups], dtype=bool)
        self._leads = self._whole_bodies(freedom.lead[inertia])
        self._plain_T = freedom.T[:, ~inertia]
        self.bodies, owner, images = self._ties(freedom.T[:, inertia])
        names = [columns.model.body_names[body] for body in self.bodies]
        pi0 = freedom.x0[columns.slices['pi']].reshape(-1, 10)
        self.inertia = LogCholesky(pi0[self.bodies], names, owner, images)
        self.n_inertia = 10 * len(self._leads)
        self.size = self.n_inertia + self._plain_T.shape[1]
        self.plain_lead: Ints = freedom.lead[~inertia]
        leads = [columns.model.body_names[body] for body in self._leads]
        plain = [columns.names[i] for i in self.plain_lead]
        self.names = (*(f'{body}.theta{k}' for body in leads for k in range(10)), *plain)
        self.lower = self._lower()

    def _whole_bodies(self, lead: Ints) -> Ints:
        """Indices of the leading bodies, each with ten unknowns in their order."""
        bodies, counts = np.unique(lead // 10, return_counts=True)
        for body in bodies[counts != 10][:1]:
            name = self.freedom.columns.model.body_names[body]
            raise ArgumentError(
                f"body '{name}' is free in part; logarithmic Cholesky factors need all of it free"
            )
        return np.asarray(bodies, dtype=np.int64)

    def _ties(self, T: Floats) -> tuple[Ints, Ints, Floats]:
        """Bodies that change, the leading one first; the theta that each follows; and its image (3, 3)."""
        bodies, owner, images = [], [], []
        for k in range(len(self._leads)):
            block = T[:, 10 * k : 10 * k + 10]
            for body in range(self.freedom.columns.model.nb):
                part = block[10 * body : 10 * body + 10]
                if part.any():
                    bodies.append(body)
                    owner.append(k)
                    images.append(part[1:4, 1:4])
        order = np.argsort([body not in self._leads for body in bodies], kind='stable')
        pick = np.array(order, dtype=np.int64)
        return (
            np.array(bodies, dtype=np.int64)[pick],
            np.array(owner, dtype=np.int64)[pick],
            np.array(images, dtype=np.float64).reshape(-1, 3, 3)[pick],
        )

    def _lower(self) -> Floats:
        """Bounds of s: x = x0 + T s must not be negative where it is bounded."""
        lower = np.full(self.size, -np.inf)
        x0, bounded = self.freedom.x0, self.freedom.bounded
        for k in range(self._plain_T.shape[1]):
            moved = bounded[self._plain_T[bounded, k] != 0.0]
            if len(moved):
                lower[self.n_inertia + k] = -float(x0[moved].min())
        return lower

    def x(self, s: Floats) -> Floats:
        """(size of x,) all unknowns."""
        x = self.freedom.x0 + self._plain_T @ s[self.n_inertia :]
        pi = x[self.freedom.columns.slices['pi']].reshape(-1, 10)
        pi[self.bodies] = self.inertia.pi(s[: self.n_inertia].reshape(-1, 10))
        return np.asarray(x)

    def jacobian(self, s: Floats) -> Floats:
        """(size of x, size) derivative of x."""
        J = np.zeros((len(self.freedom.x0), self.size))
        J[:, self.n_inertia :] = self._plain_T
        blocks = self.inertia.jacobian(s[: self.n_inertia].reshape(-1, 10))
        for body, k, block in zip(self.bodies, self.inertia.owner, blocks, strict=True):
            J[10 * body : 10 * body + 10, 10 * k : 10 * k + 10] = block
        return J

    def s(self, x: Floats) -> Floats:
        """(size,) coordinates of x (size of x,), whose free bodies are consistent; the inverse of `x`."""
        pi = x[self.freedom.columns.slices['pi']].reshape(-1, 10)
        change = x[self.plain_lead] - self.freedom.x0[self.plain_lead]
        return np.concatenate([self.inertia.theta(pi[self.bodies]).ravel(), change])

    def spread(self, inertia: float, friction: float = 1.0) -> Floats:
        """(size,) standard deviations of the prior of each coordinate.

        Args:
            inertia: relative, of bodies [-].
            friction: of all others, as a multiple of `friction_scales` [-].
        """
        scales = friction_scales(self.freedom.columns)[self.plain_lead]
        return np.concatenate([np.full(self.n_inertia, inertia), friction * scales])

    def solution(
        self, s: Floats, covariance: Floats, spread: Floats, method: str, notes: Sequence[str]
    ) -> Solution:
        """The solution with its confidence, from data and prior.

        Args:
            s: (size,) coordinates.
            covariance: (size, size) of them.
            spread: (size,) standard deviations of the prior.
            method: name of the solver.
            notes: as text.
        """
        x, J, free = self.x(s), self.jacobian(s), self.freedom.free
        std = np.sqrt(np.maximum(np.einsum('ij,jk,ik->i', J, covariance, J, optimize=True), 0.0))
        before = np.sqrt(np.sum((J * spread) ** 2, axis=1))
        std = np.where(free, std, np.nan)
        return Solution(
            columns=self.freedom.columns,
            x=x,
            free=free,
            identified=free & (std < _LEARNT * before),
            std=std,
            low=x - 1.96 * std,
            high=x + 1.96 * std,
            method=method,
            choices=(*self.freedom.notes, *notes),
        )
