# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics inspect`: show a robot model and all problems of its file."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.cli.robot_options import add_xacro_option, xacro_args
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ModelError, ModelWarning
from quad_dynamics.model.leg_kinematics import moving_joints
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.loading import bundled_robots, load_model
from quad_dynamics.model.model import Model
from quad_dynamics.model.standing_checks import contact_doubts
from quad_dynamics.model.urdf import Joint

HELP = 'show a robot model and all problems of its file'

DESCRIPTION = f"""\
Show how the library interprets a robot: its tree, joints, masses, legs, feet and contact points.
All problems of its file are reported at once, with names and line numbers.

bundled robots: {', '.join(bundled_robots())}

examples:
  quad_dynamics inspect mini_cheetah                         a bundled robot
  quad_dynamics inspect robot.urdf                           a file, and robot.yaml beside it
  quad_dynamics inspect robot.xacro --xacro-arg type=a1      xacro is expanded first
  quad_dynamics inspect robot.urdf --strict                  treat warnings as errors (for CI)
  quad_dynamics inspect arm.urdf --fixed-base                fix the base
  quad_dynamics inspect robot.urdf --description other.yaml  with this robot description

exit code: 0 the model is valid, 1 it has problems, 2 usage error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        'robot', metavar='FILE', help='path of a .urdf or .xacro file, or the name of a bundled robot'
    )
    parser.add_argument('--strict', action='store_true', help='treat warnings as errors')
    parser.add_argument(
        '--description', metavar='YAML', help='robot description (default: FILE with .yaml, if it exists)'
    )
    add_xacro_option(parser)
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        '--fixed-base', dest='floating_base', action='store_false', default=None, help='fix the root link'
    )
    base.add_argument(
        '--floating-base', dest='floating_base', action='store_true', help='float the root link'
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the report; 0 if the model could be loaded."""
    terminal = Terminal()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)  # they are part of the report
            model = load_model(
                arguments.robot,
                arguments.floating_base,
                arguments.description,
                strict=arguments.strict,
                xacro_args=xacro_args(arguments),
            )
    except ModelError as error:
        _print_problems(terminal, error)
        return 1
    return print_model(terminal, model, arguments.strict)


def print_model(terminal: Terminal, model: Model, strict: bool = False) -> int:
    """Write the report of a model; 0 if it is valid, 1 if it has warnings and `strict` is set."""
    base = 'floating base' if model.floating_base else 'fixed base'
    terminal.line(
        f"{terminal.paint(model.name, 'bold')}: {base} '{model.base_name}', "
        f'{model.nj} joints, {model.nb} bodies, '
        f'{len(model.legs)} legs, {model.total_mass:.6g} kg (nq {model.nq}, nv {model.nv})'
    )
    _print_tree(terminal, model)
    _print_joints(terminal, model)
    _print_masses(terminal, model)
    _print_legs(terminal, model)
    _print_points(terminal, model)
    _print_standing(terminal, model)
    found = (*model.warnings, *contact_doubts(model))
    _print_warnings(terminal, found)
    if strict and found:
        terminal.line(terminal.paint(_count(found, 'problem'), 'red'))
        return 1
    tick = '✓ ' if terminal.unicode else ''
    warned = f', {_count(found, "warning")}' if found else ''
    terminal.line(terminal.paint(f'{tick}no problems{warned}', 'yellow' if found else 'green'))
    return 0


def _print_tree(terminal: Terminal, model: Model) -> None:
    terminal.heading('Tree (link: joint above it)')
    parent: dict[str, Joint] = {joint.child: joint for joint in model.urdf.joints}
    children: dict[str, list[str]] = {}
    rank = {name: i for i, name in enumerate(model.joint_names)}
    for joint in model.urdf.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    for below in children.values():  # movable branches in the order of the model, fixed links first
        below.sort(key=lambda link: rank.get(parent[link].name, -1))

    def label(link: str) -> str:
        if link not in parent:
            return terminal.paint(link, 'bold')
        joint = parent[link]
        kind = 'fixed' if joint.type == 'fixed' else f'{joint.name}, {joint.type}'
        text = f'{link}: {kind}'
        return terminal.paint(text, 'dim') if joint.type == 'fixed' else text

    terminal.tree(model.base_name, lambda link: children.get(link, []), label)


def _print_joints(terminal: Terminal, model: Model) -> None:
    if not model.nj:
        return
    terminal.heading('Joints (rad, rad/s, N m; prismatic: m, m/s, N)')
    head = ('joint', 'type', 'axis', 'lower', 'upper', 'velocity', 'effort', 'damping', 'friction', 'gear')
    types = {joint.name: joint.type for joint in model.urdf.joints}
    rows = [
        (
            name,
            types[name],
            _axis(model.joint_axis[i]),
            _number(model.q_min[i]),
            _number(model.q_max[i]),
            _number(model.velocity_limit[i]),
            _number(model.effort_limit[i]),
            _number(model.viscous[i]),
            _number(model.coulomb[i]),
            _number(model.rotor_gear[i]) if name in model.description.rotors else '-',
        )
        for i, name in enumerate(model.joint_names)
    ]
    terminal.table(head, rows, right=range(3, 10))


