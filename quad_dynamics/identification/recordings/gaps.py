# SPDX-License-Identifier: Apache-2.0
"""Missing messages of a live recording: lost, late, or never sent."""

from __future__ import annotations

from collections import deque

import numpy as np

_KEPT, _EVERY = 51, 25  # steps whose median is the period, and how often it is updated
_ENOUGH = 10  # steps needed to estimate the period
_LOST = 1.5  # periods beyond which at least one message is missing
GAP = 5.0  # periods beyond which data are not interpolated, but end a segment: like `gap` of SignalSettings
_REPEATED = 'repeated.'  # name of the number of copies of a topic; they are no fault
# The topic of each channel, for diagnostics.
_TOPICS = {'position': 'joint_states', 'base': 'odom', 'imu': 'imu'}


class Stream:
    """The stamps of one channel.

    Attributes:
        last: stamp [ns]; -1 before the first.
        period: typical time between two [ns]; 0 while it is unknown.
        lost: number of missing messages.
        late: messages that arrived after a later one, and were skipped.
        repeated: copies of the previous message, which were skipped.
        gaps: number of times that are too long for interpolation.
        longest: longest gap [ns].
    """

    def __init__(self) -> None:
        self.last = -1
        self.period = 0.0
        self.lost = self.late = self.repeated = self.gaps = self.longest = 0
        self._steps: deque[int] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, stamp: int) -> None:
        """Add the stamp of a recorded message."""
        if self.last >= 0:
            self._step(stamp - self.last)
        self.last = stamp

    def _step(self, step: int) -> None:
        self._steps.append(step)
        self._count += 1
        if self._count == _ENOUGH or self._count % _EVERY == 0:
            self.period = float(np.median(self._steps))
        if not self.period or step <= _LOST * self.period:
            return
        self.lost += round(step / self.period) - 1
        if step > GAP * self.period:
            self.gaps += 1
            self.longest = max(self.longest, step)

    def silence(self, now: int) -> float:
        """Time since the last message, if this is a gap already [s].

        Args:
            now: newest stamp of the recording [ns].
        """
        step = now - self.last
        return step * 1e-9 if self.period and step > GAP * self.period else 0.0


class Gaps:
    """The streams of a recording, by channel."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}

    def add(self, channel: str, stamp: int) -> None:
        """Add a recorded message."""
        self._stream(channel).add(stamp)

    def refuse(self, channel: str) -> None:
        """Add a message that was skipped because a later one had arrived before it."""
        self._stream(channel).late += 1

    def repeat(self, channel: str) -> None:
        """Add a message that was skipped because it is a copy of the previous one."""
        self._stream(channel).repeated += 1

    def _stream(self, channel: str) -> Stream:
        return self._streams.setdefault(channel, Stream())

    @property
    def _now(self) -> int:
        return max((one.last for one in self._streams.values()), default=-1)

    def values(self) -> dict[str, float]:
        """Counts for diagnostics, by kind and topic; only those that are not zero."""
        found: dict[str, float] = {}
        for channel, one in sorted(self._streams.items()):
            topic = topic_of(channel)
            for name in ('lost', 'late', 'repeated', 'gaps'):
                if count := getattr(one, name):
                    found[f'{name}.{topic}'] = found.get(f'{name}.{topic}', 0) + count
            for name, seconds in (('longest_gap', one.longest * 1e-9), ('silent', one.silence(self._now))):
                if seconds:
                    found[f'{name}.{topic}'] = max(found.get(f'{name}.{topic}', 0.0), seconds)
        return found

    def copies(self) -> dict[str, int]:
        """Number of messages that were copies of the previous one, by topic."""
        values = self.values()
        return {name[len(_REPEATED) :]: int(values[name]) for name in values if name.startswith(_REPEATED)}

    def sentence(self) -> str:
        """Description of missing data; '' if there are none."""
        values = {name: value for name, value in self.values().items() if not name.startswith(_REPEATED)}
        parts = []
        for topic in dict.fromkeys(name.split('.', 1)[1] for name in values):
            words = []
            if lost := values.get(f'lost.{topic}'):
                words.append(f'{lost:g} message{"s" if lost > 1 else ""} lost')
            if late := values.get(f'late.{topic}'):
                words.append(f'{late:g} late')
            if gaps := values.get(f'gaps.{topic}'):
                longest = values[f'longest_gap.{topic}']
                words.append(f'{gaps:g} gap{"s" if gaps > 1 else ""} of up to {longest:.3g} s')
            if silent := values.get(f'silent.{topic}'):
                words.append(f'silent for {silent:.3g} s')
            parts.append(f'{topic}: {", ".join(words)}')
        return '; '.join(parts)


def topic_of(channel: str) -> str:
    """The default topic of a channel."""
    return 'foot_forces' if channel.startswith('force/') else _TOPICS.get(channel, channel)
