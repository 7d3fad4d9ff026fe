# SPDX-License-Identifier: Apache-2.0
"""Repairs SQLite files of bags. Needs no ROS."""

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path

from quad_dynamics.bags import sqlite_log, sqlite_rows
from quad_dynamics.bags.metadata import Contents
from quad_dynamics.bags.replacement import MAY_BE_WRONG, FileResult, replacement, saved_text
from quad_dynamics.bags.sqlite_storage import (
    CHECKED,
    TABLES,
    TOPIC_COLUMNS,
    SqliteStorage,
    checksum,
    settle,
    topic_checksum,
)
from quad_dynamics.bags.topics import Topic
from quad_dynamics.errors import ArgumentError

_BATCH = 1000  # messages in one transaction
_PATIENCE = 1.0  # with somebody else who has locked a file [s]


def repair_file(path: Path, known: list[tuple[Topic, int]]) -> FileResult:
    """Repair a data file; a damaged one is kept with the suffix '.bak'.

    Args:
        path: of the file.
        known: topics that metadata.yaml names, with the numbers of their messages.

    Raises:
        ArgumentError: nothing can be read from it, or it is still being written.
    """
    result = FileResult()
    log = path.with_name(f'{path.name}-wal')
    had_log = log.exists() and log.stat().st_size > 0
    try:
        if had_log and not sqlite_log.is_sound(log.read_bytes()):
            raise sqlite3.DatabaseError('its write-ahead log is damaged')
        result.contents, checked = _settled(path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # Python 3.10 has no codes of SQLite's errors.
        if isinstance(error, sqlite3.OperationalError) and 'is locked' in str(error):
            raise ArgumentError(
                f'{path}: {error}: it is still in use; expected a bag that is not in use'
            ) from error
        return _rebuilt(path, known, str(error))
    if checked < result.contents.count:
        unknown = result.contents.count - checked
        result.notes.append(f'{path.name}: {unknown} messages have no CRC: damaged values cannot be detected')
    if had_log:
        count = result.contents.count
        result.found.append(f'{path.name} lacked part of its write-ahead log; {count} messages recovered')
    return result


def _settled(path: Path) -> tuple[Contents, int]:
    """Bring the log into the file, and check it; return what it holds, and how many messages have a CRC."""
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
        [[verdict], *_] = connection.execute('PRAGMA integrity_check(1)').fetchall()
        if verdict != 'ok':
            raise sqlite3.DatabaseError(verdict)
        checked = check_messages(connection)
        _check_topics(connection)
        return _contents(connection), checked
    finally:
        connection.close()


def check_messages(connection: sqlite3.Connection) -> int:
    """Compare messages with their CRCs, where there are any; return how many were compared.

    Raises:
        sqlite3.DatabaseError: one does not match.
    """
    if not connection.execute('PRAGMA table_info(quad_dynamics_checksums)').fetchall():
        return 0
    last = checked = 0
    for end, expected in connection.execute(
        'SELECT last_id, crc FROM quad_dynamics_checksums WHERE last_id > 0 ORDER BY last_id'
    ):
        crc, count = 0, 0
        query = 'SELECT id, topic_id, timestamp, data FROM messages WHERE id > ? AND id <= ? ORDER BY id'
        for row in connection.execute(query, (last, end)):
            try:
                crc = checksum(crc, *row)
            except (TypeError, struct.error) as error:
                raise sqlite3.DatabaseError(f'message {row[0]}: {error}') from error
            count += 1
        if crc != expected or count > CHECKED:
            raise sqlite3.DatabaseError(f'the CRC of messages {last + 1} to {end} does not match')
        last, checked = end, checked + count
    return checked


def _check_topics(connection: sqlite3.Connection) -> None:
    """Read everything about topics, and compare it with its CRCs, where there are any.

    Raises:
        sqlite3.DatabaseError: a table or a column is missing, or a CRC does not match.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    ours = 'quad_dynamics_checksums' in tables
    definitions = {}
    for table, columns in TABLES.items():
        if table in tables or ours:
            rows = connection.execute(f'SELECT {columns} FROM {table}').fetchall()
            if table == 'message_definitions':
                definitions = {row[0]: row[2] for row in rows}
    if not ours:
        return
    query = 'SELECT -last_id, crc FROM quad_dynamics_checksums WHERE last_id < 0'
    expected = dict(connection.execute(query).fetchall())
    found = {}
    for number, *row in connection.execute(f'SELECT {TOPIC_COLUMNS} FROM topics'):
        name, kind, form, qos, digest = row
        topic = Topic(name, kind, qos, definitions.get(kind, ''), digest, serialization=form)
        found[number] = topic_checksum(topic)
    if found != expected:
        raise sqlite3.DatabaseError('the CRC of a topic does not match')


def _contents(connection: sqlite3.Connection) -> Contents:
    columns = [row[1] for row in connection.execute('PRAGMA table_info(topics)')]
    qos, digest = (
        name if name in columns else "''" for name in ('offered_qos_profiles', 'type_description_hash')
    )
    counts = dict(connection.execute('SELECT topic_id, count(*) FROM messages GROUP BY topic_id'))
    topics = [
        (Topic(name, kind, qos, digest=digest, serialization=form), counts.pop(number, 0))
        for number, name, kind, form, qos, digest in connection.execute(
            f'SELECT id, name, type, serialization_format, {qos}, {digest} FROM topics ORDER BY id'
        )
    ]
    if counts:
        raise sqlite3.DatabaseError(f'messages of unknown topics: {sorted(counts)[:5]}')
    query = 'SELECT min(timestamp), max(timestamp) FROM messages'
    [(first, last)] = connection.execute(query).fetchall()
    return Contents(topics, first or 0, last or 0)


def _rebuilt(path: Path, known: list[tuple[Topic, int]], why: str) -> FileResult:
    """Make a new file from all rows that can be found in the old one."""
    found = sqlite_rows.salvage(path, known)
    if not found.messages:
        raise ArgumentError(
            f'{path} is damaged ({why}); no messages could be recovered, the bag is unchanged'
        )
    with replacement(path, keep=True) as (beside, backup):
        storage = SqliteStorage(beside)
        numbers = {old: storage.add_topic(topic) for old, topic in sorted(found.topics.items())}
        batch = [(one.timestamp, numbers[one.topic], one.timestamp, 0, one.data) for one in found.messages]
        for start in range(0, len(batch), _BATCH):
            storage.write(batch[start : start + _BATCH])
        storage.close()
        if _settled(beside)[0].count != len(batch):
            raise ArgumentError(f'{path} could not be rebuilt; it is unchanged')
    log = path.with_name(f'{path.name}-wal')
    if log.exists() and backup is not None:
        log.replace(backup.with_name(f'{backup.name}-wal'))
    path.with_name(f'{path.name}-shm').unlink(missing_ok=True)
    suspect = [one for one in found.messages if one.suspect]
    result = FileResult(storage.contents(), suspect=len(suspect))
    for one in suspect:
        result.spans.add(one.timestamp, one.timestamp)
    saved = saved_text(len(found.messages), len(suspect), backup)
    result.found.append(f'{path.name} is damaged ({why}); {saved}')
    if found.unchecked:
        result.notes.append(f'{path.name}: {found.unchecked} messages had no CRC: {MAY_BE_WRONG}')
    if found.unknown:
        result.notes.append(f'{path.name}: {found.unknown} messages of unknown topics were dropped')
    return result
