# SPDX-License-Identifier: Apache-2.0
"""The robot description beside a URDF, with the identified rotors."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from quad_dynamics.identification.report.armature import gear_note
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.description import RobotDescription, Rotor
from quad_dynamics.model.description_reader import TOP_KEY
from quad_dynamics.model.inertia import flat_inertia, full_inertia, rotation_of_rpy
from quad_dynamics.model.model import Model


def description_text(solution: Solution) -> str:
    """YAML of the robot description: that of the model, with the axial inertia of rotors that were free.

    Returns:
        '' if there is nothing to add to the URDF.
    """
    model = solution.columns.model
    rotors = dict(model.description.rotors)
    part = solution.columns.slices['rotor']
    for i in np.flatnonzero(solution.free[part]):
        name = model.joint_names[i]
        rotors[name] = _with_axial(model, int(i), rotors.get(name), float(solution.x[part][i]))
    data = _as_mapping(model.description, rotors)
    if not data:
        return ''
    head = '# What the URDF beside it cannot say. Written by quad_dynamics identify.\n'
    note = gear_note(solution)
    if note:
        head += textwrap.fill(f'N{note[1:]}.', 110, initial_indent='# ', subsequent_indent='# ') + '\n'
    return head + yaml.safe_dump({TOP_KEY: data}, sort_keys=False, default_flow_style=None, width=120)


def _with_axial(model: Model, i: int, rotor: Rotor | None, axial: float) -> Rotor:
    """A rotor with another axial inertia; a new one, without mass, if there was none.

    Everything else is unchanged: the unknown of a rotor is its axial inertia, with which it spins and which
    its link carries.
    """
    joint = model.urdf.joint(model.joint_names[i])
    a_P = model.frames[joint.parent].R.T @ model.rotor_axis[i]
    if rotor is None:
        # A little inertia about the other axes prevents negative values by rounding.
        least = 1e-9 * axial
        rotor = Rotor(joint.name, float(model.rotor_gear[i]), inertia=(least, 0.0, least, 0.0, 0.0, least))
    R_PR = rotation_of_rpy(rotor.rpy)
    I_P = R_PR @ full_inertia(rotor.inertia) @ R_PR.T
    I_P = I_P + (axial - a_P @ I_P @ a_P) * np.outer(a_P, a_P)
    xx, xy, yy, xz, yz, zz = flat_inertia(R_PR.T @ I_P @ R_PR).tolist()
    return replace(rotor, inertia=(xx, xy, yy, xz, yz, zz))


def _as_mapping(description: RobotDescription, rotors: dict[str, Rotor]) -> dict[str, Any]:
    """The description in the form of its reader; what was derived from the tree is left out."""
    data: dict[str, Any] = {}
    if description.floating_base is not None:
        data['floating_base'] = description.floating_base
    if not description.feet_from_tree:
        named = dict(zip(description.leg_names, description.feet, strict=False))
        data['feet'] = named or list(description.feet)
    if not description.contact_points_from_tree:
        data['contact_points'] = [
            {'name': p.name, 'link': p.link, 'position': list(p.position), 'radius': p.radius}
            for p in description.contact_points
        ]
    if rotors:
        data['rotors'] = {joint: _rotor(rotor) for joint, rotor in rotors.items()}
    if description.motors:
        data['motors'] = {
            joint: {
                'torque_limit': motor.torque_limit,
                'voltage': motor.voltage,
                'torque_constant': motor.torque_constant,
                'resistance': motor.resistance,
                'damping': motor.damping,
                'dry_friction': motor.dry_friction,
            }
            for joint, motor in description.motors.items()
        }
    if description.standing is not None:
        pose = description.standing
        height = {} if pose.base_height is None else {'base_height': pose.base_height}
        data['standing'] = {**height, 'joints': dict(pose.joints)}
    return data


def _rotor(rotor: Rotor) -> dict[str, Any]:
    data: dict[str, Any] = {
        'gear': rotor.gear,
        'mass': rotor.mass,
        'inertia': list(rotor.inertia),
        'position': list(rotor.position),
        'rpy': list(rotor.rpy),
    }
    return data if rotor.axis is None else {**data, 'axis': list(rotor.axis)}
