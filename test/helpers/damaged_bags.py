# SPDX-License-Identifier: Apache-2.0
"""Bags of several writers, damaged at random: what readers find in them before and after `repair`.

As a program: `python test/helpers/damaged_bags.py 500 [seed]` prints a table.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcap.reader import NonSeekingReader, make_reader
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from quad_dynamics.bags import mcap_storage
from quad_dynamics.bags.metadata import custom_data, read_metadata
from quad_dynamics.bags.repair import repair
from quad_dynamics.bags.spans import Spans
from quad_dynamics.bags.topics import Topic
from quad_dynamics.bags.writers import BagWriter
from quad_dynamics.errors import ArgumentError

STORE = get_typestore(Stores.ROS2_JAZZY)
KIND = 'std_msgs/msg/String'
DEFINITION, _ = STORE.generate_msgdef(KIND, ros_version=2)
DIGEST = STORE.hash_rihs01(KIND)
Messages = list[tuple[str, int, bytes]]


def made_messages(count: int, seed: int = 0) -> Messages:
    """Messages of three topics, no two alike; those of two topics are all of one length."""
    rng = random.Random(seed)
    made = []
    for i in range(count):
        size = (100, 240, rng.randrange(10, 400))[i % 3]
        text = rng.randbytes(size).hex()
        data = bytes(STORE.serialize_cdr(STORE.types[KIND](data=text), KIND))
        made.append((f'/topic_{i % 3}', 1_700_000_000 * 10**9 + i * 1_000_000, data))
    return made


# ---------------------------------------------------------------- writers


def _ours(folder: Path, messages: Messages, storage: str) -> None:
    bag = BagWriter(folder, storage)
    numbers: dict[str, int] = {}
    for i, (name, stamp, data) in enumerate(messages):
        if name not in numbers:
            numbers[name] = bag.add_topic(Topic(name, KIND, '', DEFINITION, DIGEST))
        bag.write([(stamp, numbers[name], stamp, i, data)])
    bag.close({})


def _rosbags(folder: Path, messages: Messages, plugin: StoragePlugin, zstd: bool = False) -> None:
    writer = Writer(folder, version=8, storage_plugin=plugin)
    if zstd:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        names = sorted({name for name, _, _ in messages})
        connections = {name: writer.add_connection(name, KIND, typestore=STORE) for name in names}
        for name, stamp, data in messages:
            writer.write(connections[name], stamp, data)


def _mcap_library(
    folder: Path, messages: Messages, compression: CompressionType, chunks: bool = True
) -> None:
    """As the storage plugin of rosbag2 writes it, without metadata.yaml."""
    folder.mkdir()
    with (folder / 'bag_0.mcap').open('wb') as file:
        writer = McapWriter(file, chunk_size=16384, compression=compression, use_chunking=chunks)
        writer.start('ros2', 'libmcap')
        schema = writer.register_schema(KIND, 'ros2msg', DEFINITION.encode())
        channels: dict[str, int] = {}
        for i, (name, stamp, data) in enumerate(messages):
            if name not in channels:
                channels[name] = writer.register_channel(name, 'cdr', schema, {'offered_qos_profiles': ''})
            writer.add_message(channels[name], stamp, data, stamp, i)
        writer.finish()  # type: ignore[no-untyped-call]


WRITERS: dict[str, Callable[[Path, Messages], None]] = {
    'mcap, ours': lambda folder, messages: _ours(folder, messages, 'mcap'),
    'mcap, mcap library': lambda folder, messages: _mcap_library(folder, messages, CompressionType.NONE),
    'mcap, mcap library, zstd': lambda folder, messages: _mcap_library(
        folder, messages, CompressionType.ZSTD
    ),
    'mcap, mcap library, lz4': lambda folder, messages: _mcap_library(folder, messages, CompressionType.LZ4),
    'mcap, no chunks': lambda folder, messages: _mcap_library(folder, messages, CompressionType.NONE, False),
    'mcap, rosbags': lambda folder, messages: _rosbags(folder, messages, StoragePlugin.MCAP),
    'mcap, rosbags, zstd': lambda folder, messages: _rosbags(folder, messages, StoragePlugin.MCAP, True),
    'db3, ours': lambda folder, messages: _ours(folder, messages, 'sqlite3'),
    'db3, rosbags': lambda folder, messages: _rosbags(folder, messages, StoragePlugin.SQLITE3),
}


def data_file(folder: Path) -> Path:
    """The data file of a bag."""
    [path] = [one for one in folder.iterdir() if one.suffix in ('.mcap', '.db3')]
    return path


# ---------------------------------------------------------------- damage


def damage(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Damage a file: how, and what is left of it."""
    made = bytearray(data)
    how = rng.choice(['bytes', 'four bytes', 'zeros', 'random run', 'cut', 'cut and bytes', 'start'])
    if how in ('cut', 'cut and bytes'):
        del made[rng.randrange(len(made)) :]
    if how in ('bytes', 'cut and bytes'):
        for _ in range(rng.randrange(1, 30)):
            if made:
                made[rng.randrange(len(made))] = rng.randrange(256)
    elif how in ('four bytes', 'zeros', 'random run'):
        size = 4 if how == 'four bytes' else rng.randrange(16, 6000)
        at = rng.randrange(len(made))
        size = min(size, len(made) - at)
        made[at : at + size] = bytes(size) if how == 'zeros' else rng.randbytes(size)
    elif how == 'start':
        at = rng.randrange(200)
        made[at : at + 4] = rng.randbytes(4)
    return how, bytes(made)


# ---------------------------------------------------------------- independent readers


