# SPDX-License-Identifier: Apache-2.0
"""Reads the robot description strictly: every invalid key, name and number is reported with its location."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from quad_dynamics.model.description import ContactPoint, Motor, RobotDescription, Rotor, StandingPose
from quad_dynamics.model.problems import Problems, why_unreadable
from quad_dynamics.model.urdf import Urdf, Vector3
from quad_dynamics.parameters.yaml_numbers import NumberLoader

TOP_KEY = 'quad_dynamics'
_KEYS = ('floating_base', 'feet', 'contact_points', 'rotors', 'motors', 'standing')
_POINT_KEYS = ('name', 'link', 'position', 'radius')
_ROTOR_KEYS = ('gear', 'mass', 'inertia', 'position', 'rpy', 'axis')
_MOTOR_KEYS = ('torque_limit', 'voltage', 'torque_constant', 'resistance', 'damping', 'dry_friction')
_STANDING_KEYS = ('base_height', 'joints')
_MAX_BYTES = 1024 * 1024
_MAX_DEPTH = 8  # of a description given as a mapping; valid ones have 4


def load_yaml(path: Path, problems: Problems, shown: str) -> Mapping[str, Any] | None:
    """Read the mapping below `quad_dynamics:` of a YAML file; None if it has no such key or is invalid.

    Args:
        path: path of the file.
        problems: receives the problems.
        shown: name of the file in messages.
    """
    problem = why_unreadable(path, 'a YAML file', _MAX_BYTES)
    if problem:
        problems.error(f'{shown}: {problem}')
        return None
    try:
        data, twice = _safe_load(path.read_text(encoding='utf-8'))
    except OSError as error:
        problems.error(f'{shown}: cannot be read: {error.strerror}')
        return None
    except UnicodeDecodeError as error:
        problems.error(f'{shown}: byte {error.start} is not valid UTF-8; is this a text file?')
        return None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.error(f'{shown}: invalid YAML: {" ".join(str(error).split())}')
        return None
    if not isinstance(data, dict) or TOP_KEY not in data:
        return None
    for text in twice:
        problems.error(f'{shown}: {text}')
    return as_description_mapping(data, problems)


def _safe_load(text: str) -> tuple[Any, list[str]]:
    """yaml.safe_load without aliases, which can expand a small file to gigabytes.

    Returns:
        The data, and a message for each duplicate key of a mapping: YAML forbids them, but the loader
        silently keeps the last value.
    """
    loader = NumberLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None, []
        twice = [text for node in _nodes(root) for text in _keys_twice(node)]
        return loader.construct_document(root), twice
    finally:
        loader.dispose()


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """The node and all below it, in the order of the file."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:  # an alias is the same node again
            raise yaml.YAMLError('aliases (*name) are not supported')
        seen.add(id(node))
        yield node
        children = node.value if isinstance(node.value, list) else []
        parts = [part for child in children for part in (child if isinstance(child, tuple) else (child,))]
        stack.extend(reversed(parts))


def _keys_twice(node: yaml.Node) -> Iterator[str]:
    """A message for each duplicate key of a mapping."""
    first: dict[tuple[str, str], int] = {}
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if not isinstance(key, yaml.ScalarNode):
            continue
        line = key.start_mark.line + 1
        name = (key.tag, key.value)
        if name in first:
            yield f"line {line}: the key '{key.value}' is already in line {first[name]}; expected once"
        first.setdefault(name, line)


def as_description_mapping(data: Mapping[str, Any], problems: Problems) -> Mapping[str, Any] | None:
    """The mapping below `quad_dynamics:`; a mapping without this key is returned itself."""
    inner = _plain(data.get(TOP_KEY, data))
    if inner is None:
        return {}
    if not isinstance(inner, Mapping):
        problems.error(f'{TOP_KEY}: is {_show(inner)}; expected a mapping')
        return None
    return inner


