# SPDX-License-Identifier: Apache-2.0
"""Reads URDF text: every number is validated, and every problem is collected with its name and line.

Ambiguities that affect dynamics or contact are errors; everything else is a warning. Checks of single
elements are here and in `urdf_shapes`, those of the tree in `topology`, those of masses in `bodies`.
"""

from __future__ import annotations

import math
import re
from xml.etree.ElementTree import Element

from quad_dynamics.model.free_joint import free_joint, linked
from quad_dynamics.model.mesh_paths import MeshPaths
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf import (
    JOINT_TYPES,
    Inertial,
    Joint,
    Limit,
    Link,
    Mimic,
    Origin,
    Tensor,
    Urdf,
    Vector3,
)
from quad_dynamics.model.urdf_elements import ElementReader, shorten, show, vector3
from quad_dynamics.model.urdf_shapes import ShapeReader
from quad_dynamics.model.xml_tree import XmlError, XmlTree, parse_xml

MAX_LINKS = 2000
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
        problems: receives all errors and warnings.
        path: path of the file, '' if there is none; mesh paths are checked against it.

    Returns:
        The contents, as far as they could be read; None if the text is not URDF at all.
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
    if sign:  # each of its expressions would be reported as a problem
        cure = 'rename it to .xacro' if path else 'expand it first'
        problems.error(f'this looks like xacro: {cure} ({sign})')
        return None
    for oddity in tree.oddities:
        problems.warn(f'{oddity}{{}}', '')
    return _Reader(tree, problems, path).read(text)


