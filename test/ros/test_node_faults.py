# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a graph of nodes, with real processes: deaths, bad messages, floods.

Each test says what it has measured; run pytest with -s to see it.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

from node_processes import Probe, Process, probe
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from sim_command import Sim

from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.qos import STREAM

pytestmark = pytest.mark.realtime

KILLS = 20
# What is promised [s]: a death is seen, and work goes on after the return of what died.
SEEN, RESUMED = 0.6, 1.0


@pytest.fixture
def graph(ros_domain: int) -> Iterator[tuple[Sim, Probe]]:
    """Simulator, controller and viewer, the robot standing."""
    sim = Sim('--port', '0')
    with probe() as ear:
        ear.until(lambda: 'hold' in ear.value('force_node', 'message'), 'the robot stands')
        ear.until(lambda: ear.value('viewer_node', 'message'), 'the viewer')
        yield sim, ear
    code, output = sim.end()
    assert code == 0, output
    assert 'Traceback' not in output


def kill(sim: Sim, name: str) -> int:
    pid = sim.children()[name]
    os.kill(pid, signal.SIGKILL)
    return pid


def wait_for_return(ear: Probe, sim: Sim, name: str, old: int, sign: Any) -> None:
    """Wait until a node is another process, and says something."""
    ear.until(lambda: sim.children().get(name, old) != old, f'{name} is started again')
    ear.until(sign, f'{name} is back')


def report(what: str, seen: list[float], resumed: list[float]) -> None:
    print(
        f'\n{what}: {len(seen)} deaths, seen within {max(seen):.2f} s at most, '
        f'resumed within {max(resumed):.2f} s at most'
    )


def test_death_of_force_node_is_seen_and_forgiven(graph: tuple[Sim, Probe]) -> None:
    sim, ear = graph
    seen, resumed = [], []
    for _ in range(KILLS):
        begin = time.monotonic()
        old = kill(sim, 'force_node')
        seen.append(ear.until(lambda: ear.value('sim_node', 'damped') == 'True', 'sim_node damps'))
        high = ear.height
        ear.torques.clear()
        wait_for_return(ear, sim, 'force_node', old, lambda: ear.torques)
        back = time.monotonic()
        resumed.append(ear.until(lambda: ear.value('sim_node', 'damped') == 'False', 'it is commanded again'))
        assert high > 0.0
        assert back > begin
        # Let it get up a little, so that every death finds another state.
        ear.listen(0.3)
    report('force_node', seen, resumed)
    assert max(seen) < SEEN
    assert max(resumed) < RESUMED
    ear.until(lambda: 'hold' in ear.value('force_node', 'message') and ear.height > 0.25, 'it stands again')


def test_a_robot_whose_controller_died_sinks(ros_domain: int) -> None:
    with Process('sim_node', wait_for_commands=True) as _, Process('force_node') as force, probe() as ear:
        ear.until(lambda: 'hold' in ear.value('force_node', 'message'), 'the robot stands')
        standing = ear.height
        force.kill()
        ear.until(lambda: ear.value('sim_node', 'damped') == 'True', 'sim_node damps')
        ear.until(lambda: ear.height < 0.6 * standing, 'the robot sinks')
        low = ear.odom.twist.twist.linear
        assert math.hypot(low.x, low.y, low.z) < 2.0  # sinks, does not fall


def test_death_of_sim_node_is_seen_and_forgiven(graph: tuple[Sim, Probe]) -> None:
    sim, ear = graph
    seen, resumed = [], []
    for _ in range(KILLS):
        old = kill(sim, 'sim_node')
        seen.append(
            ear.until(lambda: 'joint_states' in ear.value('force_node', 'message'), 'force_node sees it')
        )
        ear.states.clear()
        wait_for_return(ear, sim, 'sim_node', old, lambda: ear.states)
        resumed.append(
            ear.until(
                lambda: ear.value('force_node', 'message').startswith('stand'), 'it is controlled again'
            )
        )
        ear.listen(0.3)
    report('sim_node', seen, resumed)
    assert max(seen) < SEEN
    assert max(resumed) < RESUMED
    ear.until(lambda: 'hold' in ear.value('force_node', 'message') and ear.height > 0.25, 'it stands again')


