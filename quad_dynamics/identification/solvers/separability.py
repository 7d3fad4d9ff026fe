# SPDX-License-Identifier: Apache-2.0
"""Torque offsets that a motion cannot separate from gravity.

If a joint moves little, or slowly with friction that does not have the assumed form, the gravity torque about
it is nearly as constant as an offset. If both are free, large offsets and displaced centres of mass cancel in
the log, but not in other motions. There are two criteria: the part of the offset's column in the information
matrix that the inertia columns do not explain, and the standard deviation of the offset after the fit,
including errors of the friction model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.solvers.freedom import Freedom

_LEFT = 0.05  # length of an offset's column not explained by inertia, below which they are inseparable
_UNSURE = 0.01  # standard deviation of an offset relative to its scale, above which it is not determined
_RANK = 1e-9  # eigenvalues below this fraction of the largest are rounding errors
_HELD = 2e-3  # tolerance of a mean gravity torque that is held, relative to the scale of its offset


@dataclass(frozen=True, eq=False)
class Trade:
    """Offsets that are inseparable from gravity.

    Attributes:
        offsets: indices of these unknowns; those of the first leg if legs are tied.
        unsure: their standard deviations, relative to their scales.
        joints: names of their joints.
    """

    offsets: Ints
    unsure: Floats
    joints: tuple[str, ...]

    def words(self, held: str, why: str = '') -> str:
        """A message that says what is held, and why."""
        low, high = 100.0 * self.unsure.min(), 100.0 * self.unsure.max()
        sure = f'{low:.2g} %' if f'{low:.2g}' == f'{high:.2g}' else f'{low:.2g} to {high:.2g} %'
        return (
            f'{held} of {", ".join(self.joints)}: held, for this motion does not tell offsets of the torques '
            f'from gravity there (with both free, offsets are uncertain by {sure} of a typical '
            f'torque){why}. Move these joints farther, so that gravity changes'
        )


def find_trade(normal: NormalEquations, freedom: Freedom, std: Floats, scales: Floats) -> Trade | None:
    """Find offsets that the data cannot separate from gravity.

    Args:
        normal: normal equations.
        freedom: the unknowns that were free.
        std: (size,) standard deviations of a fit with offsets and inertia free.
        scales: (size,) prior standard deviations.

    Returns:
        None if there are none, or if offsets and inertia are not both free.
    """
    groups = np.array(freedom.groups)
    inertial, own = np.flatnonzero(groups == 'inertia'), np.flatnonzero(groups == 'offset')
    if not len(inertial) or not len(own):
        return None
    lead = freedom.lead[own]
    unsure = std[lead] / scales[lead]
    trades = (_left(normal, freedom, inertial, own) < _LEFT) & (unsure > _UNSURE)
    if not trades.any():
        return None
    joints = [freedom.columns.names[i].rpartition('.')[0] for i in lead[trades]]
    return Trade(lead[trades], unsure[trades], tuple(joints))


def _left(normal: NormalEquations, freedom: Freedom, others: Ints, own: Ints) -> Floats:
    """(own,) relative length of the part of each column that the columns of `others` do not explain."""
    H = freedom.T.T @ normal.YtY @ freedom.T
    length = np.sqrt(np.maximum(np.diag(H), 0.0))
    others = others[length[others] > 0.0]
    d = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)
    C = H * np.outer(d, d)
    values, V = np.linalg.eigh(C[np.ix_(others, others)])
    good = values > _RANK * max(float(values.max(initial=0.0)), 1e-300)
    along = V[:, good].T @ C[np.ix_(others, own)]
    left = np.diag(C)[own] - np.sum(along**2 / values[good, None], axis=0)
    return np.asarray(np.sqrt(np.maximum(left, 0.0)))


def gravity_rows(normal: NormalEquations, freedom: Freedom, trade: Trade, scales: Floats) -> Floats:
    """(n, size) mean torques caused by inertia about these joints, in units of their tolerance.

    Args:
        normal: normal equations.
        freedom: the free unknowns.
        trade: the joints.
        scales: (size,) of offsets.
    """
    rows = np.zeros((len(trade.offsets), freedom.columns.size))
    pi = freedom.columns.slices['pi']
    for row, i in zip(rows, trade.offsets, strict=True):
        row[pi] = normal.YtY[i, pi] / (normal.YtY[i, i] * _HELD * scales[i])
    return rows
