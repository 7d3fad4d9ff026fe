# SPDX-License-Identifier: Apache-2.0
"""The containers of messages in an MCAP file: chunks, and records outside chunks."""

from __future__ import annotations

from dataclasses import dataclass, field

from quad_dynamics.bags import mcap_records as mcap

# Channel, log time [ns], content of the record, whether it is suspect.
Message = tuple[int, int, bytes, bool]
Times = tuple[int, int]


@dataclass
class Chunk:
    """A chunk.

    Attributes:
        start: where its record begins.
        end: where it ends.
        data: where its data begins.
        compression: of its data.
        head: its header; None if that cannot be read.
        good: it can be read, and its CRC matches if it has one.
        cut: it is truncated by the end of the file.
        offsets: where the message index of each channel is.
        indices_end: where its message indices end.
    """

    start: int
    end: int
    data: int
    compression: str
    head: mcap.ChunkHead | None
    good: bool = False
    cut: bool = False
    offsets: dict[int, int] = field(default_factory=dict)
    indices_end: int = 0


@dataclass
class Loose:
    """Records outside of chunks.

    Attributes:
        start: where the first one begins.
        end: where the last one ends.
        suspect: they lie next to damage.
        content: of a message that was put together; None: as it stands there.
    """

    start: int
    end: int
    suspect: bool = False
    content: bytes | None = None


Piece = Chunk | Loose
