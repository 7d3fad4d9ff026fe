# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics repair`: make bags readable whose recorder was killed."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = 'make a bag readable whose recorder was killed'

DESCRIPTION = """\
Make a ROS 2 bag readable whose recorder was killed, or whose files were cut off.

Every message that is whole is kept. An mcap file without its end gets one; an sqlite3 file gets what
its log (*.db3-wal) still holds, and is rebuilt from its pages if it is damaged; metadata.yaml is
written anew from the data. A new file is written beside the old one and takes its place when it is on
the disk, so nothing is lost if this is interrupted too. A good bag is left as it is. Bags of other
recorders are repaired too. Needs no ROS. Do not repair a bag that is still being recorded.

examples:
  quad_dynamics repair run               the bag in the folder run
  quad_dynamics repair run --keep        the same; damaged files stay as *.bak

exit code: 0 it is good now, 1 it cannot be repaired
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument('folder', metavar='FOLDER', type=Path, help='of the bag')
    parser.add_argument('--keep', action='store_true', help='keep damaged files, as *.bak')


def run(arguments: argparse.Namespace) -> int:
    """Repair, and say what was found."""
    from quad_dynamics.bags.repair import repair

    result = repair(arguments.folder, keep=arguments.keep)
    for line in result.found:
        print(line)
    contents = result.contents
    what = f'{contents.count} messages of {len(contents.topics)} topics, {contents.seconds:.3f} s'
    print(f'{arguments.folder}: {"repaired" if result.found else "nothing to repair"}; it holds {what}')
    return 0
