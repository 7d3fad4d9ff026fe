# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics sim`: run the nodes as processes, with one status line."""

from __future__ import annotations

import argparse
import math
import re
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from quad_dynamics.cli.option_flags import add_flags, given_flags
from quad_dynamics.cli.record_command import positive
from quad_dynamics.cli.robot_options import add_xacro_option, xacro_args
from quad_dynamics.model.xacro_files import format_xacro_args
from quad_dynamics.ros.graph import GraphOptions

HELP = 'start simulator, controller and viewer as ROS nodes'
DESCRIPTION = """\
Start each node in its own process and show their status. This is the equivalent of `ros2 launch
quad_dynamics sim.launch.py` without a ROS installation. The robot starts lying down, gets up and stands.
Press Ctrl-C to stop everything.

examples:
  quad_dynamics sim                                   the bundled Mini Cheetah; open the page it names
  quad_dynamics sim --robot go2
  quad_dynamics sim --robot path/to/robot.urdf --terrain stairs
  quad_dynamics sim --walk                            drive it from the page, or with cmd_vel
  quad_dynamics sim --headless --record my_bag        no page; record all topics
  quad_dynamics sim --contact spring_damper -p sim_node.mu=0.8 -p force_node.rise_time=2.0
  quad_dynamics sim --lock-step --headless --record run1 --duration 5
  quad_dynamics sim --controller none                 your own node publishes joint_torques
  quad_dynamics sim --headless --initial-pose standing --mode computed_torque --play motion --record run2

docs/nodes describes topics and services; `quad_dynamics topics` lists them while the nodes run.

exit code: 0 stopped normally, 1 a node failed, 2 usage error (nothing was started)
"""

_PAGE = re.compile(r'viewer: (\S+)')
_LOOK = 0.05  # between two looks at the processes [s]
_CONTROLLED = 0.2  # simulated time after which a controller that does not damp controls the robot [s]
_LONGEST_WAIT = 10.0  # of the player, for subscribers of all topics [s]
_AFTER = 1.0  # what is recorded after the end of what is played [s]
_RESTARTED = 1.0  # a larger jump back of simulated time is a restart [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_flags(parser, GraphOptions, leave_out=('xacro_args', 'bag', 'output'))
    add_xacro_option(parser)
    parser.add_argument(
        '-p',
        '--param',
        action='append',
        default=[],
        metavar='NODE.NAME=VALUE',
        help='set a parameter of a node',
    )
    parser.add_argument(
        '--duration',
        type=positive,
        metavar='S',
        help='stop after this much simulated time [s] (default: never; with --play, at the end of the bag)',
    )
    parser.add_argument(
        '--play',
        metavar='BAG',
        default='',
        help='publish this bag once, when the robot is under control and the recorder is ready; a motion is '
        'followed to its end',
    )
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument('--verbose', action='store_true', help='show all output of the nodes')
    loudness.add_argument('--quiet', action='store_true', help='show warnings and errors only')


def run(arguments: argparse.Namespace) -> int:
    """Run the graph; exit code 1 if it failed."""
    from quad_dynamics.cli.sim_checks import checked_graph, read_parameters
    from quad_dynamics.ros.environment import require_ros
    from quad_dynamics.ros.supervisor import Supervisor

    require_ros()
    given = given_flags(arguments, GraphOptions)
    if arguments.xacro_arg:
        given['xacro_args'] = format_xacro_args(xacro_args(arguments))
    bag_decides = bool(given.get('lock_step') and given.get('record') and arguments.duration)
    if bag_decides:
        given.setdefault('record_duration', arguments.duration)
    specs = checked_graph(given, read_parameters(arguments.param))
    player = _Player(arguments.play, given)
    screen = _Screen(arguments.verbose, arguments.quiet)
    supervisor = Supervisor(specs, screen.say)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:  # as of nohup
            signal.signal(number, lambda *_: stop.set())
    watch = _StopWatch(None if bag_decides else arguments.duration)
    names = ', '.join(spec.name for spec in specs)
    screen.tell(f'starting {names}; press Ctrl-C to stop')
    try:
        supervisor.start()
        _tell_of_compiling(screen)
        with _watch(given) as status:
            while not (stop.is_set() or supervisor.failed or watch.has_ended(status.simulated_time())):
                if bag_decides and supervisor.has_ended('record'):
                    break
                if arguments.duration is None and player.has_ended:
                    break
                supervisor.look()
                player.look(status)
                screen.show(status.line())
                stop.wait(_LOOK)
    finally:
        screen.show('')
        player.stop()
        supervisor.stop()
    problems = [*supervisor.losses, *filter(None, [supervisor.failed, player.problem])]
    for problem in problems:
        print(f'error: {problem}', file=sys.stderr)
    return 1 if problems else 0


