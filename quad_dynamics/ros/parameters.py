# SPDX-License-Identifier: Apache-2.0
"""Parameters of a node, declared from a `ParameterSet` with type, default, unit, bounds and meaning.

ROS has no null values. They are written as '' (text), [] (numbers) and 0 (whole numbers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import InvalidParameterException, ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import Parameter, nearest, raise_problems
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.ros.node import OverridableNode

_Set = TypeVar('_Set', bound=ParameterSet)
# Parameters that every node has.
_OF_ROS = ('use_sim_time', 'start_type_description_service', 'qos_overrides')


class NodeParameters(Generic[_Set]):
    """The parameters of a node.

    Attributes:
        values: current values of all parameters.
    """

    def __init__(self, node: Node, settings: type[_Set]) -> None:
        """Declare and read them.

        Args:
            node: of rclpy.
            settings: class that declares them.

        Raises:
            ArgumentError: lists all problems with the values that the node was started with.
        """
        self._declared = settings.parameters()
        self._apply: Callable[[_Set, _Set], None] = lambda new, old: None
        _check_names(node.get_name(), _given(node), self._declared)
        if isinstance(node, OverridableNode):
            node.check_overrides()
        problems: list[str] = []
        for name, declared in self._declared.items():
            problems += _declare(node, name, declared)
        raise_problems(node.get_name(), problems)
        given = {name: node.get_parameter(name).value for name in self._declared}
        try:
            self.values: _Set = settings.from_dict(_nested(self._declared, given))
        except ArgumentError as error:
            raise ArgumentError(f'parameters of {node.get_name()}: {error}') from error
        node.add_on_set_parameters_callback(self._set)

    def on_change(self, apply: Callable[[_Set, _Set], None]) -> None:
        """Call a function with new and old values; if it raises an ArgumentError, nothing changes."""
        self._apply = apply

    def _set(self, parameters: Iterable[RosParameter]) -> SetParametersResult:
        changes = {one.name: one.value for one in parameters if one.name in self._declared}
        if not changes:
            return SetParametersResult(successful=True)
        fixed = [name for name in changes if not self._declared[name].dynamic]
        if fixed:
            reason = f'{", ".join(fixed)} can only be set at startup'
            return SetParametersResult(successful=False, reason=reason)
        try:
            new = self.values.replace(**_nested(self._declared, changes))
            self._apply(new, self.values)
        except ArgumentError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # whatever it is, the caller gets an answer
            return SetParametersResult(successful=False, reason=f'{type(error).__name__}: {error}')
        self.values = new
        return SetParametersResult(successful=True)


def read_values(node: str, settings: type[_Set], given: Mapping[str, Any]) -> _Set:
    """The settings of a node from ROS parameter values, without the node.

    Args:
        node: its name, for messages.
        settings: class that declares its parameters.
        given: values by dotted names; the others take their defaults.

    Raises:
        ArgumentError: lists everything that the node itself would reject.
    """
    declared = settings.parameters()
    _check_names(node, given, declared)
    try:
        return settings.from_dict(_nested(declared, {k: v for k, v in given.items() if k in declared}))
    except ArgumentError as error:
        raise ArgumentError(f'parameters of {node}: {error}') from error


def _nested(declared: Mapping[str, Parameter], flat: Mapping[str, Any]) -> dict[str, Any]:
    """ROS parameter values by dotted names, converted to nested mappings for the settings."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *groups, last = name.split('.')
        inner = nested
        for key in groups:
            inner = inner.setdefault(key, {})
        inner[last] = _from_ros(declared[name], value)
    return nested


def _check_names(name: str, given: Iterable[str], declared: Mapping[str, Parameter]) -> None:
    """Reject unknown parameters, which rclpy would silently ignore."""
    strange = [one for one in given if one not in declared and one.split('.')[0] not in _OF_ROS]
    expected = f'expected one of those in docs/nodes/{name}.md'
    problems = [f"unknown parameter '{one}'{nearest(one, declared)}; {expected}" for one in strange]
    raise_problems(name, problems)


def _given(node: Node) -> Mapping[str, Any]:
    """The values that the node was started with, by name."""
    given: Mapping[str, Any] = getattr(node, '_parameter_overrides', {})
    return given


def _declare(node: Node, name: str, declared: Parameter) -> list[str]:
    """Declare one parameter; return the problems with its given value."""
    value, described = to_ros(declared, declared.default), descriptor(declared)
    try:
        if declared.kind in ('vector', 'numbers') and not value:
            _declare_empty(node, name, described)
        else:
            node.declare_parameter(name, value, described)
    except (ParameterException, InvalidParameterException, ValueError, TypeError) as error:
        found = getattr(_given(node).get(name), 'value', None)
        what = f'is {found!r}' if found is not None else f'cannot be used ({error})'
        return [f'parameter {name} {what}; expected {declared.expected}']
    return []


def _declare_empty(node: Node, name: str, described: ParameterDescriptor) -> None:
    """Declare an empty list of numbers; rclpy would take it for a list of bytes."""
    node.declare_parameter(name, [0.0], ParameterDescriptor(dynamic_typing=True))
    if name not in _given(node):
        node.set_parameters([RosParameter(name, RosParameter.Type.DOUBLE_ARRAY, [])])
    node.set_descriptor(name, described)


def descriptor(declared: Parameter) -> ParameterDescriptor:
    """What `ros2 param describe` shows."""
    unit = f' [{declared.unit}]' if declared.unit.strip('-') else ''
    made = ParameterDescriptor(
        description=f'{declared.meaning}{unit}',
        additional_constraints=f'expected {declared.expected}' if declared.expected else '',
        read_only=not declared.dynamic,
        dynamic_typing=True,  # integers are valid, too; the declaration checks the values
    )
    low, high = max(declared.low, declared.above), declared.high
    # A range has two ends; where one is open, ROS would show the largest number there is.
    if low == -math.inf or high == math.inf or declared.optional:
        return made
    if declared.kind == 'number':
        made.floating_point_range = [
            FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)
        ]
    if declared.kind == 'integer':
        made.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    return made


def to_ros(declared: Parameter, value: Any) -> Any:
    """A value converted for ROS."""
    if declared.kind in ('vector', 'numbers'):
        return [float(x) for x in value or ()]
    if declared.kind == 'texts':
        return list(value or ())
    if value is None:
        return 0 if declared.kind == 'integer' else ''
    return str(value) if declared.kind == 'other' else value


def _from_ros(declared: Parameter, value: Any) -> Any:
    """A ROS value converted for the settings."""
    if declared.kind in ('vector', 'numbers', 'texts'):
        value = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
        return None if declared.optional and value in ([], '', None) else ([] if value is None else value)
    if declared.optional and value in ('', 0, None):
        return None
    return value
