# SPDX-License-Identifier: Apache-2.0
"""Contents and problems of an MCAP file, from the results of `mcap_scan`. Needs no ROS."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_pieces import Chunk, Loose
from quad_dynamics.bags.mcap_scan import Scan
from quad_dynamics.bags.spans import Spans


@dataclass
class Verdict:
    """What a file holds.

    Attributes:
        statistics: of all messages that can be read.
        problems: as predicates of the file.
        suspect: number of messages near damage that are not protected by a CRC.
        spans: their times.
        unchecked: number of other messages without a CRC.
    """

    statistics: mcap.Statistics = field(default_factory=mcap.Statistics)
    problems: list[str] = field(default_factory=list)
    suspect: int = 0
    spans: Spans = field(default_factory=Spans)
    unchecked: int = 0


def judge(scan: Scan) -> Verdict:
    """Count the contents of a file, and compare them with its summary."""
    verdict = Verdict()
    verdict.statistics.counts = dict.fromkeys(scan.channels, 0)
    wrong_index = 0
    for piece in scan.pieces:
        if isinstance(piece, Chunk) and piece.good:
            wrong_index += not _is_indexed(scan, piece)
        checked = isinstance(piece, Chunk) and piece.good and piece.head is not None and piece.head.crc != 0
        for channel, log, _, suspect in scan.messages(piece):
            verdict.statistics.add(channel, log, log)
            verdict.unchecked += not checked and not suspect
            if suspect:
                verdict.suspect += 1
                verdict.spans.add(log, log)
    verdict.problems = _problems(scan, verdict, wrong_index)
    return verdict


def _problems(scan: Scan, verdict: Verdict, wrong_index: int) -> list[str]:
    problems = []
    if scan.damaged_at is not None:
        problems.append(f'is damaged at byte {scan.damaged_at}')
    broken = [one for one in scan.pieces if isinstance(one, Chunk) and not one.good and not one.cut]
    if broken:
        which = ', '.join(str(one.start) for one in broken[:5]) + (', ...' if len(broken) > 5 else '')
        problems.append(
            f'has {len(broken)} damaged {"chunk" if len(broken) == 1 else "chunks"} (byte {which})'
        )
    if not scan.has_end:
        problems.append('is unfinished')
    elif not problems and any(isinstance(piece, Loose) for piece in scan.pieces):
        problems.append('has no chunks and no index')
    elif not problems and (wrong_index or not _summary_agrees(scan, verdict)):
        problems.append('has no index, or an index that does not match its messages')
    return problems


def _is_indexed(scan: Scan, chunk: Chunk) -> bool:
    """Whether the message indices of a chunk, and its time range, are those of its messages."""
    actual: dict[int, list[tuple[int, int]]] = {}
    for kind, at, content in mcap.records(scan.content(chunk)):
        if kind == mcap.MESSAGE:
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(content)
            if channel not in scan.channels:
                chunk.good = False
                return False
            actual.setdefault(channel, []).append((log, at))
    said = {number: sorted(scan.index_entries(at)) for number, at in chunk.offsets.items()}
    times = [log for entries in actual.values() for log, _ in entries]
    head = chunk.head
    in_range = head is not None and (not times or (head.first, head.last) == (min(times), max(times)))
    said = {number: entries for number, entries in said.items() if entries}
    return in_range and said == {number: sorted(entries) for number, entries in actual.items()}


def _summary_agrees(scan: Scan, verdict: Verdict) -> bool:
    summary = scan.summary
    if not summary.sound or summary.count not in (None, verdict.statistics.total) or scan.data_end is None:
        return False
    chunks = [piece for piece in scan.pieces if isinstance(piece, Chunk)]
    actual = {one.start: (one.end - one.start, one.offsets) for one in chunks if one.offsets}
    said = {one.start: (one.length, one.offsets) for one in summary.chunks if one.offsets}
    used = {number for number, count in verdict.statistics.counts.items() if count}
    numbers = {
        int.from_bytes(content[:2], 'little') for kind, content in summary.definitions if kind == mcap.CHANNEL
    }
    [crc] = mcap.U32.unpack_from(scan.data, scan.data_end + mcap.HEAD.size)
    unchanged = not crc or zlib.crc32(scan.data[: scan.data_end]) == crc
    return actual == said and used <= numbers and unchanged
