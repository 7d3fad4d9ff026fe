# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics play`: publish the messages of a ROS 2 bag."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quad_dynamics.cli.record_command import positive
from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.ros.status import Status
    from quad_dynamics.ros.subscriptions import Selection

HELP = 'publish the messages of a ROS 2 bag'

DESCRIPTION = """\
Publish the messages of a ROS 2 bag with the recorded timing, bytes and quality of service. Messages that
are published more than 5 ms after their time are counted as late.

The command first waits up to --delay seconds for subscribers to all topics. Stop it with Ctrl-C.

A bag with a trajectory on joint_targets, as written by `quad_dynamics excite`, is a motion. It is published
when force_node is ready for it (mode computed_torque, in control), and the command returns when force_node
has followed it to its end. With --no-wait the command returns when everything has been published.

examples:
  quad_dynamics play run                                   the bag in the folder run
  quad_dynamics play run --rate 0.5 --loop                 at half speed, repeatedly
  quad_dynamics play run --clock --topics joint_states     one topic, and /clock with the time of the bag
  quad_dynamics play run --start 10 --duration 5           five seconds, starting at 10 s
  quad_dynamics play motion                                a motion of `quad_dynamics excite`, to its end
  quad_dynamics play run --remap /joint_states:=/old/joint_states

exit code: 0 success, 1 the bag cannot be read or its motion was not followed, 2 usage error
"""

_CLOCK_HZ = 250.0
# How long to wait for subscribers, and for a force_node that may have to compile first [s].
_DELAY, _MOTION_DELAY = 1.0, 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('folder', metavar='FOLDER', type=Path, help='folder of the bag')
    add('--rate', metavar='R', type=positive, default=1.0, help='speed factor (default: %(default)g)')
    add('--topics', metavar='T', nargs='+', default=(), help='topics to play; * and ? are wildcards')
    add('--exclude', metavar='T', nargs='+', default=(), help='topics to leave out; * and ? are wildcards')
    add('--loop', action='store_true', help='start over at the end')
    add(
        '--clock',
        metavar='HZ',
        type=positive,
        nargs='?',
        const=_CLOCK_HZ,
        help=f'publish /clock with the time of the bag, replacing a recorded one (default: {_CLOCK_HZ:g} Hz)',
    )
    add('--start', metavar='S', type=_not_negative, default=0.0, help='skip this much of the bag [s]')
    add('--duration', metavar='S', type=positive, help='play only this much [s]')
    add('--remap', metavar='A:=B', type=_remap, nargs='+', default=(), help='publish topic A as B')
    add(
        '--delay',
        metavar='S',
        type=_not_negative,
        help=f'longest wait for subscribers [s] (default: {_DELAY:g}; {_MOTION_DELAY:g} for a motion)',
    )
    add('--wait-for', metavar='NODE', default='', help='wait for this subscriber (default: any)')
    add('--no-wait', action='store_true', help='do not wait for force_node, before or after a motion')


def _not_negative(text: str) -> float:
    return 0.0 if text.strip('0') in ('', '.') else positive(text)


def _remap(text: str) -> tuple[str, str]:
    old, found, new = text.partition(':=')
    if not found or not old or not new:
        raise argparse.ArgumentTypeError(f'{text} is not of the form /old:=/new')
    return _whole(old), _whole(new)


def _whole(name: str) -> str:
    return name if name.startswith('/') else f'/{name}'


def run(arguments: argparse.Namespace) -> int:
    """Play to the end, or until stopped."""
    from quad_dynamics.ros.environment import require_ros, stay_on_this_machine

    require_ros()
    stay_on_this_machine()

    from quad_dynamics.ros.player import motion_namespace, open_bag
    from quad_dynamics.ros.status import Status
    from quad_dynamics.ros.subscriptions import Selection

    open_bag(arguments.folder).close()  # report an invalid bag before ROS starts
    _check_values(arguments.folder)
    selection = Selection(arguments.topics, arguments.exclude)
    below = motion_namespace(arguments.folder, selection, dict(arguments.remap))
    if below is None or arguments.no_wait:
        return _play(arguments, selection, None)
    with Status(below) as status:
        return _play(arguments, selection, status)


def _play(arguments: argparse.Namespace, selection: Selection, status: Status | None) -> int:
    """Play; with `status`, wait until force_node has followed the motion."""
    from quad_dynamics.ros.motion import FollowedMotion
    from quad_dynamics.ros.player import Player, PlayOptions
    from quad_dynamics.ros.process import run_node

    delay = _DELAY if status is None else _MOTION_DELAY
    options = PlayOptions(
        rate=arguments.rate,
        selection=selection,
        loop=arguments.loop,
        clock_hz=arguments.clock,
        start=arguments.start,
        duration=arguments.duration,
        remap=dict(arguments.remap),
        delay=delay if arguments.delay is None else arguments.delay,
        wait_for=arguments.wait_for.rpartition('/')[2] or ('' if status is None else 'force_node'),
    )
    made: list[Player] = []

    def make() -> Player:
        motion = None if status is None else FollowedMotion(status)
        made.append(Player(arguments.folder, options, motion))
        print(f'playing {made[0].topics} topics of {arguments.folder}', flush=True)
        for skipped in made[0].skipped:
            print(f'not played: {skipped}', file=sys.stderr)
        return made[0]

    code = run_node(make, ['quad_dynamics'], starts_at_once=True)
    for player in made:
        late = f'; {player.late} were late by up to {player.latest * 1e3:.0f} ms' if player.late else ''
        followed = '; the motion was followed to its end' if status and player.was_followed else ''
        print(f'published {player.count} messages{late}{followed}', flush=True)
        if player.problem:
            raise ArgumentError(player.problem)
    return code


def _check_values(folder: Path) -> None:
    """Reject bags with CRC errors; warn about messages that may be wrong although their CRC matches."""
    from quad_dynamics.bags.damage import suspects, wrong_values

    wrong = wrong_values(sorted([*folder.glob('*.mcap'), *folder.glob('*.db3')]))
    if wrong:
        raise ArgumentError(f'{folder} is damaged ({wrong}); try: quad_dynamics repair {folder}')
    count, spans = suspects(folder)
    if count:
        print(
            f'warning: {count} messages of {folder} come from damaged regions and may be wrong '
            f'(times [ns]: {spans})',
            file=sys.stderr,
        )
