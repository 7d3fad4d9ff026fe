# SPDX-License-Identifier: Apache-2.0
"""`record`, `play`, `repair` and `topics` as processes, with real traffic."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bag_traffic as bags
import numpy as np
import pytest
import yaml
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from quad_dynamics.bags.repair import repair
from quad_dynamics.bags.topics import Offer, Topic, qos_text
from quad_dynamics.bags.writers import BagWriter
from quad_dynamics.cli import main

pytestmark = [pytest.mark.realtime, pytest.mark.usefixtures('ros_domain')]

RATE = 4000.0  # messages a second, of all topics
STEPS = 1000  # of simulated time, 2 ms each
STORAGES = ['mcap', 'sqlite3']
MOST_MISSING_MS = 20.0
STORE = get_typestore(Stores.ROS2_JAZZY)
FOREVER = 2**63 - 1


@pytest.fixture
def started() -> Iterator[list[bags.Process]]:
    """Processes that a test has started; what is left of them ends with it."""
    processes: list[bags.Process] = []
    yield processes
    bags.end_all(processes)


def numbers_by_topic(folder: Path) -> dict[str, list[int]]:
    """For each topic of the traffic the counts that its messages hold, in the order of the bag."""
    found: dict[str, list[int]] = {f'/traffic_{i}': [] for i in range(bags.TOPICS)}
    with Reader(folder) as reader:
        for connection, _, raw in reader.messages():
            if connection.topic in found:
                found[connection.topic].append(bags.number_of(raw))
    return found


def cpu_seconds(process: bags.Process) -> float:
    """CPU time of a process so far."""
    fields = Path(f'/proc/{process.pid}/stat').read_text().rpartition(') ')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def custom_data(folder: Path) -> dict[str, str]:
    content = yaml.safe_load((folder / 'metadata.yaml').read_text())
    found: dict[str, str] = content['rosbag2_bagfile_information']['custom_data']
    return found


@pytest.mark.slow
def test_nothing_is_lost(tmp_path: Path, started: list[bags.Process], record_property: Any) -> None:
    """4,000 messages a second on eight topics, to two recorders at once; what is latched is had too."""
    recorders = {
        storage: bags.command('record', '-o', tmp_path / storage, '--storage', storage)
        for storage in STORAGES
    }
    publisher = bags.traffic('steady', RATE, 2.5, tmp_path / 'sent.npy', len(recorders))
    started += [publisher, *recorders.values()]
    for recorder in recorders.values():
        assert bags.wait_line(recorder, 'recording ').endswith(
            ' topics into ' + str(recorder.args[-3]) + '\n'
        )
    bags.wait_line(publisher, 'sending')
    before = {storage: cpu_seconds(recorder) for storage, recorder in recorders.items()}
    count = int(bags.wait_line(publisher, 'sent').split()[1])
    for storage, recorder in recorders.items():
        record_property(f'cpu_{storage}', (cpu_seconds(recorder) - before[storage]) / 2.5)
    time.sleep(0.3)
    for storage, number in zip(STORAGES, (signal.SIGINT, signal.SIGTERM), strict=True):
        asked = time.monotonic()
        code, output, _ = bags.stop(recorders[storage], number)
        assert time.monotonic() - asked < 3.0  # it takes 0.2 s; the machine may be busy
        assert code == 0
        assert output.endswith(f'into {tmp_path / storage}; nothing lost\n')
        expected = list(range(count // bags.TOPICS))
        for name, numbers in numbers_by_topic(tmp_path / storage).items():
            assert numbers == expected, name
        assert custom_data(tmp_path / storage)['lost_messages'] == '0'
        assert not repair(tmp_path / storage).found
        _check_types(tmp_path / storage)


def _check_types(folder: Path) -> None:
    """Types are in the bag, and quality of service is that of the publishers."""
    with AnyReader([folder]) as reader:
        connections = {connection.topic: connection for connection in reader.connections}
        [(connection, _, raw)] = reader.messages([connections['/description']])
        assert reader.deserialize(raw, connection.msgtype).data == bags.TEXT  # type: ignore[attr-defined]
        assert connection.ext.offered_qos_profiles[0].durability.name == 'TRANSIENT_LOCAL'  # type: ignore[union-attr]
        connection, stamp, raw = next(reader.messages([connections['/traffic_0']]))
        message: Any = reader.deserialize(raw, connection.msgtype)
        assert message.name == bags.JOINTS
        sent = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        assert 0 <= stamp - sent < 10**9  # the time of the bag is when it was received


@pytest.mark.slow
def test_killed_recorders(tmp_path: Path, started: list[bags.Process], record_property: Any) -> None:
    """Twenty kills: after `repair` the bag opens and lacks at most the last 20 ms."""
    rng = random.Random(0)
    losses: dict[str, list[float]] = {storage: [] for storage in STORAGES}
    for attempt in range(20):
        folders = [(storage, tmp_path / f'{storage}_{attempt}') for storage in STORAGES]
        recorders = [
            bags.command('record', '-o', folder, '--storage', storage) for storage, folder in folders
        ]
        publisher = bags.traffic('steady', RATE, 20.0, tmp_path / 'sent.npy', len(recorders))
        started[:] = [publisher, *recorders]
        bags.wait_line(publisher, 'sending')
        killed = []
        for recorder in recorders:
            time.sleep(rng.uniform(0.05, 0.15))
            killed.append(time.time_ns())
            recorder.kill()
        bags.end_all(recorders)
        bags.stop(publisher, signal.SIGTERM)
        sent = np.load(tmp_path / 'sent.npy')
        for (storage, folder), when in zip(folders, killed, strict=True):
            pause, loss = _loss(folder, sent, when)
            # Where the machine stood still just then, nobody can have received anything.
            if pause < MOST_MISSING_MS / 2:
                losses[storage].append(loss)
        if min(map(len, losses.values())) >= 10:
            break
    for storage, each in losses.items():
        record_property(f'largest_loss_ms_{storage}', max(each))
        print(f'{storage}: {len(each)} kills, at most {max(each):.1f} ms missing')
    assert min(map(len, losses.values())) >= 10
    assert max(map(max, losses.values())) <= MOST_MISSING_MS


def _loss(folder: Path, sent: Any, killed: int) -> tuple[float, float]:
    """Longest pause of the publisher before the kill, and how much is missing before it [ms]."""
    result = repair(folder)
    assert result.found
    missing, have = [], {name: set(numbers) for name, numbers in numbers_by_topic(folder).items()}
    before = np.flatnonzero(sent < killed)
    for k in before:
        count, i = divmod(int(k), bags.TOPICS)
        if count not in have[f'/traffic_{i}']:
            missing.append(k)
    assert len(before) - len(missing) > 100
    pauses = np.diff([*sent[before][-200:], killed])
    return pauses.max() * 1e-6, (killed - sent[missing[0]]) * 1e-6 if missing else 0.0


@pytest.mark.slow
def test_identical_runs_give_identical_bags(
    tmp_path: Path, started: list[bags.Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --sim-time; one of the runs is recorded while the machine is busy."""
    digests = []
    for run in range(2):
        parent = tmp_path / str(run)
        parent.mkdir()
        monkeypatch.setenv('BAG_TRAFFIC_GO', str(parent / 'go'))
        publisher = bags.traffic('simulated', STEPS)
        started.append(publisher)
        bags.wait_line(publisher, 'ready')
        time.sleep(0.3 * run)
        recorders = [
            bags.command('record', '--sim-time', '-o', parent / storage, '--storage', storage)
            for storage in STORAGES
        ]
        started += recorders
        for recorder in recorders:
            bags.wait_topics(recorder, 7)
        time.sleep(0.3)  # subscribers that are made are heard of a little later
        (parent / 'go').touch()
        if run:
            recorders[0].send_signal(signal.SIGSTOP)  # it falls behind
            time.sleep(0.05)
            recorders[0].send_signal(signal.SIGCONT)
        bags.wait_line(publisher, 'sent')
        time.sleep(0.3)
        for recorder in recorders:
            code, output, errors = bags.stop(recorder)
            assert (code, errors) == (0, '')
            assert 'nothing lost' in output
        bags.stop(publisher, signal.SIGTERM)
        files = sorted(path for path in parent.rglob('*') if path.is_file() and path.name != 'go')
        digests.append({path.name + path.parent.name: hashlib.sha256(path.read_bytes()) for path in files})
        _check_simulated(parent / 'mcap')
    assert len(digests[0]) == 4
    for name, digest in digests[0].items():
        assert digest.hexdigest() == digests[1][name].hexdigest(), name


