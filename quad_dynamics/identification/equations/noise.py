# SPDX-License-Identifier: Apache-2.0
"""Standard deviations of the rows of the equations, estimated from the residuals of a fit.

The covariance of the errors of a sample is a sum of components, C = sum theta_i C_i: one for each row, and
one for the foot forces, C_f = J^T J. The variances theta maximise the likelihood of the residuals r. From any
initial guess,

    theta_i <- theta_i sqrt(sum r^T W C_i W r / sum trace(W C_i)),    W = C^-1,

never decreases the likelihood (Zhou, Hu, Zhou and Lange, MM algorithms for variance components models, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import Columns

if TYPE_CHECKING:
    from quad_dynamics.identification.equations.equations import Equations


_UNKNOWN = 1e4  # factor that makes rows with unknown errors negligible; limited for numerical reasons
_WEIGHTS = 10.0  # standard deviation of an unknown force, relative to the weight of the robot
_MOST_SAMPLES = 1500  # samples that are used
_ITERATIONS = 60
_CLOSE = 0.01  # relative change at which iterations end
_LEAST_ROWS = 20.0  # with fewer rows, the initial standard deviation is kept
_OUTLIER = 4.0  # samples whose errors are this many standard deviations above the median have little weight
_LEAST = 1e-2  # lower bound, relative to the initial value
_WARM_UP = 0.01  # initial value, relative to the weight
_ARM = 0.2  # lever arm of forces [m]


@dataclass(frozen=True, eq=False)
class Noise:
    """Standard deviations of the errors.

    Attributes:
        base: (6,) of force and moment on the base [N, N m]; empty with a fixed base.
        joints: (nj,) of the torques [N m or N].
        force: of each component of a foot force [N]; very large if none was measured.
    """

    base: Floats
    joints: Floats
    force: float


def first_noise(columns: Columns, forces_unknown: bool) -> Noise:
    """Initial values: a hundredth of the weight, and of the torques that carry it.

    Args:
        columns: the unknowns.
        forces_unknown: whether the foot forces were not measured.
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
        J: (n, 3 feet, rows) Jacobians of the feet in stance.
        use: (n, rows) 0 where the error of a row is unknown.
    """
    k = J.shape[2]
    C: Floats = noise.force**2 * np.swapaxes(J, 1, 2) @ J
    C[:, np.arange(k), np.arange(k)] += row_variance(noise, use)
    return C


def row_variance(noise: Noise, use: Floats) -> Floats:
    """(n, rows) variance of the independent error of each row.

    Args:
        noise: standard deviations.
        use: (n, rows) 0 where the error of a row is unknown.
    """
    own = np.concatenate([noise.base, noise.joints])[: use.shape[1]] ** 2
    variance: Floats = own * (1.0 + (1.0 - use) * _UNKNOWN**2)
    return variance


def fit_noise(equations: Equations, x: Floats) -> Noise:
    """Standard deviations that maximise the likelihood of the residuals of a solution.

    Args:
        equations: with the initial noise.
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
    """Largest relative change of any standard deviation."""
    old, new = (np.r_[noise.base, noise.joints, noise.force] for noise in (before, after))
    return float(np.abs(new / old - 1.0).max())


def _look_at(equations: Equations, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Residuals, Jacobians of the feet, and used rows, of samples distributed over all data."""
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
    """Residuals; outliers are scaled down so that a few of them have no influence, however large they are.

    The size of the residuals of a sample, sqrt(r^T W r / k) with k rows, has a standard deviation of 1 /
    sqrt(2 k). It is compared with the median, because the covariance may still be wrong by any factor.
    """
    k = np.maximum(use.sum(axis=1), 1.0)
    size = np.sqrt(np.einsum('ni,nij,nj->n', r, W, r) / k)
    limit = np.median(size) * (1.0 + _OUTLIER / np.sqrt(2.0 * k)) / (1.0 - 2.0 / (9.0 * k)) ** 1.5
    cut: Floats = r * np.minimum(1.0, limit / np.maximum(size, 1e-300))[:, None] ** 2
    return cut
