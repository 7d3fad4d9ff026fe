# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics repair`: make damaged bags readable, and those whose recorder was killed."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = 'make a bag readable that is damaged, or whose recorder was killed'

DESCRIPTION = """\
Make a ROS 2 bag readable that is damaged, whose recorder was killed, or whose files were cut off.

Every message that can be found is kept: behind damage too, with the help of the index where that is
intact. An mcap file gets chunks, CRCs and an index; an sqlite3 file gets what its log (*.db3-wal) still
holds, and is rebuilt from its pages if it is damaged; metadata.yaml is written anew from the data.
Messages from damaged places, whose values may be wrong, are counted, and metadata.yaml tells their
times (custom_data: suspect_messages, suspect_spans).

A new file is written beside the old one, read again, and takes its place when it is on the disk, so
nothing is lost if this is interrupted too. Damaged files stay as *.bak. A good bag is left as it is.
Bags of other recorders are repaired too. Needs no ROS. A bag that is still being recorded is
refused; but of mcap files of other recorders nobody can tell.

examples:
  quad_dynamics repair run               the bag in the folder run
  quad_dynamics repair run --keep        the same; also files that only lack their end stay as *.bak

exit code: 0 it is good now, 1 nothing could be saved, and nothing was changed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument('folder', metavar='FOLDER', type=Path, help='of the bag')
    parser.add_argument('--keep', action='store_true', help='keep all files that are replaced, as *.bak')


def run(arguments: argparse.Namespace) -> int:
    """Repair, and say what was found."""
    from quad_dynamics.bags.repair import repair

    result = repair(arguments.folder, keep=arguments.keep)
    for line in result.found:
        print(line)
    for line in result.notes:
        print(f'note: {line}')
    contents = result.contents
    what = f'{contents.count} messages of {len(contents.topics)} topics, {contents.seconds:.3f} s'
    print(f'{arguments.folder}: {"repaired" if result.found else "nothing to repair"}; it holds {what}')
    return 0
