# SPDX-License-Identifier: Apache-2.0
"""The status of the nodes, and the real-time factor."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

_WINDOW = 2.0  # over which the real-time factor is measured [s]
_STALE = 2.0  # age after which a node's words do not count any more [s]
_STALE_COMPILING = 8.0  # the same while it compiles, which leaves it little time [s]
_TIPPED = 1.0  # tilt from which on a robot does not stand up by itself [rad]


class Line(NamedTuple):
    """A line of the status, and its tone."""

    text: str
    tone: Literal['plain', 'busy', 'warning', 'error', 'advice'] = 'plain'


@dataclass
class Words:
    """The last status of a node."""

    came: float = -1e9
    level: int = 0
    message: str = ''
    values: dict[str, str] = field(default_factory=dict)


class Status:
    """The state of the simulation and its controller, as far as the page knows."""

    def __init__(self, names: dict[str, str], optional: Collection[str] = ()) -> None:
        """Start without any information.

        Args:
            names: short names of nodes by the names that they have on /diagnostics.
            optional: short names of optional nodes, which are shown once they have reported.
        """
        self._names, self._optional = names, optional
        self._words = {short: Words() for short in names.values()}
        self._times: deque[tuple[float, float]] = deque()

    def hear(self, message: Any, now: float) -> list[str]:
        """Take a diagnostic_msgs/DiagnosticArray; returns the short names of its nodes."""
        heard = []
        for status in message.status:
            short = self._names.get(status.name.strip('/'))
            if short is None:
                continue
            values = {item.key: item.value for item in status.values}
            level = status.level[0] if isinstance(status.level, bytes) else int(status.level)
            self._words[short] = Words(now, level, status.message, values)
            heard.append(short)
        return heard

    def words(self, short: str, now: float) -> Words | None:
        """The latest status of a node; None if it does not report."""
        words = self._words[short]
        longest = _STALE_COMPILING if 'compiling' in words.values else _STALE
        return words if now - words.came < longest else None

    def latched(self, short: str, now: float) -> str:
        """The fault for which a node damps until it is told to recover; '' if there is none."""
        words = self.words(short, now)
        return '' if words is None else words.values.get('latched', '')

    def is_compiling(self, now: float) -> bool:
        """Whether any node is still compiling its kernels."""
        all_words = (self.words(short, now) for short in self._words)
        return any(words is not None and 'compiling' in words.values for words in all_words)

    def tick(self, simulated: float, now: float) -> None:
        """Note the simulated time [s]."""
        if self._times and simulated < self._times[-1][1]:
            self._times.clear()
        self._times.append((now, simulated))
        while self._times[0][0] < now - _WINDOW:
            self._times.popleft()

    @property
    def simulated(self) -> float | None:
        """Simulated time [s]."""
        return self._times[-1][1] if self._times else None

    @property
    def real_time_factor(self) -> float | None:
        """Simulated time over wall time, of the last seconds."""
        if not self._times:
            return None
        (first, start), (last, end) = self._times[0], self._times[-1]
        return (end - start) / (last - first) if last - first > 0.5 else None

    def lines(self, now: float) -> list[Line]:
        """What to show: time, and then each node."""
        lines = []
        factor = self.real_time_factor
        if self.simulated is not None:
            rate = '' if factor is None else f' · real time x {factor:.2f}'
            lines.append(Line(f'{self.simulated:.2f} s{rate}'))
        shown = [short for short in self._words if short not in self._optional or self._has_spoken(short)]
        return lines + [self._line(short, now) for short in shown]

    def _has_spoken(self, short: str) -> bool:
        return self._words[short].came >= 0.0

    def _line(self, short: str, now: float) -> Line:
        words = self.words(short, now)
        if words is None:
            came = self._words[short].came
            if came < 0.0:
                return Line(f'{short}: no diagnostics yet', 'warning')
            return Line(f'{short}: no diagnostics for {now - came:.0f} s; is it still running?', 'error')
        mode = words.values.get('mode', '')
        text = f'{short}: {f"{mode}, " if mode and mode not in words.message else ""}{words.message}'
        if 'compiling' in words.values:
            return Line(text, 'busy')
        return Line(text, 'error' if words.level >= 2 else 'warning' if words.level == 1 else 'plain')


def advice(tilt: float) -> Line:
    """What the user can do when the controller has stopped and damps the joints.

    Args:
        tilt: of the base now [rad]; NaN if unknown.
    """
    if tilt > _TIPPED:
        text = (
            'The robot lies on its side or back and cannot get up. Use Reset to return to the initial pose.'
        )
    else:
        text = (
            'The controller has stopped and only damps the joints. Recover resumes from here, '
            'Reset returns to the initial pose.'
        )
    return Line(text, 'advice')
