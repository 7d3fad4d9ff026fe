# SPDX-License-Identifier: Apache-2.0
"""All measured quantities of one recording on one uniform clock, in a temporary file."""

from __future__ import annotations

import itertools
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats


@dataclass(frozen=True)
class Segment:
    """A segment of evenly spaced rows.

    Attributes:
        begin: its first row.
        end: one past its last row.
        start: time of its first row [s].
    """

    begin: int
    end: int
    start: float

    def __len__(self) -> int:
        return self.end - self.begin


class Grid:
    """Rows of all quantities; each row is one time.

    Attributes:
        period: between rows of a segment [s].
        sizes: of the quantities, by name.
        segments: rows without a gap.
    """

    def __init__(self, period: float, sizes: dict[str, int]) -> None:
        self.period, self.sizes = period, dict(sizes)
        self.segments: list[Segment] = []
        ends = np.cumsum([0, *sizes.values()])
        self._slices = {name: slice(int(ends[i]), int(ends[i + 1])) for i, name in enumerate(self.sizes)}
        self.width = int(ends[-1])
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the grid)
        weakref.finalize(self, self._file.close)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: str) -> bool:
        return name in self.sizes

    @property
    def rate(self) -> float:
        """Rows in a second [Hz]."""
        return 1.0 / self.period

    def append(self, rows: Floats, start: float | None) -> None:
        """Append rows to the last segment, or to a new one.

        Args:
            rows: (n, width).
            start: time of a new segment [s]; None: continue the last one.
        """
        if not len(rows):
            return
        self._file.seek(0, 2)
        np.ascontiguousarray(rows).tofile(self._file)
        if start is None:
            last = self.segments[-1]
            self.segments[-1] = Segment(last.begin, last.end + len(rows), last.start)
        else:
            self.segments.append(Segment(self._rows, self._rows + len(rows), start))
        self._rows += len(rows)

    def read(self, begin: int, end: int) -> Floats:
        """(end - begin, width) rows."""
        self._file.seek(begin * self.width * 8)
        return np.fromfile(self._file, count=(end - begin) * self.width).reshape(-1, self.width)

    def get(self, rows: Floats, name: str) -> Floats:
        """(n, size) view of one quantity."""
        return rows[:, self._slices[name]]

    def write(self, begin: int, name: str, values: Floats) -> None:
        """Overwrite one quantity of some rows.

        Args:
            begin: first of the rows.
            name: of the quantity.
            values: (n, size).
        """
        rows = self.read(begin, begin + len(values))
        self.get(rows, name)[...] = values
        self._file.seek(begin * self.width * 8)
        rows.tofile(self._file)

    def split(self, rows: Sequence[int]) -> None:
        """Begin a new segment at each of the given rows."""
        cuts = sorted(set(rows))
        made: list[Segment] = []
        for segment in self.segments:
            edges = [segment.begin, *[row for row in cuts if segment.begin < row < segment.end], segment.end]
            for begin, end in itertools.pairwise(edges):
                made.append(Segment(begin, end, segment.start + (begin - segment.begin) * self.period))
        self.segments = made

    def windows(self, size: int, overlap: int = 0) -> Iterator[tuple[Segment, int, int, Floats]]:
        """Chunks of segments, each with overlapping rows of its neighbours in the same segment.

        Args:
            size: rows of a chunk.
            overlap: rows of each neighbour.

        Yields:
            The segment, the first row of the chunk and one past its last, and rows from `overlap` before (or
            the beginning of the segment) to `overlap` after (or its end).
        """
        for segment in self.segments:
            for begin in range(segment.begin, segment.end, size):
                end = min(begin + size, segment.end)
                low, high = max(begin - overlap, segment.begin), min(end + overlap, segment.end)
                yield segment, begin, end, self.read(low, high)
