# SPDX-License-Identifier: Apache-2.0
"""Samples as linear equations in the unknowns: whitened rows, and their normal equations.

For a floating base the equation of motion is Y x = S^T tau + J^T (f - bias). Its rows have different standard
deviations. Forces that were measured with errors, or not at all, cause errors that are correlated between
rows. With the covariance of the errors of all rows of a sample,

    C = diag(base^2, joints^2) + sigma_f^2 J^T J,    C = U U^T,

the rows of U^-1 Y have independent errors of equal variance. If forces are unknown, sigma_f is made so large
that only the projection into the null space of J^T, which contact forces do not affect, is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.api.regression import NormalEquations, regressor
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import JOINT_KINDS, Columns
from quad_dynamics.identification.equations.modes import MODES
from quad_dynamics.identification.equations.noise import Noise, covariance, row_variance
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.equations.sums import Rows, Summation, in_threads, own_kinds
from quad_dynamics.model.leg_kinematics import contact_ball

_CHUNK = 256  # samples whose regressors are in memory at once
_HUBER = 2.0  # residuals beyond this many standard deviations have less weight
CLUSTER = 0.2  # time over which errors may be correlated [s]


class Equations:
    """The equations of all samples.

    Attributes:
        samples: measured motion and forces.
        columns: the unknowns.
        mode: one of MODES.
        noise: standard deviations of the rows.
    """

    def __init__(
        self,
        samples: Samples,
        columns: Columns,
        mode: str,
        noise: Noise,
        kinds: Sequence[str] | None = None,
    ) -> None:
        """Set up the equations; nothing is computed yet.

        Args:
            samples: measured motion and forces.
            columns: the unknowns.
            mode: one of MODES.
            noise: standard deviations of the rows.
            kinds: unknowns of joints and sensors that are needed; None for all.

        Raises:
            ArgumentError: the mode is unknown or does not match the base.
        """
        floating = columns.model.floating_base
        if mode not in MODES:
            raise ArgumentError(f'mode is {mode!r}; expected one of {", ".join(MODES)}')
        if floating == (mode == 'fixed'):
            raise ArgumentError(f"mode is '{mode}', but the base is {'floating' if floating else 'fixed'}")
        self.samples, self.columns, self.mode, self.noise = samples, columns, mode, noise
        feet = columns.model.foot_names if floating else ()
        self._feet = [(foot, *contact_ball(columns.model, foot)) for foot in feet]
        self._kinds = own_kinds(JOINT_KINDS if kinds is None else kinds)
        bias = mode in ('forces', 'base') and (kinds is None or 'bias' in kinds)
        self._shared = (*['bias'] * bias, *['delay'] * (kinds is None or 'delay' in kinds))
        self._sums = Summation(columns, self._kinds, self._shared)

    @property
    def _n_delays(self) -> int:
        return 2 if self.columns.n_feet else 1

    @property
    def rows(self) -> int:
        """Number of rows of a sample."""
        return 6 if self.mode == 'base' else self.columns.model.nv

    # ---------------------------------------------------------------- sums

    def accumulate(self, folds: int = 1, x_robust: Floats | None = None) -> list[NormalEquations]:
        """Normal equations of the whitened rows, for each of `folds` blocks of time of equal length.

        Args:
            folds: number of blocks; their sum covers all samples.
            x_robust: (size,) a first solution; rows with large residuals have less weight (Huber).
        """
        width = self._sums.width
        sums, counts = np.zeros((folds, width, width)), [0] * folds

        def work(task: tuple[int, Floats]) -> tuple[int, Floats, int]:
            fold, rows = task
            return fold, self._sums.add(self._gather(rows), x_robust), self._count(rows)

        for fold, YtY, count in in_threads(work, self._fold_chunks(folds)):
            sums[fold] += YtY
            counts[fold] += count
        return [
            NormalEquations(*self._sums.spread(YtY), count) for YtY, count in zip(sums, counts, strict=True)
        ]

    def _fold_chunks(self, folds: int) -> Iterator[tuple[int, Floats]]:
        """Chunks of samples, each within one fold."""
        total, done = len(self.samples), 0
        for rows in self.samples.chunks():
            fold = (done + np.arange(len(rows))) * folds // total
            for k in np.unique(fold):
                yield int(k), rows[fold == k]
            done += len(rows)

    def _count(self, rows: Floats) -> int:
        """Number of informative rows: without rows of unknown errors, minus the number of unknown forces."""
        unknown = 3.0 * self.samples.layout.get(rows, 'stance').sum() if self.mode == 'projection' else 0.0
        return int(self.use(rows).sum() - unknown)

    def scores(self, x: Floats, x_robust: Floats | None = None) -> Floats:
        """(size, size) covariance of the sums: s s^T over clusters in time, s = sum of Y^T (y - Y x).

        Errors of neighbouring samples are correlated by the filters. Within a cluster, any correlation is
        allowed.

        Args:
            x: (size,) solution.
            x_robust: as in `accumulate`.
        """
        layout = self.samples.layout

        def work(rows: Floats) -> tuple[Floats, Floats]:
            cluster = np.floor(layout.get(rows, 'time') / CLUSTER)
            keys = np.stack([layout.get(rows, 'segment'), cluster], axis=1)
            begins = np.flatnonzero(np.any(keys[1:] != keys[:-1], axis=1)) + 1
            s = self._sums.scores(self._gather(rows), x_robust, x)
            return keys[np.r_[0, begins]], np.add.reduceat(s, np.r_[0, begins], axis=0)

        meat = np.zeros((self._sums.size, self._sums.size))
        last = np.empty((0, self._sums.size))  # a cluster may continue in the next chunk
        last_key: Floats = np.empty(2)
        for keys, s in in_threads(work, self.samples.chunks()):
            if len(last) and np.array_equal(keys[0], last_key):
                s[0] += last[0]
            else:
                meat += last.T @ last
            meat += s[:-1].T @ s[:-1]
            last, last_key = s[-1:], keys[-1]
        meat += last.T @ last
        return self._sums.in_order(meat)

    # ---------------------------------------------------------------- rows

    def residuals(self, x: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Measured minus predicted, before whitening, chunk by chunk: samples and (n, rows) [N, N m].

        In mode 'projection', the forces of feet in stance are those that fit best, sample by sample.
        """
        for rows in self.samples.chunks(_CHUNK):
            Y, y = self.raw(rows)
            yield rows, self.less_contact(rows, y - Y @ x)

    def whitened(self, rows: Floats) -> tuple[Floats, Floats]:
        """Whitened rows: (n, rows, size) and (n, rows)."""
        return self.whiten(rows, *self.raw(rows))

    def whiten(self, rows: Floats, Y: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The same, from the output of `raw` for these samples."""
        if self.mode == 'fixed':  # errors of rows are independent
            w = 1.0 / np.sqrt(row_variance(self.noise, self.use(rows)))
            return Y * w[..., None], y * w
        # C = U U^T with U upper triangular: the ends of the legs come first.
        U = np.linalg.cholesky(self.covariance(rows)[:, ::-1, ::-1])[:, ::-1, ::-1]
        inverse = np.linalg.inv(U)
        both = inverse @ np.concatenate([Y, y[..., None]], axis=2)
        return both[..., :-1], both[..., -1]

    def use(self, rows: Floats) -> Floats:
        """(n, rows) 1 where a row is used."""
        joints = self.samples.layout.get(rows, 'use')
        if self.mode == 'fixed':
            return joints
        base = np.ones((len(rows), 6))
        return base if self.mode == 'base' else np.concatenate([base, joints], axis=1)

    def _gather(self, rows: Floats) -> Rows:
        """Inputs of the kernel for some samples."""
        get, model = self.samples.layout.get, self.columns.model
        nv, nj = model.nv, model.nj
        q, u, du = get(rows, 'q'), get(rows, 'u'), get(rows, 'du')
        y = np.zeros((len(rows), nv))
        y[:, nv - nj :] = get(rows, 'tau')
        measured = self.mode in ('forces', 'base')
        stands = bool(get(rows, 'stance').any())  # in the air there is no force to eliminate
        J = self.foot_jacobians(rows) if stands else np.zeros((len(rows), 3 * self.columns.n_feet, nv))
        shared = {'bias': np.swapaxes(J, 1, 2), 'delay': np.zeros((len(rows), nv, self._n_delays))}
        shared['delay'][:, nv - nj :, 0] = -get(rows, 'dtau')
        if stands and measured:
            y += np.einsum('nkv,nk->nv', J, get(rows, 'force'))
            shared['delay'][..., 1] = -np.einsum('nkv,nk->nv', J, get(rows, 'dforce'))
        order = [list(JOINT_KINDS).index(kind) for kind in self._kinds]
        own = self.columns.joint_columns(u[:, nv - nj :], get(rows, 'sign'))[..., order]
        use = np.zeros((len(rows), nv))
        use[:, : self.rows] = self.use(rows)
        J = J if stands else J[:, :0]
        last = np.concatenate([*(shared[kind] for kind in self._shared), y[..., None]], axis=2)
        return Rows(q, u, du, row_variance(self.noise, use), J * self.noise.force, own, last)

    def raw(self, rows: Floats) -> tuple[Floats, Floats]:
        """Regressor, and measured forces minus the known part."""
        get, columns, model = self.samples.layout.get, self.columns, self.columns.model
        q, u, du = (np.ascontiguousarray(get(rows, name)) for name in ('q', 'u', 'du'))
        n, nv, nj = len(rows), model.nv, model.nj
        Y = np.zeros((n, nv, columns.size))
        linear = regressor(model, q, u, du, rotors=True)
        Y[..., columns.slices['pi']] = linear[..., : 10 * model.nb]
        Y[..., columns.slices['rotor']] = linear[..., 10 * model.nb :]
        columns.carry(Y)
        own = columns.joint_columns(u[:, nv - nj :], get(rows, 'sign'))
        joints = np.arange(nj)
        for i, kind in enumerate(JOINT_KINDS):
            if kind != 'rotor':
                Y[:, nv - nj + joints, columns.slices[kind].start + joints] = own[..., i]
        y = np.zeros((n, nv))
        y[:, nv - nj :] = get(rows, 'tau')
        y -= Y @ columns.known
        if self.mode in ('forces', 'base'):
            J = self.foot_jacobians(rows)
            y += np.einsum('nkv,nk->nv', J, get(rows, 'force'))
            Y[..., columns.slices['bias']] = np.swapaxes(J, 1, 2)
            Y[..., columns.slices['delay'].start + 1] = -np.einsum('nkv,nk->nv', J, get(rows, 'dforce'))
        Y[:, nv - nj :, columns.slices['delay'].start] = -get(rows, 'dtau')
        return Y[:, : self.rows], y[:, : self.rows]

    def covariance(self, rows: Floats) -> Floats:
        """(n, rows, rows) of the errors of all rows of each sample; floating base only."""
        J = self.foot_jacobians(rows)[:, :, : self.rows]
        return covariance(self.noise, J, self.use(rows))

    def foot_jacobians(self, rows: Floats) -> Floats:
        """(n, 3 feet, nv) Jacobians of the contact points of the feet; 0 for feet in the air."""
        get, model = self.samples.layout.get, self.columns.model
        q = np.ascontiguousarray(get(rows, 'q'))
        stance = get(rows, 'stance')
        parts = [np.empty((len(rows), 0, model.nv))]
        for i, (foot, position, radius) in enumerate(self._feet):
            J = frame_jacobian(model, q, foot)
            R, _ = frame_pose(model, q, foot)
            arm = R @ position - np.array([0.0, 0.0, radius])  # to the contact point, in world axes
            moved = J[:, :3] + _cross_columns(J[:, 3:], arm)
            parts.append(moved * stance[:, i, None, None])
        return np.concatenate(parts, axis=1)

    def less_contact(self, rows: Floats, r: Floats) -> Floats:
        """Residuals of raw rows; in mode 'projection' after subtracting the forces that fit them best.

        Forces are fitted to the used rows. Often these are hardly more than the unknown forces, which then
        are far off in the other rows. Residuals of rows that are not used are therefore those with the forces
        that fit all rows, except for joints without torques.
        """
        if self.mode != 'projection':
            return r
        Jt = np.swapaxes(self.foot_jacobians(rows), 1, 2)
        scale = 1.0 / np.concatenate([self.noise.base, self.noise.joints])
        use = self.use(rows)
        measured = np.ones(self.rows)
        measured[6:] = (self.samples.layout.get(rows, 'tau') != 0.0).any(axis=0)
        return np.where(
            use > 0.0, _less_best_forces(Jt, r, use * scale), _less_best_forces(Jt, r, measured * scale)
        )


def _less_best_forces(Jt: Floats, r: Floats, w: Floats) -> Floats:
    """(n, rows) residuals minus J^T f, with the forces f that fit the rows with weights w best."""
    w = np.broadcast_to(w, r.shape)
    f = np.linalg.pinv(Jt * w[..., None], rcond=1e-9) @ (r * w)[..., None]
    return np.asarray(r - (Jt @ f)[..., 0])


def huber_weights(r: Floats) -> Floats:
    """Weights of whitened residuals: 1 up to a few standard deviations, then decreasing with their size."""
    return np.minimum(1.0, _HUBER / np.maximum(np.abs(r), 1e-300))


def _cross_columns(w: Floats, arm: Floats) -> Floats:
    """(n, 3, nv) velocity of a point relative to the origin: w x arm, for each column of w."""
    return np.cross(w, arm[:, :, None], axis=1)
