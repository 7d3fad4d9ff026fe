# SPDX-License-Identifier: Apache-2.0
"""Checks `ros2 ...` command lines against the nodes, without a ROS installation: names, types and values."""

from __future__ import annotations

import importlib
import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.cli.sim_checks import settings_class
from quad_dynamics.ros.graph import NODES, GraphOptions
from quad_dynamics.ros.parameters import read_values

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r'^\| `([^`]+)` \| (\w+)/(\w+) \|', re.MULTILINE)
# Programs of a workspace; nothing of them is ours.
OF_ROS = [
    'colcon',
    'rosdep',
    'source',
    '.',
    'sudo',
    'apt',
    'mkdir',
    'cd',
    'ln',
    'git',
    'pip',
    'pip3',
    'python3',
    'export',
    'rviz2',
]


def check_line(line: str) -> None:
    """Raise an AssertionError if a line of a block cannot work."""
    words = shlex.split(line, comments=True)
    if not words or words[0] in OF_ROS:
        return
    while '=' in words[0]:  # variables before the command
        words = words[1:]
    assert words[0] == 'ros2', f'the test does not know the program of: {line}'
    check = {
        ('launch',): _launch,
        ('run',): _run,
        ('param', 'set'): _param,
        ('param', 'get'): _param,
        ('service', 'call'): _service,
        ('topic', 'pub'): _publish,
        ('topic', 'echo'): _topic,
        ('topic', 'hz'): _topic,
    }
    for name, function in check.items():
        if tuple(words[1 : 1 + len(name)]) == name:
            function([word for word in words[1 + len(name) :] if word not in ('--once', '-1')])
            return
    assert words[1] in ('node', 'topic', 'service', 'bag', 'action'), f'the test cannot check: {line}'


def _launch(words: list[str]) -> None:
    package, file, *arguments = words
    assert package == 'quad_dynamics'
    assert (ROOT / 'launch' / file).is_file(), f'there is no launch file {file}'
    source = (ROOT / 'launch' / file).read_text()
    for text in arguments:
        name, is_value, value = text.partition(':=')
        if text in ('--show-args', '-s'):
            continue
        assert is_value, text
        if name in GraphOptions.parameters():
            GraphOptions.from_dict({name: yaml.safe_load(value) if value else ''})
        else:
            assert f"'{name}'" in source, f'{file} has no argument {name}'


def _run(words: list[str]) -> None:
    package, program, *rest = words
    assert package == 'quad_dynamics'
    if program == package:
        return
    assert program in NODES, f'there is no program {program}'
    given = {}
    for flag, text in itertools.pairwise(rest):
        if flag == '-p':
            name, _, value = text.partition(':=')
            given[name] = yaml.safe_load(value)
    read_values(program, settings_class(program), given)


def _param(words: list[str]) -> None:
    node, name, *value = words
    settings = settings_class(node.strip('/'))
    declared = settings.parameters()
    assert name in declared, f'{node} has no parameter {name}'
    if value:
        assert declared[name].dynamic, f'{name} of {node} cannot be set while it runs'
        read_values(node, settings, {name: yaml.safe_load(value[0])})


def _service(words: list[str]) -> None:
    name, kind, *request = words
    node, _, short = name.strip('/').partition('/')
    found = _interfaces(node)[f'~/{short}']
    assert kind == f'{found[0]}/srv/{found[1]}', f'{name} is a {found}'
    _fill(_type(kind).Request(), yaml.safe_load(request[0]) if request else {})


def _publish(words: list[str]) -> None:
    positional = [word for word in words if not word.startswith('-')]
    name, kind, text = positional[-3:]
    package, short = _topic([name])
    assert kind in (f'{package}/msg/{short}', f'{package}/{short}'), f'{name} is a {package}/{short}'
    _fill(_type(f'{package}/msg/{short}')(), yaml.safe_load(text))


def _topic(words: list[str]) -> tuple[str, str]:
    [name] = [word for word in words if word.startswith('/') or not word.startswith('-')][:1]
    for node in NODES:
        known = _interfaces(node)
        plain = re.sub(r'^(/?(?:ground_truth/)?foot_forces(?:_estimated)?)/\w+$', r'\1/<foot>', name)
        for candidate in (plain, plain.removeprefix('/'), plain.replace(f'/{node}/', '~/')):
            if candidate in known:
                return known[candidate]
    raise AssertionError(f'no node has a topic {name}')


def _interfaces(node: str) -> dict[str, tuple[str, str]]:
    """Package and type of topics and services, from the page that is made from the node's code."""
    text = (ROOT / 'docs' / 'nodes' / f'{node}.md').read_text()
    return {name: (package, kind) for name, package, kind in _ROW.findall(text)}


def _type(name: str) -> Any:
    package, folder, kind = name.split('/')
    return getattr(importlib.import_module(f'{package}.{folder}'), kind)


def _fill(message: Any, data: Any) -> None:
    """Set the fields of a message, as `ros2` does; a wrong name or type raises."""
    for name, value in (data or {}).items():
        assert name in message.get_fields_and_field_types(), f'{type(message).__name__} has no field {name}'
        if isinstance(value, dict):
            _fill(getattr(message, name), value)
        else:
            setattr(message, name, value)
