# SPDX-License-Identifier: Apache-2.0
"""Bags: writing, repairing, order of stamps; without ROS."""

from __future__ import annotations

import importlib.metadata
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mcap.reader import SeekingReader, make_reader
from mcap.records import Chunk, Footer
from mcap.stream_reader import StreamReader
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from quad_dynamics.bags.repair import repair
from quad_dynamics.bags.sequence_numbers import SequenceNumbers
from quad_dynamics.bags.stamp_order import StampedTopic, StampOrder
from quad_dynamics.bags.topics import Offer, Topic, define, qos_text, spelled, stamp_of
from quad_dynamics.bags.writers import BagWriter, WriterThread
from quad_dynamics.cli import main
from quad_dynamics.errors import ArgumentError

STORE = get_typestore(Stores.ROS2_JAZZY)
STORAGES = ['mcap', 'sqlite3']
FOREVER = 2**63 - 1
RELIABLE = Offer(3, 0, 1, 2, FOREVER, FOREVER, 1, FOREVER)
KIND = 'std_msgs/msg/String'
Messages = list[tuple[str, int, bytes]]


def topic(name: str, kind: str = KIND) -> Topic:
    definition, _ = STORE.generate_msgdef(kind, ros_version=2)
    return Topic(name, kind, qos_text([RELIABLE]), definition, STORE.hash_rihs01(kind))


def text_message(text: str) -> bytes:
    return bytes(STORE.serialize_cdr(STORE.types[KIND](data=text), KIND))


def made_messages(count: int, seed: int = 0, longest: int = 600) -> Messages:
    """Messages of many lengths, no two alike."""
    rng = random.Random(seed)
    return [
        (f'/topic_{i % 3}', 10**9 + i * 1000, text_message(rng.randbytes(rng.randrange(20, longest)).hex()))
        for i in range(count)
    ]


def write(folder: Path, storage: str, messages: Messages) -> BagWriter:
    """Write a bag, but not its end."""
    bag = BagWriter(folder, storage)
    numbers: dict[str, int] = {}
    for i, (name, stamp, data) in enumerate(messages):
        if name not in numbers:
            numbers[name] = bag.add_topic(topic(name))
            bag.describe()
        bag.write([(stamp, numbers[name], stamp, i, data)])
    return bag


def read(folder: Path, types: bool = True) -> Messages:
    """All messages; with `types`, metadata and definitions are read too, which takes longer."""
    with AnyReader([folder]) if types else Reader(data_file(folder)) as reader:
        return [(connection.topic, stamp, bytes(raw)) for connection, stamp, raw in reader.messages()]


