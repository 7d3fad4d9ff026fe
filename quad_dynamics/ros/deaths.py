# SPDX-License-Identifier: Apache-2.0
"""What to do when a process of the graph has ended: start it again, go on without it, or end everything."""

from __future__ import annotations

import enum
import signal
import time
from collections import deque

from quad_dynamics.ros.node_spec import NodeSpec
from quad_dynamics.ros.process import CANNOT_SERVE, WRONG_PARAMETERS

# A process that dies so often within so many seconds is not started again.
_MOST_DEATHS, _WITHIN = 5, 20.0
# Signals that somebody else sends; who lives less than this has not been at work [s].
_OF_OTHERS, _AT_ONCE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP), 0.8
_WITHOUT = 'everything else goes on without it'


class Next(enum.Enum):
    """What follows the end of a process."""

    RESTART = 'restart'
    GO_ON = 'go on'  # without it, as it should be
    DO_WITHOUT = 'do without'  # something is lost
    END = 'end'  # everything


class Deaths:
    """Counts the deaths of a process, but for those by somebody else's signal, unless it comes at once."""

    def __init__(self) -> None:
        """None yet; it lives from now on."""
        self._times: deque[float] = deque(maxlen=_MOST_DEATHS)
        self._born = time.monotonic()

    def too_many(self, code: int) -> bool:
        """Take one more; return whether it dies all the time.

        Args:
            code: exit code; below zero: the signal.
        """
        now = time.monotonic()
        lived, self._born = now - self._born, now
        if -code not in _OF_OTHERS or lived < _AT_ONCE:
            self._times.append(now)
        return len(self._times) == _MOST_DEATHS and now - self._times[0] < _WITHIN

    def judge(self, spec: NodeSpec, code: int) -> tuple[Next, str]:
        """What to do now that a process has ended, and a sentence that says so.

        Args:
            spec: of the process.
            code: its exit code; below zero: the signal.
        """
        how = _how(code)
        if code == CANNOT_SERVE and not spec.needed:
            return Next.GO_ON, f'{spec.name} cannot work here (see its message); {_WITHOUT}'
        if code == 0 and not (spec.respawn and spec.is_node):
            return Next.GO_ON, f'{spec.name} has ended'
        if code == WRONG_PARAMETERS and spec.is_node:
            reason = f'{spec.name} refused to start'
        elif not spec.respawn or (code > 0 and not spec.is_node):
            reason = f'{spec.name} ended with {how}'
        elif self.too_many(code):
            reason = f'{spec.name} died {_MOST_DEATHS} times within {_WITHIN:g} s, the last time with {how}'
        else:
            return Next.RESTART, f'{spec.name} died ({how}); it is started again'
        return (Next.END, reason) if spec.needed else (Next.DO_WITHOUT, f'{reason}; {_WITHOUT}')


def _how(code: int) -> str:
    return f'signal {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'
