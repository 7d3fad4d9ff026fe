# SPDX-License-Identifier: Apache-2.0
"""Writes docs/nodes/*.md: parameters, topics, services and quality of service, as the nodes have them.

`make docs` runs it; a test compares. Each node is started in this process, and asked.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import rclpy

from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.loading import load_model
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.ros.environment import stay_on_this_machine
from quad_dynamics.ros.parameters import to_ros
from quad_dynamics.ros.qos import COMMAND, CONTROL, STREAM, describe
from quad_dynamics.ros.topics import NODES, SERVICES, TOPICS

FOLDER = Path(__file__).parent / 'nodes'
# Module and class of each node, and the class of its parameters.
CLASSES = {
    'sim_node': ('SimNode', 'SimNodeSettings'),
    'force_node': ('ForceNode', 'ForceSettings'),
    'planner_node': ('PlannerNode', 'PlannerSettings'),
    'viewer_node': ('ViewerNode', 'ViewerSettings'),
    'identification': ('IdentificationNode', 'IdentificationSettings'),
}
# What a node has only with some of its parameters, or where a package is installed.
_ARRAY = 'std_msgs/Float64MultiArray'
SOMETIMES = {
    ('sim_node', 'Published topics'): [('/tf', 'tf2_msgs/TFMessage', STREAM)],
    ('sim_node', 'Subscribed topics'): [('effort_controller/commands', _ARRAY, CONTROL)],
    ('force_node', 'Published topics'): [('effort_controller/commands', _ARRAY, COMMAND)],
}
# Sensors with errors, so that there is a ground truth beside them; any port for the page; a planner beside
# force_node.
_CHOSEN = ('sim_node:sensors.foot_force.noise:=0.1', 'viewer_node:port:=0', 'force_node:planner:=external')
ARGUMENTS = ['--ros-args', *(word for one in _CHOSEN for word in ('-p', one))]
_OF_ROS = ('/rosout', '/parameter_events', '/clock')
_FOOT = re.compile(r'((?:ground_truth/)?foot_forces(?:_estimated)?)/\w+$')


def page(name: str) -> str:
    """The text about a node; rclpy is initialised."""
    of_class, of_settings = CLASSES[name]
    settings = getattr(importlib.import_module(f'{name}.settings'), of_settings)
    made = getattr(importlib.import_module(f'{name}.node'), of_class)()
    try:
        node = made.node
        if name == 'viewer_node':  # it subscribes while a page is open
            with warnings.catch_warnings():
                warnings.simplefilter('ignore', ModelWarning)
                made._streams.open(load_model('mini_cheetah'))
        parts = [
            f'# {name}\n\n{NODES[name].introduction}\n',
            'This page is generated from the code by `make docs`.\n',
            _table('Published topics', node, node.publishers),
            _table('Subscribed topics', node, node.subscriptions),
            _services(name, node),
            _parameters(settings),
        ]
    finally:
        made.close()
    return '\n'.join(part for part in parts if part)


def _table(title: str, node: Any, entities: Iterable[Any]) -> str:
    rows = {}
    for entity in entities:
        topic = entity.topic_name
        if topic in _OF_ROS and not (topic == '/clock' and title.startswith('Published')):
            continue
        shown = topic if topic in TOPICS else topic.removeprefix('/')
        shown = re.sub(rf'^{node.get_name()}/', '~/', shown)
        shown = _FOOT.sub(r'\1/<foot>', shown)
        kind = entity.msg_type
        package = kind.__module__.split('.')[0]
        qos = describe(entity.qos_profile)
        rows[shown] = f'| `{shown}` | {package}/{kind.__name__} | {qos} | {TOPICS[shown]} |'
    for shown, kind, profile in SOMETIMES.get((node.get_name(), title), ()):
        rows[shown] = f'| `{shown}` | {kind} | {describe(profile)} | {TOPICS[shown]} |'
    known = NODES[node.get_name()]
    _compare(title, rows, known.publishes if title.startswith('Published') else known.subscribes)
    if not rows:
        return ''
    lines = [f'## {title}\n', '| topic | type | quality of service | |', '|---|---|---|---|', *rows.values()]
    return '\n'.join(lines) + '\n'


def _compare(title: str, found: Iterable[str], listed: Iterable[str]) -> None:
    """Refuse topics or services that `--help` does not list, and those that it lists and a node lacks."""
    if differ := set(found) ^ set(listed):
        raise SystemExit(f'{title}: {sorted(differ)} differ between the node and NODES in ros/topics.py')


def _services(name: str, node: Any) -> str:
    rows = {}
    for service in node.services:
        shown = service.srv_name.replace(f'/{name}/', '~/')
        if shown in SERVICES:
            package = service.srv_type.__module__.split('.')[0]
            rows[shown] = f'| `{shown}` | {package}/{service.srv_type.__name__} | {SERVICES[shown]} |'
    _compare(f'services of {name}', rows, NODES[name].services)
    if not rows:
        return ''
    head = ['## Services\n', '| service | type | |', '|---|---|---|']
    return '\n'.join([*head, *rows.values()]) + '\n\nIn addition, the standard ROS parameter services.\n'


def _parameters(settings: type[ParameterSet]) -> str:
    lines = [
        '## Parameters\n',
        'Parameters marked "yes" can be set while the node runs (`ros2 param set`).\n',
        '| name | default | unit | bounds | while running | |',
        '|---|---|---|---|---|---|',
    ]
    declared = settings.parameters()
    for row in settings.table().splitlines()[2:]:
        name, default, *cells, meaning = (cell.strip() for cell in row.strip('|').split('|'))
        one = declared[name.strip('`')]
        default = default if one.default is not None else f'{to_ros(one, None)!r}'
        lines.append(f'| {" | ".join([name, default, *cells, "yes" if one.dynamic else "", meaning])} |')
    return '\n'.join(lines) + '\n'


def main() -> int:
    """Write the pages; with --check, only say which would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--check', action='store_true', help='write nothing; exit code 1 if a page is old')
    arguments = parser.parse_args()
    stay_on_this_machine()
    rclpy.init(args=ARGUMENTS)
    old = []
    for name in CLASSES:
        path, text = FOLDER / f'{name}.md', page(name)
        if not path.is_file() or path.read_text(encoding='utf-8') != text:
            old.append(path.name)
            if not arguments.check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding='utf-8')
    rclpy.try_shutdown()
    if old:
        print(f'{"old" if arguments.check else "written"}: {", ".join(old)}')
    return int(bool(old) and arguments.check)


if __name__ == '__main__':
    sys.exit(main())
