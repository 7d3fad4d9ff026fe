# SPDX-License-Identifier: Apache-2.0
"""Viscous friction that a motion does not determine.

In small or slow motion, friction after a reversal, or near rest, rises with the speed like viscous friction,
but much faster. A fit attributes this to a viscous coefficient that predicts the log, but is many times too
large at the speeds of other motions. Such coefficients have a large uncertainty, if errors of the friction
model are included.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.solvers.freedom import Freedom

_UNSURE = 0.5  # standard deviation relative to the prior, above which viscous friction is not determined
_MOVED = 1e-3  # change relative to the prior, below which there is nothing to hold


def find_loose_friction(freedom: Freedom, x: Floats, std: Floats, scales: Floats) -> Ints:
    """Indices in x of viscous friction that was changed but is not determined; none if requested by name.

    Args:
        freedom: the unknowns that were free.
        x: (size,) unknowns of a fit.
        std: (size,) their standard deviations.
        scales: (size,) prior standard deviations.
    """
    if 'viscous' not in freedom.optional:
        return np.empty(0, dtype=np.int64)
    own = freedom.lead[np.array([group == 'viscous' for group in freedom.groups], dtype=bool)]
    unsure, changed = std > _UNSURE * scales, np.abs(x - freedom.x0) > _MOVED * scales
    return np.asarray(own[unsure[own] & changed[own]], dtype=np.int64)


def words_of_loose(columns: Columns, held: Collection[int]) -> list[str]:
    """Message about viscous friction that is held, and the reason; empty if there is none.

    Args:
        columns: the unknowns.
        held: their indices in x; those of the first leg if legs are tied.
    """
    if not held:
        return []
    joints = ', '.join(columns.names[i].rpartition('.')[0] for i in sorted(held))
    return [
        f'viscous friction of {joints}: held, for this motion does not tell it from friction of another '
        'form, and it would not hold at other speeds. Move these joints faster'
    ]
