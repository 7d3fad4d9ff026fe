# SPDX-License-Identifier: Apache-2.0
"""Checks that efforts are motor torques on the links in N m: some drives report the load, or other units."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations

_OPPOSITE = -0.7  # below this correlation with the model, measured torques have the opposite sign
# Efforts that are this many times larger or smaller than torques of the model plus typical friction are not
# torques in N m. Friction of small gears and unloaded motors stays well below this.
_OTHER_UNIT = 20.0


def refuse_other_torques(equations: Equations, name: str, friction: Floats) -> None:
    """Compare efforts with torques of the model without friction; the model may be inaccurate.

    Args:
        equations: of the samples. If contact forces are unknown, nothing is checked.
        name: of the recording.
        friction: (nj,) typical of drives of this size [N m or N].

    Raises:
        ArgumentError: efforts have the opposite sign or another unit.
    """
    if equations.mode not in ('fixed', 'forces'):
        return
    both, own, other, count = _products(equations)
    correlation = both.sum() / max(float(np.sqrt(own.sum() * other.sum())), 1e-300)
    if correlation < _OPPOSITE:
        raise ArgumentError(
            f'{name}: efforts have the other sign than torques that would move the robot so (their '
            f'correlation is {correlation:.2f}); expected torques of the motors on the links. '
            "'--topic effort_scale=-1' turns them round"
        )
    moved = count > 0.0
    if not moved.any():
        return
    measured, expected = (np.sqrt(each[moved] / count[moved]) for each in (own, other))
    larger = float(np.median(measured / (expected + friction[moved])))
    smaller = float(np.median(expected / np.maximum(measured, 1e-300)))
    if max(larger, smaller) > _OTHER_UNIT:
        times, factor = (
            (f'{larger:.3g} times larger', 0.001)
            if larger > smaller
            else (f'{smaller:.3g} times smaller', 1000)
        )
        raise ArgumentError(
            f'{name}: efforts are {times} than torques that would move the robot so, at half of the joints '
            'or more; expected joint torques in N m. If they are currents, or of another unit, give '
            f"their factor, for example '--topic effort_scale={factor}'"
        )


def _products(equations: Equations) -> tuple[Floats, Floats, Floats, Floats]:
    """(nj,) sums of measured times expected torques, of both squared, and of the used rows."""
    columns, get = equations.columns, equations.samples.layout.get
    x, nj = columns.prior.copy(), columns.model.nj
    for kind in ('viscous', 'coulomb'):
        x[columns.slices[kind]] = 0.0
    sums = np.zeros((4, nj))
    for rows, r in equations.residuals(x):
        measured, use = get(rows, 'tau'), get(rows, 'use')
        expected = measured - r[:, r.shape[1] - nj :]
        products = measured * expected, measured**2, expected**2, np.ones_like(use)
        sums += [np.sum(each * use, axis=0) for each in products]
    return sums[0], sums[1], sums[2], sums[3]