def _check_simulated(folder: Path) -> None:
    with AnyReader([folder]) as reader:
        messages = [(connection.topic, stamp) for connection, stamp, _ in reader.messages()]
    assert messages[:5] == [
        (name, 0) for name in ('/description', '/clock', '/markers', '/state_0', '/state_1')
    ]
    for name, every in (('/clock', 1), ('/state_2', 1), ('/markers', 25)):
        assert [stamp for topic, stamp in messages if topic == name] == [
            k * 2_000_000 for k in range(0, STEPS + 1, every)
        ]
    assert '/silent' not in {topic for topic, _ in messages}


def _made_bag(folder: Path, seconds: float) -> dict[str, list[bytes]]:
    """A bag with 4,000 messages a second on eight topics; return what it holds."""
    kind = 'sensor_msgs/msg/JointState'
    definition, _ = STORE.generate_msgdef(kind, ros_version=2)
    qos = qos_text([Offer(3, 0, 1, 2, FOREVER, FOREVER, 1, FOREVER)])
    bag = BagWriter(folder, 'mcap')
    numbers = [
        bag.add_topic(Topic(f'/traffic_{i}', kind, qos, definition, STORE.hash_rihs01(kind)))
        for i in range(bags.TOPICS)
    ]
    types, empty = STORE.types, np.zeros(0)
    time_type, header = types['builtin_interfaces/msg/Time'], types['std_msgs/msg/Header']
    rng, held = np.random.default_rng(0), {f'/traffic_{i}': [] for i in range(bags.TOPICS)}  # type: ignore[var-annotated]
    for k in range(round(seconds * RATE)):
        count, i = divmod(k, bags.TOPICS)
        stamp = header(stamp=time_type(sec=0, nanosec=0), frame_id=f'{count:08}')
        position = rng.normal(size=12)
        message = types[kind](header=stamp, name=bags.JOINTS, position=position, velocity=empty, effort=empty)
        raw = bytes(STORE.serialize_cdr(message, kind))
        held[f'/traffic_{i}'].append(raw)
        bag.write([(10**9 + round(k / RATE * 1e9), numbers[i], 0, count, raw)])
    bag.close({})
    return held


