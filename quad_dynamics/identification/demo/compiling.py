# SPDX-License-Identifier: Apache-2.0
"""Compiles the simulator in a separate process, in parallel with other work."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

# The kernels that take longest to compile, and are needed last.
_SCRIPT = """
from quad_dynamics.kernels.simulation.simulate import simulate
from quad_dynamics.kernels.regression.whitened_equations import accumulate_whitened
simulate.load(announce=False)
accumulate_whitened.load(announce=False)
"""


@contextlib.contextmanager
def compiled_meanwhile() -> Iterator[Callable[[], None]]:
    """Compile inside the context; yields a function that waits for the end.

    Compiled kernels are stored in the disk cache. If that is not possible, they are compiled again when they
    are needed.
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
