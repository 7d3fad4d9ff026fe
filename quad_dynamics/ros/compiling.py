# SPDX-License-Identifier: Apache-2.0
"""While a node compiles kernels, it says so on `/diagnostics`: a minute of silence would look like a hang."""

from __future__ import annotations

import contextlib
import math
import threading
import time

from quad_dynamics.compiler import registry
from quad_dynamics.ros.diagnostics import OK, Diagnostics

_PERIOD = 0.5  # between two messages [s]


def announce_compiling(diagnostics: Diagnostics) -> None:
    """Publish which kernel is being compiled, from now on; nothing where none has to be.

    The constructor of a node compiles, and its loop does not run yet, so a thread does it.

    Args:
        diagnostics: of the node.
    """
    registry.LISTENERS.append(_Announcer(diagnostics).take)


class _Announcer:
    """A thread, from the first kernel on that has to be compiled."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._name, self._since = '', math.inf
        self._is_compiling = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, name: str) -> None:
        """Take the name of a kernel that is being compiled; '' if none is any more."""
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
