# SPDX-License-Identifier: Apache-2.0
"""The compiled functions that Python calls: `@kernel` declares one, `KERNELS` lists them.

A kernel is loaded from the disk cache, or compiled, when it is first called, not when it is imported. The
compiled entry point is then called directly (`kernel.run`), without numba's dispatcher, which would spend 150
ns on finding out the types; the kernels check the types of arrays themselves (`door`).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from numba import njit, types

from quad_dynamics.kernels.arrays import check_layout
from quad_dynamics.kernels.disk_cache import DiskCache
from quad_dynamics.kernels.trace import FASTMATH, AddressType, ObjectType

# Types of arguments: the address of the arena (a Python int), arrays and other objects, and numbers.
ARENA = AddressType()
OBJECT = ObjectType()
INT = types.int64
FLOAT = types.float64

KERNELS: dict[str, Kernel] = {}
_lock = threading.RLock()


class Kernel:
    """One compiled function.

    Attributes:
        name: its name, unique.
        run: calls it; compiles or loads it first where that has not happened yet.
    """

    def __init__(self, function: Callable[..., int], signature: tuple[types.Type, ...]) -> None:
        self.name = function.__name__
        self.signature = signature
        self.function = function
        self.run: Callable[..., int] = self._load_and_run

    def load(self) -> bool:
        """Make it ready to run; returns whether it had to be compiled."""
        with _lock:
            if self.run != self._load_and_run:
                return False
            check_layout()
            dispatcher = njit(fastmath=FASTMATH)(self.function)
            cache = dispatcher._cache = _AnnouncingCache(self.name)
            dispatcher.compile(self.signature)
            self.run = dispatcher.overloads[self.signature].entry_point
            cache.announce_end()
            return cache.missed

    def _load_and_run(self, *args: Any) -> int:
        self.load()
        return self.run(*args)


class _AnnouncingCache(DiskCache):
    """Says on stderr when a kernel has to be compiled: that takes seconds, and must not look like a hang."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None and not _progress_elsewhere:
            self._start = time.perf_counter()
            message = f'quad_dynamics: compiling {self._name} (once on this machine) ... '
            print(message, end='', file=sys.stderr, flush=True)
        return found

    def announce_end(self) -> None:
        if self.missed and not _progress_elsewhere:
            print(f'{time.perf_counter() - self._start:.1f} s', file=sys.stderr, flush=True)


_progress_elsewhere = False


def kernel(*signature: types.Type) -> Callable[[Callable[..., int]], Kernel]:
    """Declare a function as a kernel with the given argument types; it returns a status (see `door`)."""

    def declare(function: Callable[..., int]) -> Kernel:
        made = KERNELS[function.__name__] = Kernel(function, signature)
        return made

    return declare


def warm_up(progress: bool = True) -> int:
    """Compile or load all kernels now, so that no later call has to wait; returns how many were compiled.

    Args:
        progress: show a progress bar on stderr.
    """
    global _progress_elsewhere  # noqa: PLW0603
    from tqdm import tqdm

    import quad_dynamics.kernels.all  # noqa: F401 (fills KERNELS)

    compiled = 0
    with tqdm(KERNELS.values(), desc='compiling kernels', unit='kernel', disable=not progress) as bar:
        _progress_elsewhere = True
        try:
            for item in bar:
                bar.set_postfix_str(item.name)
                compiled += item.load()
        finally:
            _progress_elsewhere = False
    return compiled
