# SPDX-License-Identifier: Apache-2.0
"""Differences between the legs of a robot: a check that needs no ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
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
    """Differences between the legs in friction, armatures and inertia that were free."""
    model = solution.columns.model
    legs = [leg.joint_indices for leg in model.legs]
    if len(legs) < 2 or len({len(leg) for leg in legs}) > 1 or not legs[0]:
        return ()
    found = []
    for place in zip(*legs, strict=True):
        label = _common_name([model.joint_names[i] for i in place], place)
        for kind in ('viscous', 'coulomb', 'rotor'):
            if solution.free[solution.columns.slices[kind]][list(place)].all():
                found.append(_joint_spread(label, kind, solution, np.array(place)))
        found += _body_spreads(solution, place)
    return tuple(found)


def _joint_spread(label: str, kind: str, solution: Solution, joints: npt.NDArray[np.int64]) -> Spread:
    """Difference of one quantity of joints; of rotors, that of the armature, as in the other tables."""
    columns, first = solution.columns, int(joints[0])
    at = columns.slices[kind].start + joints
    if kind == 'rotor':
        scale = columns.armature_scale[joints]
        return _spread(f'{label}.armature', columns.armature_units[first], solution, at, scale)
    return _spread(f'{label}.{kind}', columns.units[int(at[0])], solution, at)


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
    return [_spread(f'{label}.{INERTIAL[0]}', 'kg', solution, 10 * bodies), size]


def _spread(
    name: str, unit: str, solution: Solution, at: npt.NDArray[np.int64], scale: Floats | float = 1.0
) -> Spread:
    values, std = scale * solution.x[at], scale * solution.std[at]
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
