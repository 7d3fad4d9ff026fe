# SPDX-License-Identifier: Apache-2.0
"""Finds messages in a damaged chunk of an MCAP file. Needs no ROS."""

from __future__ import annotations

from collections.abc import Container, Mapping

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_pieces import Chunk, Message, Times
from quad_dynamics.bags.mcap_walk import IN_CHUNK, Walker

Hints = Mapping[int, tuple[int, int]]


def salvaged(
    chunk: Chunk, content: bytes, channels: Container[int], index: Hints, times: Times | None
) -> list[Message]:
    """All messages that can be found.

    Args:
        chunk: the chunk.
        content: its records, as far as they can be recovered.
        channels: that messages may have.
        index: where its message indices say that messages begin: their channels and log times [ns].
        times: between which its messages are [ns]; None if that is not known.
    """
    hints = _believed(index, content)
    whole = chunk.head is not None and len(content) == chunk.head.size
    walker = Walker(content, len(content), IN_CHUNK, channels, hints, exact_end=whole)
    found: list[Message] = []
    for record in walker.walk(0):
        if record.kind == mcap.MESSAGE:
            data = record.read(content)
            channel, _, log, _ = mcap.MESSAGE_CONTENT.unpack_from(data)
            channel, log = hints.get(record.start, (channel, log))
            found.append((channel, log, _with_head(data, channel, log), True))
    if chunk.cut and walker.damage <= len(content) - (walker.first_damage or 0):
        # Nothing is wrong with it but that its end is missing.
        return [(channel, log, data, False) for channel, log, data, _ in found]
    return _in_time(found, times)


def _believed(index: Hints, content: bytes) -> Hints:
    """The part of an index that lies in the chunk; empty if most of it is wrong."""
    inside = {at: hint for at, hint in index.items() if at + mcap.MESSAGE_HEAD.size <= len(content)}
    right = 0
    for at, hint in inside.items():
        _, _, channel, _, log, _ = mcap.MESSAGE_HEAD.unpack_from(content, at)
        right += hint == (channel, log)
    return inside if 2 * right > len(inside) else {}


def _with_head(content: bytes, channel: int, log: int) -> bytes:
    """A message, with this channel and this log time [ns]."""
    _, sequence, _, published = mcap.MESSAGE_CONTENT.unpack_from(content)
    head = mcap.MESSAGE_CONTENT.pack(channel, sequence, log, published)
    return head + content[mcap.MESSAGE_CONTENT.size :]


def _in_time(messages: list[Message], times: Times | None) -> list[Message]:
    """Messages, with damaged times replaced by the previous ones."""
    if times is None:
        return messages
    first, last = times
    inside = sum(first <= log <= last for _, log, _, _ in messages)
    if 2 * inside <= len(messages):  # it is the range that is damaged
        return messages
    made, before = [], first
    for channel, log, content, suspect in messages:
        if first <= log <= last:
            before = log
        made.append((channel, before, _with_head(content, channel, before), suspect))
    return made
