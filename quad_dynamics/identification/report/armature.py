# SPDX-License-Identifier: Apache-2.0
"""Armature: inertia that a rotor adds to its joint, gear^2 times its axial inertia.

The data determine the armature. If the gear is unknown, one is assumed; this changes the rotor inertia, and
hardly anything else. URDF has no element for either. Pinocchio reads both from an SRDF file; simulators such
as MuJoCo use the armature of a joint.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import ASSUMED_GEAR
from quad_dynamics.identification.solvers.solution import Solution


@dataclass(frozen=True)
class Armature:
    """Armature of one joint.

    Attributes:
        joint: its name.
        unit: of the armature: 'kg m^2', or 'kg' for a prismatic joint.
        before: value of the model.
        after: identified value.
        std: standard deviation; NaN if it was not free.
        interval: 95 %; NaN if it was not free.
        free: whether it was free.
        identified: whether the data determine it.
        gear: rotor speed over joint speed [-, or rad/m].
        gear_assumed: whether the gear is unknown.
        rotor_inertia: axial, before the gear, identified [kg m^2].
    """

    joint: str
    unit: str
    before: float
    after: float
    std: float
    interval: tuple[float, float]
    free: bool
    identified: bool
    gear: float
    gear_assumed: bool
    rotor_inertia: float


def armatures(solution: Solution) -> list[Armature]:
    """Armatures of joints that have a rotor, or whose rotor was free."""
    columns, model = solution.columns, solution.columns.model
    part = columns.slices['rotor']
    described = {*model.description.rotors, *model.description.motors}
    made = []
    for j, name in enumerate(model.joint_names):
        i, gear = part.start + j, float(model.rotor_gear[j])
        if not solution.free[i] and solution.x[i] == 0.0:
            continue
        n = float(columns.armature_scale[j])
        made.append(
            Armature(
                joint=name,
                unit=columns.armature_units[j],
                before=n * float(columns.prior[i]),
                after=n * float(solution.x[i]),
                std=n * float(solution.std[i]),
                interval=(n * float(solution.low[i]), n * float(solution.high[i])),
                free=bool(solution.free[i]),
                identified=bool(solution.identified[i]),
                gear=gear,
                gear_assumed=name not in described and gear == ASSUMED_GEAR and columns.prior[i] == 0.0,
                rotor_inertia=float(solution.x[i]),
            )
        )
    return made


def gear_note(solution: Solution) -> str:
    """A note about assumed gears; '' if there are none."""
    names = [each.joint for each in armatures(solution) if each.gear_assumed]
    if not names:
        return ''
    return (
        f'no gear is known of {", ".join(names)}: {ASSUMED_GEAR:g} is assumed, which the rotor inertia '
        'depends on and the armature does not'
    )


def srdf_text(solution: Solution) -> str:
    """An SRDF file with gears and rotor inertias for Pinocchio; '' if no joint has an armature."""
    found = [each for each in armatures(solution) if each.rotor_inertia > 0.0]
    if not found:
        return ''
    lines = [
        f'    <joint name={quoteattr(each.joint)} mass="{each.rotor_inertia!r}" gear_ratio="{each.gear!r}"/>'
        for each in found
    ]
    return '\n'.join(
        [
            '<?xml version="1.0"?>',
            '<!-- Written by quad_dynamics identify, for Pinocchio: loadRotorParameters. What is called mass',
            '     is the inertia of the rotor about its axis [kg m^2]; armature = gear_ratio^2 * mass. -->',
            f'<robot name={quoteattr(solution.columns.model.name)}>',
            '  <rotor_params>',
            *lines,
            '  </rotor_params>',
            '</robot>',
            '',
        ]
    )


def unit_of(solution: Solution, kind: str) -> str:
    """Unit for the display of joint unknowns, 'N m or N' if they differ: rotors as armatures."""
    columns = solution.columns
    if kind == 'rotor':
        return ' or '.join(dict.fromkeys(columns.armature_units))
    return ' or '.join(dict.fromkeys(columns.units[columns.slices[kind]]))


def scale_of(solution: Solution, kind: str) -> Floats:
    """(nj,) factors for the display of joint unknowns: rotors as armatures, all others unchanged."""
    columns = solution.columns
    return columns.armature_scale if kind == 'rotor' else np.ones(columns.model.nj)