def _until_error(messages: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from messages
    except Exception:  # a reader may fail in any way
        return


def _by_rosbags(path: Path) -> Iterator[tuple[str, int, bytes]]:
    with Reader(path) as reader:
        for connection, stamp, raw in reader.messages():
            yield connection.topic, stamp, bytes(raw)


def _by_mcap(path: Path, streaming: bool) -> Iterator[tuple[str, int, bytes]]:
    with path.open('rb') as file:
        reader = NonSeekingReader(file) if streaming else make_reader(file, validate_crcs=True)
        for _, channel, message in reader.iter_messages(log_time_order=not streaming):
            yield channel.topic, message.log_time, message.data


def _by_sqlite(path: Path) -> Iterator[tuple[str, int, bytes]]:
    connection = sqlite3.connect(f'{path.as_uri()}?mode=ro', uri=True)
    try:
        query = 'SELECT name, timestamp, data FROM messages JOIN topics ON topic_id = topics.id'
        yield from connection.execute(query)
    finally:
        connection.close()


def readings(path: Path) -> dict[str, Messages]:
    """What independent readers find in a file until they fail."""
    found = {'rosbags': list(_until_error(_by_rosbags(path)))}
    if path.suffix == '.mcap':
        found['mcap'] = list(_until_error(_by_mcap(path, streaming=False)))
        found['mcap, streaming'] = list(_until_error(_by_mcap(path, streaming=True)))
    else:
        found['sqlite3'] = list(_until_error(_by_sqlite(path)))
    return found


# ---------------------------------------------------------------- one bag


@dataclass
class Outcome:
    """What came of one damaged bag.

    Attributes:
        how: it was damaged.
        failures: what must not be.
        before: most messages that a reader found before.
        after: messages in it afterwards.
        total: messages in the bag as it was written.
        wrong: messages afterwards that were never written; all announced, if there are no failures.
        unseen: how many of these are announced only by a note that messages have no CRC.
    """

    how: str
    before: int
    after: int
    total: int
    wrong: int = 0
    unseen: int = 0
    failures: list[str] = field(default_factory=list)


def attempt(good: Path, messages: Messages, folder: Path, rng: random.Random) -> Outcome:
    """Damage a copy of a bag, repair it, and compare.

    Args:
        good: the bag.
        messages: in it.
        folder: where the copy goes.
        rng: decides about the damage.
    """
    shutil.copytree(good, folder)
    path = data_file(folder)
    how, damaged = damage(path.read_bytes(), rng)
    path.write_bytes(damaged)
    before = readings(path)
    most = max(len(found) for found in before.values())
    outcome = Outcome(how, most, 0, len(messages))
    path.write_bytes(damaged)  # SQLite may have changed it
    try:
        result = repair(folder)
    except ArgumentError as error:
        if most:
            outcome.failures.append(f'{most} messages were readable, but: {error}')
        if path.read_bytes() != damaged:
            outcome.failures.append('refused, but changed')
        return outcome
    after = readings(data_file(folder))
    outcome.after = result.contents.count
    for name, found in after.items():
        if len(found) < max(len(before[name]), result.contents.count):
            outcome.failures.append(f'{name}: {len(before[name])} before, {len(found)} after')
    written = set(messages)
    wrong = [one for one in after['rosbags'] if one not in written]
    outcome.wrong = len(wrong)
    spans = Spans(custom_data(read_metadata(folder)).get('suspect_spans', ''))
    hidden = [one for one in wrong if one[1] not in spans]
    outcome.unseen = len(hidden)
    if hidden and not any('no CRC' in note for note in result.notes):
        outcome.failures.append(f'{len(hidden)} wrong messages are not announced: {hidden[0][:2]}')
    again = repair(folder)
    if again.found:
        outcome.failures.append(f'repaired twice: {again.found}')
    return outcome


def run(count: int, seed: int, folder: Path, size: int = 400) -> dict[str, list[Outcome]]:
    """Damage and repair so many bags of all writers in turn."""
    mcap_storage.CHUNK_SIZE, before = 16384, mcap_storage.CHUNK_SIZE
    rng, messages = random.Random(seed), made_messages(size, seed)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in WRITERS}
    try:
        for i, make in enumerate(WRITERS.values()):
            make(folder / f'good_{i}', messages)
        for k in range(count):
            i = k % len(WRITERS)
            copy = folder / f'bag_{k}'
            outcome = attempt(folder / f'good_{i}', messages, copy, rng)
            outcomes[list(WRITERS)[i]].append(outcome)
            if not outcome.failures:
                shutil.rmtree(copy)
    finally:
        mcap_storage.CHUNK_SIZE = before
    return outcomes


def main() -> int:
    """Print what came of many bags."""
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    folder = Path(tempfile.mkdtemp())
    outcomes = run(count, seed, folder)
    print('| writer | bags | readable before | after | nothing saved | suspect | no CRC | failures |')
    print('|---|---|---|---|---|---|---|---|')
    for name, each in outcomes.items():
        total = sum(one.total for one in each)
        before, after, wrong, unseen = (
            sum(getattr(one, key) for one in each) for key in ('before', 'after', 'wrong', 'unseen')
        )
        cells = [name, len(each), f'{100 * before / total:.0f} %', f'{100 * after / total:.0f} %']
        cells += [sum(one.after == 0 for one in each), wrong - unseen, unseen]
        cells += [sum(bool(one.failures) for one in each)]
        print('|', ' | '.join(map(str, cells)), '|')
    reasons = Counter(
        (name, one.how, text) for name, each in outcomes.items() for one in each for text in one.failures
    )
    for reason in reasons:
        print(*reason, sep=': ')
    print(f'bags that failed are in {folder}')
    return bool(reasons)


if __name__ == '__main__':
    sys.exit(main())
