# SPDX-License-Identifier: Apache-2.0
"""The fields of records of MCAP files, and whether they are complete. Needs no ROS."""

from __future__ import annotations

import struct
from typing import Any

from quad_dynamics.bags import mcap_records as mcap

# What records hold: numbers, [t]exts and [b]ytes with their length in front; * is bytes with a length of
# eight bytes in front.
_LAYOUTS = {
    mcap.HEADER: 'tt',
    mcap.SCHEMA: 'Httb',
    mcap.CHANNEL: 'HHttb',
    mcap.CHUNK_INDEX: 'QQQQbQtQQ',
    mcap.ATTACHMENT: 'QQtt*I',
    mcap.ATTACHMENT_INDEX: 'QQQQQtt',
    mcap.STATISTICS: 'QHIIIIQQb',
    mcap.METADATA: 'tb',
    mcap.METADATA_INDEX: 'QQt',
}


def fields(kind: int, content: bytes) -> tuple[list[Any], int]:
    """The fields of a record of certain kinds, and how many bytes follow them.

    Raises:
        ValueError: it is truncated, or a string is invalid.
    """
    reader = mcap.Reader(content)
    found: list[Any] = []
    for code in _LAYOUTS[kind]:
        if code == 't':
            found.append(reader.text())
        elif code == 'b':
            found.append(reader.bytes())
        elif code == '*':
            found.append(reader.take(reader.number(mcap.U64)))
        else:
            found.append(reader.number(struct.Struct('<' + code)))
    return found, reader.left


def is_whole(kind: int, content: bytes) -> bool:
    """Whether the content of a record matches its kind and has the right length."""
    found, left = fields(kind, content)
    if kind == mcap.SCHEMA:
        return not left and found[0] > 0
    if kind == mcap.CHANNEL:
        mcap.Channel.decode(content)
    return not left
