# SPDX-License-Identifier: Apache-2.0
"""viewer_node as a real process: life and death, bad messages, what it asks of other nodes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
pytest.importorskip('viser', reason='viser is not installed')
import rclpy
from cases import load
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from node_processes import PATIENCE, Probe, Process, probe
from page_client import PageClient
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from visualization_msgs.msg import Marker, MarkerArray

from quad_dynamics.ros.process import CANNOT_SERVE
from quad_dynamics.ros.qos import COMMAND, STREAM
from viewer_node.node import ViewerNode
from viewer_node.streams import Streams

pytestmark = [pytest.mark.realtime, pytest.mark.usefixtures('ros_domain')]


def address(viewer: Process) -> str:
    """Where the page is, as the node says when it serves it."""
    assert viewer.process.stdout is not None
    line = viewer.process.stdout.readline()
    assert line.startswith('viewer: http://127.0.0.1:'), line
    return line.split()[1]


def shown(client: PageClient) -> str:
    """All that was written on the page since it was opened."""
    return ' '.join(
        str(message['updates'].get('content', '')) for message in client.of_type('GuiUpdateMessage')
    )


def wait(condition: Callable[[], Any], what: str, listener: Probe | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        listener.listen(0.05) if listener is not None else time.sleep(0.05)


def press(client: PageClient, text: str) -> None:
    """Click at a button, or at one of a group."""
    for message in client.messages:
        props = message.get('props', {})
        if message['type'] == 'GuiButtonMessage' and props['label'] == text:
            client.send(type='GuiUpdateMessage', uuid=message['uuid'], updates={'value': True})
            return
        if message['type'] == 'GuiButtonGroupMessage' and text in props['options']:
            client.send(type='GuiUpdateMessage', uuid=message['uuid'], updates={'value': text})
            return
    raise AssertionError(f'no button {text!r}')


def drive(client: PageClient, speed: float) -> None:
    """Move the slider of the forward velocity [m/s], as soon as it is there."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        sliders = client.of_type('GuiSliderMessage')
        found[:] = [slider for slider in sliders if slider['props']['label'] == 'forward [m/s]']
        return bool(found)

    wait(is_there, 'the slider')
    client.send(type='GuiUpdateMessage', uuid=found[0]['uuid'], updates={'value': speed})


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_ends_cleanly_and_soon(number: int) -> None:
    with Process('viewer_node', port=0, robot='mini_cheetah') as viewer, PageClient(address(viewer)):
        time.sleep(0.5)
        begin = time.monotonic()
        code, output = viewer.stop(number)
        took = time.monotonic() - begin
    assert code == 0, output
    assert output == ''
    assert took < 5.0  # 0.3 s on a machine that has nothing else to do


@pytest.mark.parametrize(
    ('parameters', 'text'),
    [
        ({'robot': 'nix'}, 'parameter robot: nix: no such file'),
        ({'port': 70000}, 'parameter port is 70000; expected a whole number from 0 to 65535'),
        ({'host': '192.0.2.1', 'port': 0}, "host '192.0.2.1'"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], text: str) -> None:
    viewer = Process('viewer_node', **parameters)
    output, _ = viewer.process.communicate(timeout=PATIENCE)
    assert viewer.process.returncode == 2
    assert text in output
    assert 'Traceback' not in output


def test_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        port = other.getsockname()[1]
        command = [sys.executable, '-m', 'viewer_node', '--ros-args', '-p', f'port:={port}']
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == CANNOT_SERVE == 3
    assert f'port {port} of 127.0.0.1 is in use; choose another with --port' in done.stderr
    assert done.stderr.count('\n') == 1


@pytest.mark.parametrize(
    ('version', 'text'), [('', 'viser is not installed'), ('0.2.7', 'viser 0.2.7 is installed; expected 1.1')]
)
def test_without_the_right_viser_one_line_says_what_to_install(
    tmp_path: Path, version: str, text: str
) -> None:
    # A module that is found before the real one: none at all, or one of another version.
    missing = "raise ModuleNotFoundError(\"No module named 'viser'\", name='viser')"
    (tmp_path / 'viser.py').write_text('' if version else missing)
    info = tmp_path / f'viser-{version or "1.1.0"}.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: viser\nVersion: {version}\n')
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get('PYTHONPATH', '')]))
    command = [sys.executable, '-m', 'viewer_node', '--ros-args', '-p', 'port:=0']
    environment = {**os.environ, 'PYTHONPATH': path}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
    )
    assert done.returncode == CANNOT_SERVE, done.stderr
    advice = f"install it with: {sys.executable} -m pip install 'viser>=1.1,<1.2'"
    assert done.stderr == f'viewer_node: no page in the browser: {text}; {advice}\n'


