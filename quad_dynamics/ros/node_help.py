# SPDX-License-Identifier: Apache-2.0
"""The `--help` text of a node, from its declared parameters and topics; without ROS."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from quad_dynamics.parameters.parameter import Parameter
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.ros.topics import NODES, SERVICES, TOPICS

_WIDTH = 100


def node_help(name: str, settings: type[ParameterSet]) -> str:
    """The help of a node.

    Args:
        name: of the node, as in `NODES`.
        settings: class that declares its parameters.
    """
    known = NODES[name]
    parts = [
        f'usage: {name} [--help] [--ros-args [-p NAME:=VALUE ...] [--params-file FILE] [-r FROM:=TO ...]]\n',
        textwrap.fill(known.introduction.replace('`', ''), _WIDTH) + '\n',
        _section('published topics', ((topic, TOPICS[topic]) for topic in known.publishes)),
        _section('subscribed topics', ((topic, TOPICS[topic]) for topic in known.subscribes)),
        _section('services', ((service, SERVICES[service]) for service in known.services)),
        _section(
            'parameters (* can be set while the node runs)',
            ((_title(key, one), _meaning(one)) for key, one in settings.parameters().items()),
        ),
        f'docs/nodes/{name}.md lists types and quality of service. The latter can be overridden with\n'
        'parameters such as qos_overrides./odom.publisher.reliability. Nodes use loopback only, unless\n'
        'QUAD_DYNAMICS_NETWORK=1 or ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET is set.\n',
    ]
    return '\n'.join(part for part in parts if part)


def _section(title: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = []
    for name, meaning in rows:
        lines += [f'  {name}', *textwrap.wrap(meaning, _WIDTH - 8, initial_indent='', subsequent_indent='')]
    if not lines:
        return ''
    indented = [line if line.startswith('  ') else f'        {line}' for line in lines]
    return '\n'.join([f'{title}:', *indented]) + '\n'


def _title(name: str, declared: Parameter) -> str:
    value = declared.default
    shown = {True: 'true', False: 'false', None: 'none', (): '[]', '': "''"}.get(value, value)
    shown = list(shown) if isinstance(shown, tuple) else shown
    unit = f' {declared.unit}' if declared.unit.strip('-') else ''
    return f'{name} (default {shown}{unit}){" *" if declared.dynamic else ""}'


def _meaning(declared: Parameter) -> str:
    return f'{declared.meaning}; {declared.expected}' if declared.expected else declared.meaning
