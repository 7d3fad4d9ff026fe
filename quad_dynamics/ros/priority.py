# SPDX-License-Identifier: Apache-2.0
"""Real-time priority, as long as it leaves enough CPU time to other processes.

A thread with real-time priority is never preempted by ordinary ones. This keeps the period of a loop that
sleeps most of the time, but one that never sleeps would freeze the shell, the browser and everything else. So
a process that needs too much CPU time drops the priority, and tries again later, at growing intervals. How
much it needs can only be measured with the priority: without it, a loop on a busy machine is late and does
not sleep either.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

_LEVEL = 10  # of real-time scheduling, from 1 to 99
# Of planner_node, which works longer and may be late: it gives way to sim_node and force_node.
LOWER_LEVEL, LOWER_SHARE = 5, 0.75
# Share of all cores that sim_node and force_node together may use with real-time priority.
_MOST_OF_ALL = 0.6
_MOST_OF_A_CORE = 0.9
_REVIEW = 0.4  # shortest time over which CPU time is measured [s]
_REVIEWS = 4  # in a row that must show too much: a backlog passes
_GOOD = 60  # in a row, after which the next pause is short again
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0  # before a priority that was given back is asked for again [s]
_LONGEST_TURN = 0.2  # without a break, after which the kernel says so [s]


def largest_share() -> float:
    """CPU time over wall time above which a process loses real-time priority; 1 is one core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # another system
        cores = os.cpu_count() or 1
    return min(0.5 * _MOST_OF_ALL * cores, _MOST_OF_A_CORE)


class Priority:
    """The priority of this process.

    Attributes:
        is_urgent: whether its threads have real-time priority.
    """

    def __init__(self, wanted: bool, level: int = _LEVEL, share: float = 1.0) -> None:
        """Request real-time priority.

        Args:
            wanted: False: do not request it, for a loop that does not sleep.
            level: of real-time scheduling.
            share: of `largest_share` that it may use.
        """
        self.is_urgent = False
        self._level, self._limit = level, share * largest_share()
        self._wall, self._cpu = time.monotonic(), time.process_time()
        self.want(wanted)

    def want(self, wanted: bool) -> None:
        """Request the priority or drop it, depending on whether the loop sleeps between its turns."""
        self._wanted = wanted
        self._too_much = self._good = 0
        self._pause, self._not_before = _FIRST_PAUSE, 0.0
        self._measure()
        self._set(wanted)

    def review(self) -> None:
        """Drop the priority if the process needs too much, or request it again; to be called regularly."""
        if not self._wanted or time.monotonic() - self._wall < _REVIEW:
            return
        share = self._measure()
        if not self.is_urgent:
            if time.monotonic() >= self._not_before:
                self._too_much = 0
                self._set(True)
            return
        if share > self._limit:
            self._too_much, self._good = self._too_much + 1, 0
        else:
            self._too_much, self._good = 0, self._good + 1
        if self._too_much >= _REVIEWS:
            self._give_back()
        elif self._good >= _GOOD:
            self._pause = _FIRST_PAUSE

    def _measure(self) -> float:
        """CPU time over wall time since the last call."""
        wall, cpu = time.monotonic(), time.process_time()
        share = (cpu - self._cpu) / max(wall - self._wall, 1e-9)
        self._wall, self._cpu = wall, cpu
        return share

    def _give_back(self, number: int = 0, frame: Any = None) -> None:
        """Use ordinary priority for some time; also a signal handler."""
        if self.is_urgent:
            self._set(False)
            self._not_before = time.monotonic() + self._pause
            self._pause = min(2.0 * self._pause, _LONGEST_PAUSE)

    def _set(self, urgent: bool) -> None:
        if urgent == self.is_urgent:
            return
        if urgent and not self._watch_turns():
            self._wanted = False
            return
        self.is_urgent = come_first(urgent, self._level) and urgent
        if urgent and not self.is_urgent:
            self._wanted = False  # a user without the right, as most are

    def _watch_turns(self) -> bool:
        """Ask the kernel for a signal when a thread runs long without a break; False: not supported."""
        try:
            import resource

            if threading.current_thread() is not threading.main_thread():
                return False
            signal.signal(signal.SIGXCPU, self._give_back)
            _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
            soft = round(_LONGEST_TURN * 1e6)
            resource.setrlimit(resource.RLIMIT_RTTIME, (soft if hard < 0 else min(soft, hard), hard))
        except (ImportError, AttributeError, ValueError, OSError):  # another system, or an odd limit
            return False
        return True


def come_first(urgent: bool = True, level: int = _LEVEL) -> bool:
    """Set or drop real-time priority of all threads of this process; whether the system allows it.

    Child processes have ordinary priority: they would inherit the limit, but not its handler.
    """
    try:
        policy, level = (os.SCHED_RR, level) if urgent else (os.SCHED_OTHER, 0)
        policy |= os.SCHED_RESET_ON_FORK
        for task in Path('/proc/self/task').iterdir():
            with contextlib.suppress(ProcessLookupError):  # it has ended in the meantime
                os.sched_setscheduler(int(task.name), policy, os.sched_param(level))
    except (AttributeError, OSError):
        return False
    return True
