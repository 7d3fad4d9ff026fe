# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics repair`: make damaged or unfinished bags readable."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = 'repair a bag that is damaged or unfinished'

DESCRIPTION = """\
Repair a ROS 2 bag that is damaged or truncated, or whose recorder was killed.

Every message that can be found is kept, including those after a damaged region, with the help of the
index if that is intact. An mcap file is rewritten with chunks, CRCs and an index. An sqlite3 file is
completed from its write-ahead log (*.db3-wal), and rebuilt from its pages if it is damaged.
metadata.yaml is regenerated from the data. Messages from damaged regions, whose values may be wrong,
are counted, and metadata.yaml lists their times (custom_data: suspect_messages, suspect_spans).

The new file is written beside the old one, verified, and replaces it only when it is on disk, so
nothing is lost if the repair is interrupted. Damaged files are kept as *.bak. An intact bag is not
changed. Bags of other recorders can be repaired too. ROS is not needed. A bag that is still being
recorded is rejected, but this cannot be detected for mcap files of other recorders.

examples:
  quad_dynamics repair run               the bag in the folder run
  quad_dynamics repair run --keep        also keep files that only lack their end as *.bak

exit code: 0 the bag is readable, 1 nothing could be recovered (the bag is unchanged)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument('folder', metavar='FOLDER', type=Path, help='folder of the bag')
    parser.add_argument('--keep', action='store_true', help='keep all replaced files as *.bak')


def run(arguments: argparse.Namespace) -> int:
    """Repair, and print what was found."""
    from quad_dynamics.bags.repair import repair

    result = repair(arguments.folder, keep=arguments.keep)
    for line in result.found:
        print(line)
    for line in result.notes:
        print(f'note: {line}')
    contents = result.contents
    what = f'{contents.count} messages of {len(contents.topics)} topics, {contents.seconds:.3f} s'
    print(f'{arguments.folder}: {"repaired" if result.found else "nothing to repair"}; {what}')
    return 0
