# SPDX-License-Identifier: Apache-2.0
"""Damaged bags of several writers: `repair` never makes one worse, and tells what may be wrong."""

from __future__ import annotations

import random
from pathlib import Path

import damaged_bags as bags
import pytest
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer

from quad_dynamics.bags import mcap_storage
from quad_dynamics.bags.repair import repair
from quad_dynamics.bags.topics import Topic
from quad_dynamics.bags.writers import BagWriter
from quad_dynamics.cli import main
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.yaml_numbers import load_yaml


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is slow on a busy disk."""
    for module in ('metadata', 'replacement'):
        monkeypatch.setattr(f'quad_dynamics.bags.{module}.sync', lambda path: None)


@pytest.mark.parametrize('seed', range(2), ids=lambda seed: f'damage{seed}')
def test_repair_never_makes_it_worse(seed: int, tmp_path: Path) -> None:
    """A part of `python test/helpers/damaged_bags.py 500`, whose figures are in docs/bags.md."""
    outcomes = bags.run(36, 100 + seed, tmp_path, size=150)
    failures = {
        (name, one.how): one.failures for name, each in outcomes.items() for one in each if one.failures
    }
    assert failures == {}
    everything = [one for each in outcomes.values() for one in each]
    assert sum(one.after for one in everything) > 1.2 * sum(one.before for one in everything)


def damaged(
    tmp_path: Path, writer: str, at: float, size: int, count: int = 200
) -> tuple[Path, bags.Messages]:
    """A bag with so many random bytes at a place (0 to 1) of its data file."""
    messages = bags.made_messages(count)
    bags.WRITERS[writer](tmp_path / 'bag', messages)
    path = bags.data_file(tmp_path / 'bag')
    data = bytearray(path.read_bytes())
    place = round(at * len(data))
    data[place : place + size] = random.Random(0).randbytes(size)
    path.write_bytes(data)
    return tmp_path / 'bag', messages


def test_four_bytes_in_the_first_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All messages are saved, those of this chunk are announced, and the others are as they were."""
    monkeypatch.setattr(mcap_storage, 'CHUNK_SIZE', 16384)
    folder, messages = damaged(tmp_path, 'mcap, ours', 0.05, 4)
    assert main(['repair', str(folder)]) == 0
    output = capsys.readouterr().out
    assert 'has 1 damaged chunk' in output
    assert '200 messages recovered' in output
    found = bags.readings(bags.data_file(folder))
    assert {name: len(one) for name, one in found.items()} == dict.fromkeys(found, 200)
    suspect = repair_count(folder)
    assert 0 < suspect < 60
    assert [one for one in found['mcap'] if one not in messages] != []
    assert found['mcap'][suspect:] == messages[suspect:]


def repair_count(folder: Path) -> int:
    """How many messages metadata.yaml calls suspect."""
    content = yaml.safe_load((folder / 'metadata.yaml').read_text())
    return int(content['rosbag2_bagfile_information']['custom_data']['suspect_messages'])


@pytest.mark.parametrize('writer', ['mcap, ours', 'mcap, mcap library'])
def test_the_index_finds_chunks_without_a_head(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcap_storage, 'CHUNK_SIZE', 16384)
    messages = bags.made_messages(200)
    bags.WRITERS[writer](tmp_path / 'bag', messages)
    path = bags.data_file(tmp_path / 'bag')
    data = bytearray(path.read_bytes())
    second = data.index(b'\x06', data.index(messages[25][2]))
    while int.from_bytes(data[second + 1 : second + 9], 'little') not in range(10000, 30000):
        second = data.index(b'\x06', second + 1)
    data[second : second + 49] = b'\xff' * 49
    path.write_bytes(data)
    repair(tmp_path / 'bag')
    assert bags.readings(path)['mcap'] == messages


@pytest.mark.parametrize('writer', ['mcap, ours', 'db3, ours'])
def test_damaged_values_are_announced(writer: str, tmp_path: Path) -> None:
    """Nothing but the value of one message is wrong, which neither framing nor SQLite notices."""
    messages = bags.made_messages(700)
    bags.WRITERS[writer](tmp_path / 'bag', messages)
    path = bags.data_file(tmp_path / 'bag')
    data = path.read_bytes()
    at = data.index(messages[301][2]) + 40
    path.write_bytes(data[:at] + b'!!!!' + data[at + 4 :])
    result = repair(tmp_path / 'bag')
    assert len(result.found) == 1
    assert 200 < result.suspect < 700 + ('mcap' in writer)
    assert messages[301][1] in result.spans
    assert result.contents.count == 700
    assert not repair(tmp_path / 'bag').found


