# SPDX-License-Identifier: Apache-2.0
"""Writes MCAP files that survive the death of their writer. Needs no ROS.

Messages are not gathered in chunks and not buffered: what `write` was given is with the operating system when
it returns, and only power failure can take it away. What the end of the file says can be found again by
reading it from the beginning: `mcap_scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_scan import scan
from quad_dynamics.bags.metadata import Contents
from quad_dynamics.bags.topics import Topic

# A message: time of log [ns], number of its topic, time of publication [ns], sequence number, bytes.
Entry = tuple[int, int, int, int, bytes]
# What is given up on a full disk, so that there is room for the end of the file and metadata.yaml [bytes].
_ROOM = 1 << 17


class McapStorage:
    """An MCAP file that is being written."""

    def __init__(self, path: Path) -> None:
        """Make the file.

        Args:
            path: where nothing is yet.
        """
        self.path = path
        self._file = path.open('xb', buffering=0)
        self._length = 0
        self._topics: list[Topic] = []
        self._schemas: list[mcap.Schema] = []
        self._channels: list[mcap.Channel] = []
        self._statistics = mcap.Statistics()
        self._append(mcap.header())

    def add_topic(self, topic: Topic) -> int:
        """Make a topic known; return its number."""
        schema = next((one for one in self._schemas if one.name == topic.type), None)
        new = b''
        if schema is None:
            number = len(self._schemas) + 1
            schema = mcap.Schema(number, topic.type, topic.encoding, topic.definition.encode())
            new = schema.encode()
        number = len(self._channels) + 1
        notes = {'offered_qos_profiles': topic.qos, 'topic_type_hash': topic.digest}
        channel = mcap.Channel(number, schema.number, topic.name, topic.serialization, notes)
        self._append(new + channel.encode())
        if new:
            self._schemas.append(schema)
        self._channels.append(channel)
        self._topics.append(topic)
        self._statistics.counts[number] = 0
        return number

    def write(self, batch: Sequence[Entry]) -> None:
        """Write messages; they are in the order of their times.

        Raises:
            OSError: nothing of the batch has been written.
        """
        if not batch:
            return
        parts: list[bytes] = []
        head = mcap.MESSAGE_HEAD.pack
        for log, number, published, sequence, data in batch:
            parts += (
                head(mcap.MESSAGE, 22 + len(data), number, sequence & 0xFFFFFFFF, log, published),
                data,
            )
        self._append(b''.join(parts))
        for entry in batch:
            self._statistics.add(entry[1], entry[0], entry[0])

    def contents(self) -> Contents:
        """What has been written."""
        counts = [self._statistics.counts.get(i, 0) for i in range(1, len(self._topics) + 1)]
        topics = list(zip(self._topics, counts, strict=True))
        return Contents(topics, self._statistics.first, self._statistics.last)

    def close(self) -> None:
        """Write the end of the file."""
        try:
            try:
                self._append(self._ending())
            except OSError:
                self._make_room()
                self._append(self._ending())
        finally:
            self._file.close()

    def _ending(self) -> bytes:
        return mcap.ending(self._length, self._schemas, self._channels, self._statistics, [])

    def _make_room(self) -> None:
        """Give up the last messages, on a full disk."""
        found = scan(self.path, limit=max(self._length - _ROOM, 0))
        if len(found.channels) < len(self._channels):
            return  # the file is too short to give anything up
        self._length, self._statistics = found.end, found.statistics
        self._file.truncate(self._length)
        self._file.seek(self._length)

    def _append(self, data: bytes) -> None:
        """Write all or nothing."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._file.truncate(self._length)
            self._file.seek(self._length)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._length += len(data)
