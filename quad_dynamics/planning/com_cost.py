# SPDX-License-Identifier: Apache-2.0
"""The cost of a motion of the centre of mass, and its factorisation.

It is the sum of the integrals of squared accelerations (6), of squared distances from the path and of squared
velocity differences from it, of the deviation at the end (7), and of the change of the initial acceleration.
All terms are quadratic in z = [known; u] of `com_segments.py`, with one matrix for the axes x and y of the
ground and another for its normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.com_problem import ComWeights
from quad_dynamics.planning.com_segments import KNOWN, Segments, acceleration_matrix, path_matrix


@dataclass(frozen=True, eq=False)
class Cost:
    """z^T H z - 2 f^T z + constant, summed over the axes.

    Attributes:
        H: (3, columns, columns) for each axis.
        f: (columns, 3).
        constant: cost of z = 0.
    """

    H: Floats
    f: Floats
    constant: float

    def value(self, z: Floats) -> float:
        """Cost of z (columns, 3)."""
        square = sum(float(z[:, axis] @ self.H[axis] @ z[:, axis]) for axis in range(3))
        return square - 2.0 * float(np.vdot(self.f, z)) + self.constant


@dataclass(frozen=True, eq=False)
class FactorisedCost:
    """The cost as half the square of y = L^T (u - best) in each axis, plus that of the optimum.

    Attributes:
        best: (unknowns, 3) u with the lowest cost.
        value: its cost.
        L: (3, unknowns, unknowns) lower triangular.
        inverse: (3, unknowns, unknowns) L^-T.
    """

    best: Floats
    value: float
    L: Floats
    inverse: Floats

    def unknowns(self, y: Floats) -> Floats:
        """(unknowns, 3) u of y (3, unknowns)."""
        return np.asarray(self.best + np.matmul(self.inverse, y[:, :, None])[:, :, 0].T)

    def whitened(self, u: Floats) -> Floats:
        """(3, unknowns) y of u."""
        return np.asarray(np.matmul((u - self.best).T[:, None, :], self.L)[:, 0, :])


def motion_cost(
    segments: Segments, X_path: Floats, end: Floats, acceleration: Floats, weights: ComWeights
) -> Cost:
    """Assemble the cost.

    Args:
        segments: of the motion.
        X_path: (n, 6, 3) the path in the segments.
        end: (2, 3) desired position and velocity at the end.
        acceleration: (3,) at the start.
        weights: of the terms.
    """
    T, E = segments.durations, segments.E
    n, columns = len(T), E.shape[2]
    rows = E.reshape(6 * n, columns)
    p_end, v_end = E[-1, 3], E[-1, 4] / T[-1]
    w_p, w_v, w_a = weights.final_position, weights.final_velocity, weights.start_acceleration
    final = w_p * (p_end[:, None] * p_end) + w_v * (v_end[:, None] * v_end)
    square = weights.acceleration * acceleration_matrix(T)
    H, f = np.empty((3, columns, columns)), np.empty((columns, 3))
    constant = w_p * float(end[0] @ end[0]) + w_v * float(end[1] @ end[1])
    for axes, weight in ((slice(0, 2), weights.path_position), (slice(2, 3), weights.path_height)):
        on_path = path_matrix(T, weight, weights.path_velocity)
        pull = on_path @ X_path[:, :, axes]
        H[axes] = rows.T @ ((square + on_path) @ E).reshape(6 * n, columns) + final
        f[:, axes] = rows.T @ pull.reshape(6 * n, -1)
        constant += float(np.vdot(pull, X_path[:, :, axes]))
    f += w_p * p_end[:, None] * end[0] + w_v * v_end[:, None] * end[1]
    first = segments.first_acceleration
    if first >= 0:
        H[:, first, first] += w_a
        f[first] += w_a * acceleration
        constant += w_a * float(acceleration @ acceleration)
    return Cost(H, f, constant)


def factorise(cost: Cost, known: Floats) -> FactorisedCost:
    """Factorise the Hessian 2 H of the unknowns, with the known part (KNOWN, 3) of z inserted.

    Raises:
        LinAlgError: it is not positive definite.
    """
    # the matrices of x and y are the same
    H = 2.0 * cost.H[1:, KNOWN:, KNOWN:]
    L: Floats = np.asarray(np.linalg.cholesky(H), dtype=np.float64)[[0, 0, 1]]
    inverse: Floats = np.asarray(np.linalg.inv(L[1:]), dtype=np.float64)[[0, 0, 1]].transpose(0, 2, 1)
    slope = 2.0 * cost.f[KNOWN:].T - 2.0 * np.matmul(known.T[:, None, :], cost.H[:, :KNOWN, KNOWN:])[:, 0]
    best = np.matmul(inverse, np.matmul(slope[:, None, :], inverse).transpose(0, 2, 1))[:, :, 0].T
    return FactorisedCost(best, cost.value(np.concatenate([known, best])), L, inverse)