def test_bad_messages_are_counted_and_good_ones_are_shown() -> None:
    model = load('mini_cheetah')
    with Process('viewer_node', port=0, robot='mini_cheetah') as viewer, probe() as listener:
        with PageClient(address(viewer)) as client:
            publisher = listener.publisher(JointState, 'joint_states', STREAM)
            odom = listener.publisher(Odometry, 'odom', STREAM)
            markers = listener.publisher(MarkerArray, 'markers')
            names = list(model.joint_names)
            bad = [
                JointState(name=names[:3], position=[0.0] * 3),
                JointState(name=names, position=[0.0] * 5),
                JointState(name=names, position=[float('nan')] * 12),
                JointState(name=[f'x{i}' for i in range(12)], position=[0.0] * 12),
                b'\x00\x01\x00\x00rubbish',
            ]
            strange = Marker(type=77)
            strange.header.frame_id = 'odom'
            twisted = Odometry()
            twisted.pose.pose.orientation.w = 0.0
            for i in range(60):
                publisher.publish(bad[i % len(bad)])
                odom.publish(twisted)
                markers.publish(MarkerArray(markers=[strange, Marker(action=9)]))
                listener.listen(0.05)
            wait(
                lambda: int(listener.value('viewer_node', 'faults.bad_message') or 0) > 5, 'faults', listener
            )
            assert int(listener.value('viewer_node', 'faults.marker')) > 5
            assert 'SetOrientationMessage' not in {m['type'] for m in client.messages if 'calf' in str(m)}
            good = JointState(name=names[::-1], position=[0.4] * 12, velocity=[0.0] * 12, effort=[0.0] * 12)
            sent = time.monotonic()
            client.messages.clear()
            while not client.of_type('SetOrientationMessage'):
                assert time.monotonic() - sent < PATIENCE
                good.header.stamp.sec += 1
                publisher.publish(good)
                listener.listen(0.05)
        assert viewer.stop()[0] == 0


def test_silence_is_said_and_ends_when_somebody_speaks() -> None:
    with Process('viewer_node', port=0) as viewer, probe() as listener:
        with PageClient(address(viewer)) as client:
            wait(lambda: 'no robot yet' in shown(client), 'that there is no robot')
            assert 'sim_node: no diagnostics yet' in shown(client)
            press(client, 'Reset')  # of a node that is not there
            wait(
                lambda: 'not available' in str(client.of_type('NotificationShowMessage') or client.messages),
                'it',
            )
            for _ in range(2):  # the simulation comes, is killed, and comes again
                client.messages.clear()
                with Process('sim_node') as sim:
                    wait(lambda: 'real time' in shown(client), 'the simulation to be seen', listener)
                    sim.kill()
                client.messages.clear()
                wait(lambda: 'no joint_states for' in shown(client), 'silence', listener)
        assert viewer.stop()[0] == 0


