# SPDX-License-Identifier: Apache-2.0
"""Zeroes the padding between the fields of a message, and removes trailing bytes. Needs no ROS.

In CDR a number is aligned to its size, and the padding contains uninitialised memory. So the same message has
different bytes in another process; with zeroed padding it does not.
"""

from __future__ import annotations

from collections.abc import Callable

from quad_dynamics.bags.cdr_layout import HEAD, LITTLE_ENDIAN, CdrError, MessageLayout
from quad_dynamics.bags.topics import Fields


class Padding:
    """Cleans the messages of one type."""

    def __init__(self, kind: str, fields_of: Callable[[str], Fields]) -> None:
        """Read the definition of a type.

        Args:
            kind: such as 'sensor_msgs/msg/JointState'.
            fields_of: names and types of the fields of a type, as `get_fields_and_field_types` of its class.
        """
        try:
            self._layout: MessageLayout | None = MessageLayout(kind, fields_of)
        except ValueError:  # wide characters: nobody uses them
            self._layout = None

    def clean(self, raw: bytes) -> bytes:
        """The message with zeroed padding; unchanged if it does not match its type."""
        if self._layout is None or raw[:2] != LITTLE_ENDIAN:
            return raw
        try:
            passed = self._layout.pass_over(raw)
        except CdrError:
            return raw
        data = bytearray(raw)
        for begin, stop in passed.gaps:
            data[begin:stop] = bytes(stop - begin)
        end = passed.at
        # Messages are filled up to a multiple of four; rclpy adds more where lists are empty.
        data[end:] = bytes(min(end + (HEAD - end) % 4, len(data)) - end)
        return bytes(data)
