# SPDX-License-Identifier: Apache-2.0
"""Information of a motion about the base parameters: its information matrix, and two criteria.

The base parameters are the columns of the regressor that a QR factorisation with pivoting selects over random
motions. Links, viscous and Coulomb friction and offsets are included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from quad_dynamics.api.regression import regressor
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.equations.columns import Columns, make_columns
from quad_dynamics.identification.equations.noise import covariance, first_noise
from quad_dynamics.identification.excitation.excitation_motion import HeldBase, Standing, States
from quad_dynamics.identification.excitation.lifted import Lifted

_KINDS = ('viscous', 'coulomb', 'offset')
_SLOW = 0.1  # below this speed the sign of a velocity is smoothed, as by filters [rad/s or m/s]
_RANK = 1e-6  # columns of unit length with a smaller independent part are combinations of others
_RANDOM = 400  # states from which the base parameters are computed
_SOFT = 8  # exponent of the soft minimum of eigenvalues, which makes a condition number differentiable


@dataclass(frozen=True, eq=False)
class Quality:
    """Quality of a motion.

    Attributes:
        condition: condition number of the equations, columns scaled to length 1.
        log_det: of the information matrix of all samples.
        std: (base parameters,) predicted standard deviations for white noise.
        names: of the base parameters.
    """

    condition: float
    log_det: float
    std: Floats
    names: tuple[str, ...]


class Information:
    """The information matrix of motions of one robot.

    Attributes:
        columns: all unknowns.
        base: indices of the base parameters among them.
    """

    def __init__(self, motion: HeldBase | Standing | Lifted, seed: int) -> None:
        """Determine the base parameters.

        Args:
            motion: type of motion.
            seed: of the random motions.
        """
        self._motion, model = motion, motion.model
        self.columns: Columns = make_columns(model)
        self._noise = first_noise(self.columns, forces_unknown=False)
        own = self._own = motion.leg if isinstance(motion, Lifted) else motion.joints
        # Rows of fixed joints, and of a resting base, contain no information about moving joints.
        self._rows = np.arange(model.nv) if isinstance(motion, Standing) else model.nv - model.nj + own
        kinds = [self.columns.slices[kind].start + own for kind in _KINDS]
        self._all = np.concatenate([np.arange(10 * model.nb), *kinds])
        self.base = np.arange(len(self._all))
        rng = np.random.default_rng(seed)
        shape = (_RANDOM, len(motion.scale))
        s = rng.uniform(-0.3, 0.3, shape) * motion.scale
        ds, dds = 3.0 * rng.normal(size=shape) * motion.scale, 10.0 * rng.normal(size=shape) * motion.scale
        self.base = self._independent(self.rows(motion.states(s, ds, dds)))

    def _independent(self, Y: Floats) -> Ints:
        stacked = Y.reshape(-1, Y.shape[-1])
        length = np.linalg.norm(stacked, axis=0)
        moves = np.flatnonzero(length > 1e-9 * length.max())
        R, order = qr(stacked[:, moves] / length[moves], mode='r', pivoting=True)
        size = np.abs(np.diag(R))
        rank = int(np.count_nonzero(size > _RANK * size[0]))
        return np.asarray(np.sort(moves[order[:rank]]))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters; each is that of its first unknown."""
        return tuple(self.columns.names[self._all[i]] for i in self.base)

    def rows(self, states: States) -> Floats:
        """(n, rows, base parameters) whitened rows."""
        model, own, nv = self._motion.model, self._own, self._motion.model.nv
        inertial = 10 * model.nb
        first = nv - model.nj
        Y = np.zeros((len(states.q), nv, len(self._all)))
        Y[..., :inertial] = regressor(model, states.q, states.u, states.du)
        velocity = states.u[:, first:][:, own]
        friction = (velocity, np.tanh(velocity / _SLOW), np.ones_like(velocity))
        for kind, values in enumerate(friction):
            at = inertial + kind * len(own) + np.arange(len(own))
            Y[:, first + own, at] = values
        Y = Y[:, self._rows][..., self.base]
        if not isinstance(self._motion, Standing):
            return np.asarray(Y / self._noise.joints[own][:, None])
        C = covariance(self._noise, states.contact, np.ones((len(Y), nv)))
        return np.asarray(np.linalg.inv(np.linalg.cholesky(C)) @ Y)

    def matrix(self, Y: Floats) -> Floats:
        """(base parameters, base parameters) mean information of a sample."""
        stacked = Y.reshape(-1, Y.shape[-1])
        return np.asarray(stacked.T @ stacked / len(Y))

    def quality(self, A: Floats, samples: float) -> Quality:
        """Quality of this many samples with the mean information A."""
        scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
        values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
        values = np.maximum(values, 1e-300)
        variance = (vectors**2 / values).sum(axis=1) / samples
        log_det = float(np.log(values).sum() + 2.0 * np.log(scale).sum() + len(values) * np.log(samples))
        condition = float(np.sqrt(values[-1] / values[0]))
        return Quality(condition, log_det, np.sqrt(variance) / scale, self.names)


def judge(A: Floats, criterion: str) -> tuple[float, Floats]:
    """Value of the criterion, which is minimised, and its derivative with respect to A.

    Args:
        A: (p, p) information matrix.
        criterion: one of `CRITERIA`. For 'condition' the columns are scaled to length 1, and the smallest
            eigenvalues are combined to a soft minimum.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    if criterion == 'd-optimal':
        quick = _by_cholesky(A * np.outer(scale, scale))
        if quick is not None:
            log_det, inverse = quick
            value = -(log_det - 2.0 * np.log(scale).sum()) / len(A)
            return float(value), -np.outer(scale, scale) * inverse / len(A)
    values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
    # eigenvalues below double precision are meaningless, and any step away from there is good
    floor = 1e-14 * values[-1]
    values = np.maximum(values, floor)
    if criterion == 'd-optimal':
        value = -(np.log(values).sum() - 2.0 * np.log(scale).sum()) / len(A)
        inverse = (vectors / values) @ vectors.T
        return float(value), -np.outer(scale, scale) * inverse / len(A)
    # log of the ratio of the largest to a soft smallest eigenvalue
    ratio = (values[0] / values) ** _SOFT
    value = np.log(values[-1]) - np.log(values[0]) + np.log(ratio.sum()) / _SOFT
    slope = -ratio / ratio.sum() / values
    slope[-1] += 1.0 / values[-1]
    G = (vectors * slope) @ vectors.T
    scaled = np.outer(scale, scale) * G
    # the lengths of columns depend on A, too
    scaled[np.diag_indices(len(A))] -= (G @ (A * np.outer(scale, scale))).diagonal() * scale**2
    return 0.5 * float(value), 0.5 * scaled


def _by_cholesky(A: Floats) -> tuple[float, Floats] | None:
    """log det and inverse of a matrix; None if it is nearly singular."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    if np.diag(L).min() < 1e-6:  # of a matrix with ones on its diagonal
        return None
    half = np.linalg.inv(L)
    return 2.0 * float(np.log(np.diag(L)).sum()), half.T @ half