@pytest.mark.slow
def test_played_and_recorded_again(tmp_path: Path, started: list[bags.Process]) -> None:
    """The same bytes in the same order at the same times, at 4,000 messages a second."""
    held = _made_bag(tmp_path / 'first', 1.5)
    recorder = bags.command('record', '-o', tmp_path / 'second')
    started.append(recorder)
    # It waits for the recorder; what is published before that nobody hears.
    player = bags.command('play', tmp_path / 'first', '--delay', '10', '--clock', '100')
    started.append(player)
    assert bags.wait_line(player, 'published 6000 messages')
    assert player.wait(10) == 0
    time.sleep(0.3)
    code, output, _ = bags.stop(recorder)
    assert code == 0
    assert 'nothing lost' in output
    found: dict[str, list[bytes]] = {}
    times = []
    with Reader(tmp_path / 'second') as reader:
        for connection, stamp, raw in reader.messages():
            found.setdefault(connection.topic, []).append(bytes(raw))
            times += [stamp] if connection.topic == '/traffic_0' else []
    clock = found.pop('/clock')
    assert 120 <= len(clock) <= 151  # nobody waits for who listens to it
    assert found == held
    assert (times[-1] - times[0]) * 1e-9 == pytest.approx(1.498, abs=0.1)


@pytest.mark.slow
def test_play_a_part(tmp_path: Path, started: list[bags.Process]) -> None:
    """Some topics, under other names, from the middle, slowly, twice."""
    _made_bag(tmp_path / 'bag', 1.0)
    recorder = bags.command('record', '-o', tmp_path / 'part', '--topics', '/new/*')
    started.append(recorder)
    options = ['--topics', '/traffic_[01]', '--remap', '/traffic_0:=/new/a', 'traffic_1:=new/b']
    options += ['--start', '0.5', '--duration', '0.1', '--rate', '0.5', '--delay', '2', '--loop']
    player = bags.command('play', tmp_path / 'bag', *options)
    started.append(player)
    bags.wait_line(player, 'playing 2 topics')
    bags.wait_topics(recorder, 2)
    time.sleep(0.5)  # two rounds take 0.4 s
    code, output, _ = bags.stop(player)
    assert code == 0
    assert int(output.split()[1]) > 150
    assert bags.stop(recorder)[0] == 0
    with Reader(tmp_path / 'part') as reader:
        names = {connection.topic for connection, _, _ in reader.messages()}
        numbers = {bags.number_of(raw) for _, _, raw in reader.messages()}
    assert names == {'/new/a', '/new/b'}
    assert numbers == set(range(250, 300))


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_repeated_signals_leave_a_whole_bag(
    tmp_path: Path, started: list[bags.Process], number: signal.Signals
) -> None:
    """As `timeout -s INT` and `ros2 launch` send them, and as fast as they can come."""
    folder = tmp_path / 'bag'
    recorder = bags.command('record', '-o', folder)
    publisher = bags.traffic('steady', RATE, 20.0, tmp_path / 'sent.npy', 1)
    started += [recorder, publisher]
    bags.wait_line(publisher, 'sending')
    time.sleep(0.5)
    while recorder.poll() is None:
        recorder.send_signal(number)
        time.sleep(0.005)
    assert recorder.returncode == 0
    with Reader(folder) as reader:  # it refuses a file without an end
        assert reader.message_count > 0.2 * RATE
        assert sum(1 for _ in reader.messages()) == reader.message_count


