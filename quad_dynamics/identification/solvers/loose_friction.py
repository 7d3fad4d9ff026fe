# SPDX-License-Identifier: Apache-2.0
"""Viscous friction that a motion does not show.

In small or slow motion, what friction does after a reversal, or near rest, rises with the speed as viscous
friction would, only much faster. A fit takes it for a viscous coefficient that predicts the log, and at the
speeds of other motion a friction many times that of the drive. How uncertain the coefficient is, errors of
the friction model included, tells the two apart.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.solvers.freedom import Freedom

_UNSURE = 0.5  # standard deviation over what viscous friction may be at all, above which it is not known
_MOVED = 1e-3  # by which it differs from that of the model, likewise, or there is nothing to hold
_SHOWN = 4  # joints that are named


def find_loose_friction(freedom: Freedom, x: Floats, std: Floats, scales: Floats) -> Ints:
    """Indices in x of viscous friction that the data changed and do not determine; none if it was asked for.

    Args:
        freedom: what was free.
        x: (size,) unknowns of a fit.
        std: (size,) their standard deviations.
        scales: (size,) what they were before the data.
    """
    if 'viscous' not in freedom.optional:
        return np.empty(0, dtype=np.int64)
    own = freedom.lead[np.array([group == 'viscous' for group in freedom.groups], dtype=bool)]
    unsure, changed = std > _UNSURE * scales, np.abs(x - freedom.x0) > _MOVED * scales
    return np.asarray(own[unsure[own] & changed[own]], dtype=np.int64)


def words_of_loose(columns: Columns, held: Collection[int]) -> list[str]:
    """Which viscous friction is held, and why; nothing where none is.

    Args:
        columns: the unknowns.
        held: their indices in x; of the first leg where legs are tied.
    """
    if not held:
        return []
    joints = [columns.names[i].rpartition('.')[0] for i in sorted(held)]
    more = f' and {len(joints) - _SHOWN} more' if len(joints) > _SHOWN else ''
    return [
        f'viscous friction of {", ".join(joints[:_SHOWN])}{more}: held, for this motion does not tell it '
        'from friction of another form, and it would not hold at other speeds. Move these joints faster'
    ]
