# SPDX-License-Identifier: Apache-2.0
"""Reads URDF text strictly: every number is checked, and every problem is collected with its name and line.

Checks of single elements live here; what concerns the tree is in `topology`, what concerns masses in
`bodies`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator
from typing import TypeVar
from xml.etree.ElementTree import Element

from quad_dynamics.model.mesh_paths import MeshPaths
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf import (
    JOINT_TYPES,
    Geometry,
    Inertial,
    Joint,
    Limit,
    Link,
    Material,
    Mimic,
    Origin,
    Shape,
    Tensor,
    Urdf,
    Vector3,
)
from quad_dynamics.model.xml_tree import XmlError, XmlTree, parse_xml

T = TypeVar('T')

# Beyond this a mass, length or inertia is a slip of the pen, and squares of it would overflow.
MAX_MAGNITUDE = 1e9
MAX_LINKS = 2000
_NUMBER = re.compile(r'[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?')
_XACRO = re.compile(r'\$[{(]')
_AXIS_TOLERANCE = 1e-3
_LINK_TAGS = ('inertial', 'visual', 'collision')
_JOINT_TAGS = (
    'origin',
    'parent',
    'child',
    'axis',
    'limit',
    'dynamics',
    'mimic',
    'calibration',
    'safety_controller',
)


def read_urdf(text: str, problems: Problems, path: str = '') -> Urdf | None:
    """Read URDF text.

    Args:
        text: the file's text.
        problems: receives every error and doubt.
        path: of the file, '' if there is none; mesh paths are judged by it.

    Returns:
        What could be read, even if there are problems; None if the text is no URDF at all.
    """
    try:
        tree = parse_xml(text)
    except XmlError as error:
        problems.error(str(error))
        return None
    if tree.root.tag != 'robot':
        problems.error(f'the root element is <{tree.root.tag}>; expected <robot>')
        return None
    sign = '' if path.lower().endswith('.xacro') else _xacro_sign(tree)
    if sign:  # each of its expressions would be a problem of its own
        cure = 'let its name end with .xacro' if path else 'expand it first'
        problems.error(f'this looks like xacro: {cure} ({sign})')
        return None
    return _Reader(tree, problems, path).read(text)


class _Reader:
    """One pass over one tree. Methods named after an element read that element."""

    def __init__(self, tree: XmlTree, problems: Problems, path: str) -> None:
        self.tree = tree
        self.problems = problems
        self.path = path
        self.mesh_paths = MeshPaths(path)
        self.joint_names = {element.get('name', '') for element in tree.root.findall('joint')}

    def read(self, text: str) -> Urdf | None:
        root = self.tree.root
        name = self._name(root, 'the robot')
        link_elements, joint_elements = root.findall('link'), root.findall('joint')
        if not link_elements:
            self.problems.error('the robot has no <link>')
        if len(link_elements) > MAX_LINKS:
            self.problems.error(f'the robot has {len(link_elements)} links; at most {MAX_LINKS} are read')
            return None
        links = tuple(self._link(element) for element in link_elements)
        joints = tuple(self._joint(element) for element in joint_elements)
        self._duplicates('link', link_elements)
        self._duplicates('joint', joint_elements)
        where = 'the robot'
        materials = tuple(self._material(element, where) for element in root.findall('material'))
        return Urdf(name, links, joints, materials, text, self.path)

    # ---- elements

    def _link(self, element: Element) -> Link:
        line = self.tree.line(element)
        name = self._name(element, f'the link in line {line}')
        where = f"link '{name}' (line {line})"
        self._misspelt(element, _LINK_TAGS, where)
        visuals = tuple(s for s in (self._shape(e, where) for e in element.findall('visual')) if s)
        collisions = tuple(s for s in (self._shape(e, where) for e in element.findall('collision')) if s)
        inertial = self._child(element, 'inertial', where, self._inertial)
        return Link(name, inertial, visuals, collisions, line, element.find('inertial') is not None)

    def _inertial(self, element: Element, where: str) -> Inertial | None:
        origin = self._origin(element, f'{where}: inertial')
        mass = self._child(
            element, 'mass', where, lambda e, w: self._number(e, 'value', f'{w}: mass', required=True)
        )
        if element.find('mass') is None:
            self.problems.error(f'{where}: <inertial> has no <mass>; expected <mass value="..."/>')
        inertia = self._child(element, 'inertia', where, self._inertia)
        if element.find('inertia') is None:
            self.problems.error(f'{where}: <inertial> has no <inertia>; expected <inertia ixx="..." .../>')
        return None if mass is None or inertia is None else Inertial(mass, origin, inertia)

    def _inertia(self, element: Element, where: str) -> Tensor | None:
        keys = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')
        values = [self._number(element, key, f'{where}: inertia', required=True) for key in keys]
        good = [value for value in values if value is not None]
        return (good[0], good[1], good[2], good[3], good[4], good[5]) if len(good) == len(keys) else None

    def _shape(self, element: Element, where: str) -> Shape | None:
        where = f'{where}: {element.tag}'
        origin = self._origin(element, where)
        geometry = self._child(element, 'geometry', where, self._geometry)
        if element.find('geometry') is None:
            self.problems.error(f'{where} has no <geometry>')
        material = self._child(element, 'material', where, self._material)
        if geometry is None:
            return None
        return Shape(geometry, origin, element.get('name', ''), material)

    def _geometry(self, element: Element, where: str) -> Geometry | None:
        shapes = list(_elements(element))
        if len(shapes) != 1:
            found = ', '.join(f'<{shape.tag}>' for shape in shapes) or 'none'
            self.problems.error(f'{where}: <geometry> must hold exactly one shape; found {found}')
            return None
        shape = shapes[0]
        if shape.tag == 'mesh':
            return self._mesh(shape, where)
        if shape.tag == 'box':
            size = self._numbers(shape, 'size', 3, f'{where}: box')
        elif shape.tag == 'sphere':
            size = self._numbers(shape, 'radius', 1, f'{where}: sphere')
        elif shape.tag in ('cylinder', 'capsule'):
            radius = self._numbers(shape, 'radius', 1, f'{where}: {shape.tag}')
            length = self._numbers(shape, 'length', 1, f'{where}: {shape.tag}')
            size = radius + length if radius and length else None
        else:
            self.problems.error(
                f'{where}: unknown geometry <{shape.tag}>; expected box, cylinder, sphere, capsule or mesh'
            )
            return None
        if size is None:
            return None
        if min(size) < 0.0:
            self.problems.error(f'{where}: {shape.tag} has the negative size {min(size):g}')
            return None
        return Geometry(str(shape.tag), size)

    def _mesh(self, element: Element, where: str) -> Geometry | None:
        filename = element.get('filename')
        if filename is None:
            self.problems.error(f'{where}: mesh has no filename')
            return None
        problem = self.mesh_paths.problem(filename)
        if problem:
            self.problems.error(f'{where}: mesh path {problem}')
        scale: tuple[float, ...] | None = (1.0, 1.0, 1.0)
        if element.get('scale') is not None:
            scale = self._numbers(element, 'scale', 3, f'{where}: mesh')
        return Geometry('mesh', (), filename, _vector3(scale or (1.0, 1.0, 1.0)))

    def _material(self, element: Element, where: str) -> Material:
        where = f"{where}: material '{element.get('name', '')}'"
        color, texture = element.find('color'), element.find('texture')
        rgba = None
        if color is not None:
            values = self._numbers(color, 'rgba', 4, where)
            rgba = (values[0], values[1], values[2], values[3]) if values else None
        filename = '' if texture is None else texture.get('filename', '')
        problem = self.mesh_paths.problem(filename) if filename else ''
        if problem:
            self.problems.error(f'{where}: texture path {problem}')
        return Material(element.get('name', ''), rgba, filename)

    def _joint(self, element: Element) -> Joint:
        line = self.tree.line(element)
        name = self._name(element, f'the joint in line {line}')
        where = f"joint '{name}' (line {line})"
        self._misspelt(element, _JOINT_TAGS, where)
        kind = self._joint_type(element, where)
        parent = self._link_reference(element, 'parent', where)
        child = self._link_reference(element, 'child', where)
        origin = self._origin(element, where)
        axis: Vector3 | None = None
        limit, damping, friction, mimic = Limit(), 0.0, 0.0, None
        if kind != 'fixed':  # the rest has no meaning for a fixed joint; exporters leave rubbish there
            axis = self._child(element, 'axis', where, self._axis)
            limit = self._limit(element, kind, where)
            damping, friction = self._child(element, 'dynamics', where, self._dynamics) or (0.0, 0.0)
            mimic = self._child(element, 'mimic', where, lambda e, w: self._mimic(e, w, name))
        axis = axis or (1.0, 0.0, 0.0)  # the default of URDF
        return Joint(name, kind, parent, child, origin, axis, limit, damping, friction, mimic, line)

    def _joint_type(self, element: Element, where: str) -> str:
        kind = element.get('type')
        if kind in JOINT_TYPES:
            return str(kind)
        if kind is None:
            found = 'has no type'
        elif kind in ('floating', 'planar'):
            found = f"has the unsupported type '{kind}'"
        else:
            found = f"has the unknown type '{kind}'"
        hint = (
            '; for a free base remove this joint and load with floating_base=True (--floating-base)'
            if kind == 'floating'
            else ''
        )
        self.problems.error(f'{where} {found}; expected one of {", ".join(JOINT_TYPES)}{hint}')
        return 'continuous'  # it was meant to move; this draws the fewest complaints about the rest

    def _link_reference(self, element: Element, tag: str, where: str) -> str:
        """Name of the parent or child link; '' (and a problem) if there is none."""
        references = element.findall(tag)
        if len(references) != 1:
            self.problems.error(f'{where} has {len(references) or "no"} <{tag}>; expected one')
            return ''
        name = references[0].get('link', '')
        if not name:
            self.problems.error(f'{where}: <{tag}> names no link')
        return name

    def _axis(self, element: Element, where: str) -> Vector3 | None:
        values = self._numbers(element, 'xyz', 3, f'{where}: axis')
        if values is None:
            return None
        length = math.sqrt(sum(value * value for value in values))
        if length < 1e-9:
            self.problems.error(f'{where}: axis is zero ({_show(values)}); expected a direction')
            return None
        if abs(length - 1.0) > _AXIS_TOLERANCE:
            self.problems.warn(
                'joint axes that are not of length 1 were normalised: {}', f'{where} (length {length:g})'
            )
        return _vector3(values)

    def _limit(self, element: Element, kind: str, where: str) -> Limit:
        limit = self._child(element, 'limit', where, self._limit_values)
        if limit is None:
            if kind != 'continuous' and element.find('limit') is None:
                self.problems.warn('joints without <limit> are taken as unlimited: {}', where)
            return Limit()
        if kind == 'continuous':
            return Limit(None, None, limit.velocity, limit.effort)
        if limit.lower is None and limit.upper is None:
            self.problems.warn(
                'joints whose <limit> has neither lower nor upper are taken as unlimited: {}', where
            )
            return limit
        if limit.lower is None or limit.upper is None:
            self.problems.warn(
                'joints whose <limit> lacks lower or upper: 0 is taken for it, as URDF says: {}', where
            )
        lower, upper = limit.lower or 0.0, limit.upper or 0.0
        if lower > upper:
            self.problems.error(
                f'{where}: limit lower {lower:g} is above upper {upper:g}; expected lower <= upper'
            )
        return Limit(lower, upper, limit.velocity, limit.effort)

    def _limit_values(self, element: Element, where: str) -> Limit:
        where = f'{where}: limit'
        lower, upper = (
            self._number(element, 'lower', where, None),
            self._number(element, 'upper', where, None),
        )
        velocity = self._not_negative(element, 'velocity', where)
        effort = self._not_negative(element, 'effort', where)
        for key, value in (('velocity', velocity), ('effort', effort)):
            if value == 0.0 and velocity == 0.0:
                self.problems.warn(f'joints whose {key} limit is 0 are taken as unlimited in it: {{}}', where)
            elif value == 0.0:
                self.problems.warn(
                    f'joints whose {key} limit is 0, which forbids all use of them: {{}}', where
                )
            if value is None and element.get(key) is None:
                self.problems.warn(
                    f'joints whose <limit> lacks {key} are taken as unlimited in it: {{}}', where
                )
        return Limit(lower, upper, velocity, effort)

    def _dynamics(self, element: Element, where: str) -> tuple[float, float]:
        where = f'{where}: dynamics'
        damping = self._not_negative(element, 'damping', where)
        friction = self._not_negative(element, 'friction', where)
        return damping or 0.0, friction or 0.0

    def _mimic(self, element: Element, where: str, name: str) -> Mimic | None:
        """What the joint of that name mimics; None if that is no other joint."""
        joint = element.get('joint')
        if not joint:
            self.problems.error(f'{where}: <mimic> names no joint')
            return None
        multiplier = self._number(element, 'multiplier', f'{where}: mimic')
        offset = self._number(element, 'offset', f'{where}: mimic')
        known = joint in self.joint_names and joint != name
        note = '' if known else f" (mimics '{joint}', which is no other joint of the robot)"
        self.problems.warn('mimic joints are taken as independent joints: {}', where + note)
        if not known:
            return None
        return Mimic(joint, 1.0 if multiplier is None else multiplier, offset or 0.0)

    def _origin(self, element: Element, where: str) -> Origin:
        def read(origin: Element, inner: str) -> Origin:
            xyz = self._numbers(origin, 'xyz', 3, f'{inner}: origin') if 'xyz' in origin.attrib else None
            rpy = self._numbers(origin, 'rpy', 3, f'{inner}: origin') if 'rpy' in origin.attrib else None
            return Origin(_vector3(xyz or (0.0, 0.0, 0.0)), _vector3(rpy or (0.0, 0.0, 0.0)))

        return self._child(element, 'origin', where, read) or Origin()

    # ---- names, numbers, single children

    def _name(self, element: Element, what: str) -> str:
        name = element.get('name', '')
        if not name.strip():
            self.problems.error(f'{what} has no name')
        return name

    def _child(self, element: Element, tag: str, where: str, read: Callable[[Element, str], T]) -> T | None:
        """Read the only child of that tag; None if there is none."""
        children = element.findall(tag)
        if len(children) > 1:
            self.problems.error(f'{where} has {len(children)} <{tag}>; expected at most one')
        return read(children[0], where) if children else None

    def _number(
        self,
        element: Element,
        key: str,
        where: str,
        largest: float | None = MAX_MAGNITUDE,
        required: bool = False,
    ) -> float | None:
        text = element.get(key)
        if text is None:
            if required:
                self.problems.error(f'{where} has no {key}; expected a finite number')
            return None
        values = self._parse(text, 1, f'{where} {key}', largest)
        return values[0] if values else None

    def _not_negative(self, element: Element, key: str, where: str) -> float | None:
        value = self._number(element, key, where, largest=None)
        if value is not None and value < 0.0:
            self.problems.error(f'{where} {key} is {value:g}; expected no negative number')
        return value

    def _numbers(self, element: Element, key: str, count: int, where: str) -> tuple[float, ...] | None:
        text = element.get(key)
        if text is None:
            self.problems.error(f'{where} has no {key}; expected {_expected(count)}')
            return None
        return self._parse(text, count, f'{where} {key}', MAX_MAGNITUDE)

    def _parse(self, text: str, count: int, where: str, largest: float | None) -> tuple[float, ...] | None:
        words = text.split()
        expected = _expected(count)
        shown = _shorten(text)
        # float() alone would also take 'nan', 'inf', '1_000' and digits of other scripts.
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

    def _duplicates(self, kind: str, elements: list[Element]) -> None:
        lines: dict[str, list[int]] = {}
        for element in elements:
            lines.setdefault(element.get('name', ''), []).append(self.tree.line(element))
        for name, where in lines.items():
            if len(where) > 1 and name:
                at = ', '.join(str(line) for line in where)
                self.problems.error(f"{len(where)} {kind}s are named '{name}' (lines {at}); expected one")

    def _misspelt(self, element: Element, known: tuple[str, ...], where: str) -> None:
        """Warn of children whose tag is nearly a known one: a lost <inertial> is hard to see otherwise."""
        for child in _elements(element):
            close = [] if child.tag in known else difflib.get_close_matches(child.tag, known, 1, 0.8)
            if close:
                self.problems.warn(
                    'unknown elements were ignored: {}', f'<{child.tag}> in {where} (meant: <{close[0]}>?)'
                )


def _xacro_sign(tree: XmlTree) -> str:
    """Where xacro is left in the text; '' if nowhere.

    The declaration of its namespace alone is no sign: some files keep it after they were expanded. What
    extensions such as <gazebo> have in their attributes is their own affair.
    """
    for element in tree.root.iter():
        if not callable(element.tag) and element.tag.startswith('xacro:'):
            return f'line {tree.line(element)} has <{element.tag}>'
    parts = (part for tag in ('link', 'joint', 'material') for part in tree.root.findall(tag))
    for element in (tree.root, *(inner for part in parts for inner in part.iter())):
        for value in element.attrib.values():
            if _XACRO.search(value):
                return f"line {tree.line(element)} has '{_shorten(value)}'"
    return ''


def _expected(count: int) -> str:
    return 'a finite number' if count == 1 else f'{count} finite numbers'


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + '...'


def _elements(parent: Element) -> Iterator[Element]:
    """Children that are elements, not comments."""
    return (child for child in parent if not callable(child.tag))  # the tag of a comment is a function


def _vector3(values: tuple[float, ...]) -> Vector3:
    return values[0], values[1], values[2]


def _show(values: tuple[float, ...]) -> str:
    return ' '.join(f'{value:g}' for value in values)
