# SPDX-License-Identifier: Apache-2.0
"""Common base of the readers of URDF elements: names, numbers, single children."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator
from typing import TypeVar
from xml.etree.ElementTree import Element, tostring

from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf import Origin, Vector3
from quad_dynamics.model.xml_tree import XmlTree

T = TypeVar('T')

# A larger mass, length or inertia is a typing error, and its square could overflow.
MAX_MAGNITUDE = 1e9
_ATTRIBUTES = {
    'origin': ('xyz', 'rpy'),
    'mass': ('value',),
    'inertia': ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'),
    'axis': ('xyz',),
    'limit': ('lower', 'upper', 'velocity', 'effort'),
    'dynamics': ('damping', 'friction'),
    'mimic': ('joint', 'multiplier', 'offset'),
}
_UNKNOWN = 'unknown attributes ({n}) are ignored: {}'
_ALIKE = 'identical elements that are given several times ({n}): {}'
_NUMBER = re.compile(r'[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?')


class ElementReader:
    """Reads elements of one tree; problems are added to `problems`."""

    def __init__(self, tree: XmlTree, problems: Problems) -> None:
        self.tree = tree
        self.problems = problems

    def name(self, element: Element, what: str) -> str:
        """Name of an element; missing names are a problem."""
        name = element.get('name', '')
        if not name.strip():
            self.problems.error(f'{what} has no name')
        return name

    def child(self, element: Element, tag: str, where: str, read: Callable[[Element, str], T]) -> T | None:
        """Read the only child with this tag; None if there is none."""
        children = element.findall(tag)
        if len(children) > 1:
            self.several(element, tag, where)
        if not children:
            return None
        self._unknown_attributes(children[0])
        return read(children[0], where)

    def _unknown_attributes(self, element: Element) -> None:
        """Warn about unknown attributes, which may be misspelt."""
        known = _ATTRIBUTES.get(element.tag, ())
        for name in element.attrib if known else ():
            if name not in known:
                absent = [each for each in known if each not in element.attrib]
                near = difflib.get_close_matches(shorten(name), absent, 1)
                meant = f' (meant: {near[0]}?)' if near else ''
                self.problems.warn(_UNKNOWN, f'{shorten(name)} of <{element.tag}>{meant}')

    def several(self, element: Element, tag: str, where: str) -> None:
        """Report a repeated child that may occur only once; identical ones are only a warning."""
        children = element.findall(tag)
        first = tostring(children[0]).strip()
        if all(tostring(child).strip() == first for child in children):
            self.problems.warn(_ALIKE, f'<{tag}> in {where}')
        else:
            self.problems.error(f'{where} has {len(children)} <{tag}>; expected at most one')

    def number(
        self,
        element: Element,
        key: str,
        where: str,
        largest: float | None = MAX_MAGNITUDE,
        required: bool = False,
    ) -> float | None:
        """Read a number from an attribute; None if it is missing or invalid."""
        text = element.get(key)
        if text is None:
            if required:
                self.problems.error(f'{where} has no {key}; expected a finite number')
            return None
        values = self.parse(text, 1, f'{where} {key}', largest)
        return values[0] if values else None

    def not_negative(self, element: Element, key: str, where: str) -> float | None:
        """The same for a number that must not be negative."""
        value = self.number(element, key, where, largest=None)
        if value is not None and value < 0.0:
            self.problems.error(f'{where} {key} is {value:g}; expected a number >= 0')
        return value

    def numbers(self, element: Element, key: str, count: int, where: str) -> tuple[float, ...] | None:
        """Read a fixed number of values from an attribute."""
        text = element.get(key)
        if text is None:
            self.problems.error(f'{where} has no {key}; expected {_expected(count)}')
            return None
        return self.parse(text, count, f'{where} {key}', MAX_MAGNITUDE)

    def parse(self, text: str, count: int, where: str, largest: float | None) -> tuple[float, ...] | None:
        """Parse a fixed number of values, none beyond `largest`."""
        words = text.split()
        expected = _expected(count)
        shown = shorten(text)
        # float() alone would also accept 'nan', 'inf', '1_000' and digits of other scripts.
        if len(words) != count or not all(_NUMBER.fullmatch(word) and word.isascii() for word in words):
            self.problems.error(f"{where} is '{shown}'; expected {expected}")
            return None
        values = tuple(float(word) for word in words)
        if not all(math.isfinite(value) for value in values):
            self.problems.error(f"{where} is '{shown}'; expected {expected}")
            return None
        if largest is not None and max(abs(value) for value in values) > largest:
            self.problems.error(f"{where} is '{shown}'; expected a magnitude of at most {largest:g}")
            return None
        return values

    def duplicates(self, kind: str, elements: list[Element]) -> None:
        """Report names that several elements share."""
        lines: dict[str, list[int]] = {}
        for element in elements:
            lines.setdefault(element.get('name', ''), []).append(self.tree.line(element))
        for name, where in lines.items():
            if len(where) > 1 and name:
                at = ', '.join(str(line) for line in where)
                self.problems.error(f"{len(where)} {kind}s are named '{name}' (lines {at}); expected one")

    def misspelt(self, element: Element, known: tuple[str, ...], where: str) -> None:
        """Warn about children with a misspelt tag: a lost <inertial> would be hard to notice."""
        for child in elements(element):
            close = [] if child.tag in known else difflib.get_close_matches(child.tag, known, 1, 0.8)
            if close:
                self.problems.warn(
                    'unknown elements were ignored: {}', f'<{child.tag}> in {where} (meant: <{close[0]}>?)'
                )

    def origin(self, element: Element, where: str) -> Origin:
        """The <origin> of an element; the identity if there is none."""

        def read(origin: Element, inner: str) -> Origin:
            xyz = self.numbers(origin, 'xyz', 3, f'{inner}: origin') if 'xyz' in origin.attrib else None
            rpy = self.numbers(origin, 'rpy', 3, f'{inner}: origin') if 'rpy' in origin.attrib else None
            return Origin(vector3(xyz or (0.0, 0.0, 0.0)), vector3(rpy or (0.0, 0.0, 0.0)))

        return self.child(element, 'origin', where, read) or Origin()


def _expected(count: int) -> str:
    return 'a finite number' if count == 1 else f'{count} finite numbers'


def shorten(text: str) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= 60 else text[:57] + '...'


def elements(parent: Element) -> Iterator[Element]:
    """Children that are elements, not comments."""
    return (child for child in parent if not callable(child.tag))  # the tag of a comment is a function


def vector3(values: tuple[float, ...]) -> Vector3:
    """Three values as a vector."""
    return values[0], values[1], values[2]


def show(values: tuple[float, ...]) -> str:
    """Values for a message."""
    return ' '.join(f'{value:g}' for value in values)
