# SPDX-License-Identifier: Apache-2.0
"""What went wrong, and whether somebody has to look at it before the robot moves again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

FaultHandler = Callable[[str, str], None]

# So many exceptions in this time of the states latch [s].
_MOST_EXCEPTIONS, _WINDOW = 3, 1.0


class Faults:
    """Hands faults on, and remembers the one that latches.

    Attributes:
        latched: what was wrong, '' if nothing is.
        kind: of what latched.
    """

    def __init__(self, on_fault: FaultHandler | None = None) -> None:
        """Begin without faults.

        Args:
            on_fault: gets kind and text of each.
        """
        self._on_fault = on_fault or (lambda kind, text: None)
        self._times: deque[float] = deque(maxlen=_MOST_EXCEPTIONS)
        self.latched = self.kind = ''

    def note(self, kind: str, text: str) -> None:
        """A fault that passes by itself."""
        self._on_fault(kind, text)

    def latch(self, kind: str, text: str) -> None:
        """A fault that stays until `recover`."""
        self._on_fault(kind, text)
        if not self.latched:
            self.latched, self.kind = text, kind

    def exception(self, error: Exception, time: float) -> None:
        """An exception of a control law at the time of a state [s]; several within a second latch."""
        text = f'{type(error).__name__}: {error}'
        self._times.append(time)
        # Times that differ by less than the window in either direction: time may have begun anew.
        if len(self._times) == _MOST_EXCEPTIONS and abs(time - self._times[0]) <= _WINDOW:
            self.latch('exception', text)
        else:
            self.note('exception', text)

    def recover(self) -> str:
        """Forget what has latched, and return it."""
        was, self.latched, self.kind = self.latched, '', ''
        self._times.clear()
        return was
