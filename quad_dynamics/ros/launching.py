# SPDX-License-Identifier: Apache-2.0
"""The graph of nodes as actions of `launch`, for launch files.

`ros2 launch` runs in the system's Python, whichever Python the nodes use. So nothing is imported here that
only pip installs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, LogInfo, OpaqueFunction, TimerAction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import Parameter, nearest
from quad_dynamics.ros.deaths import Deaths, Next
from quad_dynamics.ros.environment import loopback_settings
from quad_dynamics.ros.graph import GraphOptions, graph
from quad_dynamics.ros.node_spec import PACKAGE, NodeSpec
from quad_dynamics.ros.process import PARENT_VARIABLE
from quad_dynamics.ros.supervisor import GRACE, command_line

# Delay of a restart [s].
_RESPAWN_DELAY = 0.2
# A process that does not exit on SIGINT within its patience gets SIGTERM, and after this time SIGKILL [s].
_UNTIL_KILLED = '1'
# Arguments of `ros2 launch` itself that appear among those of the launch file.
_OF_LAUNCH = ('launch-prefix', 'launch-prefix-filter', 'emulate_tty', 'ros_namespace')


def sim_description(defaults: Mapping[str, Any] | None = None) -> LaunchDescription:
    """A launch description of the graph; each option of `GraphOptions` is an argument.

    Args:
        defaults: other defaults of some options.
    """
    made = _Actions(defaults or {})
    arguments = [
        DeclareLaunchArgument(name, default_value=made.default(name), description=_describe(one))
        for name, one in GraphOptions.parameters().items()
    ]
    return LaunchDescription(
        [OpaqueFunction(function=made.note_given), *arguments, OpaqueFunction(function=made.start)]
    )


class _Actions:
    """The actions of one description."""

    def __init__(self, defaults: Mapping[str, Any]) -> None:
        self._declared = GraphOptions.parameters()
        self._defaults = defaults
        self._given: set[str] = set()

    def default(self, name: str) -> str:
        """Of an argument, as text."""
        return _text(self._defaults.get(name, self._declared[name].default))

    def note_given(self, context: LaunchContext) -> None:
        """Note which arguments are given, before the others get defaults: for those the nodes decide."""
        self._given = set(context.launch_configurations) & set(self._declared)
        if _is_outermost(context):
            _check_names(context.argv, self._declared)

    def start(self, context: LaunchContext) -> list[Any]:
        """Create the processes when the arguments are known."""
        given = {
            name: _value(one, LaunchConfiguration(name).perform(context))
            for name, one in self._declared.items()
            if name in self._given or name in self._defaults
        }
        if 'mode' not in self._given and (given.get('controller') == 'none' or given.get('walk')):
            given.pop('mode', None)  # a default of the launch file: that node is not there, or is to walk
        # A group of launch may push a namespace around all of it.
        around = context.launch_configurations.get('ros_namespace', '').strip('/')
        inner = str(given.get('namespace', ''))
        if around and not inner.startswith('/'):
            given['namespace'] = '/'.join(filter(None, [around, inner.strip('/')]))
        # Only for our processes: others of a launch file that includes this one may be on several machines.
        environment = loopback_settings({**os.environ, **context.environment})
        if not context.launch_configurations.get('launch-prefix'):
            # Processes are children of this one, and need not outlive it; behind a prefix they are not.
            environment[PARENT_VARIABLE] = str(os.getpid())
        specs = graph(given)
        bag = str(given.get('record', ''))
        if bag and os.path.lexists(bag):  # the recorder itself would choose another folder
            raise ArgumentError(f'record: {bag} already exists; expected the path of a new bag')
        return [_Process(spec, environment).start() for spec in specs]


class _Process:
    """One process of the graph, and the reaction to its exit.

    It is restarted here and not by `respawn` of launch, which would never give up.
    """

    def __init__(self, spec: NodeSpec, environment: Mapping[str, str]) -> None:
        self._spec, self._environment, self._deaths = spec, environment, Deaths()

    def start(self) -> Any:
        """An action that starts it; if it is neither installed nor needed, one that logs this."""
        spec = self._spec
        if spec.lack and not spec.needed:
            return LogInfo(msg=spec.lack)
        common = {
            'additional_env': dict(self._environment),
            'output': 'screen',
            'emulate_tty': True,  # else their output is buffered
            'sigterm_timeout': str(spec.patience + GRACE),
            'sigkill_timeout': _UNTIL_KILLED,
            'on_exit': self.ended,
        }
        # The executable that is installed has the interpreter of the workspace; pip installs none there.
        path = spec.program
        if not spec.is_node:
            command = command_line(spec) if path is None else [str(path), *spec.arguments]
            return ExecuteProcess(cmd=command, name=spec.name, **common)
        module = [] if path is not None or not spec.module else ['-m', spec.module]
        return Node(
            executable=sys.executable if module else str(path or spec.executable),
            exec_name=spec.executable,
            name=spec.executable,
            namespace=f'/{spec.namespace.strip("/")}',
            parameters=[*map(str, spec.files), dict(spec.parameters)],
            remappings=list(spec.remappings),
            arguments=[*module, *spec.arguments],
            **common,
        )

    def ended(self, event: Any, context: LaunchContext) -> list[Any]:
        """Called by launch when it has exited."""
        if context.is_shutdown:
            return []
        what, text = self._deaths.judge(self._spec, event.returncode)
        if what is Next.END:
            # Not a `Shutdown` event: launch prints the exception, stops everything, and exits with code 1.
            raise ArgumentError(text)
        again = [TimerAction(period=_RESPAWN_DELAY, actions=[self.start()])] if what is Next.RESTART else []
        return [LogInfo(msg=text), *again]


def _is_outermost(context: LaunchContext) -> bool:
    """Whether `ros2 launch` runs our launch file itself, not one that includes it with other arguments."""
    path = Path(context.get_locals_as_dict().get('current_launch_file_path', ''))
    return (PACKAGE in sys.argv and path.name in sys.argv) or str(path) in map(os.path.abspath, sys.argv)


def _check_names(words: Iterable[str], declared: Mapping[str, Parameter]) -> None:
    """Reject unknown arguments, which launch would silently ignore."""
    for word in words:
        name, given, _ = word.partition(':=')
        if given and name not in declared and name not in _OF_LAUNCH:
            expected = f'expected one of {", ".join(declared)}'
            raise ArgumentError(f"unknown argument '{name}'{nearest(name, declared)}; {expected}")


def _describe(declared: Parameter) -> str:
    unit = f' [{declared.unit}]' if declared.unit.strip('-') else ''
    choices = f'; one of {", ".join(declared.choices)}' if declared.choices else ''
    return f'{declared.meaning}{unit}{choices}'


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(declared: Parameter, text: str) -> Any:
    """An argument converted for the options; invalid text is left as it is, and rejected there."""
    if declared.kind == 'flag':
        return {'true': True, '1': True, 'false': False, '0': False}.get(text.lower(), text)
    if declared.kind in ('integer', 'number'):
        try:
            return int(text) if declared.kind == 'integer' else float(text)
        except ValueError:
            return text
    return text