@pytest.mark.slow
def test_full_disk_ends_the_recorder(tmp_path: Path, started: list[bags.Process]) -> None:
    """It says why, and what was written can be read."""
    publisher = bags.traffic('steady', RATE, 20.0, tmp_path / 'sent.npy', 1)
    recorder = bags.command('record', '-o', tmp_path / 'bag')
    started += [publisher, recorder]
    bags.wait_line(publisher, 'sending')
    resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (800_000, 800_000))
    output, errors = recorder.communicate(timeout=20)
    bags.stop(publisher, signal.SIGTERM)
    assert recorder.returncode == 1
    assert f'error: {tmp_path / "bag" / "bag_0.mcap"}: File too large' in errors
    assert 'not written' in output
    numbers = numbers_by_topic(tmp_path / 'bag')
    assert all(found == list(range(len(found))) for found in numbers.values())
    assert sum(map(len, numbers.values())) > 800
    assert not repair(tmp_path / 'bag').found


@pytest.mark.slow
def test_any_error_ends_the_recorder(tmp_path: Path, started: list[bags.Process]) -> None:
    """Not only one of the disk: it says what happened, with exit code 1."""
    script = 'import sys; from quad_dynamics.bags import mcap_storage; from quad_dynamics.cli import main\n'
    script += 'def fail(self, batch): raise ValueError("injected")\n'
    script += 'mcap_storage.McapStorage.write = fail\n'
    script += f'sys.exit(main(["record", "-o", {str(tmp_path / "bag")!r}]))'
    publisher = bags.traffic('steady', 400.0, 20.0, tmp_path / 'sent.npy', 1)
    recorder = bags.start('-c', script)
    started += [publisher, recorder]
    output, errors = recorder.communicate(timeout=20)
    bags.stop(publisher, signal.SIGTERM)
    assert recorder.returncode == 1
    assert f'error: {tmp_path / "bag"}: ValueError: injected' in errors
    assert 'not written' in output or '0 messages' in output


