# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of normal equations if friction does not have the assumed form.

The friction of real drives depends on speed and load in other ways than F_v qd + F_c sgn(qd): it drops at low
speed and grows with the load. The error of the friction model is the same whenever a joint returns to the
same speed and load, so it does not average out over time as noise does. Therefore the rows of a joint are
grouped by speed and torque, and within a group errors may be correlated arbitrarily (cluster-robust
covariance; Liang and Zeger, Biometrika 1986). The torque is the one predicted by the solution: groups by
measured torque would sort the noise, and residuals would seem to depend on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.equations.equations import CLUSTER, Equations, huber_weights
from quad_dynamics.identification.equations.samples import Samples

_SPEEDS, _LOADS = 4, 3  # number of speed groups in each direction, and of torque groups
# Residuals depend on the group if group means vary by this factor more than noise explains.
_CLEAR = 1.0
# Covariances from few groups are usually too small (MacKinnon, Nielsen, Webb: J. of Econometrics 2023).
_FEW_GROUPS = 3.0
_CHUNK = 512  # samples that are processed at once
_MOST_LOOKED_AT = 20_000  # samples from which the bounds of the groups are computed


def discrepancy_scores(equations: Equations, x: Floats, x_robust: Floats | None = None) -> Floats:
    """(size, size) sum of s s^T over groups of rows, s = sum of Y^T (y - Y x) of whitened rows of a group.

    Args:
        equations: of the samples.
        x: (size,) solution.
        x_robust: as in `Equations.accumulate`.
    """
    columns = equations.columns
    nj, groups = columns.model.nj, 2 * _SPEEDS * _LOADS
    if equations.rows < nj:  # base rows only
        return np.zeros((columns.size, columns.size))
    bounds = _bounds(equations.samples, nj)
    sums = np.zeros((nj, groups, columns.size))
    evidence = _Evidence(nj, groups)
    for rows in equations.samples.chunks(_CHUNK):
        Y, y = equations.raw(rows)
        load = equations.samples.layout.get(rows, 'tau') - equations.less_contact(rows, y - Y @ x)[:, -nj:]
        Y, y = (each[:, -nj:] for each in equations.whiten(rows, Y, y))
        use = equations.use(rows)[:, -nj:]
        r = y - Y @ x
        weights = np.ones_like(r) if x_robust is None else huber_weights(y - Y @ x_robust)
        scores = Y * (weights * r)[..., None]
        group = _group(equations.samples, rows, load, bounds)
        for j in range(nj):
            np.add.at(sums[j], group[:, j], scores[:, j])
        evidence.add(weights * r * use, use, group, equations.samples.layout.get(rows, 'time'))
    sums[~evidence.is_clear] = 0.0
    flat = sums.reshape(-1, columns.size)
    return np.asarray(flat.T @ flat * _FEW_GROUPS)


class _Evidence:
    """Tests whether the residuals of a joint depend on its speed and load by more than chance."""

    def __init__(self, nj: int, groups: int) -> None:
        self._sums, self._counts = np.zeros((2, nj, groups))
        self._squares, self._clusters = np.zeros((2, nj))

    def add(self, r: Floats, use: Floats, group: Ints, time: Floats) -> None:
        """Add rows (n, nj) of some samples."""
        for j in range(r.shape[1]):
            np.add.at(self._sums[j], group[:, j], r[:, j])
            np.add.at(self._counts[j], group[:, j], use[:, j])
        self._squares += np.sum(r**2, axis=0)
        begins = np.flatnonzero(np.diff(np.floor(time / CLUSTER), prepend=np.nan))
        self._clusters += np.sum(np.add.reduceat(r, begins, axis=0) ** 2, axis=0)

    @property
    def is_clear(self) -> npt.NDArray[np.bool_]:
        """(nj,) joints for which this is the case."""
        between = np.sum(self._sums**2 / np.maximum(self._counts, 1.0), axis=1)
        variance = self._squares / np.maximum(self._counts.sum(axis=1), 1.0)
        together = np.maximum(self._clusters / np.maximum(self._squares, 1e-300), 1.0)
        F = between / np.maximum(self._counts.shape[1] * variance * together, 1e-300)
        return np.asarray(F > _CLEAR)


def _bounds(samples: Samples, nj: int) -> tuple[Floats, Floats]:
    """(nj, _SPEEDS - 1) speeds and (nj, _LOADS - 1) torques that split the samples into equal groups."""
    every = max(1, -(-len(samples) // _MOST_LOOKED_AT))
    looked = np.concatenate([rows[::every] for rows in samples.chunks()])
    speed = np.abs(samples.layout.get(looked, 'u')[:, -nj:])
    tau = samples.layout.get(looked, 'tau')
    found = []
    for values, count in ((speed, _SPEEDS), (tau, _LOADS)):
        found.append(np.quantile(values, np.arange(1, count) / count, axis=0).T)
    return found[0], found[1]


def _group(samples: Samples, rows: Floats, load: Floats, bounds: tuple[Floats, Floats]) -> Ints:
    """(n, nj) group of each row of a joint, from its velocity and its load (n, nj)."""
    u = samples.layout.get(rows, 'u')[:, -len(bounds[0]) :]
    speed = np.sum(np.abs(u)[..., None] > bounds[0], axis=-1)
    side = np.sum(load[..., None] > bounds[1], axis=-1)
    return np.asarray((speed * 2 + (u > 0.0)) * _LOADS + side, dtype=np.int64)
