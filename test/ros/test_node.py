# SPDX-License-Identifier: Apache-2.0
"""What all nodes have in common: help, arguments, quality of service by parameters, diagnostics."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.node_help import node_help
from quad_dynamics.ros.process import own_arguments
from quad_dynamics.ros.topics import NODES, SERVICES, TOPICS

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

# Fails when anything of ROS or numba is imported.
WITHOUT_ROS = (
    'import sys, runpy\n'
    "sys.modules |= dict.fromkeys(('rclpy', 'numba'))\n"
    "sys.argv = [{name!r}, '--help']\n"
    "runpy.run_module({name!r}, run_name='__main__')\n"
)


@pytest.mark.parametrize('name', NODES)
def test_help_needs_no_ros_and_lists_everything(name: str) -> None:
    done = subprocess.run(
        [sys.executable, '-c', WITHOUT_ROS.format(name=name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    module = __import__(f'{name}.settings', fromlist=['settings'])
    [settings] = [
        one
        for key, one in vars(module).items()
        if key.endswith('Settings') and one.__module__ == module.__name__
    ]
    assert done.stdout == node_help(name, settings)
    for parameter in settings.parameters():
        assert re.search(rf'^  {re.escape(parameter)} \(default ', done.stdout, re.MULTILINE), parameter
    for topic in (*NODES[name].publishes, *NODES[name].subscribes, *NODES[name].services):
        assert f'  {topic}\n' in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 110


def test_every_description_belongs_to_a_node() -> None:
    listed = [topic for one in NODES.values() for topic in (*one.publishes, *one.subscribes)]
    assert set(listed) == set(TOPICS)
    assert {service for one in NODES.values() for service in one.services} == set(SERVICES)


def test_arguments_outside_of_those_for_ros_are_refused() -> None:
    assert own_arguments(['x', '--ros-args', '-p', 'a:=1']) == []
    assert own_arguments(['x', '--ros-args', '-p', 'a:=1', '--', '--help']) == ['--help']
    done = subprocess.run(
        [sys.executable, '-m', 'force_node', '--robot', 'go2'], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "unknown argument '--robot'; set parameters with --ros-args -p name:=value" in done.stderr


# ---------------------------------------------------------------- quality of service


@contextmanager
def force_node(*parameters: str) -> Iterator[Any]:
    """force_node in this process."""
    import rclpy

    from force_node.node import ForceNode

    words = [word for one in parameters for word in ('-p', one)]
    rclpy.init(args=['--ros-args', *words])
    made = None
    try:
        made = ForceNode()
        yield made
    finally:
        if made is not None:
            made.close()
        rclpy.try_shutdown()


def test_quality_of_service_follows_parameters(ros_domain: int) -> None:
    from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

    from quad_dynamics.ros.qos import STREAM

    given = (
        'qos_overrides./joint_torques.publisher.depth:=7',
        'qos_overrides./joint_torques.publisher.reliability:=best_effort',
        'qos_overrides./odom.subscription.reliability:=reliable',
        'qos_overrides./joint_torques.publisher.durability:=transient_local',
    )
    with force_node(*given) as made:
        node = made.node
        profiles = {one.topic_name: one.qos_profile for one in (*node.publishers, *node.subscriptions)}
        torques = profiles['/joint_torques']
        assert torques.depth == 7
        assert torques.reliability == ReliabilityPolicy.BEST_EFFORT
        assert torques.durability == DurabilityPolicy.TRANSIENT_LOCAL
        assert profiles['/odom'].reliability == ReliabilityPolicy.RELIABLE
        assert profiles['/joint_states'].reliability == ReliabilityPolicy.BEST_EFFORT
        estimated = profiles['/foot_forces_estimated/FL_foot']
        assert (estimated.depth, estimated.reliability) == (100, ReliabilityPolicy.RELIABLE)
    assert (STREAM.depth, STREAM.reliability) == (100, ReliabilityPolicy.RELIABLE)


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        (
            'qos_overrides./joint_torqes.publisher.depth:=7',
            r"no such publisher \(did you mean '/joint_torques'\?\)",
        ),
        ('qos_overrides./odom.publisher.depth:=7', 'no such publisher'),
        (
            'qos_overrides./odom.subscription.relibility:=reliable',
            r"unknown policy \(did you mean 'reliability'\?\)",
        ),
        ('qos_overrides./odom.reliability:=reliable', r'expected qos_overrides\./topic\.publisher\.policy'),
        ('qos_overrides./odom.subscription.reliability:=perhaps', r'parameters qos_overrides\./odom'),
        ('qos_overrides./odom.subscription.depth:=many', r'parameters qos_overrides\./odom'),
    ],
)
def test_bad_overrides_are_refused_by_name(ros_domain: int, given: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said), force_node(given):
        pass


def test_overrides_of_feet_are_known(ros_domain: int) -> None:
    with force_node('qos_overrides./foot_forces/FL_foot.subscription.depth:=3') as made:
        [profile] = [one.qos_profile for one in made.node.subscriptions if one.topic_name.endswith('FL_foot')]
        assert profile.depth == 3


# ---------------------------------------------------------------- diagnostics


def test_diagnostics_have_stamp_and_hardware(ros_domain: int) -> None:
    from diagnostic_msgs.msg import DiagnosticArray

    from quad_dynamics.ros.qos import COMMAND

    heard: list[Any] = []
    with force_node() as made:
        made.node.create_subscription(DiagnosticArray, '/diagnostics', heard.append, COMMAND)
        deadline = time.monotonic() + 10.0
        while not heard and time.monotonic() < deadline:
            made.turn(0.02)
    stamp, [status] = heard[0].header.stamp, heard[0].status
    # No joint states yet: the time is that of the node's clock, not zero.
    assert abs(stamp.sec - time.time()) < 60.0
    assert (status.name, status.hardware_id, status.level) == ('force_node', 'mini_cheetah', b'\x01')


@pytest.mark.realtime
def test_two_simulations_are_announced_once(ros_domain: int) -> None:
    """One line from each simulator, and none from the controller that hears both."""
    from node_processes import Process, probe

    with (
        Process('sim_node') as first,
        Process('sim_node') as second,
        Process('force_node') as controller,
        probe() as ear,
    ):
        ear.until(
            lambda: 'expected only this node' in ear.value('sim_node', 'message'), 'they see each other'
        )
        ear.until(lambda: 'publishers of joint_states' in ear.value('force_node', 'message'), 'it sees both')
        ear.listen(2.5)  # in which there would be warnings every second
        assert int(ear.value('force_node', 'faults.bad_joint_states')) > 10
        outputs = [process.stop()[1] for process in (first, second, controller)]
    for output in outputs[:2]:
        warnings = [line for line in output.splitlines() if 'WARN' in line]
        assert len(warnings) == 1, output
        assert '/joint_states has 2 publishers (/sim_node, /sim_node); expected one' in warnings[0]
        assert f'ROS domain {ros_domain}' in warnings[0]
    assert [line for line in outputs[2].splitlines() if 'WARN' in line and 'bad' in line] == []
    assert outputs[2].count('expected a slightly later stamp') == 0
