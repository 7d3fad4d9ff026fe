# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics record`: record topics into a ROS 2 bag."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from pathlib import Path

from quad_dynamics.errors import ArgumentError

HELP = 'record topics into a ROS 2 bag'

DESCRIPTION = """\
Record topics into a ROS 2 bag (mcap or sqlite3) that `ros2 bag` and rosbags can read.

Topics are discovered as they appear. Each subscription uses the best quality of service that its
publishers offer, so that reliable and latched messages are received. Lost messages are counted,
reported at the end, and noted in metadata.yaml (custom_data).

The command prints 'recording N topics into FOLDER' when it is ready. Stop it with Ctrl-C or SIGTERM.
If it is killed, the bag lacks its end and at most the last 20 ms; run 'quad_dynamics repair FOLDER'.

examples:
  quad_dynamics record                              all topics, into rosbag2_YEAR_MONTH_DAY-...
  quad_dynamics record -o run --duration 10         10 seconds into the folder run
  quad_dynamics record --topics joint_states imu/data 'foot_forces/*'
  quad_dynamics record --exclude '/markers' --storage sqlite3
  quad_dynamics record --namespace robot1           topics below /robot1, and /clock, /tf

simulated time:
  With --sim-time the times in the bag are the stamps of the messages, or the latest /clock for
  messages without a stamp, never the wall clock. Messages are buffered for --window seconds of
  simulated time and written in order of stamp and topic. A message identical to the previous one on
  its topic, including the stamp, is written once (a paused simulation repeats itself). Two identical
  lock-step runs thus give bit-identical files, including metadata.yaml if the folders have the same
  name. /diagnostics, /rosout and /parameter_events depend on the wall clock and are left out unless
  they are named. Buffered messages are lost if the recorder is killed.

exit code: 0 success (even if messages were lost), 1 the bag could not be written, 2 usage error
"""

# Their contents depend on the wall clock.
_NOT_SIMULATED = ('/diagnostics', '/rosout', '/parameter_events')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        '-o',
        '--output',
        metavar='FOLDER',
        help='folder of the bag; must not exist (default: named after the date)',
    )
    add('--next', action='store_true', help='if FOLDER exists, record into FOLDER_2, FOLDER_3, ...')
    add('--storage', choices=('mcap', 'sqlite3'), default='mcap', help='format (default: %(default)s)')
    which = parser.add_mutually_exclusive_group()
    which.add_argument('-a', '--all', action='store_true', help='all topics except hidden ones (default)')
    which.add_argument(
        '--topics', metavar='T', nargs='+', default=(), help='topics to record; * and ? are wildcards'
    )
    add('--exclude', metavar='T', nargs='+', default=(), help='topics to leave out; * and ? are wildcards')
    add(
        '--namespace',
        metavar='NS',
        default='/',
        help='namespace of relative names; record only topics below it',
    )
    add(
        '--duration',
        metavar='S',
        type=positive,
        help='stop after this time [s]; simulated time with --sim-time',
    )
    add('--sim-time', action='store_true', help='take time and order from the stamps of the messages')
    add(
        '--window',
        metavar='S',
        type=positive,
        default=1.0,
        help='with --sim-time: how long to buffer messages [s of simulated time] (default: %(default)g)',
    )


def positive(text: str) -> float:
    """A positive number from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0')
    return value


def _next(folder: Path) -> Path:
    """The folder, or one with a number appended to its name if it already exists."""
    from quad_dynamics.bags.metadata import RECORDING, STATE, custom_data, read_metadata

    chosen, last = folder, None
    for number in itertools.count(2):
        if not os.path.lexists(chosen):
            break
        last, chosen = chosen, folder.with_name(f'{folder.name}_{number}')
    if last is not None:
        unfinished = custom_data(read_metadata(last)).get(STATE) == RECORDING
        hint = f' and is unfinished (run: quad_dynamics repair {last})' if unfinished else ''
        print(f'{last} exists{hint}; recording into {chosen}', flush=True)
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Record until stopped."""
    from quad_dynamics.bags.writers import BagWriter, check_new
    from quad_dynamics.ros.environment import require_ros, stay_on_this_machine
    from quad_dynamics.ros.process import CLOSING, run_node

    require_ros()
    folder = Path(arguments.output or time.strftime('rosbag2_%Y_%m_%d-%H_%M_%S'))
    if not folder.name:
        raise ArgumentError(f'--output is {arguments.output}; expected the name of a folder')
    if arguments.next:
        folder = _next(folder)
    check_new(folder, arguments.storage)
    stay_on_this_machine()

    from quad_dynamics.ros.recorder import Recorder, RecordOptions
    from quad_dynamics.ros.subscriptions import Selection

    exclude = list(arguments.exclude)
    if arguments.sim_time:
        exclude += [name for name in _NOT_SIMULATED if name not in arguments.topics]
    selection = Selection(arguments.topics, exclude, arguments.namespace)
    options = RecordOptions(selection, arguments.duration, arguments.sim_time, arguments.window)
    made: list[Recorder] = []

    def make() -> Recorder:
        made.append(Recorder(BagWriter(folder, arguments.storage), options))
        return made[0]

    code = run_node(make, ['quad_dynamics'], patience=CLOSING, starts_at_once=True)
    return code or int(any(recorder.failed for recorder in made))
