# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics sim`: the graph as processes, from a terminal's point of view."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from sim_command import Sim

pytestmark = pytest.mark.realtime


def shared_memory() -> set[str]:
    return {path.name for path in Path('/dev/shm').iterdir() if 'fast' in path.name}


def is_alive(pid: int) -> bool:
    try:
        return (Path('/proc') / str(pid) / 'stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


def wait_for(condition: Any, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def sockets_outside_loopback(pids: list[int]) -> list[str]:
    """Addresses of sockets of processes that are not bound to 127.0.0.1, from the kernel's tables."""
    inodes = set()
    for pid in pids:
        for link in (Path('/proc') / str(pid) / 'fd').iterdir():
            target = str(link.readlink())
            if target.startswith('socket:['):
                inodes.add(target[8:-1])
    found = []
    for table in ('tcp', 'udp', 'tcp6', 'udp6'):
        for line in Path(f'/proc/net/{table}').read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in inodes and not words[1].startswith('0100007F:'):
                found.append(f'{table} {words[1]}')
    return found


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(ros_domain: int, number: int) -> None:
    from node_processes import probe

    before = shared_memory()
    sim = Sim('--viewer', '--port', '0')
    with probe() as ear:
        ear.until(
            lambda: ear.value('force_node', 'message') and ear.value('viewer_node', 'message'), 'all nodes'
        )
        children = sim.children()
        assert set(children) == {'sim_node', 'force_node', 'viewer_node'}
        assert sockets_outside_loopback([sim.process.pid, *children.values()]) == []
    code, output = sim.end(number)
    assert code == (-number if number == signal.SIGKILL else 0), output
    wait_for(lambda: not any(map(is_alive, children.values())), 5.0, f'orphans: {children}')
    assert shared_memory() == before
    if number != signal.SIGKILL:
        assert re.search(r'open http://127\.0\.0\.1:\d+ in a browser', output), output
        assert 'Traceback' not in output


def test_the_robot_stands_within_3_s_and_stays(ros_domain: int) -> None:
    from node_processes import probe

    sim = Sim('--headless')
    try:
        with probe() as ear:
            ear.until(lambda: ear.odom is not None, 'odom')
            low = ear.height
            ear.until(lambda: ear.height > 0.27, 'the robot stands')
            stamp = ear.odom.header.stamp
            assert stamp.sec + stamp.nanosec * 1e-9 < 3.0
            assert low < 0.15
            ear.until(lambda: 'hold' in ear.value('force_node', 'message'), 'it holds')
            ear.listen(1.0)
            p = ear.odom.pose.pose.position
            begin = p.x, p.y, p.z
            ear.listen(5.0)
            p = ear.odom.pose.pose.position
            drift = max(abs(a - b) for a, b in zip(begin, (p.x, p.y, p.z), strict=True))
            assert drift < 1e-3
    finally:
        code, output = sim.end()
    assert code == 0, output


def test_duration_counts_simulated_time_from_the_first_step(ros_domain: int, tmp_path: Path) -> None:
    """Starting takes longer than this: counted from the start of the process, the bag would be empty."""
    from rosbags.highlevel import AnyReader

    sim = Sim('--headless', '--duration', '1.5', '--record', str(tmp_path / 'bag'))
    output, _ = sim.process.communicate(timeout=90.0)
    assert sim.process.returncode == 0, output
    with AnyReader([tmp_path / 'bag']) as bag:
        chosen = [one for one in bag.connections if one.topic == '/clock']
        clocks = [bag.deserialize(raw, one.msgtype).clock for one, _, raw in bag.messages(chosen)]
    last = clocks[-1].sec + clocks[-1].nanosec * 1e-9
    assert 1.3 < last < 2.5  # the page of diagnostics is every 0.5 s; ending takes a moment


def test_a_killed_recorder_goes_on_in_another_bag(ros_domain: int, tmp_path: Path) -> None:
    """The simulation does not notice; both bags can be read in the end."""
    from rosbags.rosbag2 import Reader

    from quad_dynamics.bags.repair import repair

    sim = Sim('--headless', '--lock-step', '--record', str(tmp_path / 'bag'))
    try:
        file = tmp_path / 'bag' / 'bag_0.mcap'
        wait_for(file.is_file, 60.0, 'the recorder does not start')
        wait_for(lambda: file.stat().st_size > 1_500_000, 60.0, 'nothing is recorded')
        nodes = sim.children()
        os.kill(nodes['quad_dynamics'], signal.SIGKILL)
        second = tmp_path / 'bag_2' / 'bag_2_0.mcap'
        wait_for(second.is_file, 20.0, 'the recorder does not come back')
        wait_for(lambda: second.stat().st_size > 1_500_000, 20.0, 'nothing is recorded any more')
        assert sim.children()['sim_node'] == nodes['sim_node']
    finally:
        code, output = sim.end(patience=40.0)
    assert code == 0, output
    assert 'record died (signal SIGKILL); restarting it' in output
    assert f'is unfinished (run: quad_dynamics repair {tmp_path / "bag"})' in output
    assert repair(tmp_path / 'bag').contents.count > 100
    for name in ('bag', 'bag_2'):
        with Reader(tmp_path / name) as reader:
            assert sum(1 for _ in reader.messages()) == reader.message_count > 100


def test_what_always_dies_is_given_up(ros_domain: int) -> None:
    sim = Sim('--headless')
    deadline = time.monotonic() + 60.0
    while sim.process.poll() is None and time.monotonic() < deadline:
        for pid in sim.children().values():
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    output, _ = sim.process.communicate(timeout=10.0)
    assert sim.process.returncode == 1
    assert 'died 5 times within' in output
    assert 'restarting it' in output
