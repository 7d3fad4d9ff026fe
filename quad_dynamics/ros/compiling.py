# SPDX-License-Identifier: Apache-2.0
"""Reports on `/diagnostics` that a node is compiling kernels; a minute of silence would look like a hang."""

from __future__ import annotations

import contextlib
import math
import threading
import time

from quad_dynamics.compiler import registry
from quad_dynamics.ros.diagnostics import OK, Diagnostics

_PERIOD = 0.5  # between two messages [s]


def announce_compiling(diagnostics: Diagnostics) -> None:
    """Start to publish which kernel is being compiled, if any.

    The constructor of a node compiles while its loop is not running yet, so a thread publishes.

    Args:
        diagnostics: of the node.
    """
    registry.LISTENERS.append(_Announcer(diagnostics).take)


class _Announcer:
    """A thread that starts with the first kernel to be compiled."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._name, self._since = '', math.inf
        self._is_compiling = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, name: str) -> None:
        """Set the name of the kernel that is being compiled; '' when compilation has ended."""
        self._name = name
        if not name:
            self._is_compiling.clear()
            return
        self._since = min(self._since, time.monotonic())
        self._is_compiling.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._publish, name='compiling', daemon=True)
            self._thread.start()

    def _publish(self) -> None:
        with contextlib.suppress(Exception):  # the node may be gone
            while self._is_compiling.wait():
                if name := self._name:
                    seconds = time.monotonic() - self._since
                    text = f'compiling {name} (first start on this machine), {seconds:.0f} s so far'
                    self._diagnostics.publish(OK, text, compiling=name)
                time.sleep(_PERIOD)