class _Reader(ElementReader):
    """One pass over one tree. Methods named after an element read that element."""

    def __init__(self, tree: XmlTree, problems: Problems, path: str) -> None:
        super().__init__(tree, problems)
        self.path = path
        self.shapes = ShapeReader(tree, problems, MeshPaths(path))
        self.joint_names = {element.get('name', '') for element in tree.root.findall('joint')}

    def read(self, text: str) -> Urdf | None:
        root = self.tree.root
        name = root.get('name', '')
        if not name.strip():
            name = 'robot'
            self.problems.warn("the robot has no name; using '{}'", name)
        free = free_joint(root)
        world = '' if free is None else linked(free, 'parent')
        link_elements = [link for link in root.findall('link') if free is None or link.get('name') != world]
        joint_elements = [element for element in root.findall('joint') if element is not free]
        if free is not None and self.origin(free, f"joint '{free.get('name', '')}'") != Origin():
            self.problems.warn('the origin of the floating joint is ignored: {}', world)
        if not link_elements:
            self.problems.error('the robot has no <link>')
        if len(link_elements) > MAX_LINKS:
            self.problems.error(f'the robot has {len(link_elements)} links; expected at most {MAX_LINKS}')
            return None
        links = tuple(self._link(element) for element in link_elements)
        joints = tuple(self._joint(element) for element in joint_elements)
        self.duplicates('link', link_elements)
        self.duplicates('joint', joint_elements)
        looks = self.shapes.looks
        materials = tuple(looks.material(element, 'the robot') for element in root.findall('material'))
        return Urdf(name, links, joints, materials, text, self.path, free is not None)

    # ---- elements

    def _link(self, element: Element) -> Link:
        line = self.tree.line(element)
        name = self.name(element, f'the link in line {line}')
        where = f"link '{name}' (line {line})"
        self.misspelt(element, _LINK_TAGS, where)
        looks = [self.shapes.looks.shape(e, where) for e in element.findall('visual')]
        visuals = tuple(shape for shape in looks if shape)
        touched = [self.shapes.shape(e, where) for e in element.findall('collision')]
        collisions = tuple(shape for shape in touched if shape)
        inertial = self.child(element, 'inertial', where, self._inertial)
        return Link(name, inertial, visuals, collisions, line, element.find('inertial') is not None)

    def _inertial(self, element: Element, where: str) -> Inertial | None:
        origin = self.origin(element, f'{where}: inertial')
        mass = self.child(
            element, 'mass', where, lambda e, w: self.number(e, 'value', f'{w}: mass', required=True)
        )
        if element.find('mass') is None:
            self.problems.error(f'{where}: <inertial> has no <mass>; expected <mass value="..."/>')
        inertia = self.child(element, 'inertia', where, self._inertia)
        if element.find('inertia') is None:
            self.problems.error(f'{where}: <inertial> has no <inertia>; expected <inertia ixx="..." .../>')
        return None if mass is None or inertia is None else Inertial(mass, origin, inertia)

    def _inertia(self, element: Element, where: str) -> Tensor | None:
        keys = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')
        values = [self.number(element, key, f'{where}: inertia', required=True) for key in keys]
        good = [value for value in values if value is not None]
        return (good[0], good[1], good[2], good[3], good[4], good[5]) if len(good) == len(keys) else None

    def _joint(self, element: Element) -> Joint:
        line = self.tree.line(element)
        name = self.name(element, f'the joint in line {line}')
        where = f"joint '{name}' (line {line})"
        self.misspelt(element, _JOINT_TAGS, where)
        kind = self._joint_type(element, where)
        parent = self._link_reference(element, 'parent', where)
        child = self._link_reference(element, 'child', where)
        origin = self.origin(element, where)
        axis: Vector3 | None = None
        limit, damping, friction, mimic = Limit(), 0.0, 0.0, None
        if kind != 'fixed':  # fixed joints ignore the rest; exporters leave arbitrary values there
            axis = self.child(element, 'axis', where, self._axis)
            limit = self._limit(element, kind, where)
            damping, friction = self.child(element, 'dynamics', where, self._dynamics) or (0.0, 0.0)
            mimic = self.child(element, 'mimic', where, lambda e, w: self._mimic(e, w, name))
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
        return 'continuous'  # the joint was meant to move; this type causes the fewest further messages

    def _link_reference(self, element: Element, tag: str, where: str) -> str:
        """Name of the parent or child link; '' (and a problem) if it is missing."""
        references = element.findall(tag)
        if len(references) != 1:
            self.problems.error(f'{where} has {len(references) or "no"} <{tag}>; expected one')
            return ''
        name = references[0].get('link', '')
        if not name:
            self.problems.error(f'{where}: <{tag}> names no link')
        return name

    def _axis(self, element: Element, where: str) -> Vector3 | None:
        values = self.numbers(element, 'xyz', 3, f'{where}: axis')
        if values is None:
            return None
        length = math.sqrt(sum(value * value for value in values))
        if length < 1e-9:
            self.problems.error(f'{where}: axis is zero ({show(values)}); expected a direction')
            return None
        if abs(length - 1.0) > _AXIS_TOLERANCE:
            self.problems.warn(
                'joint axes that are not unit vectors were normalised: {}', f'{where} (length {length:g})'
            )
        return vector3(values)

    def _limit(self, element: Element, kind: str, where: str) -> Limit:
        limit = self.child(element, 'limit', where, self._limit_values)
        if limit is None:
            if kind != 'continuous' and element.find('limit') is None:
                self.problems.warn('joints without <limit> are treated as unlimited: {}', where)
            return Limit()
        if kind == 'continuous':
            return Limit(None, None, limit.velocity, limit.effort)
        if limit.lower is None and limit.upper is None:
            self.problems.warn(
                'joints whose <limit> has neither lower nor upper are treated as unlimited: {}', where
            )
            return limit
        if limit.lower is None or limit.upper is None:
            self.problems.warn(
                'joints whose <limit> lacks lower or upper, which defaults to 0 as specified by URDF: {}',
                where,
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
            self.number(element, 'lower', where, None),
            self.number(element, 'upper', where, None),
        )
        velocity = self.not_negative(element, 'velocity', where)
        effort = self.not_negative(element, 'effort', where)
        for key, value in (('velocity', velocity), ('effort', effort)):
            if value == 0.0 and velocity == 0.0:
                self.problems.warn(
                    f'joints whose {key} limit is 0 are treated as unlimited in {key}: {{}}', where
                )
            elif value == 0.0:
                self.problems.warn(f'joints whose {key} limit is 0, so that they cannot be used: {{}}', where)
            if value is None and element.get(key) is None:
                self.problems.warn(
                    f'joints whose <limit> lacks {key} are treated as unlimited in {key}: {{}}', where
                )
        return Limit(lower, upper, velocity, effort)

    def _dynamics(self, element: Element, where: str) -> tuple[float, float]:
        where = f'{where}: dynamics'
        damping = self.not_negative(element, 'damping', where)
        friction = self.not_negative(element, 'friction', where)
        return damping or 0.0, friction or 0.0

    def _mimic(self, element: Element, where: str, name: str) -> Mimic | None:
        """What a joint mimics; None if that is not another joint."""
        joint = element.get('joint')
        if not joint:
            self.problems.error(f'{where}: <mimic> names no joint')
            return None
        multiplier = self.number(element, 'multiplier', f'{where}: mimic')
        offset = self.number(element, 'offset', f'{where}: mimic')
        known = joint in self.joint_names and joint != name
        note = '' if known else f" (mimics '{joint}', which is not another joint of the robot)"
        self.problems.warn('mimic joints are treated as independent joints: {}', where + note)
        if not known:
            return None
        return Mimic(joint, 1.0 if multiplier is None else multiplier, offset or 0.0)


def _xacro_sign(tree: XmlTree) -> str:
    """Where unexpanded xacro is in the text; '' if there is none.

    The namespace declaration alone does not count: some files keep it after expansion. Attributes of
    extensions such as <gazebo> are ignored.
    """
    for element in tree.root.iter():
        if not callable(element.tag) and element.tag.startswith('xacro:'):
            return f'line {tree.line(element)} has <{element.tag}>'
    parts = (part for tag in ('link', 'joint', 'material') for part in tree.root.findall(tag))
    for element in (tree.root, *(inner for part in parts for inner in part.iter())):
        for value in element.attrib.values():
            if _XACRO.search(value):
                return f"line {tree.line(element)} has '{shorten(value)}'"
    return ''
