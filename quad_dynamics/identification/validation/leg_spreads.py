# SPDX-License-Identifier: Apache-2.0
"""Differences between the legs of a robot: a check that needs no ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.identification.equations.columns import INERTIAL
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.inertia import full_inertia

_BETWEEN = '_-. '  # between the words of a name


@dataclass(frozen=True, eq=False)
class Spread:
    """Difference between the legs in one quantity; legs of the same design should agree.

    Attributes:
        name: of the quantity, such as 'calf_joint.viscous'.
        unit: of the three below.
        mean: over the legs.
        spread: standard deviation over the legs.
        expected: standard deviation caused by noise alone; NaN if unknown.
    """

    name: str
    unit: str
    mean: float
    spread: float
    expected: float


def leg_spreads(solution: Solution) -> tuple[Spread, ...]:
    """Differences between the legs in friction, rotors and inertia that were free."""
    model = solution.columns.model
    legs = [leg.joint_indices for leg in model.legs]
    if len(legs) < 2 or len({len(leg) for leg in legs}) > 1 or not legs[0]:
        return ()
    found = []
    for place in zip(*legs, strict=True):
        label = _common_name([model.joint_names[i] for i in place], place)
        for kind in ('viscous', 'coulomb', 'rotor'):
            at = solution.columns.slices[kind].start + np.array(place)
            if solution.free[at].all():
                found.append(_spread(f'{label}.{kind}', solution, at))
        found += _body_spreads(solution, place)
    return tuple(found)


def _body_spreads(solution: Solution, place: tuple[int, ...]) -> list[Spread]:
    """Differences of mass and size of the inertia, which are the same for a link and its mirror image."""
    model = solution.columns.model
    bodies = np.array(place) + int(model.floating_base)
    if not solution.free[10 * bodies].all():
        return []
    label = _common_name([model.body_names[i] for i in bodies], place)
    trace = [full_inertia(solution.x[10 * i + 4 : 10 * i + 10]).trace() for i in bodies]
    size = Spread(
        f'{label}.Ixx+Iyy+Izz', 'kg m^2', float(np.mean(trace)), float(np.std(trace, ddof=1)), float('nan')
    )
    return [_spread(f'{label}.{INERTIAL[0]}', solution, 10 * bodies), size]


def _spread(name: str, solution: Solution, at: npt.NDArray[np.int64]) -> Spread:
    values, std = solution.x[at], solution.std[at]
    unit = solution.columns.units[int(at[0])]
    expected = float(np.sqrt(np.mean(std**2)))
    return Spread(name, unit, float(values.mean()), float(values.std(ddof=1)), expected)


def _common_name(names: list[str], place: tuple[int, ...]) -> str:
    """Common ending of the names of one part in different legs: 'calf_joint' of 'FL_calf_joint', ..."""
    n = 0
    while n < min(map(len, names)) and len({name[-1 - n] for name in names}) == 1:
        n += 1
    common = names[0][len(names[0]) - n :]
    if any(len(name) > n and name[-1 - n] not in _BETWEEN for name in names):
        # It may begin within a word: 't_hip' of 'left_hip' and 'right_hip'.
        common = common[min((common.find(mark) for mark in _BETWEEN if mark in common), default=0) :]
    return common.lstrip(_BETWEEN) or ' '.join(map(str, place))
