# SPDX-License-Identifier: Apache-2.0
"""force_node and sim_node as real processes: standing up, faults, recovery, lock-step."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

from force_graph import Graph, start
from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from quad_dynamics.ros.qos import COMMAND, STREAM

pytestmark = pytest.mark.slow
NAMES = [f'{leg}_{joint}_joint' for leg in ('FL', 'FR', 'RL', 'RR') for joint in ('hip', 'thigh', 'calf')]
STANDING = 0.25  # a Mini Cheetah higher than this stands [m]


def is_damping(message: Any) -> bool:
    return not len(message.position) and not any(message.effort) and not any(message.velocity)


def bad_joint_states() -> dict[str, bytes]:
    """Messages that are wrong in one way each."""

    def make(names: list[str] = NAMES, position: Any = None, stamp: int = 0) -> bytes:
        n = 12
        position = np.zeros(n) if position is None else position
        message = JointState(name=names, position=position, velocity=np.zeros(n), effort=np.zeros(n))
        message.header.stamp.sec = stamp
        return bytes(serialize_message(message))

    nan = np.zeros(12)
    nan[3] = np.nan
    return {
        'nan': make(position=nan),
        'names': make(names=[*NAMES[:-1], 'tail_joint']),
        'length': make(position=np.zeros(11)),
        'truncated': make()[:-20],
        'garbage': b'\x00\x01\x00\x00' + b'\xff' * 60,
        'old': make(stamp=0),
        'future': make(stamp=2_000_000_000),
    }


def test_faults_of_a_running_graph(ros_domain: int) -> None:
    """One graph for all of it: starting takes longer than what is looked at."""
    with Graph() as graph:
        odom = graph.listen(Odometry, 'odom')
        torques = graph.listen(JointState, 'joint_torques')
        estimated = graph.listen(WrenchStamped, 'foot_forces_estimated/FL_foot')
        _stands_up(graph, odom)
        _bad_messages_do_no_harm(graph, odom)
        _silence_damps_and_passes(graph, torques)
        _modes_change(graph, odom)
        _fall_latches(graph, odom, torques)
        assert 0.0 < estimated[-1][1].wrench.force.z < 200.0
        assert all(process.poll() is None for process in graph.processes.values())
    assert all(process.returncode == 0 for process in graph.processes.values())
    assert 'Traceback' not in graph.output['force_node']


def _height(odom: list[Any]) -> float:
    return float(odom[-1][1].pose.pose.position.z) if odom else 0.0


def _stands_up(graph: Graph, odom: list[Any]) -> None:
    graph.wait(lambda: _height(odom) > STANDING, 30.0, 'stands up')
    graph.wait(lambda: graph.force.get('phase') == 'hold', 5.0, 'holds')
    assert graph.force['level'] == 0
    assert graph.force['mode'] == 'stand'


def _bad_messages_do_no_harm(graph: Graph, odom: list[Any]) -> None:
    publisher = graph.node.create_publisher(JointState, 'joint_states', STREAM)
    graph.wait(lambda: publisher.get_subscription_count() > 0, 5.0, 'is found')
    for name, raw in bad_joint_states().items():
        before = graph.faults('bad_joint_states')

        def counted(before: int = before, raw: bytes = raw) -> bool:
            publisher.publish(raw)
            return graph.faults('bad_joint_states') > before

        graph.wait(counted, 5.0, f'{name} is counted')
        assert _height(odom) > STANDING, name
    graph.node.destroy_publisher(publisher)
    assert graph.force['latched'] == ''
    assert int(graph.force['jumps']) == 0


def _silence_damps_and_passes(graph: Graph, torques: list[Any]) -> None:
    graph.signal('sim_node', signal.SIGSTOP)
    torques.clear()
    assert graph.wait(lambda: torques and is_damping(torques[-1][1]), 3.0, 'damps') < 0.6
    graph.wait(lambda: graph.force['level'] == 1, 3.0, 'says that it waits')
    assert 'no joint_states for' in graph.force['message']
    begin = len(torques)
    graph.spin(0.5)
    assert 10 < len(torques) - begin < 30  # at 50 Hz
    graph.signal('sim_node', signal.SIGCONT)
    assert graph.wait(lambda: len(torques[-1][1].position), 3.0, 'resumes') < 1.0
    graph.wait(lambda: graph.force['phase'] == 'hold', 10.0, 'stands again')


def _modes_change(graph: Graph, odom: list[Any]) -> None:
    for mode in ('gravity', 'computed_torque', 'stand'):
        assert graph.set_mode(mode).successful
        graph.wait(lambda mode=mode: graph.force['mode'] == mode, 3.0, mode)
        graph.spin(0.3)
        assert _height(odom) > STANDING, mode
    refused = graph.set_mode('fly')
    assert not refused.successful
    assert "mode is 'fly'" in refused.reason
    assert graph.set_mode('damping').successful
    graph.wait(lambda: _height(odom) < STANDING, 5.0, 'sinks')
    assert graph.set_mode('stand').successful
    graph.wait(lambda: graph.force['phase'] == 'hold', 10.0, 'stands again')
    assert graph.force['level'] == 0


def _fall_latches(graph: Graph, odom: list[Any], torques: list[Any]) -> None:
    pose = PoseWithCovarianceStamped()
    pose.pose.pose.position.z = 0.6
    pose.pose.pose.orientation.x = 1.0
    publisher = graph.node.create_publisher(PoseWithCovarianceStamped, 'initialpose', COMMAND)
    graph.wait(lambda: publisher.get_subscription_count() > 0, 5.0, 'is found')
    publisher.publish(pose)
    graph.wait(lambda: graph.force['latched'], 5.0, 'latches')
    assert graph.force['level'] == 2
    assert 'fallen' in graph.force['latched']
    answer = graph.call(Trigger, 'force_node/recover', Trigger.Request())
    assert not answer.success
    assert answer.message.startswith('still: fallen')
    assert graph.call(Trigger, 'sim_node/reset', Trigger.Request()).success
    graph.wait(lambda: odom[-1][1].pose.pose.orientation.w > 0.9, 3.0, 'is put upright')
    graph.spin(0.2)
    assert is_damping(torques[-1][1])  # nobody has looked at it yet
    answer = graph.call(Trigger, 'force_node/recover', Trigger.Request())
    assert answer.success
    assert 'recovered from: fallen' in answer.message
    graph.wait(lambda: _height(odom) > STANDING, 10.0, 'stands up again')


def test_lock_step_twice_is_bit_identical(ros_domain: int) -> None:
    def run() -> list[bytes]:
        with Graph(('lock_step:=true', 'lock_step_subscribers:=2'), ('lock_step:=true',)) as graph:
            heard = graph.listen(JointState, 'joint_torques')
            graph.listen(JointState, 'joint_states')
            graph.wait(lambda: len(heard) > 250, 60.0, 'answers')
        # the first state is sent again until everybody is there
        answers = {(m.header.stamp.sec, m.header.stamp.nanosec): m for _, m in heard}
        return [bytes(serialize_message(message)) for message in list(answers.values())[:240]]

    first, second = run(), run()
    assert len(first) == 240
    assert first == second


def test_torques_alone_as_effort_controllers_take_them(ros_domain: int) -> None:
    with Graph(
        ('command_type:=float64_multi_array',), ('output:=float64_multi_array', 'feedback:=node')
    ) as graph:
        odom = graph.listen(Odometry, 'odom')
        graph.wait(lambda: _height(odom) > STANDING, 30.0, 'stands up')
        graph.wait(lambda: graph.force.get('phase') == 'hold', 5.0, 'holds')


def test_wrong_parameters_refuse_to_start(ros_domain: int) -> None:
    wrong = {
        'mode:=fly': "mode is 'fly'",
        'robot:=nobody': 'parameter robot: nobody: there is no such file',
        'output:=float64_multi_array': "feedback is 'drive'; expected 'node'",
        'kp:=[1.0, 2.0]': 'kp has 2 numbers',
        'stat_timeout:=0.2': "unknown parameter 'stat_timeout' (did you mean 'state_timeout'?)",
        'robot:=two_link_arm': "parameter mode is 'stand': ",
    }
    processes = {parameter: start('force_node', parameter) for parameter in wrong}
    for parameter, process in processes.items():
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 2, output
        assert wrong[parameter] in output
        assert 'Traceback' not in output
