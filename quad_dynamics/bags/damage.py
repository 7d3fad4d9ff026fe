# SPDX-License-Identifier: Apache-2.0
"""Detects damage of a bag before it is read: CRC errors, and the notes of `repair`.

Needs no ROS.
"""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_compression import unpack
from quad_dynamics.bags.mcap_scan import open_data
from quad_dynamics.bags.metadata import (
    NAME,
    SUSPECT_MESSAGES,
    SUSPECT_SPANS,
    custom_data,
    load_yaml,
    read_metadata,
)
from quad_dynamics.bags.spans import Spans
from quad_dynamics.bags.sqlite_repair import check_messages
from quad_dynamics.errors import ArgumentError


def wrong_values(files: list[Path]) -> str:
    """Compare the messages of a bag with their CRCs, where it has any.

    Args:
        files: of the bag; other errors are reported by their reader.

    Returns:
        the first mismatch; '' if there is none.
    """
    for path in files:
        wrong = _wrong_chunk(path) if path.suffix == '.mcap' else _wrong_rows(path)
        if wrong:
            return f'{path.name}: {wrong}'
    return ''


def check_metadata(folder: Path) -> None:
    """Reject a metadata.yaml that is not safe to read.

    Raises:
        ArgumentError: it is too large or too deeply nested, or not YAML.
    """
    try:
        load_yaml(folder / NAME)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise ArgumentError(f'{error}; run: quad_dynamics repair {folder}') from error


def suspects(folder: Path) -> tuple[int, Spans]:
    """Number of messages that `repair` found in damaged regions, and their time spans."""
    custom = custom_data(read_metadata(folder)) if folder.is_dir() else {}
    count = custom.get(SUSPECT_MESSAGES, '0')
    return int(count) if count.isdecimal() else 0, Spans(custom.get(SUSPECT_SPANS, ''))


def _wrong_chunk(path: Path) -> str:
    """The first chunk whose CRC does not match; '' if there is none."""
    if not path.stat().st_size:
        return ''
    data, at = open_data(path), len(mcap.MAGIC)
    while at + mcap.HEAD.size <= len(data):
        kind, length = mcap.HEAD.unpack_from(data, at)
        start, end = at + mcap.HEAD.size, at + mcap.HEAD.size + length
        if kind == mcap.DATA_END or end > len(data):
            break
        if kind == mcap.CHUNK:
            try:
                head = mcap.ChunkHead.decode(data[start : min(end, start + 128)])
                content = unpack(data[start + head.length : end], head.compression)
            except ValueError as error:
                return f'the chunk at byte {at} cannot be read ({error})'
            if head.crc and zlib.crc32(content) != head.crc:
                return f'the CRC of the chunk at byte {at} does not match'
        at = end
    return ''


def _wrong_rows(path: Path) -> str:
    """The first messages whose CRC does not match; '' if there are none."""
    try:
        connection = sqlite3.connect(f'{path.absolute().as_uri()}?mode=ro', uri=True)
    except sqlite3.Error:
        return ''
    try:
        check_messages(connection)
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()
    return ''
