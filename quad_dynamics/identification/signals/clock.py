# SPDX-License-Identifier: Apache-2.0
"""Resampling of all channels of a recording to one uniform clock: that of the joints.

Stamps are assumed to be correct. Values between two stamps are interpolated; a gap ends a segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.checks import check_channel
from quad_dynamics.identification.recordings.recording import Channel, Chunk, Source
from quad_dynamics.identification.signals.base_motion import continuous
from quad_dynamics.identification.signals.interpolation import hold, interpolate
from quad_dynamics.identification.signals.quantities import TARGETS
from quad_dynamics.model.model import Model

_FIRST = 2000  # intervals from which the period is estimated
_MARGIN = 500_000_000  # time kept for interpolation, and largest lateness of other channels [ns]
_QUATERNIONS = {'base': slice(3, 7), 'imu': slice(0, 4)}
_HELD = 1_000_000_000  # time for which a command is assumed to be held [ns]


@dataclass
class ClockCheck:
    """Regularity of the stamps of a channel.

    Attributes:
        messages: number of messages.
        period: mean time between two, without gaps [s].
        jitter: standard deviation of that time [s].
        longest: longest time between two messages [s].
        gaps: number of gaps.
        doubled: messages with the same stamp as the previous one; the first of them is used.
    """

    messages: int = 0
    period: float = 0.0
    jitter: float = 0.0
    longest: float = 0.0
    gaps: int = 0
    doubled: int = 0
    _intervals: int = 0
    _sum: float = 0.0
    _squares: float = 0.0

    def add(self, intervals: Floats, usual: float, longest: float) -> None:
        """Add some intervals [s]; those beyond `longest` are gaps."""
        if not len(intervals):
            return
        self.longest = max(self.longest, float(intervals.max()))
        even = intervals[intervals <= longest]
        self.gaps += len(intervals) - len(even)
        self._intervals += len(even)
        self._sum += float(np.sum(even - usual))
        self._squares += float(np.sum((even - usual) ** 2))
        if self._intervals:
            mean = self._sum / self._intervals
            self.period = usual + mean
            self.jitter = float(np.sqrt(max(self._squares / self._intervals - mean**2, 0.0)))


def usual_period(stamps: Ints) -> float:
    """Time between two messages without gaps [ns]."""
    steps = np.diff(stamps[: _FIRST + 1]).astype(np.float64)
    steps = steps[steps > 0.0]
    if not len(steps):
        return 0.0
    middle = float(np.sort(steps)[(len(steps) - 1) // 2])  # one of them, not between two
    return float(np.mean(steps[(steps > 0.5 * middle) & (steps < 1.5 * middle)]))


class _Line:
    """One channel, with its most recent rows in memory."""

    def __init__(self, first: Channel, gap: float, quaternion: slice | None) -> None:
        self._quaternion = quaternion
        self.columns = first.columns
        self.period = usual_period(first.stamps)
        self.longest = gap * self.period
        self.stamps, self.values = first.stamps[:0], first.values[:0]
        self.check = ClockCheck()
        self._last: int | None = None

    def add(self, channel: Channel) -> None:
        stamps, values = channel.stamps, channel.values
        before = stamps[:0] if self._last is None else np.array([self._last])
        steps = np.diff(np.concatenate([before, stamps]))
        self.check.messages += len(stamps)
        self.check.add(steps * 1e-9, self.period * 1e-9, self.longest * 1e-9)
        if len(stamps):
            self._last = int(stamps[-1])
        if self._quaternion is not None and len(stamps):
            values = values.copy()
            before_it = self.values[-1, self._quaternion] if len(self.values) else None
            values[:, self._quaternion] = continuous(values[:, self._quaternion], before_it)
        self.stamps = np.concatenate([self.stamps, stamps])
        self.values = np.concatenate([self.values, values])

    def forget(self, before: int) -> None:
        kept = self.stamps >= before
        self.stamps, self.values = self.stamps[kept], self.values[kept]


class EvenClock:
    """Resamples the channels of a recording to one uniform clock.

    Attributes:
        period: of the clock [s].
        start: stamp of its beginning [ns].
        sizes: quantities and their sizes.
        lines: channels.
    """

    def __init__(self, source: Source, model: Model, first: Chunk, gap: float, slopes: bool = False) -> None:
        """Initialise from the first chunk.

        Args:
            source: recording.
            model: robot.
            first: chunk with positions, and at least three stamps of each channel; quantities that are not in
                it are considered missing.
            gap: intervals of more than this many periods are gaps.
            slopes: velocities are needed and were not measured; positions are differentiated.

        Raises:
            ArgumentError: a quantity is missing for some joints.
        """
        self._source = source
        self.lines = {key: _Line(channel, gap, _QUATERNIONS.get(key)) for key, channel in first.items()}
        self._main = self.lines['position']
        self.period = self._main.period * 1e-9
        self.start = int(first['position'].stamps[0])
        self.sizes = _sizes(source, model, first)
        if slopes:
            self.sizes['velocity'] = model.nj
        self._slopes = slopes
        self._model = model
        self._anchor, self._next = self.start, 0
        self._open = False

    def count_repeated(self, counts: Mapping[str, int]) -> None:
        """Count the rows of each channel that were left out because their stamp was that of the previous."""
        for key, line in self.lines.items():
            line.check.messages += counts.get(key, 0)
            line.check.doubled += counts.get(key, 0)

    def rows(self, chunk: Chunk | None) -> Iterator[tuple[Floats, float | None]]:
        """Rows that a chunk completes, with all quantities in the order of `sizes`.

        Args:
            chunk: without repeated stamps; None at the end.

        Yields:
            (n, width) rows, and the time of the first one [s], None if they continue the previous rows.

        Raises:
            ArgumentError: time goes backwards, or a number is not finite.
        """
        for key, channel in (chunk or {}).items():
            if key in self.lines:
                line = self.lines[key]
                check_channel(self._source.name, key, channel, line._last, self.start, self._model)
                line.add(channel)
        stamps = self._main.stamps
        if not len(stamps):
            return
        horizon = int(stamps[-1]) - (_MARGIN if chunk is not None else 0)
        breaks = np.flatnonzero(np.diff(stamps) > self._main.longest)
        ends = [*stamps[breaks], stamps[-1]]
        begins = [self._anchor, *stamps[breaks + 1]]
        for begin, end in zip(begins, ends, strict=True):
            if begin > horizon:
                break
            if begin != self._anchor:
                self._anchor, self._next, self._open = int(begin), 0, False
            yield from self._even_rows(min(int(end), horizon))
        for line in self.lines.values():
            line.forget(horizon - _MARGIN)

    def _even_rows(self, end: int) -> Iterator[tuple[Floats, float | None]]:
        """Rows from the end of the last ones, without a gap of the joints."""
        step = self._main.period
        last = int(np.floor((end - self._anchor) / step + 1e-6))
        if last < self._next:
            return
        at = np.arange(self._next, last + 1, dtype=np.float64) * step
        rows, known = self._values(at)
        time = (self._anchor - self.start + at) * 1e-9
        self._next = last + 1
        edges = np.flatnonzero(np.diff(known.astype(np.int8))) + 1
        for segment in np.split(np.arange(len(at)), edges):
            if not known[segment[0]]:
                self._open = False
                continue
            yield rows[segment], None if self._open else float(time[segment[0]])
            self._open = True

    def _values(self, at: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """All quantities at some times after the anchor [ns]."""
        places = np.cumsum([0, *self.sizes.values()])
        place = dict(zip(self.sizes, places[:-1], strict=True))
        rows, known = np.zeros((len(at), int(places[-1]))), np.ones(len(at), dtype=np.bool_)
        # joints in no channel are at rest, as close to zero as their range allows
        rows[:, place['position'] + np.arange(self._model.nj)] = np.clip(
            0.0, self._model.q_min, self._model.q_max
        )
        for key, line in self.lines.items():
            quantity = key.split('#', 1)[0]
            time = (line.stamps - self._anchor).astype(np.float64)
            if not len(time):
                known[:] = False
                continue
            if quantity in TARGETS:
                values, there = hold(time, line.values, at, _HELD)
            elif quantity.startswith('contact/'):  # nearest value
                values, there = hold(time, line.values, at + 0.5 * line.period, _HELD)
            else:
                values, there = interpolate(time, line.values, at, line.longest)
            known &= there
            columns = np.array(line.columns or range(self.sizes[quantity]), dtype=np.int64)
            rows[:, place[quantity] + columns] = values
            if quantity == 'position' and self._slopes:
                slope, there = self._slope(line, time, at)
                known &= there
                rows[:, place['velocity'] + columns] = slope
        return rows, known

    def _slope(self, line: _Line, time: Floats, at: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Derivatives of values: central differences over two periods."""
        step = self._main.period
        after, known = interpolate(time, line.values, at + step, line.longest)
        before, known_before = interpolate(time, line.values, at - step, line.longest)
        return (after - before) / (2e-9 * step), known & known_before


def _sizes(source: Source, model: Model, first: Chunk) -> dict[str, int]:
    """Quantities and their sizes; a quantity that some joints lack is an error, except for still joints."""
    columns: dict[str, list[int]] = {}
    widths: dict[str, int] = {}
    for key, channel in first.items():
        quantity = key.split('#', 1)[0]
        columns.setdefault(quantity, []).extend(channel.columns or range(channel.values.shape[1]))
        widths[quantity] = model.nj if channel.columns else channel.values.shape[1]
    for quantity, found in columns.items():
        if len(found) != len(set(found)):
            double = [model.joint_names[i] for i in sorted(set(found)) if found.count(i) > 1]
            raise ArgumentError(
                f'{source.name}: {quantity} of {double} comes in messages of several kinds; expected one kind'
            )
        if len(found) < widths[quantity]:
            present = [model.joint_names[i] for i in found]
            if lacking := source.topics.missing(model.joint_names, present):
                raise ArgumentError(f'{source.name}: {quantity} of the joints {lacking} is missing')
            still = ', '.join(name for name in model.joint_names if name not in present)
            source.note(f'joints that are not recorded are taken to be at rest: {still}')
    return widths
