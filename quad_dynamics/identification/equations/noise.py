# SPDX-License-Identifier: Apache-2.0
"""How unsure the rows of the equations are, found from what is left of them after a fit.

The covariance of the errors of a sample is a sum of parts, C = sum theta_i C_i: one for each row, and one for
the forces at the feet, C_f = J^T J. Their sizes theta are those that make the residuals r most likely. From
any guess,

    theta_i <- theta_i sqrt(sum r^T W C_i W r / sum trace(W C_i)),    W = C^-1,

never makes them less likely (Zhou, Hu, Zhou and Lange, MM algorithms for variance components models, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import Columns

if TYPE_CHECKING:
    from quad_dynamics.identification.equations.equations import Equations


_UNKNOWN = 1e4  # how much less a row of which nothing is known counts; numbers must stay comparable
_WEIGHTS = 10.0  # standard deviation of a force of which nothing is known, in weights of the robot
_MOST_SAMPLES = 1500  # that are looked at
_ITERATIONS = 60
_CLOSE = 0.01  # relative change that ends them
_LEAST_ROWS = 20.0  # from fewer no standard deviation is taken: that which was assumed first stays
_OUTLIER = 4.0  # a sample whose errors are so many standard deviations larger than usual counts little
_LEAST = 1e-2  # of what was assumed first; rows are never quite certain
_WARM_UP = 0.01  # what is assumed first, as a part of the weight
_ARM = 0.2  # of forces [m]


@dataclass(frozen=True, eq=False)
class Noise:
    """Standard deviations of the errors.

    Attributes:
        base: (6,) of force and moment on the base [N, N m]; empty with a fixed base.
        joints: (nj,) of the torques [N m or N].
        force: of each component of a foot's force [N]; very large where none was measured.
    """

    base: Floats
    joints: Floats
    force: float


def first_noise(columns: Columns, forces_unknown: bool) -> Noise:
    """What is assumed before anything is known: a hundredth of the weight, and of torques that carry it.

    Args:
        columns: the unknowns.
        forces_unknown: whether the forces at the feet were not measured.
    """
    model = columns.model
    force = max(model.total_mass, 1e-3) * 9.81 * _WARM_UP
    base = np.repeat([force, force * _ARM], 3) if model.floating_base else np.empty(0)
    return Noise(
        base, np.full(model.nj, force * _ARM), force * _WEIGHTS / _WARM_UP if forces_unknown else force
    )


def covariance(noise: Noise, J: Floats, use: Floats) -> Floats:
    """(n, rows, rows) covariance of the errors of the rows of n samples.

    Args:
        noise: standard deviations.
        J: (n, 3 feet, rows) Jacobians of the feet that stand.
        use: (n, rows) 0 where nothing is known of a row's error.
    """
    k = J.shape[2]
    C: Floats = noise.force**2 * np.swapaxes(J, 1, 2) @ J
    C[:, np.arange(k), np.arange(k)] += row_variance(noise, use)
    return C


def row_variance(noise: Noise, use: Floats) -> Floats:
    """(n, rows) variance of the errors that each row has of its own.

    Args:
        noise: standard deviations.
        use: (n, rows) 0 where nothing is known of a row's error.
    """
    own = np.concatenate([noise.base, noise.joints])[: use.shape[1]] ** 2
    variance: Floats = own * (1.0 + (1.0 - use) * _UNKNOWN**2)
    return variance


def fit_noise(equations: Equations, x: Floats) -> Noise:
    """The standard deviations that make the residuals of a solution most likely.

    Args:
        equations: with the noise to begin from.
        x: (size,) solution.
    """
    r, J, use = _look_at(equations, x)
    unknown = equations.mode == 'projection'
    noise, first = equations.noise, first_noise(equations.columns, unknown)
    k, n_base = r.shape[1], len(noise.base)
    for _ in range(_ITERATIONS):
        W = np.asarray(np.linalg.inv(covariance(noise, J, use)), dtype=np.float64)
        Wr = (W @ _cut(W, r, use)[..., None])[..., 0]
        own = np.sqrt(np.sum(Wr**2 * use, axis=0) / np.maximum(np.einsum('nii,ni->i', W, use), 1e-300))
        scale = np.ones(n_base + len(noise.joints))
        scale[:k] = np.sqrt(np.where(use.sum(axis=0) >= _LEAST_ROWS, own, 1.0))
        force = noise.force
        if not unknown and J.size:
            trace = np.sum(W * (np.swapaxes(J, 1, 2) @ J))
            force *= float(np.sqrt(np.sqrt(np.sum((J @ Wr[..., None]) ** 2) / max(trace, 1e-300))))
        before = noise
        noise = Noise(
            np.maximum(noise.base * scale[:n_base], first.base * _LEAST),
            np.maximum(noise.joints * scale[n_base:], first.joints * _LEAST),
            force if unknown else max(force, first.force * _LEAST),
        )
        if largest_change(before, noise) < _CLOSE:
            break
    return noise


def largest_change(before: Noise, after: Noise) -> float:
    """Relative, of any standard deviation."""
    old, new = (np.r_[noise.base, noise.joints, noise.force] for noise in (before, after))
    return float(np.abs(new / old - 1.0).max())


def _look_at(equations: Equations, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Residuals, Jacobians of the feet, and which rows count, of samples from all over the data."""
    every = max(1, -(-len(equations.samples) // _MOST_SAMPLES))
    parts: list[tuple[Floats, Floats, Floats]] = []
    done = 0
    for rows in equations.samples.chunks():
        picked = rows[(-done) % every :: every]
        done += len(rows)
        Y, y = equations.raw(picked)
        J = equations.foot_jacobians(picked)[:, :, : equations.rows]
        parts.append((y - Y @ x, J, equations.use(picked)))
    r, J, use = (np.concatenate(each) for each in zip(*parts, strict=True))
    return r, J, use


def _cut(W: Floats, r: Floats, use: Floats) -> Floats:
    """Residuals; those of outliers are made so small that a few of them, however large, say nothing.

    The size of the residuals of a sample, sqrt(r^T W r / k) with k rows, spreads by 1 / sqrt(2 k). What is
    usual is the median: the covariance may be wrong by any factor as yet.
    """
    k = np.maximum(use.sum(axis=1), 1.0)
    size = np.sqrt(np.einsum('ni,nij,nj->n', r, W, r) / k)
    limit = np.median(size) * (1.0 + _OUTLIER / np.sqrt(2.0 * k)) / (1.0 - 2.0 / (9.0 * k)) ** 1.5
    cut: Floats = r * np.minimum(1.0, limit / np.maximum(size, 1e-300))[:, None] ** 2
    return cut
