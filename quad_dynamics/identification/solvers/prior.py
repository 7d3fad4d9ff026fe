# SPDX-License-Identifier: Apache-2.0
"""Weak priors of friction, rotors and sensor errors.

They are weak on purpose: they only matter where the data contain no information.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.api.dynamics import gravity, mass_matrix
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.pseudo_inertia import BASIS, pseudo_inertia
from quad_dynamics.model.model import Model

_POSES = 32  # random poses over which torques are averaged
_ALIKE = 0.3  # smallest ratio between drives of one robot: those of wrists are larger than necessary
_LOSS = 0.05  # friction relative to the maximum torque of a drive
_FAST = 6.0  # maximum speed of a joint without a limit [rad/s or m/s]
_BRISK = 10.0  # acceleration of a fast motion [rad/s^2 or m/s^2]
ROTOR = 10.0  # armature relative to the inertia that the joint moves: geared wrists reach this
_PLACE = 0.04  # smallest error of the com of a model whose parameters are 100 % wrong [m]
_DELAY = 2e-3  # residual delay [s]
_BIAS = 0.05  # bias of a force sensor relative to the weight


def friction_scales(columns: Columns) -> Floats:
    """(size,) prior standard deviations; inf for inertial parameters, which have another prior."""
    model = columns.model
    torque, inertia = _typical(model)
    scales = np.full(columns.size, np.inf)
    effort = np.where(np.isfinite(model.effort_limit), model.effort_limit, 0.0)
    friction = np.maximum(np.maximum(torque, _ALIKE * torque.max(initial=0.0)), _LOSS * effort)
    limit = np.where(np.isfinite(model.velocity_limit), model.velocity_limit, _FAST)
    for kind in ('coulomb', 'offset', 'stribeck'):
        scales[columns.slices[kind]] = friction
    for kind in ('viscous', 'asymmetric'):  # equal to Coulomb friction at a third of the maximum speed
        scales[columns.slices[kind]] = friction / np.clip(0.3 * limit, 1.0, 5.0)
    # The rotor of the last joint is not as small as the flange that it turns: it scales with its drive.
    rotor = ROTOR * np.maximum(inertia, friction * np.median(inertia / friction))
    scales[columns.slices['rotor']] = rotor / model.rotor_gear**2
    scales[columns.slices['bias']] = _BIAS * max(model.total_mass, 1e-3) * 9.81
    scales[columns.slices['delay']] = _DELAY
    return scales


def _typical(model: Model) -> tuple[Floats, Floats]:
    """(nj,) torque of a fast motion under gravity, and inertia that each joint moves; over random poses."""
    rng = np.random.default_rng(0)
    low, high = np.maximum(model.q_min, -np.pi), np.minimum(model.q_max, np.pi)
    high = np.maximum(high, low)
    torque, inertia = np.zeros(model.nj), np.zeros(model.nj)
    for _ in range(_POSES):
        q = model.neutral.copy()
        q[len(q) - model.nj :] = rng.uniform(low, high)
        inertia += np.diag(mass_matrix(model, q))[model.nv - model.nj :] / _POSES
        torque += gravity(model, q)[model.nv - model.nj :] ** 2 / _POSES
    inertia = np.maximum(inertia, 1e-9)
    return np.sqrt(torque) + _BRISK * inertia, inertia


def prior_precision(freedom: Freedom, scales: Floats, soft: float = 0.0) -> Floats:
    """(nz, nz) precision (inverse covariance) of each unknown, for a prior weight of 1.

    Args:
        freedom: the free unknowns.
        scales: (size,) from `friction_scales`.
        soft: fraction of a body's extent that is added in all directions. The divergence keeps a thin plate
            thin, but the error of its com does not decrease with its thickness.
    """
    result = np.diag(1.0 / scales[freedom.lead] ** 2)
    pi = freedom.x0[freedom.columns.slices['pi']].reshape(-1, 10)
    for i in freedom.bodies:
        P = pseudo_inertia(pi[i])
        extent = np.trace(P[:3, :3]) - P[:3, 3] @ P[:3, 3] / P[3, 3]
        P[:3, :3] += soft * (extent + P[3, 3] * _PLACE**2) * np.eye(3)
        inverse = np.linalg.inv(np.linalg.cholesky(P))
        E = (inverse @ BASIS @ inverse.T).reshape(10, 16)
        rows = freedom.T[10 * i : 10 * i + 10]
        result += rows.T @ (E @ E.T) @ rows
    return np.asarray(result)
