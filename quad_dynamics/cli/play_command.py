# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics play`: publish what is in a ROS 2 bag."""

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

HELP = 'publish what is in a ROS 2 bag'

DESCRIPTION = """\
Publish the messages of a ROS 2 bag at the times at which they were recorded: the same bytes, with the
same quality of service. Messages that leave more than 5 ms after their time are counted as late.

It waits at most --delay seconds for subscribers of all topics. Ctrl-C ends it.

A bag with a trajectory on joint_targets, as `quad_dynamics excite` writes it, is a motion: it is published
when force_node is ready for it (mode computed_torque, in control), and the command ends when force_node has
accepted it and followed it to its end. With --no-wait it ends when everything is published.

examples:
  quad_dynamics play run                                   the bag in the folder run
  quad_dynamics play run --rate 0.5 --loop                 slowly, again and again
  quad_dynamics play run --clock --topics joint_states     one topic, and /clock with the bag's time
  quad_dynamics play run --start 10 --duration 5           five seconds, from the tenth on
  quad_dynamics play motion                                a motion of `quad_dynamics excite`, to its end
  quad_dynamics play run --remap /joint_states:=/old/joint_states

exit code: 0 played, 1 the bag cannot be read or its motion was not followed, 2 wrong usage
"""

_CLOCK_HZ = 250.0
# How long to wait for subscribers, and for a force_node that may have to compile first [s].
_DELAY, _MOTION_DELAY = 1.0, 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('folder', metavar='FOLDER', type=Path, help='of the bag')
    add('--rate', metavar='R', type=positive, default=1.0, help='2: twice as fast (default: %(default)g)')
    add('--topics', metavar='T', nargs='+', default=(), help='only these; with * and ?')
    add('--exclude', metavar='T', nargs='+', default=(), help='not these; with * and ?')
    add('--loop', action='store_true', help='begin again at the end')
    add(
        '--clock',
        metavar='HZ',
        type=positive,
        nargs='?',
        const=_CLOCK_HZ,
        help=f'publish /clock, in place of that of the bag (default: {_CLOCK_HZ:g} Hz of bag time)',
    )
    add('--start', metavar='S', type=_not_negative, default=0.0, help='begin so much later [s]')
    add('--duration', metavar='S', type=positive, help='play so much [s]')
    add('--remap', metavar='A:=B', type=_remap, nargs='+', default=(), help='publish topic A as B')
    add(
        '--delay',
        metavar='S',
        type=_not_negative,
        help=f'wait so long for subscribers [s] (default: {_DELAY:g}; {_MOTION_DELAY:g} for a motion)',
    )
    add('--wait-for', metavar='NODE', default='', help='only this subscriber counts (default: any)')
    add('--no-wait', action='store_true', help='do not wait for force_node before and after a motion')


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
    """Play until the end, or until asked to end."""
    from quad_dynamics.ros.environment import require_ros, stay_on_this_machine

    require_ros()
    stay_on_this_machine()

    from quad_dynamics.ros.player import motion_namespace, open_bag
    from quad_dynamics.ros.status import Status
    from quad_dynamics.ros.subscriptions import Selection

    open_bag(arguments.folder).close()  # a bad one is told before ROS starts
    _check_values(arguments.folder)
    selection = Selection(arguments.topics, arguments.exclude)
    below = motion_namespace(arguments.folder, selection, dict(arguments.remap))
    if below is None or arguments.no_wait:
        return _play(arguments, selection, None)
    with Status(below) as status:
        return _play(arguments, selection, status)


def _play(arguments: argparse.Namespace, selection: Selection, status: Status | None) -> int:
    """Play; a motion until force_node, of which `status` hears, has followed it."""
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
        late = f'; {player.late} were late, by at most {player.latest * 1e3:.0f} ms' if player.late else ''
        followed = '; the motion was followed to its end' if status and player.was_followed else ''
        print(f'published {player.count} messages{late}{followed}', flush=True)
        if player.problem:
            raise ArgumentError(player.problem)
    return code


def _check_values(folder: Path) -> None:
    """Refuse messages whose CRC does not match; say which may be wrong although it does."""
    from quad_dynamics.bags.damage import suspects, wrong_values

    wrong = wrong_values(sorted([*folder.glob('*.mcap'), *folder.glob('*.db3')]))
    if wrong:
        raise ArgumentError(
            f'{folder} is damaged ({wrong}); quad_dynamics repair {folder} saves what is left'
        )
    count, spans = suspects(folder)
    if count:
        print(
            f'warning: {count} messages of {folder} come from damaged places and may be wrong '
            f'(between these times [ns]: {spans})',
            file=sys.stderr,
        )
