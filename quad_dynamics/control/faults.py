# SPDX-License-Identifier: Apache-2.0
"""Faults, and whether they latch until someone has checked the robot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

FaultHandler = Callable[[str, str], None]

# Number of exceptions that latch, and the time in which they must occur [s].
_MOST_EXCEPTIONS, _WINDOW = 3, 1.0


class Faults:
    """Reports faults, and stores the one that latches.

    Attributes:
        latched: the latched fault, '' if there is none.
        kind: of the latched fault.
    """

    def __init__(self, on_fault: FaultHandler | None = None) -> None:
        """Start without faults.

        Args:
            on_fault: called with kind and text of each fault.
        """
        self._on_fault = on_fault or (lambda kind, text: None)
        self._times: deque[float] = deque(maxlen=_MOST_EXCEPTIONS)
        self.latched = self.kind = ''

    def note(self, kind: str, text: str) -> None:
        """Report a transient fault."""
        self._on_fault(kind, text)

    def latch(self, kind: str, text: str) -> None:
        """Report a fault that persists until `recover`."""
        self._on_fault(kind, text)
        if not self.latched:
            self.latched, self.kind = text, kind

    def exception(self, error: Exception, time: float) -> None:
        """Report an exception of a control law at the time of a state [s]; several within a second latch."""
        text = f'{type(error).__name__}: {error}'
        self._times.append(time)
        # Times that differ by less than the window in either direction: time may have been reset.
        if len(self._times) == _MOST_EXCEPTIONS and abs(time - self._times[0]) <= _WINDOW:
            self.latch('exception', text)
        else:
            self.note('exception', text)

    def recover(self) -> str:
        """Clear the latched fault, and return it."""
        was, self.latched, self.kind = self.latched, '', ''
        self._times.clear()
        return was
