# SPDX-License-Identifier: Apache-2.0
"""force_node and sim_node as real processes: standing up, faults, recovery, lock-step."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
import rclpy
from force_graph import Graph, start
from geometry_msgs.msg import PoseWithCovarianceStamped, Twist, TwistStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from quad_dynamics.bags.cdr_padding import Padding
from quad_dynamics.ros.qos import COMMAND, STREAM
from quad_dynamics.ros.subscriptions import fields_of

pytestmark = pytest.mark.realtime
NAMES = [f'{leg}_{joint}_joint' for leg in ('FL', 'FR', 'RL', 'RR') for joint in ('hip', 'thigh', 'calf')]
STANDING = 0.25  # a Mini Cheetah higher than this stands [m]


def is_damping(message: Any) -> bool:
    return not len(message.position) and not any(message.effort) and not any(message.velocity)


def joint_states(names: list[str] = NAMES, position: Any = None, stamp: int = 0) -> bytes:
    """A message of joints at rest, as bytes."""
    position = np.zeros(12) if position is None else position
    message = JointState(name=names, position=position, velocity=np.zeros(12), effort=np.zeros(12))
    message.header.stamp.sec = stamp
    return bytes(serialize_message(message))


def twist(x: float) -> Twist:
    """A velocity forward; what is more than anybody can walk is one of turning."""
    message = Twist()
    if abs(x) > 1e3:
        message.angular.z = x
    else:
        message.linear.x = x
    return message


# What is said about messages that are wrong in one way each.
BAD_JOINT_STATES = {
    "position of 'FR_hip_joint' is nan": joint_states(position=np.where(np.arange(12) == 3, np.nan, 0.0)),
    "lacks ['RR_calf_joint']": joint_states(names=[*NAMES[:-1], 'tail_joint']),
    'position has 11 numbers': joint_states(position=np.zeros(11)),
    'joint_states has stamp 0.000 s': joint_states(stamp=0),
    'joint_states has stamp 2000000000.000 s': joint_states(stamp=2_000_000_000),
    '(truncated)': joint_states()[:-20],
    '(garbage)': b'\x00\x01\x00\x00' + b'\xff' * 60,
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
        _velocities_are_checked(graph, odom)
        _fall_latches(graph, odom, torques)
        assert 0.0 < estimated[-1][1].wrench.force.z < 200.0
        assert all(process.poll() is None for process in graph.processes.values())
    assert all(process.returncode == 0 for process in graph.processes.values())
    assert 'Traceback' not in graph.output['force_node']


def _height(odom: list[Any]) -> float:
    return float(odom[-1][1].pose.pose.position.z) if odom else 0.0


def _stands_up(graph: Graph, odom: list[Any]) -> None:
    graph.wait(lambda: _height(odom) > STANDING, 60.0, 'stands up')
    graph.wait(lambda: graph.force.get('phase') == 'hold', 5.0, 'holds')
    assert graph.force['level'] == 0
    assert graph.force['mode'] == 'stand'


def _bad_messages_do_no_harm(graph: Graph, odom: list[Any]) -> None:
    publisher = graph.node.create_publisher(JointState, 'joint_states', STREAM)
    graph.wait(lambda: publisher.get_subscription_count() > 0, 5.0, 'is found')
    for text, raw in BAD_JOINT_STATES.items():

        def is_named(text: str = text, raw: bytes = raw) -> bool:
            publisher.publish(raw)
            return text in graph.force.get('last_fault', '')

        if text.startswith('('):  # the middleware drops most of these, and does not tell
            for _ in range(20):
                publisher.publish(raw)
        else:
            graph.wait(is_named, 5.0, f'{text!r} in the last fault')
    graph.wait(lambda: _height(odom) > STANDING, 5.0, 'stands')
    graph.node.destroy_publisher(publisher)
    assert graph.faults('bad_joint_states') >= 5
    assert graph.force['latched'] == ''


def _silence_damps_and_passes(graph: Graph, torques: list[Any]) -> None:
    graph.signal('sim_node', signal.SIGSTOP)
    torques.clear()
    assert graph.wait(lambda: torques and is_damping(torques[-1][1]), 3.0, 'damps') < 0.6
    graph.wait(lambda: 'no joint_states for' in graph.force['message'], 3.0, 'says that it waits')
    assert graph.force['level'] == 1
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
        before = graph.faults('stale')
        graph.spin(0.6)
        # on a machine that is so busy that joint states are late, it is right to sink
        assert _height(odom) > STANDING or graph.faults('stale') > before, mode
    refused = graph.set_mode('fly')
    assert not refused.successful
    assert "mode is 'fly'" in refused.reason
    assert graph.set_mode('damping').successful
    graph.wait(lambda: _height(odom) < STANDING, 5.0, 'sinks')
    assert graph.set_mode('stand').successful
    graph.wait(lambda: graph.force['phase'] == 'hold', 10.0, 'stands again')
    assert graph.force['level'] == 0


def _velocities_are_checked(graph: Graph, odom: list[Any]) -> None:
    publisher = graph.node.create_publisher(Twist, 'cmd_vel', COMMAND)
    graph.wait(lambda: publisher.get_subscription_count() > 0, 5.0, 'is found')

    def ask(until: Any, what: str, x: float) -> None:
        def is_so() -> bool:
            publisher.publish(twist(x))
            return bool(until())

        graph.wait(is_so, 10.0, what)

    def says(text: str) -> Any:
        return lambda: text in graph.force.get('last_fault', '')

    ask(says("cmd_vel received in mode 'stand'"), 'that it does not walk', 0.2)
    assert graph.set_mode('whole_body').successful
    graph.wait(lambda: graph.force['message'] == 'whole_body stand (trot)', 5.0, 'stands')
    ask(says('cmd_vel: linear.x is nan'), 'what is not finite', float('nan'))
    ask(lambda: graph.force['phase'] == 'walk', 'walks', 0.2)
    ask(says('cmd_vel is (0, 0, 1e+30); limited'), 'that it is limited', 1e30)
    # nobody asks any more
    graph.wait(lambda: graph.force['commanded'] == 'False', 2.0, 'knows that it is old')
    graph.wait(lambda: graph.force['phase'] == 'stand', 5.0, 'stops by itself')
    assert graph.faults('bad_cmd_vel') >= 2
    assert graph.faults('limited_cmd_vel') >= 1
    assert graph.force['latched'] == ''
    assert _height(odom) > STANDING
    graph.node.destroy_publisher(publisher)
    assert graph.set_mode('stand').successful


def _fall_latches(graph: Graph, odom: list[Any], torques: list[Any]) -> None:
    pose = PoseWithCovarianceStamped()
    pose.pose.pose.position.z = 0.6
    pose.pose.pose.orientation.x, pose.pose.pose.orientation.w = 1.0, 0.0
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
    # between fields there is whatever was in memory
    clean = Padding('sensor_msgs/msg/JointState', fields_of).clean

    def run() -> list[bytes]:
        with Graph(
            ('lock_step:=true', 'lock_step_partners:=[force_node, listener]'), ('lock_step:=true',)
        ) as graph:
            heard = graph.listen(JointState, 'joint_torques')
            graph.listen(JointState, 'joint_states')
            graph.wait(lambda: len(heard) > 250, 60.0, 'answers')
        # the first state is sent again until everybody is there
        answers = {(m.header.stamp.sec, m.header.stamp.nanosec): m for _, m in heard}
        return [bytes(clean(serialize_message(message))) for message in list(answers.values())[:240]]

    first, second = run(), run()
    assert len(first) == 240
    assert first == second


def test_walking_in_lock_step_twice_is_bit_identical(ros_domain: int) -> None:
    """Three seconds at 0.4 m/s. The command comes before time begins, and does not grow old."""
    clean = Padding('sensor_msgs/msg/JointState', fields_of).clean
    partners = 'lock_step_partners:=[force_node, listener]'
    begins = ('initial_pose:=standing', 'start_paused:=true', 'real_time_factor:=0.0')

    def run() -> tuple[dict[tuple[int, int], bytes], float]:
        with Graph(
            ('lock_step:=true', partners, *begins),
            ('lock_step:=true', 'mode:=whole_body', 'cmd_timeout:=60.0'),
        ) as graph:
            odom = graph.listen(Odometry, 'odom')
            heard = graph.listen(JointState, 'joint_torques')
            graph.listen(JointState, 'joint_states')
            publisher = graph.node.create_publisher(Twist, 'cmd_vel', COMMAND)

            def is_commanded() -> bool:
                publisher.publish(twist(0.4))
                return graph.force.get('commanded') == 'True'

            graph.wait(is_commanded, 60.0, 'has a command')
            heard.clear()
            graph.wait(lambda: len(heard) >= 10, 5.0, 'answers the first state with the command')
            graph.call(SetBool, 'sim_node/pause', SetBool.Request(data=False))
            graph.wait(lambda: heard[-1][1].header.stamp.sec >= 3, 60.0, 'walks for three seconds')
        x = [float(m.pose.pose.position.x) for _, m in odom]
        return {
            (m.header.stamp.sec, m.header.stamp.nanosec): bytes(clean(serialize_message(m))) for _, m in heard
        }, x[-1]

    (first, x), (second, _) = run(), run()
    # nobody waits for this listener to hear every answer
    both = first.keys() & second.keys()
    assert len(both) > 1200
    assert x > 0.8
    assert all(first[stamp] == second[stamp] for stamp in both)


@pytest.mark.parametrize('kind', [Twist, TwistStamped])
def test_velocities_with_and_without_a_stamp(ros_domain: int, kind: Any) -> None:
    from force_node.node import ForceNode

    stamped = 'true' if kind is TwistStamped else 'false'
    rclpy.init(args=['--ros-args', '-p', f'cmd_vel_stamped:={stamped}', '-p', 'mode:=whole_body'])
    node = ForceNode()
    try:
        [subscription] = [one for one in node.node.subscriptions if one.topic_name == '/cmd_vel']
        assert subscription.msg_type is kind
        message = kind()
        getattr(message, 'twist', message).angular.y = float('inf')
        subscription.callback(message)
        assert node.diagnostics.last_fault == 'cmd_vel: angular.y is inf; expected a finite number'
        assert node.diagnostics.counts == {'bad_cmd_vel': 1}
    finally:
        node.close()
        rclpy.shutdown()


def test_torques_alone_as_effort_controllers_take_them(ros_domain: int) -> None:
    with Graph(
        ('command_type:=float64_multi_array',), ('output:=float64_multi_array', 'feedback:=node')
    ) as graph:
        odom = graph.listen(Odometry, 'odom')
        graph.wait(lambda: _height(odom) > STANDING, 60.0, 'stands up')
        graph.wait(lambda: graph.force.get('phase') == 'hold', 5.0, 'holds')


@pytest.mark.parametrize(
    ('parameter', 'expected'),
    [
        ('mode:=fly', "mode is 'fly'"),
        ('robot:=nobody', 'parameter robot: nobody: no such file'),
        ('output:=float64_multi_array', "feedback is 'drive'; expected 'node'"),
        ('kp:=[1.0, 2.0]', 'kp has 2 numbers'),
        ('stat_timeout:=0.2', "unknown parameter 'stat_timeout' (did you mean 'state_timeout'?)"),
        ('robot:=two_link_arm', "parameter mode is 'stand': "),
    ],
)
def test_wrong_parameters_refuse_to_start(
    ros_domain: int, capsys: pytest.CaptureFixture[str], parameter: str, expected: str
) -> None:
    from force_node.node import ForceNode
    from quad_dynamics.ros.process import run_node

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = run_node(ForceNode, ['force_node', '--ros-args', '-p', parameter])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert code == 2
    assert expected in capsys.readouterr().err


def test_a_process_with_wrong_parameters_ends_with_code_2(ros_domain: int) -> None:
    process = start('force_node', 'state_timeout:=-1.0')
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 2, output
    assert 'state_timeout' in output
    assert 'Traceback' not in output
