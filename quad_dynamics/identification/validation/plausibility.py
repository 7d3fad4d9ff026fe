# SPDX-License-Identifier: Apache-2.0
"""What makes a result doubtful as a robot, however well it fits: said before anything else of it."""

from __future__ import annotations

from quad_dynamics.identification.solvers.plausible import Limits, immobile_mass
from quad_dynamics.identification.solvers.solution import Solution

_MOST = 0.15  # change of the whole mass that is not worth a warning
_WORTH = 0.08  # part of the robot that the data must ask for beyond a limit
_SHOWN = 4  # limits that are named


def implausible(solution: Solution, limits: Limits | None) -> list[str]:
    """Sentences about masses and limits.

    Args:
        solution: what was found.
        limits: that it had to keep; None: none.
    """
    columns = solution.columns
    before, after = (float(x[columns.slices['pi']][::10].sum()) for x in (columns.prior, solution.x))
    fixed = immobile_mass(columns)
    found = []
    if abs(after - before) > _MOST * before:
        found.append(
            f'the mass of the robot changes by {100.0 * (after / before - 1.0):+.0f} %, from '
            f'{before + fixed:.4g} to {after + fixed:.4g} kg. Weigh it, and give --mass: an unknown payload '
            'explains that, and so do efforts or foot forces of a wrong scale'
        )
    beyond = {} if limits is None or solution.asked is None else limits.exceeded(solution.asked)
    if sum(beyond.values()) > _WORTH:
        names = list(beyond)
        more = '' if len(beyond) <= _SHOWN else f' and {len(beyond) - _SHOWN} more'
        found.append(
            f'the data ask for a robot beyond what is plausible: {", ".join(names[:_SHOWN])}{more}. The '
            'result is the nearest plausible one. Friction of another form, wrong torque constants or a poor '
            'motion may be the cause. --mass and --trust set the limits; --free friction rotor leaves the '
            'inertia alone'
        )
    return found
