# SPDX-License-Identifier: Apache-2.0
"""Writes a changed model back into the text of its URDF, leaving everything else of the file as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.inertia import Floats, about_com, flat_inertia
from quad_dynamics.model.xml_tree import declare_utf8, parse_xml, write_xml

if TYPE_CHECKING:
    from quad_dynamics.model.model import Model

_KEYS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


def write_model(model: Model) -> str:
    """URDF text of a model. Numbers have as many digits as are needed to read back the same float64.

    Raises:
        ArgumentError: a body has no mass but a first moment, which URDF cannot say.
    """
    pi, old_pi = model.pi.reshape(-1, 10), model.file_pi.reshape(-1, 10)
    bodies = np.flatnonzero((pi != old_pi).any(axis=1))
    joints = np.flatnonzero((model.viscous != model.file_viscous) | (model.coulomb != model.file_coulomb))
    if not len(bodies) and not len(joints):
        return declare_utf8(model.urdf.text)
    tree = parse_xml(model.urdf.text)
    links = {element.get('name', ''): element for element in tree.root.findall('link')}
    for i in bodies:
        for frame in model.frames.values():
            if frame.body == i:
                _remove(links[frame.name], 'inertial')
        _insert_first(links[model.body_names[i]], _inertial(pi[i], model.body_names[i]))
    elements = {element.get('name', ''): element for element in tree.root.findall('joint')}
    for i in joints:
        _set_dynamics(elements[model.joint_names[i]], float(model.viscous[i]), float(model.coulomb[i]))
    return write_xml(tree.root, tree.prologue)


def _inertial(pi: Floats, body: str) -> Element:
    if pi[0] == 0.0 and pi[1:4].any():
        raise ArgumentError(f"body '{body}' has mass 0 but a first moment of mass; URDF cannot say this")
    if pi[0] == 0.0:
        com, inertia = np.zeros(3), pi[4:]
    else:
        _, coms, inertias = about_com(pi[None])
        com, inertia = coms[0], flat_inertia(inertias[0])
    element = Element('inertial')
    SubElement(element, 'origin', {'xyz': ' '.join(map(_text, com)), 'rpy': '0 0 0'})
    SubElement(element, 'mass', {'value': _text(pi[0])})
    values = dict(zip(_KEYS, map(_text, inertia), strict=True))
    SubElement(element, 'inertia', {key: values[key] for key in sorted(_KEYS)})
    return element


def _set_dynamics(joint: Element, damping: float, friction: float) -> None:
    dynamics = joint.find('dynamics')
    if dynamics is None:
        dynamics = Element('dynamics')
        _append(joint, dynamics)
    dynamics.set('damping', _text(damping))
    dynamics.set('friction', _text(friction))


def _text(value: float) -> str:
    return repr(float(value))


# ---- edits that keep the indentation


def _remove(parent: Element, tag: str) -> None:
    for child in parent.findall(tag):
        place = list(parent).index(child)
        # What follows the child's end tag takes over the white space before its start tag.
        if place > 0:
            parent[place - 1].tail = child.tail if place == len(parent) - 1 else parent[place - 1].tail
        elif len(parent) == 1:
            parent.text = None
        parent.remove(child)


def _insert_first(link: Element, child: Element) -> None:
    inner = link.text if link.text and not link.text.strip() and '\n' in link.text else '\n    '
    _indent_children(child, inner)
    child.tail = inner if len(link) else inner[:-2]
    link.text = inner
    link.insert(0, child)


def _append(parent: Element, child: Element) -> None:
    inner = parent.text if parent.text and not parent.text.strip() and '\n' in parent.text else '\n    '
    child.tail = parent[-1].tail if len(parent) else inner[:-2]
    if len(parent):
        parent[-1].tail = inner
    parent.append(child)


def _indent_children(element: Element, outer: str) -> None:
    element.text = outer + '  '
    for child in element:
        child.tail = outer + '  '
    element[-1].tail = outer
