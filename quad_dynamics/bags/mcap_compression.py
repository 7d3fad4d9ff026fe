# SPDX-License-Identifier: Apache-2.0
"""Chunks of MCAP files that are compressed with zstd or lz4. Needs no ROS."""

from __future__ import annotations

import importlib
import sys
from typing import Any

FRAMES = {'zstd': b'\x28\xb5\x2f\xfd', 'lz4': b'\x04\x22\x4d\x18'}  # how compressed data begins
KNOWN = ('', *FRAMES)
_STEP = 1024  # bytes; whatever was decompressed before a damaged step is kept


def unpack(data: bytes, compression: str) -> bytes:
    """The content of a chunk.

    Raises:
        ValueError: it is damaged, or the compression is not known.
    """
    if not compression:
        return data
    try:
        return bytes(_decompressor(compression).decompress(data))
    except ValueError:
        raise
    except Exception as error:  # each library has errors of its own
        raise ValueError(str(error)) from error


def unpack_damaged(data: bytes, compression: str) -> bytes:
    """As much of the content of a chunk as can be recovered."""
    if not compression:
        return data
    parts: list[bytes] = []
    try:
        decompressor = _decompressor(compression)
        for start in range(0, len(data), _STEP):
            parts.append(bytes(decompressor.decompress(data[start : start + _STEP])))
            if decompressor.eof:
                break
    except Exception:  # the rest cannot be decompressed
        return b''.join(parts)
    return b''.join(parts)


def _decompressor(compression: str) -> Any:
    if compression == 'zstd':
        name = 'compression.zstd' if sys.version_info >= (3, 14) else 'backports.zstd'
        return importlib.import_module(name).ZstdDecompressor()
    if compression == 'lz4':
        return importlib.import_module('lz4.frame').LZ4FrameDecompressor()
    raise ValueError(f'unknown compression {compression!r}')
