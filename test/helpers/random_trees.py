# SPDX-License-Identifier: Apache-2.0
"""Random robots as URDF text, from a seed: any topology, joint type, axis and real inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHAPES = ('chain', 'bushy', 'quadruped')


@dataclass(frozen=True)
class Tree:
    """One random robot.

    Attributes:
        name: says seed, shape and size; good as a test id.
        urdf: the text.
        floating_base: how it is meant to be loaded.
        links: names of all links, also of those that fixed joints hang on.
    """

    name: str
    urdf: str
    floating_base: bool
    links: tuple[str, ...]


def random_tree(
    seed: int, joints: int | None = None, shape: str | None = None, floating_base: bool | None = None
) -> Tree:
    """Make the robot of a seed; what is not given is drawn (2 to 40 joints, one of SHAPES, either base)."""
    rng = np.random.default_rng(seed)
    drawn = int(rng.integers(2, 41)), str(rng.choice(SHAPES)), bool(rng.integers(2))
    joints = drawn[0] if joints is None else joints
    shape = drawn[1] if shape is None else shape
    floating_base = drawn[2] if floating_base is None else floating_base
    links, elements = ['base'], [_link(rng, 'base', massive=True)]
    for k, parent in enumerate(_parents(rng, joints, shape)):
        name = f'body{k}'
        mount = 'base' if parent < 0 else f'body{parent}'
        if (
            rng.random() < 0.25
        ):  # a fixed joint in between: the movable joint sits on a link that has to be merged
            mount = _add_fixed(rng, links, elements, mount, f'mount{k}')
        elements += [_link(rng, name, massive=True), _joint(rng, f'joint{k}', mount, name, _type(rng))]
        links.append(name)
        if rng.random() < 0.25:
            _add_fixed(rng, links, elements, name, f'tip{k}')
    name = f'seed{seed}_{shape}_{joints}joints_{"floating" if floating_base else "fixed"}'
    text = f'<?xml version="1.0"?>\n<robot name="{name}">\n' + '\n'.join(elements) + '\n</robot>\n'
    return Tree(name, text, floating_base, tuple(links))


def _parents(rng: np.random.Generator, joints: int, shape: str) -> list[int]:
    """Index of the parent body of each joint, -1 for the base."""
    if shape == 'chain':  # now and then a short branch
        return [max(-1, k - 1 - int(rng.random() < 0.15)) for k in range(joints)]
    if shape == 'bushy':
        return [int(rng.integers(-1, k)) for k in range(joints)]
    return [-1 if k < 4 else k - 4 for k in range(joints)]  # four legs that grow in turn


def _type(rng: np.random.Generator) -> str:
    return str(rng.choice(['revolute', 'continuous', 'prismatic'], p=[0.5, 0.25, 0.25]))


def _add_fixed(
    rng: np.random.Generator, links: list[str], elements: list[str], parent: str, name: str
) -> str:
    """Hang a link on a fixed joint, with or without mass."""
    elements += [
        _link(rng, name, massive=bool(rng.random() < 0.6)),
        _joint(rng, f'fix_{name}', parent, name, 'fixed'),
    ]
    links.append(name)
    return name


def _joint(rng: np.random.Generator, name: str, parent: str, child: str, kind: str) -> str:
    axis = rng.normal(size=3) if rng.random() < 0.6 else np.roll([1.0, 0.0, 0.0], int(rng.integers(3)))
    if rng.random() < 0.2:
        axis = -axis
    xyz, rpy = rng.uniform(-0.5, 0.5, 3), rng.uniform(-np.pi, np.pi, 3)
    lines = [
        f'  <joint name="{name}" type="{kind}">',
        f'    <origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/>',
        f'    <parent link="{parent}"/><child link="{child}"/>',
    ]
    if kind != 'fixed':
        lines.append(f'    <axis xyz="{_text(axis / np.linalg.norm(axis))}"/>')
        bounds = '' if kind == 'continuous' else 'lower="-3" upper="3" '
        lines.append(f'    <limit {bounds}effort="100" velocity="20"/>')
        lines.append(f'    <dynamics damping="{rng.uniform(0, 2)!r}" friction="{rng.uniform(0, 1)!r}"/>')
    return '\n'.join([*lines, '  </joint>'])


def _link(rng: np.random.Generator, name: str, massive: bool) -> str:
    """A link whose inertia is that of six random point masses, written in a turned inertial frame."""
    if not massive:
        return f'  <link name="{name}"/>'
    masses, points = rng.uniform(0.1, 1.0, 6), rng.uniform(-0.2, 0.2, (6, 3)) + rng.uniform(-0.2, 0.2, 3)
    com = masses @ points / masses.sum()
    arms = points - com
    inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))
    rpy = rng.uniform(-np.pi, np.pi, 3)
    R = rotation_of_rpy(rpy)
    inertia = R.T @ inertia @ R
    entries = {'ixx': (0, 0), 'ixy': (0, 1), 'ixz': (0, 2), 'iyy': (1, 1), 'iyz': (1, 2), 'izz': (2, 2)}
    attributes = ' '.join(f'{key}="{float(inertia[ij])!r}"' for key, ij in entries.items())
    return (
        f'  <link name="{name}"><inertial><origin xyz="{_text(com)}" rpy="{_text(rpy)}"/>'
        f'<mass value="{float(masses.sum())!r}"/><inertia {attributes}/></inertial></link>'
    )


def rotation_of_rpy(rpy: np.ndarray) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll), the meaning of rpy in URDF."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return Rz @ Ry @ Rx


def _text(values: np.ndarray) -> str:
    return ' '.join(repr(float(value)) for value in values)