def test_death_of_the_viewer_disturbs_nobody(graph: tuple[Sim, Probe]) -> None:
    sim, ear = graph
    for _ in range(KILLS):
        old = kill(sim, 'viewer_node')
        ear.until(lambda old=old: sim.children().get('viewer_node', old) != old, 'it is started again')
        assert ear.value('sim_node', 'damped') == 'False'
        assert ear.height > 0.25
        ear.listen(1.0)  # who dies at once would be given up
    begin = time.monotonic()
    ear.until(lambda: ear.said['viewer_node'][0] > begin, 'the viewer is back')


def joint_message(model: Any, **fields: Any) -> bytes:
    message = JointState(name=list(model.joint_names), effort=[0.0] * model.nj)
    for name, value in fields.items():
        setattr(message, name, value)
    return bytes(serialize_message(message))


def test_bad_commands_are_counted_and_harmless(ros_domain: int) -> None:
    import quad_dynamics as qd

    model = qd.load_model('mini_cheetah')
    nan, names = [math.nan] * model.nj, list(model.joint_names)
    good = joint_message(model)
    bad = {
        'not a number': joint_message(model, effort=nan),
        'infinite': joint_message(model, effort=[math.inf] * model.nj),
        'wrong names': joint_message(model, name=[f'x{name}' for name in names]),
        'too few': joint_message(model, name=names[:5], effort=[0.0] * 5),
        'wrong length': joint_message(model, effort=[0.0] * 3),
        'nothing': joint_message(model, effort=[]),
        'cut off': good[: len(good) // 2],
        'cut at the end': good[:-40],
        'longer': good + bytes(range(64)),
        'noise': bytes(range(200)),
    }
    with Process('sim_node') as process, probe() as ear:
        ear.until(lambda: ear.states, 'joint_states')
        publisher = ear.publisher(JointState, 'joint_torques')
        for what, raw in bad.items():
            before = int(ear.value('sim_node', 'faults.bad_command') or 0)
            publisher.publish(raw)
            if what in ('longer', 'noise', 'cut off', 'cut at the end'):
                ear.listen(0.6)  # the middleware may have dropped it already
                assert ear.value('sim_node', 'commands') == '0', what
                continue
            ear.until(
                lambda before=before: int(ear.value('sim_node', 'faults.bad_command') or 0) > before,
                what,
                5.0,
            )
            assert ear.value('sim_node', 'last_fault').startswith('joint_torques')
            assert ear.value('sim_node', 'commands') == '0', what
        # Too old: stamped before the silence that is allowed.
        ear.until(lambda: ear.states[-1][1] > 2_000_000_000, 'two seconds of simulated time')
        old = JointState(name=names, effort=[0.0] * model.nj)
        old.header.stamp.nanosec = 1
        publisher.publish(old)
        ear.until(lambda: 's old' in ear.value('sim_node', 'last_fault'), 'too old', 5.0)
        assert ear.value('sim_node', 'commands') == '0'
        publisher.publish(good)
        ear.until(lambda: ear.value('sim_node', 'commands') == '1', 'a good one')
        ear.listen(0.2)
        assert math.isfinite(ear.height)
        code, output = process.stop()
    assert code == 0, output
    assert 'Traceback' not in output


def test_a_flood_and_a_second_publisher_are_survived(graph: tuple[Sim, Probe]) -> None:
    """Ten thousand messages a second from somebody else: the simulation keeps its pace, and says it."""
    import quad_dynamics as qd

    _, ear = graph
    model = qd.load_model('mini_cheetah')
    reader = JointReader(model.joint_names, (), 'joint_torques')
    standing = reader.read(ear.last_torque)
    message = JointState(name=list(model.joint_names), effort=standing.arrays['effort'].tolist())
    message.position = standing.arrays['position'].tolist()
    raw = bytes(serialize_message(message))
    publisher = ear.publisher(JointState, 'joint_torques', STREAM)
    begin, first, sent = time.monotonic(), ear.states[-1], 0
    while time.monotonic() - begin < 3.0:
        if sent < (time.monotonic() - begin) * 10_000:
            publisher.publish(raw)
            sent += 1
            if sent % 50 == 0:
                ear.box.poll()
    ear.listen(0.2)
    last = ear.states[-1]
    factor = (last[1] - first[1]) * 1e-9 / (last[0] - first[0])
    print(f'\n{sent / 3.0:.0f} messages/s: real-time factor {factor:.3f}, height {ear.height:.3f} m')
    ear.until(
        lambda: '2 publishers' in ear.value('sim_node', 'message'), 'the second publisher is seen', 10.0
    )
    assert factor > 0.9
    assert ear.height > 0.25
    ear.node.destroy_publisher(publisher)
    ear.until(lambda: ear.value('sim_node', 'message') == 'running', 'all is well again')


def test_random_commands_never_go_beyond_a_limit(ros_domain: int) -> None:
    """Commands of any size by topic: the motors never give more than they can."""
    import quad_dynamics as qd

    model = qd.load_model('mini_cheetah')
    rng = np.random.default_rng(0)
    torques: list[Any] = []
    with Process('sim_node') as process, probe() as ear:
        reader = JointReader(model.joint_names, ('effort',), 'joint_states')
        ear.node.create_subscription(
            JointState,
            'joint_states',
            lambda raw: torques.append(reader.read(raw).arrays['effort']),
            STREAM,
            raw=True,
        )
        ear.until(lambda: torques, 'joint_states')
        publisher = ear.publisher(JointState, 'joint_torques')
        for _ in range(1500):
            size = 10.0 ** rng.uniform(-3.0, 300.0 if rng.random() < 0.1 else 4.0)
            publisher.publish(
                joint_message(
                    model, effort=(size * rng.standard_normal(model.nj)).clip(-1e300, 1e300).tolist()
                )
            )
            ear.box.wait(0.002)
        ear.until(lambda: len(torques) > 1000, 'two seconds of it')
        code, output = process.stop()
    assert code == 0, output
    assert np.isfinite(torques).all()
    assert (np.abs(torques) <= model.effort_limit * (1.0 + 1e-12)).all()
    assert np.abs(torques).max() > 0.5 * model.effort_limit.min()


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_lock_step_is_the_same_bit_for_bit(ros_domain: int, tmp_path: Path, storage: str) -> None:
    """Two runs, with sensors that have errors: the same messages, and in the files the same bytes."""
    options = ['--lock-step', '--headless', '--noise', 'typical', '--duration', '2', '--storage', storage]
    bags = []
    for name in ('first', 'second'):
        (tmp_path / name).mkdir()
        folder = tmp_path / name / 'bag'
        sim = Sim(*options, '--real-time-factor', '0', '--record', str(folder))
        output, _ = sim.process.communicate(timeout=90.0)
        assert sim.process.returncode == 0, output
        bags.append(folder)
    first, second = map(messages_of, bags)
    assert len(first) > 10_000
    assert first == second
    for path in sorted(bags[0].iterdir()):
        assert path.read_bytes() == (bags[1] / path.name).read_bytes(), path.name


def messages_of(folder: Path) -> list[tuple[str, int, bytes]]:
    """Topic, time and bytes of all messages of a bag."""
    from rosbags.rosbag2 import Reader

    with Reader(folder) as reader:
        return [(connection.topic, stamp, bytes(data)) for connection, stamp, data in reader.messages()]
