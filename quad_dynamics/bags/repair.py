# SPDX-License-Identifier: Apache-2.0
"""Repairs bags: damaged data files, files that lack their end, and metadata.yaml. Needs no ROS.

A repair never makes things worse: a file is replaced only by one that has been verified and contains every
message that could be read before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quad_dynamics.bags import mcap_repair, sqlite_repair
from quad_dynamics.bags import metadata as bag_metadata
from quad_dynamics.bags.metadata import REPAIRED, STATE, SUSPECT_MESSAGES, SUSPECT_SPANS, Contents
from quad_dynamics.bags.replacement import FileResult, backup_of
from quad_dynamics.bags.spans import Spans
from quad_dynamics.errors import ArgumentError


@dataclass
class Repair:
    """The result of a repair.

    Attributes:
        found: problems, one line each; empty: the bag was intact.
        notes: uncertainties, one line each.
        contents: of the bag now.
        suspect: number of messages from damaged regions, whose values may be wrong.
        spans: their time spans.
    """

    found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)
    suspect: int = 0
    spans: Spans = field(default_factory=Spans)

    def add(self, part: FileResult) -> None:
        """Add the result of a file."""
        self.found += part.found
        self.notes += part.notes
        self.suspect += part.suspect
        for span in part.spans.all():
            self.spans.add(*span)


def repair(folder: Path, keep: bool = False) -> Repair:
    """Repair a bag.

    Args:
        folder: of the bag.
        keep: keep every replaced file with the suffix '.bak'; otherwise only damaged ones.

    Raises:
        ArgumentError: there is no bag, nothing can be read from it, or it is still being written.
    """
    result = Repair()
    files = bag_metadata.data_files(folder)
    storage = bag_metadata.storage_of(files[0])
    old = bag_metadata.read_metadata(folder)
    held: dict[str, Contents] = {}
    failed: dict[Path, ArgumentError] = {}
    for path in files:
        try:
            if storage == 'mcap':
                part = mcap_repair.repair_file(path, keep, bag_metadata.topics_of(old))
            else:
                part = sqlite_repair.repair_file(path, bag_metadata.topics_of(old))
        except ArgumentError as error:
            failed[path] = error
            continue
        result.add(part)
        held[path.name] = part.contents
    result.contents = bag_metadata.joined(list(held.values()))
    if failed and not result.contents.count:
        raise next(iter(failed.values()))
    for path, reason in failed.items():
        backup = backup_of(path)
        path.replace(backup)
        result.found.append(f'{reason}, as {backup.name}, which is no longer part of the bag')
    _repair_metadata(folder, storage, held, old, result)
    for left in folder.glob('.*.new'):  # of a repair or a recorder that was killed
        left.unlink()
    if result.found:
        bag_metadata.sync(folder / bag_metadata.NAME)
        bag_metadata.sync(folder)
    return result


def _repair_metadata(
    folder: Path, storage: str, held: dict[str, Contents], old: dict[str, Any] | None, result: Repair
) -> None:
    """Regenerate metadata.yaml, if it does not match the files."""
    if old is not None and _agrees(old, held, result.contents):
        if not result.found:
            return
    elif not (folder / bag_metadata.NAME).exists():
        result.found.append(f'{bag_metadata.NAME} is missing')
    elif old is None:
        result.found.append(f'{bag_metadata.NAME} cannot be read')
    else:
        result.found.append(f'{bag_metadata.NAME} does not match the contents of the bag')
    custom = bag_metadata.custom_data(old)
    custom[STATE] = REPAIRED
    if result.suspect:
        before = custom.get(SUSPECT_MESSAGES, '0')
        custom[SUSPECT_MESSAGES] = str(result.suspect + (int(before) if before.isdecimal() else 0))
        for span in Spans(custom.get(SUSPECT_SPANS, '')).all():
            result.spans.add(*span)
        custom[SUSPECT_SPANS] = str(result.spans)
    compression = bag_metadata.compression_of(old)
    bag_metadata.write_metadata(folder, bag_metadata.metadata(storage, held, custom, compression))


def _agrees(old: dict[str, Any], held: dict[str, Contents], whole: Contents) -> bool:
    """Whether metadata.yaml matches the files."""
    if bag_metadata.custom_data(old).get(STATE) == bag_metadata.RECORDING:
        return False
    topics, paths = old.get('topics_with_message_count'), old.get('relative_file_paths')
    if not isinstance(topics, list) or not isinstance(paths, list):
        return False
    try:
        counts = sorted((str(one['topic_metadata']['name']), int(one['message_count'])) for one in topics)
    except (KeyError, TypeError, ValueError):
        return False
    named = [Path(str(path)).name for path in paths]
    found = sorted((topic.name, count) for topic, count in whole.topics)
    silent = [(name, count) for name, count in counts if not count and (name, 0) not in found]
    return named == list(held) and found == [one for one in counts if one not in silent]
