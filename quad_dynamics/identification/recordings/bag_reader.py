# SPDX-License-Identifier: Apache-2.0
"""Bags as recordings."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from quad_dynamics.bags.damage import check_metadata, suspects, wrong_values
from quad_dynamics.bags.metadata import NAME as METADATA
from quad_dynamics.bags.metadata import data_files
from quad_dynamics.bags.unfinished import is_being_written, is_closed
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.bag_channels import Reading
from quad_dynamics.identification.recordings.bag_topics import make_readings
from quad_dynamics.identification.recordings.recording import Chunk, Source, digest
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.model.model import Model

_LOOK = 200  # messages in which every joint must be found


class BagSource(Source):
    """A ROS 2 bag; it is opened once for each pass through its chunks."""

    def __init__(self, path: Path, model: Model, topics: Topics, chunk: float) -> None:
        """Inspect the bag.

        Raises:
            ArgumentError: it is damaged or empty, or lacks a topic or a joint.
        """
        files = data_files(path) if path.is_dir() else [path]
        if is_being_written(path, files):
            raise ArgumentError(f'{path}: is still being written; expected a recording that has ended')
        super().__init__(str(path), digest(files), topics)
        self._paths = [path]
        if path.is_dir() and not (path / METADATA).exists():
            self._paths = files
            self.note(f'{METADATA} is missing; read from the data alone')
        if path.is_dir():
            check_metadata(path)
        if not is_closed(path, files):
            self.note('it was not closed: its recorder was killed, and the end may be missing')
        wrong = wrong_values([file for file in files if file.suffix in ('.mcap', '.db3')])
        if wrong:
            raise self._damaged(ValueError(wrong))
        _, self._suspect = suspects(path)
        if self._suspect:
            self.note('it was damaged and repaired; messages from damaged places are not used')
        self._model, self._chunk = model, round(chunk * 1e9)
        self._origins: dict[str, str] = {}
        with self._reader() as reader:
            kinds: dict[str, str] = {}
            counts: dict[str, int] = {}
            for connection in reader.connections:
                kinds[connection.topic] = connection.msgtype
                counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
            if not reader.message_count:
                raise ArgumentError(f'{self.name}: holds no messages; expected a recording')
            present = {name: kind for name, kind in kinds.items() if counts[name]}
            try:
                self._readings = make_readings(self, model, topics, present)
                self._check_first(reader)
                for topic, reading in self._readings.items():
                    reading.find_stamp(raw for _, _, raw in self._messages(reader, [topic]))
                self.promised |= {key for one in self._readings.values() for key in one.promises}
            except ArgumentError as error:
                if str(error).startswith(f'{self.name}: '):  # the file is damaged
                    raise
                raise ArgumentError(f'{self.name}: {error}') from error

    def _check_first(self, reader: AnyReader) -> None:
        """Find joints and feet in the first messages; skip unexpected topics that were not requested."""
        for topic, reading in list(self._readings.items()):
            first = [raw for _, _, raw in itertools.islice(self._messages(reader, [topic]), _LOOK)]
            try:
                reading.check(first)
            except ArgumentError as error:
                if not reading.dispensable:
                    raise ArgumentError(f'{topic}: {error}') from error
                self.note(f'{topic}: {error}; it is not used')
                del self._readings[topic]

    @contextlib.contextmanager
    def _reader(self) -> Iterator[AnyReader]:
        """The open bag."""
        try:
            reader = AnyReader(self._paths, default_typestore=get_typestore(Stores.ROS2_JAZZY))
            reader.open()
        except Exception as error:  # a damaged file can cause any exception in its reader
            raise self._damaged(error) from error
        try:
            yield reader
        finally:
            reader.close()

    def _messages(self, reader: AnyReader, topics: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """Topic, time of recording and bytes of all messages of some topics, in time order."""
        messages = reader.messages([one for one in reader.connections if one.topic in topics])
        while True:
            try:
                connection, received, raw = next(messages)
            except StopIteration:
                return
            except Exception as error:  # a damaged file can cause any exception
                raise self._damaged(error) from error
            if received not in self._suspect:
                yield connection.topic, received, bytes(raw)

    def _damaged(self, error: Exception) -> ArgumentError:
        """Error message about a damaged file, and what to do."""
        what = str(error).strip() or type(error).__name__
        return ArgumentError(
            f'{self.name}: cannot be read ({what}); expected a whole bag. '
            "'quad_dynamics repair' makes bags whole that are damaged, or whose recorder was killed"
        )

    def chunks(self) -> Iterator[Chunk]:
        """Chunks of all channels, in time order.

        Raises:
            ArgumentError: the bag is damaged, or a message is not as expected.
        """
        for reading in self._readings.values():
            reading.restart()
        with self._reader() as reader:
            end: int | None = None
            raws: dict[str, list[tuple[int, bytes]]] = {}
            for topic, received, raw in self._messages(reader, self._readings):
                if end is None:
                    end = received + self._chunk
                if received >= end:
                    yield self._channels(raws)
                    raws = {}
                    end += ((received - end) // self._chunk + 1) * self._chunk
                if not self._readings[topic].is_unset(raw):
                    raws.setdefault(topic, []).append((received, raw))
            yield self._channels(raws)

    def origin(self, key: str) -> str:
        """See `Source`."""
        return self._origins.get(key, key)

    def _channels(self, raws: dict[str, list[tuple[int, bytes]]]) -> Chunk:
        """Channels of the messages of a chunk."""
        channels: Chunk = {}
        for topic, messages in raws.items():
            reading: Reading = self._readings[topic]
            received = np.array([time for time, _ in messages], dtype=np.int64)
            try:
                found = reading.read(received, [raw for _, raw in messages])
            except ArgumentError as error:
                raise ArgumentError(f'{self.name}: {topic}: {error}') from error
            channels |= found
            self._origins |= dict.fromkeys(found, topic)
        return channels
