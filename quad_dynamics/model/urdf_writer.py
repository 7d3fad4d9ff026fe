# SPDX-License-Identifier: Apache-2.0
"""Writes a changed model back into the text of its URDF, leaving the rest of the file unchanged.

Only the changed pieces of text are replaced. The rest is not re-serialized, so line ends, quotes, comments
and spaces inside tags are preserved.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.inertia import about_com, flat_inertia
from quad_dynamics.model.xml_tree import XmlTree, declare_utf8, parse_xml

if TYPE_CHECKING:
    from quad_dynamics.model.model import Model

_KEYS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')
_STEP = '  '  # of indentation
_TAG = re.compile(rb'<(?:[^>"\']|"[^"]*"|\'[^\']*\')*>')
_ATTRIBUTE = re.compile(r'\s([^\s=]+)\s*=\s*("[^"]*"|\'[^\']*\')')


def write_model(model: Model) -> str:
    """URDF text of a model. Numbers have enough digits to be read back exactly.

    Raises:
        ArgumentError: a body has no mass but a first moment, which URDF cannot represent.
    """
    pi, old_pi = model.pi.reshape(-1, 10), model.file_pi.reshape(-1, 10)
    bodies = np.flatnonzero((pi != old_pi).any(axis=1))
    joints = np.flatnonzero((model.viscous != model.file_viscous) | (model.coulomb != model.file_coulomb))
    if not len(bodies) and not len(joints):
        return declare_utf8(model.urdf.text)
    edits = _Edits(parse_xml(model.urdf.text))
    links = {element.get('name', ''): element for element in edits.tree.root.findall('link')}
    for i in bodies:
        main = model.body_names[i]
        for frame in model.frames.values():
            if frame.body == i and frame.name != main and frame.name in links:
                edits.remove_inertial(links[frame.name])
        edits.set_inertial(links[main], _inertial(pi[i], main))
    elements = {element.get('name', ''): element for element in edits.tree.root.findall('joint')}
    for i in joints:
        edits.set_dynamics(elements[model.joint_names[i]], float(model.viscous[i]), float(model.coulomb[i]))
    return declare_utf8(edits.apply())


def _inertial(pi: Floats, body: str) -> list[str]:
    """Lines of an <inertial>."""
    if pi[0] == 0.0 and pi[1:4].any():
        raise ArgumentError(
            f"body '{body}' has mass 0 but a nonzero first moment of mass, which URDF cannot represent"
        )
    if pi[0] == 0.0:
        com, inertia = np.zeros(3), pi[4:]
    else:
        _, coms, inertias = about_com(pi[None])
        com, inertia = coms[0], flat_inertia(inertias[0])
    values = dict(zip(_KEYS, map(_text, inertia), strict=True))
    return [
        '<inertial>',
        f'{_STEP}<origin xyz="{" ".join(map(_text, com))}" rpy="0 0 0"/>',
        f'{_STEP}<mass value="{_text(pi[0])}"/>',
        f'{_STEP}<inertia {" ".join(_attribute(key, values[key]) for key in sorted(_KEYS))}/>',
        '</inertial>',
    ]


def _attribute(key: str, value: str) -> str:
    return f'{key}="{value}"'


def _text(value: float) -> str:
    return repr(float(value))


class _Edits:
    """Replacements in the text of one document; all offsets refer to the original."""

    def __init__(self, tree: XmlTree) -> None:
        self.tree, self.raw = tree, tree.raw
        self.newline = '\r\n' if b'\r\n' in tree.raw else '\n'
        self._pieces: list[tuple[int, int, str]] = []

    def apply(self) -> str:
        """The text with all replacements."""
        parts, place = [], 0
        for start, end, text in sorted(self._pieces):
            parts += [self.raw[place:start], text.encode()]
            place = end
        return b''.join([*parts, self.raw[place:]]).decode()

    # ---- possible changes

    def remove_inertial(self, link: Element) -> None:
        """Remove the <inertial>, with the white space before it."""
        self._remove(link.findall('inertial'))

    def set_inertial(self, link: Element, lines: list[str]) -> None:
        """Write an <inertial> in place of the old one, or as the first child."""
        child = link.find('inertial')
        self._remove(link.findall('inertial')[1:])
        if child is not None:
            start, end = self._span(child)
            self._replace(start, end, (self.newline + self._indent(start)).join(lines))
            return
        start, inside, closing = self._opening(link)
        outer = self._indent(start)
        inner = outer + _STEP if closing is None else self._inner_indent(start, inside)
        text = ''.join(self.newline + inner + line for line in lines)
        if closing is None:
            tag = self.raw[start:inside].decode().removesuffix('/>').rstrip()
            self._replace(start, inside, f'{tag}>{text}{self.newline}{outer}</link>')
            return
        content = self.raw[inside:closing]
        if b'\n' not in content[: len(content) - len(content.lstrip())]:  # the next element is on this line
            text += self.newline + (inner if content.strip() else outer)
        self._replace(inside, inside, text)

    def set_dynamics(self, joint: Element, damping: float, friction: float) -> None:
        """Write friction that differs from that of the joint."""
        values = {'damping': damping, 'friction': friction}
        dynamics = joint.find('dynamics')
        self._remove(joint.findall('dynamics')[1:])
        if dynamics is not None:
            start, end, _ = self._opening(dynamics)
            tag = self.raw[start:end].decode()
            for key, value in values.items():
                if float(dynamics.get(key, '0')) != value:
                    tag = _with_attribute(tag, key, _text(value))
            self._replace(start, end, tag)
            return
        start, inside, closing = self._opening(joint)
        if closing is None:
            raise AssertionError('a joint without parent and child is no joint')
        place = self._before_space(closing)
        text = f'<dynamics {" ".join(_attribute(key, _text(value)) for key, value in values.items())}/>'
        if b'\n' in self.raw[place:closing]:
            text = self.newline + self._inner_indent(start, inside) + text
        self._replace(place, place, text)

    # ---- offsets

    def _replace(self, start: int, end: int, text: str) -> None:
        self._pieces.append((start, end, text))

    def _remove(self, elements: list[Element]) -> None:
        """Remove elements, with the white space before them."""
        for element in elements:
            start, end = self._span(element)
            self._replace(self._before_space(start), end, '')

    def _opening(self, element: Element) -> tuple[int, int, int | None]:
        """Start and end of an element's opening tag, and start of the closing one (None for <x/>)."""
        start, closing = self.tree.marks[id(element)]
        tag = _TAG.match(self.raw, start)
        if tag is None:
            raise AssertionError('what was parsed starts with a tag')
        return start, tag.end(), None if tag.group().endswith(b'/>') else closing

    def _span(self, element: Element) -> tuple[int, int]:
        """Start and end of an element."""
        start, end, closing = self._opening(element)
        return start, end if closing is None else self.raw.index(b'>', closing) + 1

    def _before_space(self, place: int) -> int:
        """Start of the white space before an offset."""
        while self.raw[place - 1 : place].isspace():
            place -= 1
        return place

    def _indent(self, place: int) -> str:
        """White space at the start of the line of an offset."""
        line = self.raw[self.raw.rfind(b'\n', 0, place) + 1 : place]
        return line[: len(line) - len(line.lstrip())].decode()

    def _inner_indent(self, start: int, inside: int) -> str:
        """Indentation of the content of an element, from its first child if that starts a line."""
        end = inside
        while self.raw[end : end + 1].isspace():
            end += 1
        own_line = b'\n' in self.raw[inside:end] and not self.raw.startswith(b'</', end)
        return self._indent(end) if own_line else self._indent(start) + _STEP


def _with_attribute(tag: str, key: str, value: str) -> str:
    """An opening tag with an attribute set."""
    for match in _ATTRIBUTE.finditer(tag):
        if match.group(1) == key:
            return tag[: match.start(2)] + f'"{value}"' + tag[match.end(2) :]
    end = re.search(r'\s*/?>$', tag)
    place = len(tag) if end is None else end.start()
    return f'{tag[:place]} {key}="{value}"{tag[place:]}'
