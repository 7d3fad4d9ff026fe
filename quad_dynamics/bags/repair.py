# SPDX-License-Identifier: Apache-2.0
"""Makes bags good again: data files that lack their end, and metadata.yaml. Needs no ROS."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quad_dynamics.bags import mcap_repair, mcap_scan, sqlite_pages
from quad_dynamics.bags import metadata as bag_metadata
from quad_dynamics.bags.mcap_records import Channel
from quad_dynamics.bags.metadata import REPAIRED, STATE, Contents
from quad_dynamics.bags.sqlite_storage import SqliteStorage, settle
from quad_dynamics.bags.topics import Topic, known_definition
from quad_dynamics.errors import ArgumentError

_BATCH = 1000  # messages in one transaction
_PATIENCE = 1.0  # with somebody else who has locked a file [s]


@dataclass
class Repair:
    """What came of a repair.

    Attributes:
        found: what was wrong, one line each; nothing: the bag was good.
        contents: what the bag holds now.
    """

    found: list[str] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)


def repair(folder: Path, keep: bool = False) -> Repair:
    """Make a bag good again.

    Args:
        folder: of the bag.
        keep: keep damaged files, with '.bak' at the end of their names.

    Raises:
        ArgumentError: there is no bag, nothing can be read from it, or somebody still writes it.
    """
    result = Repair()
    files = bag_metadata.data_files(folder)
    storage = bag_metadata.storage_of(files[0])
    repair_file = {'mcap': _repair_mcap, 'sqlite3': _repair_sqlite}[storage]
    held: dict[str, Contents] = {}
    for path in files:
        held[path.name] = repair_file(path, keep, result.found)
    result.contents = bag_metadata.joined(list(held.values()))
    _repair_metadata(folder, storage, held, result)
    for left in folder.glob('.*.new'):  # of a repair or a recorder that was killed
        left.unlink()
    if result.found:
        bag_metadata.sync(folder / bag_metadata.NAME)
        bag_metadata.sync(folder)
    return result


def _repair_metadata(folder: Path, storage: str, held: dict[str, Contents], result: Repair) -> None:
    """Write metadata.yaml anew, if it does not say what the files hold."""
    old = bag_metadata.read_metadata(folder)
    if old is not None and _agrees(old, held, result.contents):
        if not result.found:
            return
    elif not (folder / bag_metadata.NAME).exists():
        result.found.append(f'{bag_metadata.NAME} is missing')
    elif old is None:
        result.found.append(f'{bag_metadata.NAME} cannot be read')
    else:
        result.found.append(f'{bag_metadata.NAME} does not say what the bag holds')
    given = (old or {}).get('custom_data')
    custom = {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}
    if custom.get(STATE) == bag_metadata.RECORDING or result.found:
        custom[STATE] = REPAIRED
    bag_metadata.write_metadata(folder, bag_metadata.metadata(storage, held, custom))


def _agrees(old: dict[str, object], held: dict[str, Contents], whole: Contents) -> bool:
    """Whether metadata.yaml says what the files hold."""
    custom = old.get('custom_data')
    if isinstance(custom, dict) and custom.get(STATE) == bag_metadata.RECORDING:
        return False
    topics = old.get('topics_with_message_count')
    paths = old.get('relative_file_paths')
    if not isinstance(topics, list) or not isinstance(paths, list) or old.get('compression_mode'):
        return bool(old.get('compression_mode'))
    try:
        counts = sorted((one['topic_metadata']['name'], one['message_count']) for one in topics)
    except (KeyError, TypeError):
        return False
    named = [Path(str(path)).name for path in paths]
    found = sorted((topic.name, count) for topic, count in whole.topics)
    silent = [(name, count) for name, count in counts if not count and (name, 0) not in found]
    return named == list(held) and found == [one for one in counts if one not in silent]


@contextlib.contextmanager
def _replacement(path: Path, keep: bool) -> Iterator[Path]:
    """A path beside a file; what is written there takes its place when it is on the disk."""
    beside = path.with_name(f'.{path.name}.new')
    beside.unlink(missing_ok=True)
    try:
        yield beside
        bag_metadata.sync(beside)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if keep:
        backup = path.with_name(f'{path.name}.bak')
        backup.unlink(missing_ok=True)
        backup.hardlink_to(path)
    beside.replace(path)


# ---------------------------------------------------------------- mcap


def _repair_mcap(path: Path, keep: bool, found: list[str]) -> Contents:
    scanned = mcap_scan.scan(path)
    if not scanned.complete:
        lost = scanned.size - scanned.end
        saved = f'{scanned.statistics.total} messages saved'
        if scanned.salvaged:
            saved += f', {len(scanned.salvaged)} of them from a chunk that is not whole'
        elif lost and not scanned.has_end:
            saved += f', {lost} bytes of a message that is not whole left out'
        if scanned.has_end:
            # There may be more behind the damage, for who knows how to get it.
            keep = True
            saved += f'; the old file is kept as {path.name}.bak'
        what = f'is damaged at byte {scanned.end}' if scanned.has_end else 'has no end'
        found.append(f'{path.name} {what}; {saved}')
        with _replacement(path, keep) as beside, beside.open('wb') as target:
            mcap_repair.complete(path, scanned, target)
    topics = [
        (_mcap_topic(scanned, channel), scanned.statistics.counts.get(number, 0))
        for number, channel in scanned.channels.items()
    ]
    return Contents(topics, scanned.statistics.first, scanned.statistics.last)


def _mcap_topic(scanned: mcap_scan.Scan, channel: Channel) -> Topic:
    schema = scanned.schemas.get(channel.schema)
    return Topic(
        channel.topic,
        '' if schema is None else schema.name,
        channel.metadata.get('offered_qos_profiles', ''),
        digest=channel.metadata.get('topic_type_hash', ''),
        serialization=channel.encoding,
    )


# ---------------------------------------------------------------- sqlite3


def _repair_sqlite(path: Path, keep: bool, found: list[str]) -> Contents:
    log = path.with_name(f'{path.name}-wal')
    had_log = log.exists() and log.stat().st_size > 0
    try:
        contents = _settled(path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # Python 3.10 has no codes of SQLite's errors.
        if isinstance(error, sqlite3.OperationalError) and 'is locked' in str(error):
            raise ArgumentError(
                f'{path}: {error}: somebody still writes or reads it; expected a bag that nobody uses'
            ) from error
        contents = _rebuild(path, keep)
        found.append(f'{path.name} is damaged ({error}); {contents.count} messages saved')
        return contents
    if had_log:
        found.append(f'{path.name} had not got all of its log; {contents.count} messages saved')
    return contents


def _settled(path: Path) -> Contents:
    """Bring the log into the file, check it, and say what it holds."""
    # An empty file would be a good database for SQLite, but it is no bag.
    if path.stat().st_size == 0 and not path.with_name(f'{path.name}-wal').exists():
        raise sqlite3.DatabaseError('it is empty')
    address = f'{path.absolute().as_uri()}?mode=rw'
    connection = sqlite3.connect(address, timeout=_PATIENCE, uri=True, isolation_level=None)
    try:
        if os.access(path, os.W_OK):  # then it may have a writer, which this finds
            connection.execute('BEGIN IMMEDIATE')
            connection.execute('ROLLBACK')
        if connection.execute('PRAGMA journal_mode').fetchone()[0] == 'wal':
            settle(connection)
        [[verdict], *_] = connection.execute('PRAGMA quick_check(1)').fetchall()
        if verdict != 'ok':
            raise sqlite3.DatabaseError(verdict)
        return _sqlite_contents(connection)
    finally:
        connection.close()


def _sqlite_contents(connection: sqlite3.Connection) -> Contents:
    columns = [row[1] for row in connection.execute('PRAGMA table_info(topics)')]
    qos, digest = (
        name if name in columns else "''" for name in ('offered_qos_profiles', 'type_description_hash')
    )
    counts = dict(connection.execute('SELECT topic_id, count(*) FROM messages GROUP BY topic_id'))
    topics = [
        (Topic(name, kind, qos, digest=digest, serialization=form), counts.get(number, 0))
        for number, name, kind, form, qos, digest in connection.execute(
            f'SELECT id, name, type, serialization_format, {qos}, {digest} FROM topics ORDER BY id'
        )
    ]
    query = 'SELECT min(timestamp), max(timestamp) FROM messages'
    [(first, last)] = connection.execute(query).fetchall()
    return Contents(topics, first or 0, last or 0)


def _rebuild(path: Path, keep: bool) -> Contents:
    """Make a new file from all rows that can be found in the old one."""
    pages = sqlite_pages.Pages(path)
    if not pages.has_header:
        raise ArgumentError(f'{path} is no SQLite file; expected one, or the beginning of one')
    tables = sqlite_pages.tables(pages)
    with _replacement(path, keep) as beside:
        storage = SqliteStorage(beside)
        numbers = _copy_topics(tables, storage.add_topic)
        batch = [
            (row[2], numbers[row[1]], row[2], 0, row[3])
            for _, row in sorted(tables['messages'].items())
            if row[1] in numbers
        ]
        for start in range(0, len(batch), _BATCH):
            storage.write(batch[start : start + _BATCH])
        storage.close()
    for ending in ('-wal', '-shm'):  # they belong to the old file
        path.with_name(path.name + ending).unlink(missing_ok=True)
    return storage.contents()


def _copy_topics(
    tables: dict[str, dict[int, sqlite_pages.Row]], add: Callable[[Topic], int]
) -> dict[int, int]:
    """Add all topics; return their new numbers by the old ones."""
    definitions = {row[1]: (row[2], row[3]) for row in tables['message_definitions'].values()}
    rows = tables['topics']
    if not rows:
        # Before ROS 2 Iron topics had no digest, and there were no definitions.
        found = tables['message_definitions']
        rows = {number: (*row, '') for number, row in found.items() if row[3] == 'cdr'}
    numbers = {}
    for old, (_, name, kind, form, qos, digest) in sorted(rows.items()):
        encoding, definition = definitions.get(kind) or ('ros2msg', known_definition(kind, digest))
        numbers[old] = add(Topic(name, kind, qos, definition, digest, encoding, form))
    return numbers
