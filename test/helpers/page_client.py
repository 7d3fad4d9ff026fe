# SPDX-License-Identifier: Apache-2.0
"""A page without a browser: connects as the page does, and takes everything that is sent to it."""

from __future__ import annotations

import struct
import threading
from typing import Any

import msgspec.msgpack
import viser
import zstandard
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

_CAMERA = {
    'type': 'ViewerCameraMessage',
    'wxyz': (1.0, 0.0, 0.0, 0.0),
    'position': (1.0, 1.0, 1.0),
    'fov': 1.0,
    'near': 0.01,
    'far': 100.0,
    'image_height': 100,
    'image_width': 100,
    'look_at': (0.0, 0.0, 0.0),
    'up_direction': (0.0, 0.0, 1.0),
}


class PageClient:
    """One open page.

    Attributes:
        messages: everything that came, decoded.
        bytes_received: of all of it.
    """

    def __init__(self, address: str) -> None:
        """Open the page.

        Args:
            address: http://...
        """
        protocol = f'viser-v{viser.__version__}'
        self._socket = connect(address.replace('http', 'ws'), subprotocols=[protocol], max_size=None)  # type: ignore[list-item]
        self._socket.send(msgspec.msgpack.encode(_CAMERA))
        self.messages: list[dict[str, Any]] = []
        self.bytes_received = 0
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def __enter__(self) -> PageClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> None:
        try:
            for raw in self._socket:
                assert isinstance(raw, bytes)
                self.bytes_received += len(raw)
                self.messages += _decode(raw)
        except ConnectionClosed:
            pass

    def send(self, **message: Any) -> None:
        """Send what the page would send."""
        self._socket.send(msgspec.msgpack.encode(message))

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one type that came."""
        return [message for message in list(self.messages) if message['type'] == kind]

    def close(self) -> None:
        """Close the page."""
        self._socket.close()
        self._thread.join(5.0)


def _decode(raw: bytes) -> list[dict[str, Any]]:
    size, packed = struct.unpack('<QQ', raw[:16])
    inner = zstandard.ZstdDecompressor().decompress(raw[16 : 16 + packed], max_output_size=size)
    messages: list[dict[str, Any]] = msgspec.msgpack.decode(inner)['messages']
    return messages
