# SPDX-License-Identifier: Apache-2.0
"""The result of repairing a data file, and its replacement by a new file."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quad_dynamics.bags.metadata import Contents, sync
from quad_dynamics.bags.spans import Spans

MAY_BE_WRONG = 'their values may be wrong'


@dataclass
class FileResult:
    """The result of repairing a data file.

    Attributes:
        contents: of the file now.
        found: its problems, one line each.
        notes: uncertainties.
        suspect: number of messages from damaged regions.
        spans: their time spans.
    """

    contents: Contents = field(default_factory=Contents)
    found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    suspect: int = 0
    spans: Spans = field(default_factory=Spans)


@contextlib.contextmanager
def replacement(path: Path, keep: bool) -> Iterator[tuple[Path, Path | None]]:
    """A path beside a file, and one for the old file if it is kept.

    What is written to the first takes the place of the file when it is on the disk.
    """
    beside = path.with_name(f'.{path.name}.new')
    beside.unlink(missing_ok=True)
    backup = backup_of(path) if keep else None
    try:
        yield beside, backup
        sync(beside)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if backup is not None:
        backup.hardlink_to(path)
    beside.replace(path)


def backup_of(path: Path) -> Path:
    """A free name for the backup of a file."""
    numbers = itertools.chain([''], itertools.count(2))
    names = (path.with_name(f'{path.name}.bak{number}') for number in numbers)
    return next(name for name in names if not os.path.lexists(name))


def saved_text(count: int, suspect: int, backup: Path | None) -> str:
    """A text about the recovered messages."""
    text = f'{count} messages recovered'
    text += f', {suspect} of them from damaged regions: {MAY_BE_WRONG}' if suspect else ''
    return text + (f'; the old file is kept as {backup.name}' if backup is not None else '')
