# SPDX-License-Identifier: Apache-2.0
"""Torque offsets that have changed since the training data.

Unlike biases of force sensors, they are not fitted again: an offset may be a sensor error, which belongs to a
recording, or direction-dependent friction, which belongs to the robot. Errors are computed with the old
offset, and a note reports the change.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.solution import Solution

_SURE = 4.0  # standard deviations by which an offset must differ
_LARGE = 0.02  # difference relative to the RMS torque


def offset_notes(equations: Equations, solution: Solution, x: Floats, measured: Floats) -> tuple[str, ...]:
    """Note about joints whose offset differs significantly from that of the training data.

    Args:
        equations: of samples that were not used for training; not in mode 'base', which has no joint rows.
        solution: from the training data.
        x: (size,) its unknowns, with the bias of the force sensors in these samples.
        measured: (nj,) RMS of the torques.
    """
    columns = solution.columns
    part = columns.slices['offset']
    change, std = (values[part] for values in _changes(equations, solution, x))
    # An offset that was not freed is zero, with about the uncertainty of the offset in these samples.
    free = solution.free[part]
    sure = np.hypot(std, np.where(free, solution.std[part], std))
    names, changes = [], []
    for i in np.flatnonzero((np.abs(change) > _SURE * sure) & (np.abs(change) > _LARGE * measured)):
        old, new = (f'{value:#.3g}'.rstrip('.') for value in (x[part][i], x[part][i] + change[i]))
        names.append(f"'{columns.model.joint_names[i]}'")
        changes.append(f'from {old if free[i] else "none"} to {new} {columns.units[part.start + i]}')
    if not names:
        return ()
    if len(names) == 1:
        what = f'offset of joint {names[0]} changed {changes[0]}'
    else:
        each = ', '.join(f'{name} {change}' for name, change in zip(names, changes, strict=True))
        what = f'offsets of {len(names)} joints changed ({each})'
    return (
        f'{what} between the training data and these: a sensor drifts, it was warmed up, or the model misses '
        'something; errors are those with the old offset',
    )


def _changes(equations: Equations, solution: Solution, x: Floats) -> tuple[Floats, Floats]:
    """(size,) change of the unknowns in these samples relative to x, and its standard deviation.

    Offsets and biases are free. All other free unknowns change only within their uncertainty, so that their
    errors are not taken for offsets.
    """
    columns, own = equations.columns, np.zeros(len(x), dtype=bool)
    own[columns.slices['offset']] = True
    own[columns.slices['bias']] = solution.free[columns.slices['bias']]
    free = np.flatnonzero(own | solution.free)
    std = np.where(own, friction_scales(columns), solution.std)[free]
    change, spread = np.zeros(len(x)), np.zeros(len(x))
    (normal,) = equations.accumulate()
    A = np.linalg.inv(std[:, None] * normal.YtY[np.ix_(free, free)] * std + np.eye(len(free)))
    change[free] = std * (A @ (std * (normal.Yty - normal.YtY @ x)[free]))
    meat = equations.scores(x + change)[np.ix_(free, free)]
    covariance = A @ (std[:, None] * meat * std + np.eye(len(free))) @ A
    spread[free] = std * np.sqrt(np.diag(covariance))
    return change, spread
