# SPDX-License-Identifier: Apache-2.0
"""Whether torques are those of motors on links, or have the other sign: some drives report the load."""

from __future__ import annotations

import numpy as np

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations

_OPPOSITE = -0.7  # below this correlation with the model's, measured torques have the other sign


def refuse_other_sign(equations: Equations, name: str) -> None:
    """Compare measured torques with those of the model without friction, which may be far from the truth.

    Args:
        equations: of the samples. Where contact forces are not known, torques are not either.
        name: of the recording.

    Raises:
        ArgumentError: they have the other sign.
    """
    if equations.mode not in ('fixed', 'forces'):
        return
    columns, get = equations.columns, equations.samples.layout.get
    x, nj = columns.prior.copy(), columns.model.nj
    for kind in ('viscous', 'coulomb'):
        x[columns.slices[kind]] = 0.0
    sums = np.zeros((3, nj))
    for rows, r in equations.residuals(x):
        measured, use = get(rows, 'tau'), get(rows, 'use')
        expected = measured - r[:, r.shape[1] - nj :]
        sums += [
            np.sum(a * b * use, axis=0)
            for a, b in ((measured, expected), (measured, measured), (expected, expected))
        ]
    both, own, other = sums.sum(axis=1)
    correlation = both / max(float(np.sqrt(own * other)), 1e-300)
    if correlation < _OPPOSITE:
        raise ArgumentError(
            f'{name}: efforts have the other sign than torques that would move the robot so (their '
            f'correlation is {correlation:.2f}); expected torques of the motors on the links. '
            "'--topic effort_scale=-1' turns them round"
        )