def _plain(value: Any, depth: int = 0) -> Any:
    """The value with tuples and arrays as lists, and NumPy numbers as Python numbers, as from YAML."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return value


def read_description(data: Mapping[str, Any], urdf: Urdf, problems: Problems) -> RobotDescription:
    """Validate a description against its robot; problems are collected, and the valid part is returned."""
    return _Reader(urdf, problems).read(data)


class _Reader:
    def __init__(self, urdf: Urdf, problems: Problems) -> None:
        self.links = {link.name for link in urdf.links}
        self.joints = [joint.name for joint in urdf.joints if joint.is_movable]
        self.problems = problems

    def read(self, data: Mapping[str, Any]) -> RobotDescription:
        self._known_keys(data, _KEYS, TOP_KEY)
        floating = data.get('floating_base')
        if floating is not None and not isinstance(floating, bool):
            self._error(f'{TOP_KEY}.floating_base', floating, 'true or false')
            floating = None
        names, feet = self._feet(data.get('feet'))
        points = self._points(data.get('contact_points'))
        return RobotDescription(
            floating_base=floating,
            feet=feet,
            leg_names=names,
            contact_points=points,
            rotors={
                joint: rotor for joint, rotor in self._per_joint(data, 'rotors', self._rotor).items() if rotor
            },
            motors={
                joint: motor for joint, motor in self._per_joint(data, 'motors', self._motor).items() if motor
            },
            standing=self._standing(data.get('standing')),
            feet_from_tree=data.get('feet') is None,
            contact_points_from_tree=data.get('contact_points') is None,
        )

    # ---- sections

    def _feet(self, value: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        where = f'{TOP_KEY}.feet'
        if value is None:
            return (), ()
        if isinstance(value, Mapping):
            names, feet = tuple(map(str, value)), tuple(value.values())
        elif isinstance(value, list):
            names, feet = (), tuple(value)
        else:
            self._error(where, value, 'a list of links, or a mapping from leg names to links')
            return (), ()
        good = [self._link(foot, where) for foot in feet]
        if len(set(map(str, feet))) < len(feet):
            self.problems.error(f'{where}: a link is named twice in {_show(list(feet))}')
            return (), ()
        if not all(good):
            return (), ()
        return names, tuple(str(foot) for foot in feet)

    def _points(self, value: Any) -> tuple[ContactPoint, ...]:
        where = f'{TOP_KEY}.contact_points'
        if value is None:
            return ()
        if not isinstance(value, list):
            self._error(where, value, 'a list of mappings')
            return ()
        points = [self._point(item, f'{where}[{i}]') for i, item in enumerate(value)]
        found = [point for point in points if point is not None]
        names = [point.name for point in found]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.problems.error(f"{where}: two points are named '{name}'; expected different names")
        return tuple(found)

    def _point(self, item: Any, where: str) -> ContactPoint | None:
        if not self._mapping(item, where):
            return None
        self._known_keys(item, _POINT_KEYS, where)
        link = item.get('link')
        known = self._link(link, f'{where}.link')
        position = self._vector(item, 'position', where, (0.0, 0.0, 0.0))
        radius = self._number(item, 'radius', where, 0.0, low=0.0)
        index = where[where.rfind('[') + 1 : -1]
        name = item.get('name', f'{link}_{index}')
        if not isinstance(name, str):
            self._error(f'{where}.name', name, 'text')
            return None
        if not known or position is None or radius is None:
            return None
        return ContactPoint(name, str(link), position, radius)

    def _rotor(self, joint: str, item: Any, where: str) -> Rotor | None:
        if not self._mapping(item, where):
            return None
        self._known_keys(item, _ROTOR_KEYS, where)
        gear = self._number(item, 'gear', where, None)
        if gear == 0.0:
            self._error(f'{where}.gear', gear, 'a nonzero ratio')
            gear = None
        mass = self._number(item, 'mass', where, 0.0, low=0.0)
        inertia = self._inertia(item.get('inertia', [0.0, 0.0, 0.0]), f'{where}.inertia')
        position = self._vector(item, 'position', where, (0.0, 0.0, 0.0))
        rpy = self._vector(item, 'rpy', where, (0.0, 0.0, 0.0))
        axis = self._vector(item, 'axis', where, (0.0, 0.0, 1.0)) if 'axis' in item else None
        if axis is not None and math.sqrt(sum(a * a for a in axis)) < 1e-9:
            self._error(f'{where}.axis', list(axis), 'a nonzero direction')
            return None
        if gear is None or mass is None or inertia is None or position is None or rpy is None:
            return None
        return Rotor(joint, gear, mass, inertia, position, rpy, axis)

    def _motor(self, joint: str, item: Any, where: str) -> Motor | None:
        if not self._mapping(item, where):
            return None
        self._known_keys(item, _MOTOR_KEYS, where)
        numbers: list[float] = []
        for key in _MOTOR_KEYS:
            optional = key in ('damping', 'dry_friction')
            low = 0.0 if optional else 1e-12
            value = self._number(item, key, where, 0.0 if optional else None, low=low)
            if value is None:
                return None
            numbers.append(value)
        return Motor(joint, *numbers)

    def _standing(self, value: Any) -> StandingPose | None:
        where = f'{TOP_KEY}.standing'
        if value is None or not self._mapping(value, where):
            return None
        self._known_keys(value, _STANDING_KEYS, where)
        height = self._number(value, 'base_height', where, 0.0)
        joints = {
            joint: angle
            for joint, angle in self._per_joint(value, 'joints', self._angle, where).items()
            if angle is not None
        }
        return StandingPose(height if 'base_height' in value else None, joints)

    def _angle(self, _: str, item: Any, where: str) -> float | None:
        if not _is_number(item):
            self._error(where, item, 'a finite number')
            return None
        return float(item)

    # ---- parts of sections

    def _per_joint(self, data: Mapping[str, Any], key: str, read: Any, top: str = TOP_KEY) -> dict[str, Any]:
        """Read a mapping from joint names or patterns such as '*_hip_joint'; a full name has precedence."""
        section, where = data.get(key), f'{top}.{key}'
        if section is None or not self._mapping(section, where):
            return {}
        source: dict[str, str] = {}
        for pattern in map(str, section):
            matches = [joint for joint in self.joints if fnmatchcase(joint, pattern)]
            if not matches:
                known = ', '.join(self.joints)
                self.problems.error(f"{where}: '{pattern}' matches no movable joint; the robot has: {known}")
            for joint in matches:
                first = source.setdefault(joint, pattern)
                if pattern == joint:
                    source[joint] = pattern
                elif first not in (pattern, joint):
                    self.problems.error(
                        f"{where}: joint '{joint}' is matched by both '{first}' and '{pattern}'"
                    )
        items = {str(pattern): item for pattern, item in section.items()}
        return {
            joint: read(joint, items[source[joint]], f'{where}.{source[joint]}')
            for joint in self.joints
            if joint in source
        }

    def _inertia(self, value: Any, where: str) -> tuple[float, float, float, float, float, float] | None:
        if not isinstance(value, list) or len(value) not in (3, 6) or not all(map(_is_number, value)):
            self._error(where, value, '3 numbers [xx, yy, zz] or 6 numbers [xx, xy, yy, xz, yz, zz]')
            return None
        if len(value) == 3:
            return float(value[0]), 0.0, float(value[1]), 0.0, 0.0, float(value[2])
        xx, xy, yy, xz, yz, zz = map(float, value)
        return xx, xy, yy, xz, yz, zz

    def _vector(self, item: Mapping[str, Any], key: str, where: str, default: Vector3) -> Vector3 | None:
        value = item.get(key, list(default))
        if not isinstance(value, list) or len(value) != 3 or not all(map(_is_number, value)):
            self._error(f'{where}.{key}', value, '3 finite numbers')
            return None
        return float(value[0]), float(value[1]), float(value[2])

    def _number(
        self, item: Mapping[str, Any], key: str, where: str, default: float | None, low: float = -math.inf
    ) -> float | None:
        if key not in item and default is None:
            self.problems.error(f'{where}: {key} is missing')
            return None
        value = item.get(key, default)
        if not _is_number(value):
            self._error(f'{where}.{key}', value, 'a finite number')
            return None
        if value < low:
            self._error(f'{where}.{key}', value, 'a number >= 0' if low == 0.0 else 'a number > 0')
            return None
        return float(value)

    def _link(self, name: Any, where: str) -> bool:
        if isinstance(name, str) and name in self.links:
            return True
        self.problems.error(f'{where}: the robot has no link {_show(name)}')
        return False

    def _mapping(self, item: Any, where: str) -> bool:
        if isinstance(item, Mapping):
            return True
        self._error(where, item, 'a mapping')
        return False

    def _known_keys(self, item: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
        for key in item:
            if key not in known:
                self.problems.error(f'{where}: unknown key {_show(key)}; known keys are {", ".join(known)}')

    def _error(self, where: str, found: Any, expected: str) -> None:
        self.problems.error(f'{where} is {_show(found)}; expected {expected}')


def _is_number(value: Any) -> bool:
    """Whether it is a finite number of reasonable size; booleans are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e9


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'
