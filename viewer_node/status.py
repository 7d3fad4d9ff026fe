# SPDX-License-Identifier: Apache-2.0
"""What the nodes say about themselves, and how fast time goes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

_WINDOW = 2.0  # over which the real-time factor is measured [s]
_STALE = 2.0  # age after which a node's words do not count any more [s]


@dataclass
class Words:
    """The last status of a node."""

    came: float = -1e9
    level: int = 0
    message: str = ''
    values: dict[str, str] = field(default_factory=dict)


class Status:
    """The state of the simulation and its controller, as far as the page knows."""

    def __init__(self, names: dict[str, str]) -> None:
        """Know nothing.

        Args:
            names: short names of nodes by the names that they have on /diagnostics.
        """
        self._names = names
        self._words = {short: Words() for short in names.values()}
        self._times: deque[tuple[float, float]] = deque()

    def hear(self, message: Any, now: float) -> list[str]:
        """Take a diagnostic_msgs/DiagnosticArray; returns the short names of those who spoke."""
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
        """What a node said lately; None if it is silent."""
        words = self._words[short]
        return words if now - words.came < _STALE else None

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

    def lines(self, now: float) -> tuple[list[str], list[str]]:
        """What to show: plain lines, and warnings."""
        lines, warnings = [], []
        factor = self.real_time_factor
        if self.simulated is not None:
            rate = '' if factor is None else f' · real time x {factor:.2f}'
            lines.append(f'{self.simulated:.2f} s{rate}')
        for short in self._words:
            words = self.words(short, now)
            if words is None:
                warnings.append(f'{short} is silent')
                continue
            mode = words.values.get('mode', '')
            text = f'{short}: {f"{mode}, " if mode and mode not in words.message else ""}{words.message}'
            (warnings if words.level >= 2 else lines).append(text)
        return lines, warnings
