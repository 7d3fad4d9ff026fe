# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics sim`: the graph of nodes as processes, with one status line."""

from __future__ import annotations

import argparse
import re
import signal
import socket
import sys
import threading
import time
from typing import Any

import yaml

from quad_dynamics.cli.option_flags import add_flags, given_flags
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.graph import GraphOptions, graph

HELP = 'start simulation, controller and viewer as ROS nodes'
DESCRIPTION = """\
Starts the nodes, each a process of its own, and shows how they are: what `ros2 launch quad_dynamics
sim.launch.py` does, where no ROS is installed. The robot lies, gets up, and stands. Ctrl-C ends everything.

examples:
  quad_dynamics sim                                   the bundled Mini Cheetah; open the page it names
  quad_dynamics sim --robot path/to/robot.urdf --terrain stairs
  quad_dynamics sim --headless --record my_bag        no page; a bag of everything
  quad_dynamics sim --contact spring_damper -p sim_node.mu=0.8 -p force_node.rise_time=2.0
  quad_dynamics sim --lock-step --headless --record run1 --duration 5

Topics and services are those of docs/nodes: `quad_dynamics topics` lists them while it runs.
"""

_PAGE = re.compile(r'viewer: (\S+)')
_LOOK = 0.05  # between two looks at the processes [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_flags(parser, GraphOptions)
    parser.add_argument(
        '-p', '--param', action='append', default=[], metavar='NODE.NAME=VALUE', help='a parameter of a node'
    )
    parser.add_argument(
        '--duration',
        type=float,
        default=0.0,
        metavar='S',
        help='end after so many seconds [s] (default: never); in lock-step with --record: of simulated time',
    )
    parser.add_argument('--verbose', action='store_true', help='show all that the nodes say')


def run(arguments: argparse.Namespace) -> int:
    """Run the graph; exit code 1 if it could not go on."""
    from quad_dynamics.ros.environment import require_ros
    from quad_dynamics.ros.supervisor import Supervisor

    require_ros()
    given = given_flags(arguments, GraphOptions)
    bag_decides = bool(given.get('lock_step') and given.get('record') and arguments.duration > 0.0)
    if bag_decides:
        given.setdefault('record_duration', arguments.duration)
    usual = GraphOptions().port
    port = _free_port(given.get('host', '127.0.0.1'), usual)
    if 'port' not in given and port != usual:
        given['port'] = port
    specs = graph(given, _extra(arguments.param))
    screen = _Screen(arguments.verbose)
    supervisor = Supervisor(specs, screen.say)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    ends = arguments.duration > 0.0 and not bag_decides
    deadline = time.monotonic() + arguments.duration if ends else float('inf')
    names = ', '.join(spec.executable if spec.is_node else spec.arguments[0] for spec in specs)
    screen.say('', f'starting {names}; Ctrl-C ends them')
    try:
        supervisor.start()
        _tell_of_compiling(screen)
        with _watch(given.get('namespace', '')) as status:
            while not (stop.is_set() or supervisor.failed or time.monotonic() >= deadline):
                if bag_decides and supervisor.has_ended('record'):
                    break
                supervisor.look()
                screen.show(status.line())
                stop.wait(_LOOK)
    finally:
        screen.show('')
        supervisor.stop()
    if supervisor.failed:
        print(f'error: {supervisor.failed}', file=sys.stderr)
    return 1 if supervisor.failed else 0


def _tell_of_compiling(screen: _Screen) -> None:
    from quad_dynamics.kernels.disk_cache import cache_directory

    if not any(cache_directory().glob('*')):
        screen.say('', 'the first start on this machine compiles, which takes about a minute')


def _watch(namespace: str) -> Any:
    from quad_dynamics.ros.status import Status

    return Status(namespace)


def _extra(given: list[str]) -> dict[str, dict[str, Any]]:
    """Parameters of nodes from `node.name=value`."""
    found: dict[str, dict[str, Any]] = {}
    for text in given:
        name, equals, value = text.partition('=')
        node, dot, parameter = name.partition('.')
        if not (equals and dot and node and parameter):
            raise ArgumentError(f'-p {text}: expected NODE.NAME=VALUE, such as sim_node.mu=0.8')
        try:
            found.setdefault(node, {})[parameter] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ArgumentError(f'-p {text}: {value!r} is no value; expected a number or a text') from error
    return found


def _free_port(host: str, wanted: int) -> int:
    """The port that is wanted, or a free one if it is taken."""
    for port in (wanted, 0):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, port))
            except OSError:
                continue
            return int(trial.getsockname()[1])
    return wanted


class _Screen:
    """Lines of the processes, and below them the status line, where there is a terminal."""

    def __init__(self, verbose: bool) -> None:
        self._verbose, self._terminal = verbose, sys.stdout.isatty()
        self._lock = threading.Lock()
        self._status, self._page, self._shown = '', '', 0.0

    def say(self, name: str, line: str) -> None:
        """A line of a process, or of ours."""
        page = _PAGE.search(line) if name == 'viewer_node' else None
        if page is not None:
            self._page = page[1]
            name, line = '', f'open {page[1]} in a browser'
        if name and not self._verbose and _is_chatter(line):
            return
        with self._lock:
            self._clear()
            print(f'[{name}] {line}' if name else line, flush=True)
            self._draw()

    def show(self, status: str) -> None:
        """The status line from now on; without a terminal, a line every ten seconds."""
        now = time.monotonic()
        if self._terminal:
            if status == self._status and now - self._shown < 1.0:
                return
            with self._lock:
                self._clear()
                self._status, self._shown = status, now
                self._draw()
        elif status and now - self._shown >= 10.0:
            self._shown = now
            print(status, flush=True)

    def _clear(self) -> None:
        if self._terminal and self._status:
            print('\r\x1b[K', end='')

    def _draw(self) -> None:
        if self._terminal and self._status:
            page = f'  {self._page}' if self._page else ''
            print(f'{self._status}{page}', end='', flush=True)


def _is_chatter(line: str) -> bool:
    """Whether a line is of those that tell nothing new to who sees the status line."""
    return '[INFO]' in line or '[DEBUG]' in line or not line.strip()
