# SPDX-License-Identifier: Apache-2.0
"""Recordings: measured data in chunks of time, without any processing.

A recording is a bag or a table. It provides *channels*: numbers with the time of each row. Nothing is
filtered, interpolated or removed here.
"""

from __future__ import annotations

import abc
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.topics import WORLD_FRAMES, Topics
from quad_dynamics.model.model import Model

CHUNK_SECONDS = 10.0  # length of a chunk [s]
_TABLES = ('.csv', '.npz')
_BAGS = ('.mcap', '.db3')


@dataclass(frozen=True, eq=False)
class Channel:
    """Values with their times.

    Attributes:
        stamps: (n,) [ns].
        values: (n, k).
        columns: which columns of the quantity these are; empty: all. Joints that are distributed over several
            messages are several channels: 'position', 'position#1', ...
    """

    stamps: Ints
    values: Floats
    columns: tuple[int, ...] = ()


Chunk = dict[str, Channel]


class Source(abc.ABC):
    """A recording.

    Quantities of channels: 'position', 'velocity', 'effort' (nj, in the model's order of joints);
    'base' (13: p_WB, quaternion x y z w, velocity and angular velocity in base axes, as nav_msgs/Odometry);
    'imu' (10: quaternion, angular velocity, specific force, as sensor_msgs/Imu);
    'force/<foot>' (3, in the axes of `force_frames`); 'target_position', 'target_velocity', 'target_effort'
    (nj); 'acceleration' (nj), 'base_acceleration' (6: of its origin, without gravity, and angular, in base
    axes) and 'contact/<foot>' (1: 1 on the ground, 0 in the air), if they are recorded. Quantities that the
    recording does not have are absent.

    Attributes:
        name: of the recording, for messages.
        sha256: of its data.
        notes: assumptions; complete when all chunks have been read.
        unset: messages that were skipped because they have no stamp, by `origin`.
        force_frames: for each foot with a measured force: the link in whose axes it is expressed, '' for the
            world.
        topics: how its messages are interpreted.
        promised: quantities that it has, but possibly not from the beginning.
    """

    def __init__(self, name: str, sha256: str, topics: Topics) -> None:
        self.name, self.sha256, self.topics = name, sha256, topics
        self.notes: list[str] = []
        self.unset: Counter[str] = Counter()
        self.force_frames: dict[str, str] = {}
        self.promised: frozenset[str] = frozenset({'position'})

    @abc.abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Chunks of all channels, in time order."""

    def origin(self, key: str) -> str:
        """Where the stamps of a channel come from, for messages: a topic, or the time of a table."""
        return key

    def named(self, topic: str) -> str:
        """How messages name the data of 'odom', 'imu', ...: by the topic, or by the columns of a table."""
        return str(getattr(self.topics, topic))

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)


def open_source(
    path: str | os.PathLike[str], model: Model, topics: Topics | None = None, chunk: float = CHUNK_SECONDS
) -> Source:
    """Open a recording.

    Args:
        path: folder of a bag, .mcap or .db3 file, .csv or .npz file.
        model: robot; its joints and feet are found by name.
        topics: names of topics; None: defaults.
        chunk: length of the chunks in which it is read [s].

    Raises:
        ArgumentError: it does not exist, is not a recording, is damaged or empty, or lacks a topic or a
            joint.
    """
    place = Path(path)
    try:
        return _open(place, model, Topics() if topics is None else topics, chunk)
    except OSError as error:
        what = error.strerror or str(error)
        raise ArgumentError(f'{place}: cannot be read ({what}); expected a bag or a table') from error


def _open(place: Path, model: Model, topics: Topics, chunk: float) -> Source:
    if not place.exists():
        raise ArgumentError(f'{place}: does not exist; expected a bag, or a .csv or .npz file')
    frame = topics.force_frame
    if frame and frame not in (*WORLD_FRAMES, *model.frames):
        raise ArgumentError(f"force_frame is {frame!r}; expected 'world', or a link of {model.name}")
    if place.is_file() and place.suffix.lower() in _TABLES:
        from quad_dynamics.identification.recordings.table_reader import open_table

        return open_table(place, model, topics, chunk)
    if not place.is_dir() and place.suffix.lower() not in _BAGS:
        expected = 'the folder of a bag, or a file .mcap, .db3, .csv or .npz'
        raise ArgumentError(f'{place}: has the ending {place.suffix!r}; expected {expected}')
    from quad_dynamics.identification.recordings.bag_reader import BagSource

    return BagSource(place, model, topics, chunk)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Consecutive chunks as one."""
    parts: dict[str, list[Channel]] = {}
    for chunk in chunks:
        for key, channel in chunk.items():
            parts.setdefault(key, []).append(channel)
    return {
        key: Channel(
            np.concatenate([one.stamps for one in found]),
            np.concatenate([one.values for one in found]),
            found[0].columns,
        )
        for key, found in parts.items()
    }


def digest(files: Sequence[Path]) -> str:
    """SHA-256 of the content of files, one after the other."""
    state = hashlib.sha256()
    for path in files:
        with path.open('rb') as file:
            while block := file.read(1 << 20):
                state.update(block)
    return state.hexdigest()
