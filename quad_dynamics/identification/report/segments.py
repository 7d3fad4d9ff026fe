# SPDX-License-Identifier: Apache-2.0
"""Segments of samples without gaps, over which plotted lines and spectra may extend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.equations.samples import Samples


@dataclass(frozen=True)
class Survey:
    """Overview of the samples.

    Attributes:
        samples: number of samples.
        period: between adjacent samples [s]; 0 if no two samples are adjacent.
        begin: time of the first sample [s].
        end: time of the last sample, with recordings one after another [s].
        longest: number of samples of the longest segment.
        recordings: number of recordings, according to the times.
    """

    samples: int
    period: float
    begin: float
    end: float
    longest: int
    recordings: int


class Timeline:
    """Puts the times of several recordings onto one axis, and finds the beginnings of segments."""

    def __init__(self, samples: Samples) -> None:
        """Start at the first sample; chunks of samples are added in their order."""
        self._get = samples.layout.get
        self._time, self._segment, self._now = np.nan, np.nan, np.nan
        self.recordings = 0

    def add(self, rows: Floats) -> tuple[Floats, Bools]:
        """(n,) times of the next rows [s], and where a segment begins; n may be 0."""
        time, segment = self._get(rows, 'time'), self._get(rows, 'segment')
        if not len(rows):
            return time, np.zeros(0, dtype=bool)
        steps = np.diff(time, prepend=self._time)
        starts = (np.diff(segment, prepend=self._segment) != 0.0) | ~(steps > 0.0)
        self.recordings += int(np.sum(~(steps > 0.0)))
        first = float(time[0]) if np.isnan(self._now) else self._now
        made = first + np.cumsum(np.where(np.isnan(steps), 0.0, np.maximum(steps, 0.0)))
        self._time, self._segment, self._now = float(time[-1]), float(segment[-1]), float(made[-1])
        return made, starts


def survey(samples: Samples) -> Survey:
    """Overview of the times of all samples."""
    timeline = Timeline(samples)
    begin = end = np.nan
    longest = current = 0
    period = 0.0
    for rows in samples.chunks():
        time, starts = timeline.add(rows)
        begin, end = (time[0] if np.isnan(begin) else begin), time[-1]
        steps = np.diff(time)[~starts[1:]]
        period = period or (float(np.median(steps)) if len(steps) else 0.0)
        lengths = np.diff([0, *np.flatnonzero(starts), len(rows)])
        current += int(lengths[0])
        for length in lengths[1:]:
            longest, current = max(longest, current), int(length)
        longest = max(longest, current)
    return Survey(len(samples), period, float(begin), float(end), longest, max(timeline.recordings, 1))
