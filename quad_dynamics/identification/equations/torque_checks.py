# SPDX-License-Identifier: Apache-2.0
"""Checks that efforts are motor torques on the links in N m: some drives report the load, or other units."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations

_OPPOSITE = -0.7  # below this correlation with the model, measured torques have the opposite sign
_ALIKE = 0.9  # above this correlation, the effort of a joint is hardly friction
# Efforts that are this many times larger or smaller than torques of the model plus typical friction are not
# torques in N m. Friction of small gears and unloaded motors stays well below this.
_OTHER_UNIT = 20.0


def refuse_other_torques(equations: Equations, name: str, friction: Floats) -> None:
    """Compare efforts with torques of the model without friction; the model may be inaccurate.

    Args:
        equations: of the samples. In mode 'base', nothing is checked.
        name: of the recording.
        friction: (nj,) typical of drives of this size [N m or N].

    Raises:
        ArgumentError: efforts have the opposite sign or another unit.
    """
    if equations.mode == 'base':
        return
    projected = equations.mode == 'projection'
    both, own, other, count = (_projected_products if projected else _products)(equations)
    correlation = both.sum() / max(float(np.sqrt(own.sum() * other.sum())), 1e-300)
    if correlation < _OPPOSITE:
        raise ArgumentError(
            f'{name}: efforts have the opposite sign of the torques that this motion needs (their '
            f'correlation is {correlation:.2f}); expected torques of the motors on the links. '
            "'--topic effort_scale=-1' reverses them"
        )
    moved = count > 0.0
    if not moved.any():
        return
    measured, expected = (np.sqrt(each[moved] / count[moved]) for each in (own, other))
    friction = np.array([np.sqrt(np.mean(friction**2))]) if projected else friction[moved]
    alike = both[moved] > _ALIKE * np.sqrt(own[moved] * other[moved])
    friction = np.where(alike, 0.0, friction)
    larger = float(np.median(measured / (expected + friction)))
    smaller = float(np.median(expected / np.maximum(measured, 1e-300)))
    if max(larger, smaller) > _OTHER_UNIT:
        times, factor, unit = (
            (f'{larger:.3g} times larger', 0.001, 'mN m')
            if larger > smaller
            else (f'{smaller:.3g} times smaller', 1000, 'kN m')
        )
        where = '' if projected else ', at half of the joints or more'
        raise ArgumentError(
            f'{name}: efforts are {times} than the torques that this motion needs{where}; '
            'expected joint torques in N m. If they are currents, or of another unit, give '
            f"their factor, for example '--topic effort_scale={factor}' for a unit of {unit}"
        )


def _projected_products(equations: Equations) -> tuple[Floats, Floats, Floats, Floats]:
    """(1,) the same for all rows together, after the projection that removes unknown contact forces."""
    get, sums = equations.samples.layout.get, np.zeros((4, 1))
    x = _without_friction(equations)
    for rows in equations.samples.chunks():
        Y, y = equations.raw(rows)
        use, tau = equations.use(rows), np.zeros_like(y)
        tau[:, 6:] = get(rows, 'tau')
        measured = equations.less_contact(rows, tau) * use
        expected = measured - equations.less_contact(rows, y - Y @ x) * use
        products = measured * expected, measured**2, expected**2, use
        sums[:, 0] += [float(np.sum(each)) for each in products]
    return sums[0], sums[1], sums[2], sums[3]


def _without_friction(equations: Equations) -> Floats:
    """(size,) the unknowns of the model without friction."""
    columns = equations.columns
    x = columns.prior.copy()
    for kind in ('viscous', 'coulomb'):
        x[columns.slices[kind]] = 0.0
    return x


def _products(equations: Equations) -> tuple[Floats, Floats, Floats, Floats]:
    """(nj,) sums of measured times expected torques, of both squared, and of the used rows."""
    get, nj = equations.samples.layout.get, equations.columns.model.nj
    sums = np.zeros((4, nj))
    for rows, r in equations.residuals(_without_friction(equations)):
        measured, use = get(rows, 'tau'), get(rows, 'use')
        expected = measured - r[:, r.shape[1] - nj :]
        products = measured * expected, measured**2, expected**2, np.ones_like(use)
        sums += [np.sum(each * use, axis=0) for each in products]
    return sums[0], sums[1], sums[2], sums[3]
