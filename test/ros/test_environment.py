# SPDX-License-Identifier: Apache-2.0
"""Nodes stay on loopback however they are started, unless the user has chosen otherwise."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quad_dynamics.ros.environment import NETWORK_VARIABLE, loopback_settings, profile_path

LOOPBACK = dict.fromkeys(
    ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE'), str(profile_path())
)
LOCALHOST = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_LOCALHOST_ONLY': '1'}


@pytest.mark.parametrize(
    ('environment', 'expected'),
    [
        ({}, LOOPBACK),
        ({'RMW_IMPLEMENTATION': 'rmw_fastrtps_cpp'}, LOOPBACK),
        (
            {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'localhost'},
            {**LOOPBACK, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT'},
        ),
        ({'ROS_LOCALHOST_ONLY': '1'}, {**LOOPBACK, 'ROS_LOCALHOST_ONLY': '0'}),
        ({'ROS_LOCALHOST_ONLY': '0'}, LOOPBACK),  # as setup.bash of Humble exports it
        ({'RMW_IMPLEMENTATION': 'rmw_cyclonedds_cpp'}, LOCALHOST),
        ({NETWORK_VARIABLE: '1'}, {}),
        ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}, {}),
        ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT'}, {}),
        ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF'}, {}),
        ({'ROS_STATIC_PEERS': '192.168.1.7'}, {}),
        ({'ROS_DISCOVERY_SERVER': '192.168.1.7:11811'}, {}),
        ({'FASTRTPS_DEFAULT_PROFILES_FILE': 'mine.xml'}, {}),
        ({'FASTDDS_DEFAULT_PROFILES_FILE': 'mine.xml'}, {}),
        ({'RMW_IMPLEMENTATION': 'rmw_cyclonedds_cpp', 'CYCLONEDDS_URI': 'mine.xml'}, {}),
        (
            {'RMW_IMPLEMENTATION': 'rmw_cyclonedds_cpp', 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'},
            {},
        ),
    ],
)
def test_loopback_unless_the_user_chose_otherwise(
    environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert loopback_settings(environment) == expected


def in_own_network(command: list[str]) -> list[str]:
    """The command in a network of its own, with loopback and nothing else."""
    return ['unshare', '-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', *command]


def has_networks() -> bool:
    if not shutil.which('unshare') or not shutil.which('ip'):
        return False
    return subprocess.run(in_own_network(['true']), capture_output=True, check=False).returncode == 0


def addresses(pid: int) -> Iterator[str]:
    """Local addresses of the sockets that a process has bound, as hexadecimal numbers of the kernel."""
    links = []
    for path in Path(f'/proc/{pid}/fd').iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            links.append(str(path.readlink()))
    inodes = {found[1] for link in links if (found := re.fullmatch(r'socket:\[(\d+)\]', link))}
    for kind in ('udp', 'udp6', 'tcp', 'tcp6'):
        for line in Path(f'/proc/{pid}/net/{kind}').read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                yield fields[1].split(':')[0]


def bound_by(environment: dict[str, str], module: str) -> set[str]:
    """What a node binds that is started by itself, as `ros2 run` would."""
    chosen = ('ROS_', 'RMW_', 'FASTRTPS_', 'FASTDDS_', 'CYCLONEDDS_', 'ZENOH_', NETWORK_VARIABLE)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(chosen)}
    plain |= {'ROS_DOMAIN_ID': os.environ['ROS_DOMAIN_ID'], **environment}
    command = [sys.executable, '-m', module]
    process = subprocess.Popen(
        in_own_network(command) if has_networks() else command,
        env=plain,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline and process.poll() is None:
            if len(list(addresses(process.pid))) >= 2:  # discovery and data
                time.sleep(0.5)  # while they are made, sockets may be without an address for a moment
                return set(addresses(process.pid))
            time.sleep(0.05)
        return set()
    finally:
        process.kill()
        process.wait()


@pytest.mark.realtime
@pytest.mark.parametrize(
    'module', ['sim_node', 'force_node', 'planner_node', 'identification', 'viewer_node']
)
def test_a_node_started_by_itself_binds_loopback_only(ros_domain: int, module: str) -> None:
    # LOCALHOST alone still binds 0.0.0.0, so our profile takes its place.
    chosen = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'} if module == 'force_node' else {}
    assert bound_by(chosen, module) == {'0100007F'}


@pytest.mark.realtime
@pytest.mark.parametrize(
    'choice', [{NETWORK_VARIABLE: '1'}, {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}], ids=['ours', 'of ROS']
)
def test_who_wants_the_network_gets_it(ros_domain: int, choice: dict[str, str]) -> None:
    if not has_networks():
        pytest.skip('no network namespaces here, and tests do not leave loopback')
    assert '00000000' in bound_by(choice, 'force_node')
