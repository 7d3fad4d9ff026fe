# SPDX-License-Identifier: Apache-2.0
"""What to do when a process of the graph has exited: restart it, continue without it, or stop everything."""

from __future__ import annotations

import enum
import signal
import time
from collections import deque

from quad_dynamics.ros.node_spec import NodeSpec
from quad_dynamics.ros.process import CANNOT_SERVE, WRONG_PARAMETERS

# A process that dies this often within this time [s] is not restarted.
_MOST_DEATHS, _WITHIN = 5, 20.0
# External signals; a process that lived less than this was not running properly [s].
_OF_OTHERS, _AT_ONCE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP), 0.8
_WITHOUT = 'continuing without it'


class Next(enum.Enum):
    """The reaction to the exit of a process."""

    RESTART = 'restart'
    GO_ON = 'go on'  # a normal exit
    DO_WITHOUT = 'do without'  # something is lost
    END = 'end'  # everything


class Deaths:
    """Counts the deaths of a process, except by external signals (unless it died right after its start)."""

    def __init__(self) -> None:
        """Start to count; the process has just started."""
        self._times: deque[float] = deque(maxlen=_MOST_DEATHS)
        self._born = time.monotonic()

    def too_many(self, code: int) -> bool:
        """Count one death; return whether it dies repeatedly.

        Args:
            code: exit code; negative: the signal.
        """
        now = time.monotonic()
        lived, self._born = now - self._born, now
        if -code not in _OF_OTHERS or lived < _AT_ONCE:
            self._times.append(now)
        return len(self._times) == _MOST_DEATHS and now - self._times[0] < _WITHIN

    def judge(self, spec: NodeSpec, code: int) -> tuple[Next, str]:
        """The reaction to the exit of a process, and a message.

        Args:
            spec: of the process.
            code: its exit code; negative: the signal.
        """
        how = _how(code)
        if code == CANNOT_SERVE and not spec.needed:
            return Next.GO_ON, f'{spec.name} cannot run here (see its message); {_WITHOUT}'
        if code == 0 and not (spec.respawn and spec.is_node):
            return Next.GO_ON, f'{spec.name} has exited'
        if code == WRONG_PARAMETERS and spec.is_node:
            reason = f'{spec.name} refused to start'
        elif not spec.respawn or (code > 0 and not spec.is_node):
            reason = f'{spec.name} exited with {how}'
        elif self.too_many(code):
            reason = f'{spec.name} died {_MOST_DEATHS} times within {_WITHIN:g} s, the last time with {how}'
        else:
            return Next.RESTART, f'{spec.name} died ({how}); restarting it'
        return (Next.END, reason) if spec.needed else (Next.DO_WITHOUT, f'{reason}; {_WITHOUT}')


def _how(code: int) -> str:
    return f'signal {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'