def data_file(folder: Path) -> Path:
    [path] = [one for one in folder.iterdir() if one.suffix in ('.mcap', '.db3')]
    return path


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize('storage', STORAGES)
def test_what_is_written_is_read(storage: str, tmp_path: Path) -> None:
    messages = made_messages(300)
    folder = tmp_path / 'bag'
    write(folder, storage, messages).close({'lost_messages': '0'})
    assert read(folder) == messages
    assert data_file(folder).stem == 'bag_0'
    with AnyReader([folder]) as reader:
        assert {connection.msgcount for connection in reader.connections} == {100}
        connection = reader.connections[0]
        assert reader.deserialize(messages[0][2], connection.msgtype).data
        [profile] = connection.ext.offered_qos_profiles  # type: ignore[union-attr]
        assert profile.reliability.name == 'RELIABLE'
        assert connection.digest == STORE.hash_rihs01(KIND)
    metadata = yaml.safe_load((folder / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    assert metadata['version'] == 8
    assert metadata['custom_data'] == {'state': 'complete', 'lost_messages': '0'}
    assert metadata['starting_time']['nanoseconds_since_epoch'] == 10**9
    assert metadata['duration']['nanoseconds'] == 299 * 1000
    assert {one.name for one in folder.iterdir()} == {data_file(folder).name, 'metadata.yaml'}


@pytest.mark.parametrize('end', ['closed', 'killed and repaired'])
def test_other_readers_of_mcap(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of time, backwards, a part by the index, and as a stream; CRCs are validated."""
    monkeypatch.setattr('quad_dynamics.bags.mcap_storage.CHUNK_SIZE', 4096)
    messages = made_messages(50)
    bag = write(tmp_path / 'bag', 'mcap', messages)
    if end == 'closed':
        bag.close({})
    else:
        del bag
        assert repair(tmp_path / 'bag').found
    with data_file(tmp_path / 'bag').open('rb') as file:
        opened = make_reader(file, validate_crcs=True)
        assert isinstance(opened, SeekingReader)
        summary = opened.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count == 50
        assert summary.statistics.chunk_count == len(summary.chunk_indexes) > 3
        assert {one.topic for one in summary.channels.values()} == {f'/topic_{i}' for i in range(3)}

        def found(**chosen: Any) -> list[tuple[str, int, bytes, int]]:
            found = opened.iter_messages(**chosen)
            return [(topic.topic, one.log_time, one.data, one.sequence) for _, topic, one in found]

        expected = [(*message, i) for i, message in enumerate(messages)]
        assert found(log_time_order=True) == expected
        assert found(log_time_order=True, reverse=True) == expected[::-1]
        part = {'start_time': expected[20][1], 'end_time': expected[30][1]}
        assert found(topics=['/topic_1'], **part) == [one for one in expected[20:30] if one[0] == '/topic_1']
    with data_file(tmp_path / 'bag').open('rb') as file:
        records = list(StreamReader(file, emit_chunks=True, validate_crcs=True).records)
    chunks = [one for one in records if isinstance(one, Chunk)]
    assert len(chunks) == summary.statistics.chunk_count
    assert all(one.uncompressed_crc for one in chunks)
    content = data_file(tmp_path / 'bag').read_bytes()
    [footer] = [one for one in records if isinstance(one, Footer)]
    assert footer.summary_crc == zlib.crc32(content[footer.summary_start : -12])


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize('distro', ['humble', ''])
def test_the_distribution_is_named(
    storage: str, distro: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sourced one, or that of the wheels."""
    monkeypatch.setenv('ROS_DISTRO', distro)
    try:
        importlib.metadata.version('ros-jazzy-rclpy')
        wheels = 'jazzy'
    except importlib.metadata.PackageNotFoundError:
        wheels = 'unknown'
    BagWriter(tmp_path / 'bag', storage).close({})
    content = yaml.safe_load((tmp_path / 'bag' / 'metadata.yaml').read_text())
    assert content['rosbag2_bagfile_information']['ros_distro'] == (distro or wheels)
    if storage == 'sqlite3':
        with sqlite3.connect(data_file(tmp_path / 'bag')) as connection:
            assert connection.execute('SELECT ros_distro FROM schema').fetchall() == [(distro or wheels,)]
        connection.close()


@pytest.mark.parametrize('storage', STORAGES)
def test_empty_bag(storage: str, tmp_path: Path) -> None:
    BagWriter(tmp_path / 'bag', storage).close({})
    assert read(tmp_path / 'bag') == []


@pytest.mark.parametrize('storage', STORAGES)
def test_unfinished_bag_says_what_it_is(storage: str, tmp_path: Path) -> None:
    write(tmp_path / 'bag', storage, made_messages(9))
    metadata = yaml.safe_load((tmp_path / 'bag' / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    assert metadata['storage_identifier'] == storage
    assert metadata['custom_data'] == {'state': 'recording'}
    assert len(metadata['topics_with_message_count']) == 3


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match='already exists'):
        BagWriter(tmp_path, 'mcap')
    with pytest.raises(ArgumentError, match=r"storage is 'mcup'.*mcap"):
        BagWriter(tmp_path / 'bag', 'mcup')
    assert not (tmp_path / 'bag').exists()


@pytest.mark.parametrize('storage', STORAGES)
def test_speed_of_writing(storage: str, tmp_path: Path) -> None:
    """Batches as the recorder makes them, of messages as long as a JointState of 12 joints."""
    data = bytes(520)
    bag = BagWriter(tmp_path / 'bag', storage)
    number = bag.add_topic(topic('/a'))
    started = time.process_time()
    for i in range(400):
        bag.write([(i * 20 + k, number, 0, k, data) for k in range(20)])
    bag.close({})
    # 8000 messages are two seconds of traffic. It takes 0.02 s (mcap) or 0.08 s (sqlite3).
    assert time.process_time() - started < 0.8


def _limited(folder: Path, storage: str) -> None:
    """Record into a bag until files cannot grow any more; in a process of its own."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    bag = BagWriter(folder, storage)
    thread = WriterThread(bag)
    thread.put(topic('/a'))
    i = 0
    while thread.error is None:
        thread.put([(i, 1, i, i, text_message(f'{i:0300}'))])
        i += 1
        time.sleep(0.0001)
    thread.finish()
    print(f'{type(thread.error).__name__}: {thread.error}')
    try:
        bag.close({})
    except OSError as error:
        print('no end:', error)


@pytest.mark.parametrize('storage', STORAGES)
def test_full_disk(storage: str, tmp_path: Path) -> None:
    """What was written stays good; mcap even gets its end."""
    script = f'import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_bag_tools as t\n'
    script += f'from pathlib import Path; t._limited(Path({str(tmp_path / "bag")!r}), {storage!r})'
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, check=True)
    assert 'OSError' in done.stdout
    repaired = repair(tmp_path / 'bag')
    assert bool(repaired.found) == ('no end' in done.stdout)
    assert storage == 'sqlite3' or not repaired.found
    found = read(tmp_path / 'bag')
    assert [stamp for _, stamp, _ in found] == list(range(len(found)))
    assert len(found) > 200  # of the 1000 or so that fit; a log is twice as long
    assert len(found) == repaired.contents.count


def test_any_error_of_the_writer_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only of the disk: a thread that died would let the queue grow for ever."""
    bag = BagWriter(tmp_path / 'bag', 'mcap')
    thread = WriterThread(bag)
    thread.put(topic('/a'))

    def fail(batch: Any) -> None:
        raise ValueError('injected')

    monkeypatch.setattr(bag, 'write', fail)
    for i in range(20):
        thread.put([(i, 1, i, i, text_message('x'))])
        time.sleep(0.001)
    thread.finish()
    assert repr(thread.error) == "ValueError('injected')"
    assert thread.dropped == 20
    assert thread._queue.empty()


# ---------------------------------------------------------------- repairing


@pytest.mark.parametrize('storage', STORAGES)
def test_good_bag_is_left_alone(storage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / 'bag'
    write(folder, storage, made_messages(30)).close({'lost_messages': '3'})
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    assert main(['repair', str(folder)]) == 0
    assert 'nothing to repair; 30 messages of 3 topics' in capsys.readouterr().out
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize('damage', ['missing', 'empty', 'no yaml', 'other counts'])
def test_metadata_is_rebuilt(storage: str, damage: str, tmp_path: Path) -> None:
    folder, messages = tmp_path / 'bag', made_messages(30)
    write(folder, storage, messages).close({'lost_messages': '3'})
    path = folder / 'metadata.yaml'
    good = path.read_text()
    if damage == 'missing':
        path.unlink()
    else:
        path.write_text({'empty': '', 'no yaml': '{:'}.get(damage, good.replace('count: 10', 'count: 7')))
    result = repair(folder)
    assert len(result.found) == 1
    assert read(folder) == messages
    if damage == 'other counts':
        assert "lost_messages: '3'" in path.read_text()
    new, old = yaml.safe_load(path.read_text()), yaml.safe_load(good)
    for one in (new, old):
        del one['rosbag2_bagfile_information']['custom_data']
    assert new == old
    assert not repair(folder).found


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def complaint(path: Path) -> str:
        assert main(['repair', str(path)]) == 1
        return capsys.readouterr().err

    assert f'{tmp_path}/none not found; expected the folder of a bag' in complaint(tmp_path / 'none')
    assert 'contains no *.mcap and no *.db3' in complaint(tmp_path)
    (tmp_path / 'file').write_text('x')
    assert 'is a file; expected the folder' in complaint(tmp_path / 'file')
    (tmp_path / 'a.mcap').write_text('this is no bag at all')
    assert 'a.mcap is not an MCAP file' in complaint(tmp_path)
    (tmp_path / 'a.mcap').rename(tmp_path / 'a.db3')
    assert 'a.db3 is not an SQLite file' in complaint(tmp_path)
    assert (tmp_path / 'a.db3').read_text() == 'this is no bag at all'


def test_repair_needs_no_ros(tmp_path: Path) -> None:
    write(tmp_path / 'bag', 'mcap', made_messages(5))
    # nor the library mcap, which is a reference for tests only
    script = 'import sys; sys.modules["rclpy"] = sys.modules["mcap"] = None; '
    script += 'from quad_dynamics.cli import main; '
    script += f'sys.exit(main(["repair", {str(tmp_path / "bag")!r}, "--keep"]))'
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'bag_0.mcap is unfinished; 5 messages recovered' in done.stdout
    assert 'repaired; 5 messages of 3 topics, 0.000 s' in done.stdout
    assert (tmp_path / 'bag' / 'bag_0.mcap.bak').exists()
    assert len(read(tmp_path / 'bag')) == 5


def test_doctor_asks_for_no_library_of_bags(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, 'mcap', None)
    main(['doctor'])
    output = capsys.readouterr().out
    assert 'libraries: numpy' in output
    assert 'mcap' not in output


def _whole_mcap_messages(data: bytes) -> Messages:
    """The messages that are whole in an MCAP file whose chunks are not compressed, however it ends."""
    at, topics, found = 8, {}, []
    while at + 9 <= len(data):
        kind, length = struct.unpack_from('<BQ', data, at)
        if kind == 6:
            at += 9 + 40  # what it says of itself; its records follow
            continue
        content = data[at + 9 : at + 9 + length]
        if len(content) < length or kind == 15:
            break
        if kind == 4:
            number, _, size = struct.unpack_from('<HHI', content)
            topics[number] = content[8 : 8 + size].decode()
        if kind == 5:
            number, _, stamp, _ = struct.unpack_from('<HIQQ', content)
            found.append((topics[number], stamp, content[22:]))
        at += 9 + length
    return found


@pytest.mark.parametrize('seed', range(2), ids=lambda seed: f'cut{seed}')
def test_cut_mcap(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the file ends, every whole message is kept."""
    monkeypatch.setattr('quad_dynamics.bags.metadata.sync', lambda path: None)  # slow on a busy disk
    monkeypatch.setattr('quad_dynamics.bags.replacement.sync', lambda path: None)
    folder = tmp_path / 'bag'
    messages = made_messages(120, seed)
    write(folder, 'mcap', messages).close({})
    path = data_file(folder)
    whole = path.read_bytes()
    assert _whole_mcap_messages(whole) == messages
    rng = random.Random(seed)
    sizes = [0, 1, 8, 9, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(45)), len(whole) // 2]
    for i, size in enumerate(sizes):
        path.write_bytes(whole[:size])
        expected = _whole_mcap_messages(whole[:size])
        if not expected:
            with pytest.raises(ArgumentError, match=r'no messages could be recovered|is empty'):
                repair(folder)
            assert path.read_bytes() == whole[:size]
            continue
        result = repair(folder)
        assert result.found, size
        assert read(folder, types=i % 10 == 0) == expected, size
        assert result.contents.count == len(expected)
    assert not repair(folder).found


@pytest.mark.parametrize('seed', range(2), ids=lambda seed: f'cut{seed}')
def test_cut_sqlite(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the file ends, every whole message of a known topic is kept, and nothing is made up."""
    monkeypatch.setattr('quad_dynamics.bags.metadata.sync', lambda path: None)  # slow on a busy disk
    monkeypatch.setattr('quad_dynamics.bags.replacement.sync', lambda path: None)
    folder = tmp_path / 'bag'
    messages = made_messages(120, seed, longest=500)
    write(folder, 'sqlite3', messages).close({})
    path = data_file(folder)
    whole = path.read_bytes()
    topics = [name.encode() + KIND.encode() for name in ('/topic_0', '/topic_1', '/topic_2')]
    last_topic = max(whole.index(name) for name in topics) + 1000
    rng = random.Random(seed)
    most = 0
    sizes = [
        0,
        1,
        16,
        100,
        13_000,
        len(whole) - 1,
        *(rng.randrange(len(whole)) for _ in range(44)),
        len(whole) // 2,
    ]
    for i, size in enumerate(sizes):
        path.write_bytes(whole[:size])
        try:
            repair(folder)
        except ArgumentError as error:
            assert 'no messages could be recovered' in str(error)
            assert not [one for one in messages if one[2] in whole[:size]]
            continue
        found = read(folder, types=i % 5 == 0)
        assert set(found) <= set(messages), size
        if size > last_topic:
            # Its head stands before the message: what has all bytes of the message has those too.
            expected = [one for one in messages if one[2] in whole[:size]]
            assert [one for one in expected if one not in found] == [], size
            most = max(most, len(expected))
    assert most > 60
    assert not repair(folder).found


def test_cut_sqlite_with_long_messages(tmp_path: Path) -> None:
    """Messages that are longer than a page go over several."""
    folder, messages = tmp_path / 'bag', made_messages(12, longest=9000)
    write(folder, 'sqlite3', messages).close({})
    path = data_file(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 4])
    assert repair(folder).contents.count >= 7
    assert set(read(folder)) < set(messages)
    path.write_bytes(whole)
    with sqlite3.connect(path) as connection:  # pages are there, but the way to them is not
        [(root,)] = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        ).fetchall()
    path.write_bytes(whole[: 4096 * (root - 1)] + bytes(4096) + whole[4096 * root :])
    repair(folder)
    assert read(folder) == messages


def test_log_of_sqlite_is_taken(tmp_path: Path) -> None:
    """As after a kill: the file, and its log beside it; the log cut anywhere."""
    messages = made_messages(60)
    bag = write(tmp_path / 'bag', 'sqlite3', messages)
    rng = random.Random(1)
    log = (tmp_path / 'bag' / 'bag_0.db3-wal').read_bytes()
    for size in [len(log), *(rng.randrange(len(log)) for _ in range(20))]:
        copy = tmp_path / f'copy_{size}'
        shutil.copytree(tmp_path / 'bag', copy)
        (copy / 'bag_0.db3-shm').unlink()
        (copy / 'bag_0.db3-wal').write_bytes(log[:size])
        try:
            repair(copy)
        except ArgumentError as error:
            assert 'no messages could be recovered' in str(error)
            assert size < len(log) // 3
            continue
        found = read(copy)
        assert found == messages[: len(found)]
        # A transaction is a message here: about two pages each.
        assert len(found) >= len(messages) * size // len(log) - 20
        assert {one.name for one in copy.iterdir()} == {'bag_0.db3', 'metadata.yaml'}
    assert len(read(tmp_path / f'copy_{len(log)}')) == 60
    bag.close({})


@pytest.mark.parametrize('compression', [None, CompressionMode.STORAGE], ids=['plain', 'zstd'])
def test_cut_mcap_of_others(compression: CompressionMode | None, tmp_path: Path) -> None:
    """Files with chunks: whole chunks are kept, and what can be read of the last one."""
    folder, messages = tmp_path / 'bag', made_messages(2500, longest=1500)
    writer = Writer(folder, version=8, storage_plugin=StoragePlugin.MCAP)
    if compression is not None:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        names = sorted({name for name, _, _ in messages})
        connections = {name: writer.add_connection(name, KIND, typestore=STORE) for name in names}
        for name, stamp, data in messages:
            writer.write(connections[name], stamp, data)
    path = data_file(folder)
    whole = path.read_bytes()
    assert not repair(folder).found
    for part in (0.2, 0.5, 0.7, 0.95):
        path.write_bytes(whole[: int(len(whole) * part)])
        result = repair(folder)
        found = read(folder)
        assert found == messages[: len(found)]
        # A chunk has a third of the messages; of a compressed one whole blocks of 128 KB can be read.
        assert len(found) > len(messages) * (part - 0.06)
        assert result.contents.count == len(found)
        assert not repair(folder).found


def test_unordered_mcap_gets_an_index(tmp_path: Path) -> None:
    """Readers sort only what has one."""
    messages = made_messages(40)
    mixed = [*messages[20:], *messages[:20]]
    write(tmp_path / 'bag', 'mcap', mixed)
    repair(tmp_path / 'bag')
    assert read(tmp_path / 'bag') == messages


@pytest.mark.parametrize('journal', ['wal', 'delete'])
@pytest.mark.parametrize('writes', [True, False], ids=['in a transaction', 'between two'])
def test_a_bag_that_is_being_written_is_refused(
    journal: str, writes: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, messages = tmp_path / 'bag', made_messages(20)
    write(folder, 'sqlite3', messages).close({})
    path = data_file(folder)
    (folder / 'metadata.yaml').unlink()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f'PRAGMA journal_mode={journal}')
    other.execute('SELECT count(*) FROM messages').fetchall()
    if writes:
        other.execute('BEGIN IMMEDIATE')
        other.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES (1, 0, x'00')")
    if writes or journal == 'wal':  # else nobody can tell, and nothing is rebuilt
        before, number = path.read_bytes(), path.stat().st_ino
        assert main(['repair', str(folder)]) == 1
        error = capsys.readouterr().err
        assert f'{path}: database is locked: it is still in use' in error
        assert (path.read_bytes(), path.stat().st_ino) == (before, number)
        assert not (folder / 'metadata.yaml').exists()
    if writes:
        other.execute('ROLLBACK')
    other.close()
    repair(folder)
    assert read(folder) == messages


def test_damage_inside(tmp_path: Path) -> None:
    """The head of a message is lost, but the index knows where it was and when."""
    folder, messages = tmp_path / 'bag', made_messages(40)
    write(folder, 'mcap', messages).close({})
    whole = data_file(folder).read_bytes()
    at = whole.index(messages[30][2]) - 31
    damaged = whole[:at] + b'\xff' * 31 + whole[at + 31 :]
    data_file(folder).write_bytes(damaged)
    result = repair(folder)
    [line] = result.found
    assert line.startswith(
        'bag_0.mcap has 1 damaged chunk (byte 42); 40 messages recovered, 40 of them from damaged'
    )
    assert line.endswith('; the old file is kept as bag_0.mcap.bak')
    assert read(folder) == messages
    assert (folder / 'bag_0.mcap.bak').read_bytes() == damaged
    custom = yaml.safe_load((folder / 'metadata.yaml').read_text())['rosbag2_bagfile_information'][
        'custom_data'
    ]
    assert custom['suspect_messages'] == '40'
    assert custom['suspect_spans'] == f'{messages[0][1]}-{messages[-1][1]}'
    assert not repair(folder).found


def test_interrupted_repair_leaves_the_bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / 'bag'
    write(folder, 'mcap', made_messages(20))
    before = data_file(folder).read_bytes()

    def fail(*_: Any) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('quad_dynamics.bags.mcap_repair.mcap.ending', fail)
    with pytest.raises(OSError, match='No space'):
        repair(folder)
    assert data_file(folder).read_bytes() == before
    assert {one.name for one in folder.iterdir()} == {'bag_0.mcap', 'metadata.yaml'}


# ---------------------------------------------------------------- parts


def test_sequence_numbers() -> None:
    def lost(publishers: int, numbers: list[int]) -> int:
        watch = SequenceNumbers()
        watch.publishers = publishers
        for number in numbers:
            watch.see(number)
        return watch.lost

    assert lost(1, [5, 6, 7, 8]) == 0
    assert lost(1, [5, 6, 9, 10]) == 2
    assert lost(1, [5, 6, 1, 2, 3]) == 0  # a new publisher
    assert lost(1, [500, 501, 7, 8, 10]) == 1  # one that came back, and was heard from its seventh on
    assert lost(2, [1, 1, 2, 2, 3, 3]) == 0
    assert lost(2, [10, 11, 100, 12, 101, 14, 103]) == 2
    watch = SequenceNumbers()
    watch.see(None)
    assert watch.lost == 0


def stamped(name: str, offset: int | None, **more: bool) -> StampedTopic:
    return StampedTopic(Topic(name, ''), offset, **more)


def header_message(stamp: int, rest: bytes = b'') -> bytes:
    return b'\x00\x01\x00\x00' + struct.pack('<iI', *divmod(stamp, 10**9)) + rest


@pytest.mark.parametrize('seed', range(3), ids=lambda seed: f'arrival{seed}')
def test_order_does_not_depend_on_arrival(seed: int) -> None:
    rng = random.Random(seed)
    a, b = stamped('/a', 4), stamped('/b', 4)
    clock = stamped('/clock', 4, is_clock=True)
    text = stamped('/text', None, latched=True)
    order = StampOrder(window=10**9)
    arrivals = [
        (k * 2_000_000 + rng.uniform(0, 5e8), k, source) for k in range(2000) for source in (a, b, clock)
    ]
    arrivals += [(rng.uniform(0, 1e8), -1, text)]
    arrivals.sort(key=lambda one: one[0])
    # A topic's own messages come one after the other.
    counts = {id(source): iter(range(2000)) for source in (a, b, clock)}
    out = []
    for _, _, source in arrivals:
        if source is text:
            order.add(text, b'\x00\x01\x00\x00text')
        else:
            stamp = next(counts[id(source)]) * 2_000_000
            for _ in range(rng.randrange(1, 3)):  # some repeat themselves
                order.add(source, header_message(stamp))
        out += order.release()
    out += order.release(everything=True)
    assert order.late == 0
    assert [source.topic.name for _, source, _ in out[:4]] == ['/text', '/a', '/b', '/clock']
    assert len(out) == 6001
    assert [stamp for stamp, _, _ in out[1:]] == [k * 2_000_000 for k in range(2000) for _ in range(3)]


def test_duration_and_late_messages() -> None:
    order, a, b = StampOrder(window=10, duration=50), stamped('/a', 4), stamped('/b', 4)
    for stamp in range(100, 165, 5):
        order.add(a, header_message(stamp))
    assert order.is_over
    out = order.release()
    order.add(b, header_message(101))
    out += order.release(everything=True)
    assert [stamp for stamp, _, _ in out] == [*range(100, 150, 5), 145]
    assert order.late == 1


def test_stamps() -> None:
    assert stamp_of(header_message(5_000_000_007), 4) == 5_000_000_007
    assert stamp_of(b'\x00\x00\x00\x00' + struct.pack('>iI', 5, 7), 4) == 5_000_000_007
    markers = b'\x00\x01\x00\x00' + struct.pack('<IiI', 1, 5, 7)
    assert stamp_of(markers, 8) == 5_000_000_007
    assert stamp_of(b'\x00\x01\x00\x00' + struct.pack('<IiI', 0, 5, 7), 8) is None
    assert stamp_of(b'\x00\x01\x00\x00', 4) is None


def test_definitions_from_classes() -> None:
    """Types that are not ROS's own are described from the fields of their classes."""
    fields = {
        'my_msgs/msg/Leg': {
            'header': 'std_msgs/Header',
            'angles': 'sequence<double, 3>',
            'gains': 'float[4]',
            'on': 'boolean',
            'names': 'sequence<string<10>>',
        },
        'std_msgs/msg/Header': {'stamp': 'builtin_interfaces/Time', 'frame_id': 'string'},
        'builtin_interfaces/msg/Time': {'sec': 'int32', 'nanosec': 'uint32'},
    }
    definition, digest = define('my_msgs/msg/Leg', fields.__getitem__)
    assert digest.startswith('RIHS01_')
    for line in ('float64[<=3] angles', 'float32[4] gains', 'bool on', 'MSG: std_msgs/Header'):
        assert line in definition
    assert spelled('sequence<uint8>') == 'uint8[]'
    # The digest of ROS itself, as its wheels of Jazzy say it.
    known = define('std_msgs/msg/Header', fields.__getitem__)[1]
    assert known == 'RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01'


def test_long_recordings_need_no_memory(tmp_path: Path) -> None:
    """Nothing is kept for each message."""
    bag = BagWriter(tmp_path / 'bag', 'mcap')
    number = bag.add_topic(topic('/a'))
    batch = [(1, number, 1, 0, bytes(100))] * 1000

    def kilobytes() -> int:
        return int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGESIZE') // 1024

    bag.write(batch)
    before = kilobytes()
    for _ in range(100):
        bag.write(batch)
    assert kilobytes() - before < 3000
    bag.close({})
    assert np.isclose(bag.contents().count, 101_000)
