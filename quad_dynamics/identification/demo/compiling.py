# SPDX-License-Identifier: Apache-2.0
"""Compiles the simulator in a process of its own, while something else is done."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

# The kernels that take longest, and are needed last.
_SCRIPT = """
from quad_dynamics.kernels.simulation.simulate import simulate
from quad_dynamics.kernels.regression.whitened_equations import accumulate_whitened
simulate.load(announce=False)
accumulate_whitened.load(announce=False)
"""


@contextlib.contextmanager
def compiled_meanwhile() -> Iterator[Callable[[], None]]:
    """Compile inside; yields a function that waits until it is done.

    What is compiled goes into the cache on disk. Where that is not possible, it is compiled once more when it
    is needed.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, '-c', _SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        yield lambda: None
        return

    def wait() -> None:
        process.wait()

    try:
        yield wait
    finally:
        process.kill()
        process.wait()
