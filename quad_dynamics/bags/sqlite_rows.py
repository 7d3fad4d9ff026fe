# SPDX-License-Identifier: Apache-2.0
"""Finds topics and messages in a damaged SQLite file of a bag. Needs no ROS."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from quad_dynamics.bags import sqlite_pages
from quad_dynamics.bags.sqlite_pages import Row
from quad_dynamics.bags.sqlite_storage import CHECKED, checksum, topic_checksum
from quad_dynamics.bags.topics import Topic, known_definition
from quad_dynamics.errors import ArgumentError

_HOUR = 3600 * 10**9  # [ns]
_SHAPES = {
    'topics': (6, (str,) * 5),
    'message_definitions': (5, (str,) * 4),
    'messages': (4, (int, int, bytes)),
    'checksums': (2, (int,)),
}


@dataclass
class Message:
    """A message that was found.

    Attributes:
        row: its number in the table.
        topic: number of its topic.
        timestamp: [ns].
        data: its bytes.
        damaged: its page is.
        suspect: it is, or its CRC does not match.
    """

    row: int
    topic: int
    timestamp: int
    data: bytes
    damaged: bool
    suspect: bool = False


@dataclass
class Salvage:
    """What was found in a file.

    Attributes:
        topics: by their numbers in it.
        messages: of these, in their order.
        unchecked: how many messages have no CRC and are not suspect.
        unknown: how many messages belong to no known topic.
    """

    topics: dict[int, Topic] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    unchecked: int = 0
    unknown: int = 0


def salvage(path: Path, known: list[tuple[Topic, int]]) -> Salvage:
    """Find everything in a file.

    Args:
        path: of the file.
        known: topics that metadata.yaml names, with the numbers of their messages.

    Raises:
        ArgumentError: it is not an SQLite file.
    """
    pages = sqlite_pages.Pages(path)
    if not pages.has_header:
        raise ArgumentError(f'{path} is not an SQLite file; expected one, possibly truncated')
    tables: dict[str, list[tuple[int, Row, bool]]] = {name: [] for name in _SHAPES}
    for number, row, damaged in sqlite_pages.rows(pages):
        for name, (size, kinds) in _SHAPES.items():
            if len(row) == size and row[0] is None and all(map(isinstance, row[1:], kinds)):
                tables[name].append((number, row, damaged))
    messages = [
        Message(number, row[1], row[2], row[3], damaged) for number, row, damaged in tables['messages']
    ]
    if path.stat().st_size % pages.size == 0:  # else SQLite fills up the last page with zeros
        messages += _read_by_sqlite(path, messages)
    messages.sort(key=lambda one: one.row)
    checksums = {number: row[1] for number, row, _ in tables['checksums']}
    found = Salvage(_topics(tables))
    wrong = _wrong_topics(found.topics, checksums)
    found.unchecked = _check(messages, [(number, crc) for number, crc in checksums.items() if number > 0])
    _name_topics(found.topics, wrong, Counter(one.topic for one in messages), known)
    found.messages = [one for one in messages if one.topic in found.topics]
    found.unknown = len(messages) - len(found.messages)
    _set_times(found.messages)
    return found


def _read_by_sqlite(path: Path, found: list[Message]) -> list[Message]:
    """Messages that SQLite can still read, and that were not found on the pages."""
    have = {one.row for one in found}
    more: list[Message] = []
    try:
        connection = sqlite3.connect(f'{path.absolute().as_uri()}?mode=ro&immutable=1', uri=True)
    except sqlite3.Error:
        return more
    try:
        for number, topic, time, data in connection.execute(
            'SELECT id, topic_id, timestamp, data FROM messages'
        ):
            if number not in have and isinstance(topic, int):
                stamp = time if isinstance(time, int) else 0
                content = data.encode() if isinstance(data, str) else data
                if isinstance(content, bytes):
                    more.append(Message(number, topic, stamp, content, True))
    except (sqlite3.Error, UnicodeDecodeError, OverflowError):
        return more
    finally:
        connection.close()
    return more


def _topics(tables: dict[str, list[tuple[int, Row, bool]]]) -> dict[int, Topic]:
    definitions = {row[1]: (row[2], row[3]) for _, row, _ in tables['message_definitions']}
    rows = [(number, row) for number, row, _ in tables['topics']]
    if not rows:
        # Before ROS 2 Iron topics had no digest, and there were no definitions.
        rows = [(number, (*row, '')) for number, row, _ in tables['message_definitions'] if row[3] == 'cdr']
    topics = {}
    for number, (_, name, kind, form, qos, digest) in rows:
        encoding, definition = definitions.get(kind) or ('ros2msg', known_definition(kind, digest))
        topics[number] = Topic(name, kind, qos, definition, digest, encoding, form)
    return topics


def _wrong_topics(topics: dict[int, Topic], checksums: dict[int, int]) -> set[int]:
    """Numbers of topics whose CRC does not match, even with the definition as ROS has it."""
    wrong = set()
    for number, topic in topics.items():
        expected = checksums.get(-number, topic_checksum(topic))
        own = replace(topic, definition=known_definition(topic.type, topic.digest))
        if topic_checksum(topic) != expected and topic_checksum(own) == expected:
            topics[number] = own
        elif topic_checksum(topic) != expected:
            wrong.add(number)
    return wrong


def _name_topics(
    topics: dict[int, Topic], wrong: set[int], counts: Counter[int], known: list[tuple[Topic, int]]
) -> None:
    """Give messages of unknown topics one of those that metadata.yaml names besides, if it is clear which."""
    names = {topic.name for topic, _ in known}
    damaged = [number for number, topic in topics.items() if names and topic.name not in names]
    for number in wrong:  # the name may be all right, and something else wrong
        same = [topic for topic, _ in known if topic.name == topics[number].name]
        if same:
            definition = known_definition(same[0].type, same[0].digest) or topics[number].definition
            topics[number] = replace(same[0], definition=definition)
    unknown = sorted({*damaged, *(number for number in counts if number not in topics)})
    left = [
        (topic, count) for topic, count in known if topic.name not in {one.name for one in topics.values()}
    ]
    for number in unknown:
        fitting = [topic for topic, count in left if count == counts[number]]
        if len(fitting) != 1 and len(left) == len(unknown) == 1:
            fitting = [left[0][0]]
        if len(fitting) == 1:
            topic = fitting[0]
            topics[number] = replace(topic, definition=known_definition(topic.type, topic.digest))
            left = [one for one in left if one[0] is not topic]


def _check(messages: list[Message], checksums: list[tuple[int, int]]) -> int:
    """Mark what is suspect; return how many of the others have no CRC."""
    place = last = unchecked = 0
    for end, expected in sorted(checksums):
        if not last < end <= last + CHECKED:
            # One before is missing, or this one is damaged.
            last = max(last, end - CHECKED) if end % CHECKED == 0 else last
        while place < len(messages) and messages[place].row <= last:
            messages[place].suspect = messages[place].damaged
            unchecked += not messages[place].damaged
            place += 1
        group = []
        while place < len(messages) and messages[place].row <= end:
            group.append(messages[place])
            place += 1
        crc = 0
        for one in group:
            crc = checksum(crc, one.row, one.topic, one.timestamp, one.data)
        for one in group:
            one.suspect = crc != expected
        last = end
    for one in messages[place:]:
        one.suspect = one.damaged
        unchecked += not one.damaged
    return unchecked


def _set_times(messages: list[Message]) -> None:
    """Replace damaged times of suspect messages by those before."""
    times = sorted(one.timestamp for one in messages if not one.suspect)
    if not times:  # most of them are right
        every = sorted(one.timestamp for one in messages)
        times = every[len(every) // 4 : len(every) * 3 // 4 + 1]
    if not times:
        return
    first, last, before = times[0], times[-1], times[0]
    slack = max(last - first, _HOUR)
    for one in messages:
        if one.suspect and not first - slack <= one.timestamp <= last + slack:
            one.timestamp = before
        before = one.timestamp
