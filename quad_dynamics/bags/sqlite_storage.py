# SPDX-License-Identifier: Apache-2.0
"""Crash-safe writer of SQLite files of bags. Needs no ROS.

Changes go first to a write-ahead log beside the file (*.db3-wal), one transaction per batch. Nothing waits
for the disk: a killed process loses nothing that was committed, but a power failure may.

SQLite does not detect damaged values. So the CRCs of the messages are kept in a separate table, which other
readers ignore.
"""

from __future__ import annotations

import errno
import sqlite3
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from quad_dynamics.bags.mcap_storage import Entry
from quad_dynamics.bags.metadata import Contents, ros_distro
from quad_dynamics.bags.topics import Topic

SCHEMA = """
CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);
CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,
  serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL,
  type_description_hash TEXT NOT NULL);
CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL,
  encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);
CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL,
  data BLOB NOT NULL);
CREATE TABLE quad_dynamics_checksums(last_id INTEGER PRIMARY KEY, crc INTEGER NOT NULL);
CREATE INDEX timestamp_idx ON messages (timestamp ASC);
"""
# Columns that readers ask for; `topics` has fewer in older bags.
TABLES = {
    'schema': 'schema_version, ros_distro',
    'metadata': 'id, metadata_version, metadata',
    'message_definitions': 'topic_type, encoding, encoded_message_definition, type_description_hash',
}
TOPIC_COLUMNS = 'id, name, type, serialization_format, offered_qos_profiles, type_description_hash'
# A CRC is that of so many messages, up to and with `last_id`; the last one of fewer. That of a topic has the
# number of the topic below zero as `last_id`.
CHECKED = 256
_ROW = struct.Struct('<qqq')
_DISTRO = 'INSERT INTO schema(schema_version, ros_distro) VALUES (4, ?)'
_CHECKSUM = 'INSERT INTO quad_dynamics_checksums(last_id, crc) VALUES (?, ?)'
_INSERT = 'INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)'
_TOPIC = 'INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?)'
_DEFINITION = (
    'INSERT INTO message_definitions'
    '(topic_type, encoding, encoded_message_definition, type_description_hash) VALUES (?, ?, ?, ?)'
)


class SqliteStorage:
    """An SQLite file that is being written."""

    def __init__(self, path: Path) -> None:
        """Make the file.

        Args:
            path: where nothing is yet.
        """
        path.open('xb').close()
        self.path = path
        self._topics: list[Topic] = []
        self._counts: list[int] = []
        self._first = self._last = 0
        self._rows = self._crc = 0
        try:
            # It is made in one thread and used in another, never in two at once.
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._connection.execute('PRAGMA journal_mode=WAL')
            self._connection.execute('PRAGMA synchronous=OFF')
            self._connection.executescript(SCHEMA)
            self._connection.execute(_DISTRO, (ros_distro(),))
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def add_topic(self, topic: Topic) -> int:
        """Make a topic known; return its number."""
        number = len(self._topics) + 1
        known = {one.type for one in self._topics}
        row = (number, topic.name, topic.type, topic.serialization, topic.qos, topic.digest)
        try:
            with _Transaction(self._connection):
                self._connection.execute(_TOPIC, row)
                if topic.definition and topic.type not in known:
                    definition = (topic.type, topic.encoding, topic.definition, topic.digest)
                    self._connection.execute(_DEFINITION, definition)
                self._connection.execute(_CHECKSUM, (-number, topic_checksum(topic)))
        except sqlite3.Error as error:
            raise self._failed(error) from error
        self._topics.append(topic)
        self._counts.append(0)
        return number

    def write(self, batch: Sequence[Entry]) -> None:
        """Write messages.

        Raises:
            OSError: nothing of the batch has been written.
        """
        if not batch:
            return
        before = self._rows, self._crc
        try:
            with _Transaction(self._connection):
                self._insert(batch)
        except sqlite3.Error as error:
            self._rows, self._crc = before
            raise self._failed(error) from error
        times = [entry[0] for entry in batch]
        self._first = min([self._first, *times]) if any(self._counts) else min(times)
        self._last = max([self._last, *times])
        for entry in batch:
            self._counts[entry[1] - 1] += 1

    def _insert(self, batch: Sequence[Entry]) -> None:
        # Whatever the batches, the file is the same: each CRC stands right behind its last message.
        start = 0
        while start < len(batch):
            part = batch[start : start + CHECKED - self._rows % CHECKED]
            self._connection.executemany(_INSERT, [(entry[1], entry[0], entry[4]) for entry in part])
            for entry in part:
                self._rows += 1
                self._crc = checksum(self._crc, self._rows, entry[1], entry[0], entry[4])
            if self._rows % CHECKED == 0:
                self._insert_checksum()
            start += len(part)

    def _insert_checksum(self) -> None:
        self._connection.execute(_CHECKSUM, (self._rows, self._crc))
        self._crc = 0

    def contents(self) -> Contents:
        """What has been written."""
        return Contents(list(zip(self._topics, self._counts, strict=True)), self._first, self._last)

    def close(self) -> None:
        """Bring everything from the log into the file."""
        try:
            if self._rows % CHECKED:
                self._insert_checksum()
            settle(self._connection)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        finally:
            self._connection.close()

    def _failed(self, error: sqlite3.Error) -> OSError:
        return OSError(errno.EIO, str(error), str(self.path))


def checksum(crc: int, row: int, topic: int, timestamp: int, data: bytes) -> int:
    """The CRC of messages and of one more.

    Args:
        crc: of those before.
        row: number of the message in its table.
        topic: number of its topic.
        timestamp: of the message [ns].
        data: of the message.
    """
    return zlib.crc32(data, zlib.crc32(_ROW.pack(row, topic, timestamp), crc))


def topic_checksum(topic: Topic) -> int:
    """The CRC of a topic and its definition."""
    parts = topic.name, topic.type, topic.serialization, topic.qos, topic.digest, topic.definition
    return zlib.crc32('\0'.join(parts).encode())


def settle(connection: sqlite3.Connection) -> None:
    """Bring everything from the log into the file, so that readers need the file only."""
    connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    connection.execute('PRAGMA journal_mode=DELETE')


class _Transaction:
    """All or nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute('BEGIN')

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # SQLite itself rolls back when the disk is full.
        if kind is None:
            self._connection.execute('COMMIT')
        elif self._connection.in_transaction:
            self._connection.execute('ROLLBACK')
