# SPDX-License-Identifier: Apache-2.0
"""Real-time priority is taken by processes that sleep, and given back by those that do not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quad_dynamics.ros.priority import come_first, largest_share

SLEEP, WORK = 'time.sleep(0.005)', 'sum(range(2000))'
# Runs a loop for some seconds; prints whether it ever had the priority, and whether it has it at the end.
PROGRAM = """
import os, sys, time
from quad_dynamics.ros.priority import Priority
priority = Priority({wanted})
def run(seconds, review):
    end, ever = time.monotonic() + seconds, False
    while time.monotonic() < end:
        {turn}
        if review:
            priority.review()
        ever |= priority.is_urgent
    return ever
{script}
policies = {{os.sched_getscheduler(int(task)) for task in os.listdir('/proc/self/task')}}
policies = {{policy & ~os.SCHED_RESET_ON_FORK for policy in policies}}
assert policies == {{os.SCHED_RR if priority.is_urgent else os.SCHED_OTHER}}, policies
print(ever, priority.is_urgent)
"""


def result(turn: str, script: str, wanted: bool = True) -> tuple[bool, bool]:
    code = PROGRAM.format(turn=turn, script=script, wanted=wanted)
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ever, last = done.stdout.split()
    return ever == 'True', last == 'True'


def is_allowed() -> bool:
    """Whether this user may have real-time priority; root may, most others not."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if come_first() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_loop_that_sleeps_has_it() -> None:
    allowed = is_allowed()
    assert result(SLEEP, 'ever = run(1.0, True)') == (allowed, allowed)


@pytest.mark.slow
def test_a_loop_that_does_not_sleep_loses_it_without_a_review() -> None:
    """The kernel tells it after 0.2 s, in the middle of what takes so long."""
    assert result(WORK, 'ever = run(0.7, False)') == (is_allowed(), False)
    script = 'ever = run(0.5, True)\nend = time.monotonic() + 0.7\nwhile time.monotonic() < end: pass'
    assert result(SLEEP, script) == (is_allowed(), False)


@pytest.mark.slow
def test_a_loop_that_sleeps_too_little_loses_it() -> None:
    """It sleeps often, so the kernel does not complain, but needs 90 % of a core; two may have 60 % each."""
    turn = (
        'time.sleep(0.0005); begin = time.monotonic()\n        while time.monotonic() < begin + 0.009: pass'
    )
    script = 'priority._limit = 0.6\never = run(2.5, True)'
    assert result(turn, script) == (is_allowed(), False)


def test_children_have_ordinary_priority_and_are_not_killed() -> None:
    """They would inherit both the priority and the limit, but not the handler."""
    child = (
        'import os, time\nprint(os.sched_getscheduler(0))\n'
        'end = time.monotonic() + 0.6\nwhile time.monotonic() < end: pass'
    )
    script = (
        'import subprocess\never = run(0.1, False)\n'
        f'done = subprocess.run([sys.executable, "-c", {child!r}], capture_output=True, text=True)\n'
        'assert (done.returncode, done.stdout.strip()) == (0, str(os.SCHED_OTHER)), done'
    )
    allowed = is_allowed()
    assert result(SLEEP, script) == (allowed, allowed)


def test_it_is_asked_for_again() -> None:
    script = (
        'priority._give_back()\never = run(0.5, True)\npriority._not_before = 0.0\never |= run(0.6, True)'
    )
    allowed = is_allowed()
    assert result(SLEEP, script) == (allowed, allowed)


@pytest.mark.slow
def test_who_does_not_want_it_does_not_get_it() -> None:
    assert result(SLEEP, 'ever = run(0.6, True)', wanted=False) == (False, False)
    assert result(SLEEP, 'ever = run(1.0, True)\npriority.want(False)')[1] is False


@pytest.mark.parametrize(('cores', 'share'), [(1, 0.3), (2, 0.6), (4, 0.9), (64, 0.9)])
def test_two_processes_leave_40_percent(monkeypatch: pytest.MonkeyPatch, cores: int, share: float) -> None:
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(cores)))
    assert largest_share() == pytest.approx(share)
    assert 2.0 * largest_share() <= 0.6 * cores + 1e-9