@pytest.mark.slow
def test_table_of_topics(tmp_path: Path, started: list[bags.Process]) -> None:
    publisher = bags.traffic('steady', RATE, 20.0, tmp_path / 'sent.npy', 1)
    table = bags.command('topics', '--watch', '0.5', '--json')
    started += [publisher, table]
    bags.wait_line(publisher, 'sending')
    assert table.stdout is not None
    for _ in range(3):
        rows = {row['name']: row for row in json.loads(table.stdout.readline())}
    row = rows['/traffic_3']
    assert row['type'] == 'sensor_msgs/msg/JointState'
    assert (row['publishers'], row['subscribers']) == (1, 0)
    assert row['rate'] == pytest.approx(RATE / bags.TOPICS, rel=0.2)  # best effort, on a busy machine
    assert row['size'] == pytest.approx(516, abs=60)
    assert row['age'] < 0.5
    assert rows['/description']['age'] > 0.5
    assert rows['/description']['rate'] is None
    assert bags.stop(table)[0] == 0
    once = bags.command('topics', '--topics', '/traffic_*')
    started.append(once)
    output, _ = once.communicate(timeout=30)
    lines = output.splitlines()
    assert len(lines) == 9
    assert lines[0].split()[:2] == ['topic', 'type']
    assert '/traffic_0  sensor_msgs/msg/JointState' in lines[1]


@pytest.mark.parametrize(
    'kind',
    [
        'sensor_msgs/msg/JointState',
        'std_msgs/msg/Float64MultiArray',
        'diagnostic_msgs/msg/DiagnosticArray',
        'nav_msgs/msg/Odometry',
    ],
)
def test_what_is_between_fields_is_cleaned(kind: str) -> None:
    """Every byte that does not change what the message says is set to zero, and no other one."""
    from rclpy.serialization import deserialize_message, serialize_message

    from quad_dynamics.bags.cdr_padding import Padding
    from quad_dynamics.ros.subscriptions import fields_of, message_class

    message = message_class(kind)()
    if 'JointState' in kind:
        message.name, message.effort = ['a', 'bcd', 'efghijk'], [1.0, 2.0, 3.0]
    elif 'MultiArray' in kind:
        message.layout.dim = [message_class('std_msgs/msg/MultiArrayDimension')(label='row')]
    elif 'Diagnostic' in kind:
        value = message_class('diagnostic_msgs/msg/KeyValue')
        status = message_class('diagnostic_msgs/msg/DiagnosticStatus')
        message.status = [status(name='x', values=[value(key='a', value='bc')]), status(level=b'\x02')]
    else:
        message.header.frame_id, message.child_frame_id = 'odom', 'base_link'
    padding, raw = Padding(kind, fields_of), serialize_message(message)
    clean = padding.clean(raw)
    assert deserialize_message(clean, type(message)) == message
    assert len(clean) <= len(raw)
    rng = random.Random(0)
    for i in range(4, len(clean)):
        spoilt = bytearray(clean)
        spoilt[i] ^= rng.randrange(1, 256)
        again = padding.clean(bytes(spoilt))
        if again == clean:
            assert clean[i] == 0
            assert deserialize_message(bytes(spoilt), type(message)) == message
        else:
            assert again == bytes(spoilt), f'byte {i} is part of the message'
    assert padding.clean(clean[:9]) == clean[:9]


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told before ROS starts."""
    assert main(['record', '-o', str(tmp_path)]) == 1
    assert f'{tmp_path} already exists' in capsys.readouterr().err
    assert main(['play', str(tmp_path / 'none')]) == 1
    assert 'none not found; expected the folder of a bag' in capsys.readouterr().err
    BagWriter(tmp_path / 'cut', 'mcap')
    assert main(['play', str(tmp_path / 'cut')]) == 1
    assert f'try: quad_dynamics repair {tmp_path / "cut"}' in capsys.readouterr().err
    for wrong in (['--duration', '0'], ['--storage', 'tape'], ['--topics', 'a', '--all']):
        assert main(['record', '-o', str(tmp_path / 'bag'), *wrong]) == 2
    assert not (tmp_path / 'bag').exists()