def test_buttons_call_services_and_publish() -> None:
    calls: list[str] = []
    with Process('viewer_node', port=0, robot='mini_cheetah') as viewer, probe() as listener:
        node = listener.node

        def answer(name: str) -> Callable[[Any, Any], Any]:
            def act(request: Any, response: Any) -> Any:
                calls.append(name)
                response.success, response.message = name != 'step', f'{name} says the test'
                return response

            return act

        node.create_service(SetBool, 'sim_node/pause', answer('pause'))
        for name in ('sim_node/step', 'sim_node/reset', 'force_node/recover'):
            node.create_service(Trigger, name, answer(name.rpartition('/')[2]))
        pushes: list[Any] = []
        twists: list[Any] = []
        node.create_subscription(WrenchStamped, 'push', pushes.append, COMMAND)
        node.create_subscription(Twist, 'cmd_vel', twists.append, COMMAND)
        with PageClient(address(viewer)) as client:
            wait(lambda: any(m['type'] == 'GuiSliderMessage' for m in list(client.messages)), 'the page')
            for text in ('Pause', 'Step', 'Reset', 'Recover'):
                deadline = time.monotonic() + PATIENCE
                before = len(calls)
                while len(calls) == before:  # again, until the service is found
                    assert time.monotonic() < deadline
                    press(client, text)
                    listener.listen(0.5)
            assert [name for i, name in enumerate(calls) if name not in calls[:i]] == [
                'pause',
                'step',
                'reset',
                'recover',
            ]
            wait(lambda: 'step says the test' in str(client.messages), 'the result of the service', listener)
            press(client, 'Push')
            wait(lambda: pushes, 'a push', listener)
            assert pushes[0].wrench.force.y > 10.0
            drive(client, 0.5)
            wait(lambda: len(twists) > 3, 'velocities', listener)
            assert twists[-1].linear.x == 0.5
            press(client, 'Stop')
            wait(lambda: twists[-1].linear.x == 0.0, 'the end of velocities', listener)
            listener.listen(1.0)
            zeros = len(twists) - max(i for i, one in enumerate(twists) if one.linear.x)
            assert zeros > 3  # one alone may get lost
            count = len(twists)
            listener.listen(0.5)
            assert len(twists) == count  # but not for ever
        assert viewer.stop()[0] == 0


def folders_shown(client: PageClient) -> list[bool]:
    """What was sent about the visibility of the folder with the walk controls."""
    (folder,) = (each for each in client.of_type('GuiFolderMessage') if each['props']['label'] == 'walk')
    changes = [each for each in client.of_type('GuiUpdateMessage') if each['uuid'] == folder['uuid']]
    return [folder['props']['visible'], *(each['updates']['visible'] for each in changes)]


def test_page_tells_of_compiling_and_of_a_fall_and_reset_recovers() -> None:
    calls: list[str] = []
    with Process('viewer_node', port=0, robot='mini_cheetah') as viewer, probe() as listener:
        node = listener.node

        def act(name: str, response: Any) -> Any:
            calls.append(name)
            response.success, response.message = name == 'reset', 'still: fallen'
            return response

        node.create_service(Trigger, 'sim_node/reset', lambda _, response: act('reset', response))
        node.create_service(Trigger, 'force_node/recover', lambda _, response: act('recover', response))
        diagnostics = listener.publisher(DiagnosticArray, '/diagnostics')

        def say(name: str, level: int, message: str, **values: str) -> None:
            items = [KeyValue(key=key, value=value) for key, value in values.items()]
            status = DiagnosticStatus(name=name, level=bytes([level]), message=message, values=items)
            diagnostics.publish(DiagnosticArray(status=[status]))

        with PageClient(address(viewer)) as client:
            wait(lambda: client.of_type('GuiFolderMessage'), 'the page')
            say('sim_node', 0, 'compiling simulate, 3 s so far', compiling='simulate')
            wait(lambda: 'sim_node: compiling simulate' in shown(client), 'that it compiles', listener)
            assert 'This happens only once' in shown(client)
            assert folders_shown(client) == [False]
            subscription = node.create_subscription(Twist, 'cmd_vel', lambda _: None, COMMAND)
            wait(lambda: folders_shown(client) == [False, True], 'the walk controls', listener)
            node.destroy_subscription(subscription)
            wait(lambda: folders_shown(client) == [False, True, False], 'them to go', listener)

            def press_and_listen() -> list[str]:
                say('force_node', 2, 'damping until ~/recover', mode='stand', latched='fallen: tilt 3 rad')
                press(client, 'Reset')
                listener.listen(1.0)
                return calls

            wait(lambda: 'recover' in press_and_listen(), 'the controller to recover after the reset')
            assert calls[0] == 'reset'
            assert 'Recover resumes from here, Reset returns' in shown(client)
            wait(
                lambda: 'still: fallen; use Reset to return to the initial pose' in str(client.messages),
                'what can be done',
                listener,
            )
        assert viewer.stop()[0] == 0