def _print_masses(terminal: Terminal, model: Model) -> None:
    terminal.heading('Bodies (kg; com in the frame of the body, m)')
    pi, rotors = model.pi.reshape(-1, 10), model.rotor_pi.reshape(-1, 10)
    merged: dict[int, list[str]] = {}
    for frame in model.frames.values():
        merged.setdefault(frame.body, []).append(frame.name)
    rows = []
    for i, name in enumerate(model.body_names):
        com = pi[i, 1:4] / pi[i, 0]
        others = ', '.join(link for link in merged[i] if link != name)
        rows.append(
            (
                name,
                f'{pi[i, 0]:.6g}',
                _mass(rotors[i, 0]),
                ' '.join(f'{value + 0.0:.4g}' for value in np.round(com, 9)),
                others,
            )
        )
    rows.append(('total', f'{pi[:, 0].sum():.6g}', _mass(rotors[:, 0].sum()), '', ''))
    terminal.table(('body', 'links', 'rotors', 'com of links', 'links fixed to it'), rows, right=(1, 2))


def _print_legs(terminal: Terminal, model: Model) -> None:
    if not model.legs:
        return
    how = 'found from the tree' if model.description.feet_from_tree else 'from the robot description'
    terminal.heading(f'Legs ({how})')
    rows = [
        (
            leg.name,
            leg.foot,
            _foot_source(model, leg),
            ', '.join(model.joint_names[i] for i in leg.joint_indices),
        )
        for leg in model.legs
    ]
    terminal.table(('leg', 'foot', 'where it is', 'joints'), rows)


def _foot_source(model: Model, leg: Leg) -> str:
    """A description of where a foot is."""
    source = model.description.foot_sources.get(leg.foot)
    if source is not None:
        link = model.body_names[model.frames[leg.foot].body]
        what = {'collision': 'collision geometry', 'visual': 'visual geometry', 'inertia': 'inertia'}[source]
        return f"end of '{link}', from its {what}"
    return 'link; it is a wheel' if moving_joints(model, leg) != leg.joint_indices else 'link'


def _print_points(terminal: Terminal, model: Model) -> None:
    points = model._find_points().points
    if not points:
        return
    if not model.description.contact_points_from_tree:
        how = 'from the robot description'
    elif any(link.collisions for link in model.urdf.links):
        how = 'from the collision geometry'
    else:
        how = 'found from the tree'
    terminal.heading(f'Contact points ({len(points)}, {how}; m)')
    rows = [
        (point.name, point.link, ' '.join(f'{x:.4g}' for x in point.position), _number(point.radius))
        for point in points
    ]
    terminal.table(('point', 'link', 'position', 'radius'), rows, right=(3,))


def _print_standing(terminal: Terminal, model: Model) -> None:
    pose = model.standing
    if pose is None:
        return
    how = 'found by bending the legs' if model.described_standing is None else 'from the robot description'
    terminal.heading(f'Standing pose ({how})')
    if model.floating_base:
        terminal.line(f'  base height {pose[2]:.4g} m')
    angles = pose[-model.nj :] if model.nj else pose[:0]
    shown = [f'{name} {q + 0.0:.3g}' for name, q in zip(model.joint_names, np.round(angles, 6), strict=True)]
    for start in range(0, model.nj, 3):
        terminal.line('  ' + ', '.join(shown[start : start + 3]))


def _print_problems(terminal: Terminal, error: ModelError) -> None:
    terminal.line(terminal.paint(f'{error.source}: {_count(error.problems, "problem")}', 'red'))
    for problem in error.problems:
        terminal.line(f'  - {problem}')
    _print_warnings(terminal, error.warnings)


def _print_warnings(terminal: Terminal, lines: Sequence[str]) -> None:
    if lines:
        terminal.heading(f'Warnings ({len(lines)}; errors with --strict)')
    for line in lines:
        terminal.line('  - ' + terminal.paint(line, 'yellow'))
    terminal.line()


def _axis(axis: Floats) -> str:
    for letter, unit in zip('xyz', np.eye(3), strict=True):
        if np.allclose(axis, unit, atol=1e-9):
            return letter
        if np.allclose(axis, -unit, atol=1e-9):
            return '-' + letter
    return ' '.join(f'{value:.3g}' for value in axis)


def _count(items: Sequence[str], word: str) -> str:
    return f'{len(items)} {word}{"s" if len(items) != 1 else ""}'


def _mass(value: float) -> str:
    return f'{value:.6g}' if value else '-'


def _number(value: float) -> str:
    return '-' if math.isinf(value) else f'{value:.4g}'