class _StopWatch:
    """Accumulates simulated time across resets and restarts of the simulation."""

    def __init__(self, duration: float | None) -> None:
        self._duration, self._total, self._last = duration, 0.0, 0.0

    def has_ended(self, now: float) -> bool:
        """Whether the duration has passed.

        Args:
            now: simulated time, 0 while the simulation is silent [s].
        """
        if now > 0.0:
            if now < self._last - _RESTARTED:
                self._last = now
            self._total += max(0.0, now - self._last)
            self._last = max(now, self._last)
        return self._duration is not None and self._total >= self._duration


class _Player:
    """Plays a bag once, when the robot is under control; before that, force_node rejects targets.

    It is created before the nodes start, so that discovery is complete when playback begins.
    """

    def __init__(self, bag: str, given: dict[str, Any]) -> None:
        self._player: Any = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._controlled = given.get('controller') != 'none'
        self._recorded = bool(given.get('record'))
        self._is_motion = False
        self._done = math.inf
        self.problem = ''
        if bag:
            self._player = self._make(bag, given.get('namespace', '').strip('/'))

    def _make(self, bag: str, below: str) -> Any:
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        from quad_dynamics.cli.sim_checks import topics_of_bag
        from quad_dynamics.ros.environment import stay_on_this_machine
        from quad_dynamics.ros.player import Player, PlayOptions, motion_namespace

        topics = topics_of_bag(bag)  # an invalid bag is a usage error
        self._is_motion = self._controlled and motion_namespace(Path(bag)) is not None
        self._joint_states = f'/{below}/joint_states' if below else '/joint_states'
        remap = {topic: f'/{below}{topic}' for topic in topics} if below else {}
        options = PlayOptions(
            remap=remap, delay=_LONGEST_WAIT, wait_for='force_node' if self._controlled else ''
        )
        stay_on_this_machine()
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        return Player(Path(bag), options)

    @property
    def has_ended(self) -> bool:
        """Whether playback ended some time ago."""
        return time.monotonic() > self._done + _AFTER

    def look(self, status: Any) -> None:
        """Start playback when the robot is ready, and note when it has ended."""
        if self._player is None:
            return
        if self._player.is_done and math.isinf(self._done):
            self._done, self.problem = time.monotonic(), self._player.problem
        damps = status.node('force_node').get('message', 'damping').startswith('damping')
        waits = (self._controlled and damps) or status.simulated_time() <= _CONTROLLED
        if self._thread is None and not waits and self._is_recorded():
            from quad_dynamics.ros.motion import FollowedMotion

            self._player.motion = FollowedMotion(status) if self._is_motion else None
            self._thread = threading.Thread(target=self._player.spin, args=(self._stop.is_set,), daemon=True)
            self._thread.start()

    def _is_recorded(self) -> bool:
        """Whether the recorder has subscribed, if there is one."""
        from quad_dynamics.ros.graph import RECORDER

        found = self._player.node.get_subscriptions_info_by_topic(self._joint_states)
        return not self._recorded or any(one.node_name == RECORDER for one in found)

    def stop(self) -> None:
        """Stop playback if it is still running."""
        if self._is_motion and not self._player.is_done:
            self.problem = 'stopped before the end of the motion'
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5.0)
        if self._player is not None:
            import rclpy

            self._player.close()
            rclpy.try_shutdown()


def _tell_of_compiling(screen: _Screen) -> None:
    from quad_dynamics.compiler.disk_cache import cache_directory

    if not any(cache_directory().glob('*')):
        screen.tell('compiling kernels on the first start; this takes about a minute')


def _watch(given: dict[str, Any]) -> Any:
    from quad_dynamics.ros.status import Status

    return Status(given.get('namespace', ''), given.get('controller') != 'none')


class _Screen:
    """Prints output of the processes, and on a terminal the status line below it."""

    def __init__(self, verbose: bool, quiet: bool) -> None:
        self._verbose, self._quiet, self._terminal = verbose, quiet, sys.stdout.isatty()
        self._lock = threading.Lock()
        self._status, self._page, self._shown = '', '', 0.0

    def say(self, name: str, line: str) -> None:
        """Print a line of a process, or of our own (name '')."""
        page = _PAGE.search(line) if name == 'viewer_node' else None
        if page is not None:
            self._page = page[1]
            self.tell(f'open {page[1]} in a browser')
        elif (
            not name
            or self._verbose
            or not (_is_chatter(line) or (self._quiet and line.startswith('record')))
        ):
            self._print(f'[{name}] {line}' if name else line)

    def tell(self, line: str) -> None:
        """Print an informational line of our own."""
        if not self._quiet:
            self._print(line)

    def _print(self, line: str) -> None:
        with self._lock:
            self._clear()
            print(line, flush=True)
            self._draw()

    def show(self, status: str) -> None:
        """Set the status line; without a terminal, print it every ten seconds."""
        now = time.monotonic()
        if self._quiet:
            return
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
            width = shutil.get_terminal_size().columns - 1  # a line that is broken cannot be cleared
            print(f'{self._status}{page}'[:width], end='', flush=True)


def _is_chatter(line: str) -> bool:
    """Whether a line adds nothing to the status line."""
    return not line.strip() or any(text in line for text in ('[INFO]', '[DEBUG]', 'also recording '))