def _maxima(client: PageClient) -> list[float]:
    """The right ends that sliders have, or had."""
    ends = [slider['props']['max'] for slider in client.of_type('GuiSliderMessage')]
    return ends + [m['updates'].get('max', 0.0) for m in client.of_type('GuiUpdateMessage')]


def test_walk_controls_belong_to_a_mode_of_force_node() -> None:
    with (
        Process('viewer_node', port=0, robot='mini_cheetah') as viewer,
        Process('force_node', mode='whole_body') as force,
        Process('planner_node') as planner,
        probe() as listener,
    ):
        with PageClient(address(viewer)) as client:
            wait(lambda: client.of_type('GuiFolderMessage'), 'the page')
            wait(lambda: folders_shown(client) == [False, True], 'the walk controls', listener)
            wait(lambda: listener.value('planner_node', 'gait') == 'trot', 'a planner', listener)
            wait(lambda: listener.value('force_node', 'max_vx'), 'the largest velocity', listener)
            largest = float(listener.value('force_node', 'max_vx'))
            wait(
                lambda: any(largest - 0.05 < most <= largest for most in _maxima(client)), 'sliders', listener
            )
            press(client, 'crawl')
            for node in ('planner_node', 'force_node'):
                wait(lambda node=node: listener.value(node, 'gait') == 'crawl', 'the gait', listener)
            assert listener.set('force_node', 'mode', 'stand').successful
            wait(lambda: folders_shown(client) == [False, True, False], 'them to go', listener)
        assert viewer.stop()[0] == 0
        assert force.stop()[0] == 0
        assert planner.stop()[0] == 0


def test_without_a_page_nothing_is_subscribed() -> None:
    with Process('viewer_node', port=0, robot='mini_cheetah') as viewer, probe() as listener:
        where = address(viewer)
        publisher = listener.node.create_publisher(JointState, 'joint_states', STREAM)
        wait(lambda: 'viewer_node' in listener.said, 'the node', listener)
        # the probe itself listens to joint_states
        assert publisher.get_subscription_count() <= 1
        with PageClient(where):
            wait(lambda: publisher.get_subscription_count() == 2, 'a subscription', listener)
        wait(lambda: publisher.get_subscription_count() == 1, 'its end', listener)
        assert viewer.stop()[0] == 0


@pytest.mark.parametrize('robot', ['', 'mini_cheetah'])
def test_page_that_is_closed_stops_the_robot_and_the_next_one_drives_again(robot: str) -> None:
    parameters = {'robot': robot} if robot else {}
    with Process('viewer_node', port=0, **parameters) as viewer, probe() as listener:
        where = address(viewer)
        twists: list[float] = []
        listener.node.create_subscription(
            Twist, 'cmd_vel', lambda twist: twists.append(twist.linear.x), COMMAND
        )
        with PageClient(where) as client:
            drive(client, 0.5)
            wait(lambda: len(twists) > 2 and twists[-1] == 0.5, 'velocities', listener)
        wait(lambda: twists[-1] == 0.0, 'the end of velocities', listener)
        twists.clear()
        with PageClient(where) as client:
            wait(lambda: client.of_type('GuiSliderMessage'), 'the page')
            listener.listen(0.5)
            assert not any(twists)  # the slider is back at zero
            drive(client, 0.25)
            wait(lambda: twists.count(0.25) > 2, 'velocities of the second page', listener)
        assert viewer.stop()[0] == 0


