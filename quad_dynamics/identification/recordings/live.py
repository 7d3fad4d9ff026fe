# SPDX-License-Identifier: Apache-2.0
"""A recording that grows while a robot moves; it is stored in temporary files, so memory does not grow."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.gaps import Gaps, topic_of
from quad_dynamics.identification.recordings.recording import CHUNK_SECONDS, Channel, Chunk, Source
from quad_dynamics.identification.recordings.topics import Topics

_IN_MEMORY = 2048  # rows of a channel that are not yet in its file


class _Spool:
    """The rows of one channel: stamps and numbers in a file, the newest in memory."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.count = 0
        self.last = -1
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._in_file = 0
        self._rows = np.empty((_IN_MEMORY, width + 1))
        self._new = 0

    def add(self, stamp: int, values: Floats) -> None:
        row = self._rows[self._new]
        row[:1].view(np.int64)[0] = stamp
        row[1:] = values
        self._new += 1
        self.count += 1
        self.last = stamp
        if self._new == _IN_MEMORY:
            self._file.seek(0, 2)
            self._rows.tofile(self._file)
            self._in_file += _IN_MEMORY
            self._new = 0

    def ends_with(self, stamp: int, values: Floats) -> bool:
        """Whether this is the newest row."""
        return stamp == self.last and np.array_equal(self.rows(self.count - 1, 1)[0, 1:], values)

    def rows(self, begin: int, count: int) -> Floats:
        """At most `count` rows, starting with the given index."""
        count = max(0, min(count, self.count - begin))
        in_file = max(0, min(count, self._in_file - begin))
        made = np.empty((count, self.width + 1))
        if in_file:
            self._file.seek(begin * made.strides[0])
            made[:in_file] = np.fromfile(self._file, count=in_file * (self.width + 1)).reshape(in_file, -1)
        first = begin + in_file - self._in_file
        made[in_file:] = self._rows[first : first + count - in_file]
        return made

    def stamp(self, i: int) -> int:
        """Stamp of one row [ns]."""
        return int(self.rows(i, 1)[:, 0].view(np.int64)[0])

    def since(self, stamp: int) -> int:
        """Index of the first row that is not older; stamps increase."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.stamp(middle) < stamp else (low, middle)
        return low


class LiveRecording(Source):
    """Messages of a robot, from the start of a recording to its end. One thread adds, others may read.

    Attributes:
        first: stamp of the first joint states [ns]; -1 before them.
        gaps: missing data.
    """

    def __init__(self, name: str, topics: Topics) -> None:
        super().__init__(name, '', topics)
        self._spools: dict[str, _Spool] = {}
        self._lock = threading.Lock()
        self._hash = hashlib.sha256()
        self.first = -1
        self.gaps = Gaps()

    def add(self, stamp: int, **quantities: Floats) -> None:
        """Add the quantities of one message; a copy of the previous one is only counted.

        Args:
            stamp: of the message [ns].
            quantities: by channel name.

        Raises:
            ArgumentError: the stamp is not later than that of the previous message.
        """
        channel = next(iter(quantities))  # quantities of one message are missing together
        with self._lock:
            if self._is_copy(stamp, quantities):
                self.gaps.repeat(channel)
                return
            for name, values in quantities.items():
                spool = self._spools.get(name)
                if spool is None:
                    spool = self._spools[name] = _Spool(len(values))
                if stamp <= spool.last:
                    self.gaps.refuse(channel)
                    raise ArgumentError(
                        f'{name} has the stamp {stamp * 1e-9:.3f} s, the one before '
                        f'{spool.last * 1e-9:.3f} s; expected later ones: it was left out'
                    )
                spool.add(stamp, values)
                self._hash.update(stamp.to_bytes(8, 'little') + values.tobytes())
            self.gaps.add(channel, stamp)
            if self.first < 0 and 'position' in quantities:
                self.first = stamp

    def _is_copy(self, stamp: int, quantities: Mapping[str, Floats]) -> bool:
        """Whether a message has stamp and values of the previous one, as in a paused simulation."""
        spools = [(self._spools.get(name), values) for name, values in quantities.items()]
        return all(spool is not None and spool.ends_with(stamp, values) for spool, values in spools)

    def origin(self, key: str) -> str:
        """See `Source`."""
        return topic_of(key)

    def close(self) -> None:
        """End the recording."""
        with self._lock:
            self.sha256 = self._hash.hexdigest()
            self.force_frames = self.measured_frames()
        if missing := self.gaps.sentence():
            self.note(f'while recording, {missing}')
        if copies := '; '.join(f'{count} of {topic}' for topic, count in self.gaps.copies().items()):
            self.note(f'messages that repeat the previous one, stamp and values, are not used: {copies}')

    def measured_frames(self) -> dict[str, str]:
        """Frames of the feet whose forces were received."""
        frames = self.force_frames.items()
        return {foot: frame for foot, frame in frames if f'force/{foot}' in self._spools}

    @property
    def last(self) -> int:
        """Stamp of the newest joint states [ns]; -1 before the first."""
        spool = self._spools.get('position')
        return -1 if spool is None else spool.last

    @property
    def seconds(self) -> float:
        """Duration from the first to the newest joint states [s]."""
        return max(0, self.last - self.first) * 1e-9 if self.first >= 0 else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows of each channel."""
        return {name: spool.count for name, spool in sorted(self._spools.items())}

    def chunks(self) -> Iterator[Chunk]:
        """See `Source`."""
        if self.first < 0:
            return
        begin, step = min(spool.stamp(0) for spool in self._spools.values()), round(CHUNK_SECONDS * 1e9)
        end = max(spool.last for spool in self._spools.values())
        while begin <= end:
            yield self.between(begin, begin + step)
            begin += step

    def between(self, begin: int, end: int) -> Chunk:
        """All channels, from one stamp up to, but not including, another [ns]."""
        found: Chunk = {}
        with self._lock:
            for name, spool in sorted(self._spools.items()):
                first = spool.since(begin)
                rows = spool.rows(first, spool.since(end) - first)
                stamps = np.ascontiguousarray(rows[:, 0]).view(np.int64)
                found[name] = Channel(stamps, np.ascontiguousarray(rows[:, 1:]))
        return found


class Window(Source):
    """A window of a live recording, as a separate recording."""

    def __init__(self, recording: LiveRecording, begin: int, end: int) -> None:
        """See `LiveRecording.between`."""
        super().__init__(recording.name, '', recording.topics)
        self.force_frames = recording.measured_frames()
        self._chunk = recording.between(begin, end)

    def chunks(self) -> Iterator[Chunk]:
        """See `Source`."""
        yield self._chunk
