# SPDX-License-Identifier: Apache-2.0
"""Whether a bag is still being written, or was never closed.

A file that a process has open for writing is being written; /proc tells (Linux, own processes). Where it does
not, as for a recorder on another machine, a bag that was not closed and has changed within the last seconds
is watched for a moment: if it grows, it is being written, too.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from quad_dynamics.bags.mcap_scan import open_data
from quad_dynamics.bags.mcap_summary import has_end
from quad_dynamics.bags.metadata import NAME, RECORDING, STATE, custom_data, read_metadata

# A bag that has not changed for this long is no longer being written [s].
_RECENT = 10.0
# Longest time between two writes of a recorder [s].
_MOMENT = 1.5


def is_being_written(path: Path, files: Sequence[Path]) -> bool:
    """Whether a bag still grows.

    Args:
        path: of the bag: its folder, or its only file.
        files: its data files.
    """
    if _open_for_writing(files):
        return True
    before = _changes(files)
    newest = max((changed for changed, _ in before), default=0)
    if time.time() - newest * 1e-9 > _RECENT or is_closed(path, files):
        return False
    time.sleep(_MOMENT)
    return _changes(files) != before


def _changes(files: Iterable[Path]) -> list[tuple[int, int]]:
    """When files were changed [ns], and their sizes, with those of the log of an SQLite file."""
    logs = (file.with_name(f'{file.name}-wal') for file in files)
    status = [file.stat() for file in (*files, *(log for log in logs if log.exists()))]
    return [(one.st_mtime_ns, one.st_size) for one in status]


def is_closed(path: Path, files: Iterable[Path]) -> bool:
    """Whether the recorder of a bag has come to its end: the state in metadata.yaml, and the end of files."""
    described = not path.is_dir() or (path / NAME).exists()
    if not described or custom_data(read_metadata(path)).get(STATE) == RECORDING:
        return False
    return all(file.suffix != '.mcap' or _has_end(file) for file in files)


def _has_end(file: Path) -> bool:
    return bool(file.stat().st_size) and has_end(open_data(file))


def _open_for_writing(files: Iterable[Path]) -> bool:
    """Whether a process has one of the files open for writing, as far as this can be seen."""
    wanted = {(status.st_dev, status.st_ino) for status in (file.stat() for file in files)}
    return any((status.st_dev, status.st_ino) in wanted for status in _written_files())


def _written_files() -> Iterable[os.stat_result]:
    """Files that processes have open for writing."""
    for folder in Path('/proc').glob('[0-9]*/fd'):
        try:
            links = list(folder.iterdir())
        except OSError:  # it has ended, or belongs to somebody else
            continue
        for link in links:
            with contextlib.suppress(OSError):
                # The link itself has the permissions of the open file: read, write, or both.
                if link.lstat().st_mode & 0o200:
                    yield link.stat()