def test_page_that_is_closed_stops_the_robot_though_another_one_is_open() -> None:
    with Process('viewer_node', port=0) as viewer, probe() as listener:
        where = address(viewer)
        twists: list[float] = []
        listener.node.create_subscription(
            Twist, 'cmd_vel', lambda twist: twists.append(twist.linear.x), COMMAND
        )
        with PageClient(where):
            with PageClient(where) as client:
                drive(client, 0.5)
                wait(lambda: len(twists) > 2, 'velocities', listener)
            wait(lambda: twists[-1] == 0.0, 'the end of velocities', listener)
        assert viewer.stop()[0] == 0


def test_every_message_of_markers_counts_though_several_come_between_two_refreshes() -> None:
    callbacks: dict[str, Any] = {}
    node = SimpleNamespace(
        create_subscription=lambda kind, topic, callback, qos, raw: callbacks.setdefault(topic, callback),
        destroy_subscription=lambda subscription: None,
    )
    faults: list[str] = []
    streams = Streams(node, lambda kind, text: faults.append(text))  # type: ignore[arg-type]
    streams.open(load('mini_cheetah'))
    for number, action in ((1, Marker.ADD), (2, Marker.ADD), (1, Marker.DELETE)):
        callbacks['markers'](serialize_message(MarkerArray(markers=[Marker(id=number, action=action)])))
    callbacks['markers'](b'nonsense')
    assert [(each.id, each.action) for each in streams.markers('markers')] == [(1, 0), (2, 0), (1, 2)]
    assert len(faults) == 1
    assert 'markers: cannot read a message of 8 bytes' in faults[0]
    assert streams.markers('markers') == []


def test_feet_whose_names_are_no_topic_names(tmp_path: Path) -> None:
    urdf = load('mini_cheetah').urdf.path
    assert urdf is not None
    text = Path(urdf).read_text().replace('"FL_foot"', '"FL-foot"').replace('"FR_foot"', '"foot.FR"')
    robot = tmp_path / 'robot.urdf'
    robot.write_text(text)
    with Process('viewer_node', port=0, robot=robot) as viewer, probe() as listener:
        with PageClient(address(viewer)):
            for name in ('FL_foot', 'foot_FR', 'RL_foot'):  # as the other nodes call them
                for kind in ('foot_forces', 'foot_forces_estimated'):
                    listener.publisher(WrenchStamped, f'{kind}/{name}')
            states = listener.publisher(JointState, 'joint_states', STREAM)
            good = JointState(name=list(load('mini_cheetah').joint_names), position=[0.4] * 12)
            for _ in range(10):  # plots are drawn
                good.header.stamp.sec += 1
                states.publish(good)
                listener.listen(0.05)
            assert listener.value('viewer_node', 'faults.exception') == ''
        assert viewer.stop()[0] == 0


def test_exception_in_the_loop_is_counted_and_the_node_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ['--ros-args', '-p', 'port:=0', '--log-level', 'fatal']
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    try:
        viewer = ViewerNode()
        turns = 0

        def fail() -> None:
            nonlocal turns
            turns += 1
            raise ZeroDivisionError('as the test wants it')

        monkeypatch.setattr(viewer, '_show_robot', fail)
        told: list[dict[str, Any]] = []
        monkeypatch.setattr(
            viewer._diagnostics, 'publish', lambda *_, **__: told.append(dict(viewer._diagnostics.counts))
        )
        begin = time.monotonic()
        viewer.spin(lambda: turns == 3)
        assert viewer._diagnostics.counts['exception'] == 3
        assert 'ZeroDivisionError: as the test wants it' in viewer._diagnostics.last_fault
        assert told[-1]['exception'] == 2  # told by the turn after it
        assert time.monotonic() - begin > 0.2  # it does not spin at full speed
        viewer.close()
    finally:
        rclpy.try_shutdown()
