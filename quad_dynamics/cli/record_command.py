# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics record`: write topics into a ROS 2 bag."""

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
Record topics into a ROS 2 bag (mcap or sqlite3), which `ros2 bag` and rosbags read too.

Topics are found as they appear. Each is subscribed with the best quality of service that its
publishers offer, so what is sent reliably arrives, and what is latched comes too. Messages that are
lost all the same are counted, told at the end, and noted in metadata.yaml (custom_data).

It prints 'recording N topics into FOLDER' when it is ready, and ends with Ctrl-C (or SIGTERM).
When it is killed, the bag lacks its end and at most the last 20 ms: 'quad_dynamics repair FOLDER'.

examples:
  quad_dynamics record                              everything, into rosbag2_YEAR_MONTH_DAY-...
  quad_dynamics record -o run --duration 10         10 seconds into the folder run
  quad_dynamics record --topics joint_states imu/data 'foot_forces/*'
  quad_dynamics record --exclude '/markers' --storage sqlite3
  quad_dynamics record --namespace robot1           what is below /robot1, and /clock, /tf

simulated time:
  With --sim-time the times in the bag are the stamps of the messages, or the newest /clock for
  messages without one, never the wall clock. Messages are held for --window seconds of simulated
  time and written in the order of stamp and topic. A message that is the same as the one before on
  its topic, stamp and all, is written once (a paused simulation repeats itself). So two identical
  runs in lock-step give identical files, bit by bit; metadata.yaml too, if the folders have the same
  name. /diagnostics, /rosout and /parameter_events depend on the wall clock: they are left out,
  unless they are named. What is held is lost when the recorder is killed.

exit code: 0 recorded (even if messages were lost), 1 it could not be written, 2 wrong usage
"""

# They say when something happened by the wall clock.
_NOT_SIMULATED = ('/diagnostics', '/rosout', '/parameter_events')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('-o', '--output', metavar='FOLDER', help='of the bag; it must not exist (default: by the date)')
    add('--next', action='store_true', help='if FOLDER exists, record into FOLDER_2, FOLDER_3, ...')
    add('--storage', choices=('mcap', 'sqlite3'), default='mcap', help='(default: %(default)s)')
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        '-a', '--all', action='store_true', help='all topics but hidden ones; this is the default'
    )
    which.add_argument('--topics', metavar='T', nargs='+', default=(), help='only these; with * and ?')
    add('--exclude', metavar='T', nargs='+', default=(), help='not these; with * and ?')
    add('--namespace', metavar='NS', default='/', help='of relative names; else: only topics below it')
    add('--duration', metavar='S', type=positive, help='end after so long [s]; simulated with --sim-time')
    add('--sim-time', action='store_true', help='times and order by the stamps of the messages')
    add(
        '--window',
        metavar='S',
        type=positive,
        default=1.0,
        help='with --sim-time: how long messages are held, simulated [s] (default: %(default)g)',
    )


def positive(text: str) -> float:
    """A number above 0, from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0')
    return value


def _next(folder: Path) -> Path:
    """The folder, or one with a number behind its name where that exists already."""
    from quad_dynamics.bags.metadata import RECORDING, STATE, custom_data, read_metadata

    chosen, last = folder, None
    for number in itertools.count(2):
        if not os.path.lexists(chosen):
            break
        last, chosen = chosen, folder.with_name(f'{folder.name}_{number}')
    if last is not None:
        unfinished = custom_data(read_metadata(last)).get(STATE) == RECORDING
        hint = f' and has no end (quad_dynamics repair {last} adds it)' if unfinished else ''
        print(f'{last} exists{hint}; recording into {chosen}', flush=True)
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Record until asked to end."""
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
