# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics topics`: topics, their rates and message sizes."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from quad_dynamics.cli.record_command import positive
from quad_dynamics.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quad_dynamics.ros.topic_watch import TopicRow

HELP = 'show topics and their rates'

DESCRIPTION = """\
Show the topics of the ROS graph in one table: type, publishers, subscribers (excluding this command),
message rate, mean message size, and age of the last message.

Rates are measured for two seconds with best-effort subscriptions, so that no publisher is slowed down.
With --watch they are measured repeatedly until Ctrl-C.

examples:
  quad_dynamics topics                          once
  quad_dynamics topics --watch                  every second, in place
  quad_dynamics topics --watch 5 --topics '/foot_forces/*'
  quad_dynamics topics --json                   JSON; with --watch one line per measurement
"""

_ONCE = 2.0  # measuring time without --watch [s]
_HEAD = ('topic', 'type', 'publishers', 'subscribers', 'rate [Hz]', 'size [B]', 'age [s]')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        '--watch',
        metavar='S',
        type=positive,
        nargs='?',
        const=1.0,
        help='repeat every S seconds (default: 1)',
    )
    add('--topics', metavar='T', nargs='+', default=(), help='topics to show; * and ? are wildcards')
    add('--exclude', metavar='T', nargs='+', default=(), help='topics to leave out; * and ? are wildcards')
    add('--json', action='store_true', help='write JSON')


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    from quad_dynamics.ros.environment import require_ros, stay_on_this_machine
    from quad_dynamics.ros.process import run_node

    require_ros()
    stay_on_this_machine()
    return run_node(lambda: _Watch(arguments), ['quad_dynamics'])


class _Watch:
    """Measures and prints until it is stopped."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from quad_dynamics.ros.subscriptions import Selection
        from quad_dynamics.ros.topic_watch import TopicWatch

        self._arguments, self._terminal = arguments, Terminal()
        self._watch = TopicWatch(Selection(arguments.topics, arguments.exclude))

    def spin(self, stop: Callable[[], bool]) -> None:
        """Print a table, once or repeatedly."""
        self._watch.settle(stop)
        while not stop():
            rows = self._watch.measure(self._arguments.watch or _ONCE, stop)
            if stop():
                return
            self._print(rows)
            if self._arguments.watch is None:
                return

    def close(self) -> None:
        """Release all resources."""
        self._watch.close()

    def _print(self, rows: Sequence[TopicRow]) -> None:
        terminal = self._terminal
        if self._arguments.json:
            terminal.line(json.dumps([row.as_dict() for row in rows]))
        else:
            if self._arguments.watch is not None and terminal.stream.isatty():
                terminal.stream.write('\x1b[H\x1b[J')  # move to the top left and clear the screen
            terminal.table(_HEAD, [_cells(row) for row in rows], right=range(2, 7))
            if not rows:
                terminal.line('  no topics found: is a node running with the same ROS_DOMAIN_ID?')
        terminal.stream.flush()


def _cells(row: TopicRow) -> tuple[str, ...]:
    def number(value: float | None, digits: int) -> str:
        return '-' if value is None else f'{value:.{digits}f}'

    rate, size, age = number(row.rate, 1), number(row.size, 0), number(row.age, 2)
    return row.name, row.type, str(row.publishers), str(row.subscribers), rate, size, age
