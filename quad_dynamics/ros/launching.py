# SPDX-License-Identifier: Apache-2.0
"""The graph of nodes as actions of `launch`, for launch files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    OpaqueFunction,
    SetEnvironmentVariable,
)
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from quad_dynamics.parameters.parameter import Parameter
from quad_dynamics.ros.environment import loopback_settings
from quad_dynamics.ros.graph import GraphOptions, NodeSpec, graph
from quad_dynamics.ros.supervisor import WRONG_PARAMETERS, command_line

# What dies is started again after so long [s].
_RESPAWN_DELAY = 0.2


def sim_description(defaults: Mapping[str, Any] | None = None) -> LaunchDescription:
    """A launch description of the graph; each option of `GraphOptions` is an argument.

    Args:
        defaults: other defaults of some options.
    """
    declared = GraphOptions.parameters()
    defaults = {name: (defaults or {}).get(name, one.default) for name, one in declared.items()}
    arguments = [
        DeclareLaunchArgument(name, default_value=_text(defaults[name]), description=_describe(one))
        for name, one in declared.items()
    ]
    quiet = [SetEnvironmentVariable(name, value) for name, value in loopback_settings(os.environ).items()]
    return LaunchDescription([*arguments, *quiet, OpaqueFunction(function=_actions)])


def _actions(context: LaunchContext) -> list[Any]:
    """The actions, when the arguments are known."""
    given = {}
    for name, declared in GraphOptions.parameters().items():
        text = LaunchConfiguration(name).perform(context)
        if text != _text(declared.default):
            given[name] = _value(declared, text)
    return [_action(spec) for spec in graph(given)]


def _action(spec: NodeSpec) -> Any:
    if not spec.is_node:
        return ExecuteProcess(cmd=command_line(spec), output='screen', sigterm_timeout='3')
    return Node(
        package=spec.package,
        executable=spec.executable,
        name=spec.executable,
        namespace=spec.namespace,
        parameters=[*map(str, spec.files), dict(spec.parameters)],
        arguments=list(spec.arguments),
        output='screen',
        emulate_tty=True,
        respawn=True,
        respawn_delay=_RESPAWN_DELAY,
        on_exit=_end_if_refused,
    )


def _end_if_refused(event: Any, context: LaunchContext) -> list[Any]:
    """End everything when a node refuses its parameters: it would do so again and again."""
    if event.returncode != WRONG_PARAMETERS:
        return []
    return [EmitEvent(event=Shutdown(reason=f'{event.process_name} refused to start'))]


def _describe(declared: Parameter) -> str:
    unit = f' [{declared.unit}]' if declared.unit.strip('-') else ''
    choices = f'; one of {", ".join(declared.choices)}' if declared.choices else ''
    return f'{declared.meaning}{unit}{choices}'


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(declared: Parameter, text: str) -> Any:
    """An argument as the options want it; what is none of them is left as it is, and refused there."""
    if declared.kind == 'flag':
        return {'true': True, '1': True, 'false': False, '0': False}.get(text.lower(), text)
    if declared.kind in ('integer', 'number'):
        try:
            return int(text) if declared.kind == 'integer' else float(text)
        except ValueError:
            return text
    return text
