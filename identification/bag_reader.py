# SPDX-License-Identifier: Apache-2.0
"""Bags as recordings."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.rosbag2 import ReaderError
from rosbags.typesys import Stores, get_typestore

from identification.bag_channels import JointReading, Reading, make_readings
from identification.recording import Segment, Source, digest
from identification.topics import Topics
from quad_dynamics.bags.metadata import NAME as METADATA
from quad_dynamics.bags.metadata import data_files
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

_LOOK = 200  # messages in which every joint must be found
# What the readers of damaged files raise.
_DAMAGE = (
    AnyReaderError,
    ReaderError,
    sqlite3.Error,
    OSError,
    EOFError,
    ValueError,
    AssertionError,
    KeyError,
    TypeError,
    RuntimeError,
)


class BagSource(Source):
    """A ROS 2 bag; it is opened once for each run through its segments."""

    def __init__(self, path: Path, model: Model, topics: Topics, segment: float) -> None:
        """Look into the bag.

        Raises:
            ArgumentError: it is damaged or empty, or lacks a topic or a joint.
        """
        files = data_files(path) if path.is_dir() else [path]
        super().__init__(str(path), digest(files), topics)
        self._paths = [path]
        if path.is_dir() and not (path / METADATA).exists():
            self._paths = files
            self.note(f'{METADATA} is missing; read from the data alone')
        self._model, self._segment = model, round(segment * 1e9)
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
                self._check_joints(reader)
            except ArgumentError as error:
                raise ArgumentError(f'{self.name}: {error}') from error

    def _check_joints(self, reader: AnyReader) -> None:
        """Look for all joints in the first messages."""
        topic, joints = next(iter(self._readings.items()))
        assert isinstance(joints, JointReading)
        connections = [one for one in reader.connections if one.topic == topic]
        first = [bytes(raw) for _, _, raw in itertools.islice(reader.messages(connections), _LOOK)]
        joints.check_joints(first)

    @contextlib.contextmanager
    def _reader(self) -> Iterator[AnyReader]:
        """The open bag; what goes wrong with its files becomes an error that says what to do."""
        try:
            with AnyReader(self._paths, default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
                yield reader
        except ArgumentError:
            raise
        except _DAMAGE as error:
            what = str(error).strip() or type(error).__name__
            raise ArgumentError(
                f"{self.name}: cannot be read ({what}); expected a whole bag. 'quad_dynamics repair' makes bags "
                'whole whose recorder was killed'
            ) from error

    def segments(self) -> Iterator[Segment]:
        """Stretches of all channels, in the order of time.

        Raises:
            ArgumentError: the bag is damaged, or a message is not as expected.
        """
        for reading in self._readings.values():
            reading.restart()
        with self._reader() as reader:
            connections = [one for one in reader.connections if one.topic in self._readings]
            end: int | None = None
            raws: dict[str, list[tuple[int, bytes]]] = {}
            for connection, received, raw in reader.messages(connections):
                if end is None:
                    end = received + self._segment
                if received >= end:
                    yield self._channels(raws)
                    raws = {}
                    end += ((received - end) // self._segment + 1) * self._segment
                raws.setdefault(connection.topic, []).append((received, raw))
            yield self._channels(raws)

    def _channels(self, raws: dict[str, list[tuple[int, bytes]]]) -> Segment:
        """What the messages of a stretch hold."""
        channels: Segment = {}
        for topic, messages in raws.items():
            reading: Reading = self._readings[topic]
            received = np.array([time for time, _ in messages], dtype=np.int64)
            try:
                channels |= reading.read(received, _plain([raw for _, raw in messages]))
            except ArgumentError as error:
                raise ArgumentError(f'{self.name}: {topic}: {error}') from error
        return channels


def _plain(raws: Sequence[Any]) -> list[bytes]:
    """Messages as bytes; SQLite may give views of them."""
    return [bytes(raw) for raw in raws]