def test_nothing_saved_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is left as it is, and the exit code says so."""
    for name, writer in (('a', 'mcap, ours'), ('b', 'mcap, mcap library, zstd'), ('c', 'db3, rosbags')):
        bags.WRITERS[writer](tmp_path / name, bags.made_messages(30))
        path = bags.data_file(tmp_path / name)
        content = path.read_bytes()[:100] + random.Random(0).randbytes(20000)
        path.write_bytes(content)
        assert main(['repair', str(tmp_path / name)]) == 1
        assert 'no messages could be recovered, the bag is unchanged' in capsys.readouterr().err
        assert path.read_bytes() == content


def test_one_file_of_two_is_lost(tmp_path: Path) -> None:
    """The bag goes on without it."""
    bags.WRITERS['mcap, mcap library'](tmp_path / 'bag', bags.made_messages(30))
    (tmp_path / 'bag' / 'bag_1.mcap').write_bytes(b'\x89MCAP0\r\n' + bytes(100))
    result = repair(tmp_path / 'bag')
    assert any('is no longer part of the bag' in line for line in result.found)
    assert result.contents.count == 30
    assert not repair(tmp_path / 'bag').found


def test_a_bag_that_is_being_recorded_is_left_alone(tmp_path: Path) -> None:
    """Its recorder would go on writing into the file that was replaced."""
    bag = BagWriter(tmp_path / 'bag', 'mcap')
    number = bag.add_topic(Topic('/topic_0', bags.KIND, '', bags.DEFINITION, bags.DIGEST))
    bag.write([(1, number, 1, 1, bags.made_messages(1)[0][2])])
    before = bags.data_file(tmp_path / 'bag').read_bytes()
    with pytest.raises(ArgumentError, match=r'bag_0\.mcap is still being written; expected'):
        repair(tmp_path / 'bag')
    assert bags.data_file(tmp_path / 'bag').read_bytes() == before
    bag.close({})
    assert not repair(tmp_path / 'bag').found


def test_a_damaged_log_is_not_thrown_away(tmp_path: Path) -> None:
    """SQLite ignores all of a log behind the first damaged frame, and removes it."""
    messages = bags.made_messages(200)
    bag = BagWriter(tmp_path / 'bag', 'sqlite3')
    for name in ('/topic_0', '/topic_1', '/topic_2'):
        bag.add_topic(Topic(name, bags.KIND, '', bags.DEFINITION, bags.DIGEST))
    for name, stamp, data in messages:
        bag.write([(stamp, int(name[-1]) + 1, stamp, 0, data)])
    log = tmp_path / 'bag' / 'bag_0.db3-wal'
    content = bytearray(log.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 8] = b'\xff' * 8
    for part in ('', '-shm'):
        source = tmp_path / 'bag' / f'bag_0.db3{part}'
        (tmp_path / f'kept{part}').write_bytes(source.read_bytes())
    bag.close({})
    (tmp_path / 'bag' / 'bag_0.db3').write_bytes((tmp_path / 'kept').read_bytes())
    log.write_bytes(content)
    result = repair(tmp_path / 'bag')
    assert result.contents.count >= 198
    assert (tmp_path / 'bag' / 'bag_0.db3.bak-wal').exists()


HOSTILE = {
    'brackets': '[' * 5000,
    'braces': '{a: ' * 5000,
    'dashes': '- ' * 5000,
    'indented': '\n'.join(' ' * i + 'a:' for i in range(3000)),
    'bomb': 'a: &a [x,x]\n'
    + '\n'.join(f'{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)},*{chr(97 + i)}]' for i in range(20)),
    'no date': 'rosbag2_bagfile_information: {version: 2024-99-99}',
    'other types': 'rosbag2_bagfile_information: {custom_data: [1], topics_with_message_count: {a: 1}}',
    'number': '7',
    'not utf-8': '\udcff',
}


@pytest.mark.parametrize('name', HOSTILE)
def test_hostile_metadata(name: str, tmp_path: Path) -> None:
    """It is written anew by `repair`."""
    messages = bags.made_messages(30)
    bags.WRITERS['mcap, ours'](tmp_path / 'bag', messages)
    path = tmp_path / 'bag' / 'metadata.yaml'
    path.write_bytes(HOSTILE[name].encode(errors='surrogateescape'))
    result = repair(tmp_path / 'bag')
    assert result.found[0].startswith('metadata.yaml ')
    assert bags.readings(bags.data_file(tmp_path / 'bag'))['rosbags'] == messages


def test_messages_that_are_compressed_one_by_one(tmp_path: Path) -> None:
    """As rosbag2 does with compression_mode `message`: they stay compressed, and metadata.yaml says so."""
    messages, folder = bags.made_messages(120), tmp_path / 'bag'
    writer = Writer(folder, version=8, storage_plugin=StoragePlugin.SQLITE3)
    writer.set_compression(CompressionMode.MESSAGE, CompressionFormat.ZSTD)
    with writer:
        connections = {
            name: writer.add_connection(name, bags.KIND, typestore=bags.STORE) for name, _, _ in messages[:3]
        }
        for name, stamp, data in messages:
            writer.write(connections[name], stamp, data)
    path = bags.data_file(folder)
    path.write_bytes(path.read_bytes()[: int(0.8 * path.stat().st_size)])
    assert repair(folder).contents.count > 60
    with Reader(folder) as reader:
        found = [(connection.topic, stamp, bytes(raw)) for connection, stamp, raw in reader.messages()]
    assert len(found) > 60
    assert set(found) <= set(messages)
    assert not repair(folder).found


@pytest.mark.parametrize(
    'text', ['[' * 5000, 'a: 2024-99-99', 'a: !!float x', '{[1]: 2}', 'a: !!binary "%"', '\0']
)
def test_hostile_yaml_of_parameters(text: str) -> None:
    """Whatever is wrong with it, it is told as an error of YAML, or the text is all right."""
    try:
        load_yaml(text)
    except yaml.YAMLError as error:
        assert str(error)


def test_bags_compressed_as_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / 'bag_0.db3.zstd').write_bytes(b'')
    with pytest.raises(ArgumentError, match=r'bag_0.db3.zstd is compressed as a whole; expected'):
        repair(tmp_path)
