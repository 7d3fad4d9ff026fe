# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of a demonstration in two processes, in parallel with other work."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

# The kernels that take longest to compile. The simulator is needed first; a line reports that it is ready.
_SCRIPT = """
from quad_dynamics.kernels.simulation.simulate import simulate
from quad_dynamics.kernels.regression.whitened_equations import accumulate_whitened
simulate.load(announce=False)
print('simulate', flush=True)
accumulate_whitened.load(announce=False)
"""


@contextlib.contextmanager
def compiled_meanwhile() -> Iterator[Callable[[], None]]:
    """Compile inside the context; yields a function that waits for the simulator.

    The context ends when all kernels are compiled; if the simulator was not waited for, it ends at once.
    Compiled kernels are stored in the disk cache. If that is not possible, they are compiled again when they
    are needed.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, '-c', _SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        yield lambda: None
        return

    is_needed = False

    def wait() -> None:
        nonlocal is_needed
        is_needed = True
        _compile_small_kernels()
        assert process.stdout is not None
        process.stdout.readline()  # empty if the process failed

    with process:
        try:
            yield wait
        except BaseException:
            is_needed = False
            raise
        finally:
            if not is_needed:
                process.kill()


def _compile_small_kernels() -> None:
    """Compile what recording and validation need, while the other process is still busy."""
    from quad_dynamics.kernels.crba import mass_matrix
    from quad_dynamics.kernels.hybrid import hybrid_dynamics
    from quad_dynamics.kernels.terrain.ground import ground_distances

    for one in (ground_distances, mass_matrix, hybrid_dynamics):
        one.load()
