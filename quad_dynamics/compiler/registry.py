# SPDX-License-Identifier: Apache-2.0
"""Registry of the compiled functions that Python calls: `@kernel` declares one, `KERNELS` lists them.

A kernel is loaded from the disk cache, or compiled, on its first call, not on import. It is then called
directly (`kernel.run`, see `entry`), without numba's dispatcher, which would spend 200 ns on resolving the
types; the kernels check the types of arrays themselves (see `kernels.validation`).
"""

from __future__ import annotations

import contextlib
import inspect
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from llvmlite.binding import Linkage
from numba import njit, types
from numba.core import codegen
from numba.core.compiler_lock import global_compiler_lock

from quad_dynamics.compiler.arguments import Array, ArrayTuple
from quad_dynamics.compiler.disk_cache import DiskCache
from quad_dynamics.compiler.entry import make_entry
from quad_dynamics.compiler.interpreter import INTERPRETED, creating, interpret, memory_at, plain
from quad_dynamics.compiler.record_types import RootType, type_of_record
from quad_dynamics.compiler.records import Record
from quad_dynamics.compiler.self_test import check_compiler
from quad_dynamics.compiler.trace import OPTIONS, AddressType, ObjectType

# Argument types: an address of plain numbers (a Python int), arrays and other objects, and numbers. The
# address of a root record (also a Python int) is declared by its class.
ADDRESS = AddressType()
OBJECT = ObjectType()
INT = types.int64
FLOAT = types.float64

KERNELS: dict[str, Kernel] = {}
# Called with the name of each kernel that is being compiled, and with '' when it is done.
LISTENERS: list[Callable[[str], None]] = []

_lock = threading.RLock()
if hasattr(os, 'register_at_fork'):
    # A process that is forked while another thread compiles must not inherit a lock that is never released.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Kernel:
    """A compiled function.

    Attributes:
        name: its unique name.
        arguments: the declaration of each argument, by name.
        signature: the same as numba types.
        run: calls it; the first call compiles or loads it.
        run_unlocked: the same without the GIL, so that other threads can run. It is meant for long calls,
            because reacquiring the GIL may take milliseconds. Each thread needs its own arena
            (`Packed.workspace`), and arrays that nobody else changes.
        make: calls it without its last argument, the result; takes its shape instead (see `entry`). Returns
            the result, or None if the kernel rejected an argument.
    """

    def __init__(self, function: Callable[..., int], kinds: tuple[Any, ...]) -> None:
        self.name = function.__name__
        self.arguments = dict(zip(inspect.signature(function).parameters, kinds, strict=True))
        self.signature = tuple(OBJECT if isinstance(kind, Array | ArrayTuple) else kind for kind in kinds)
        self.function = function
        self.run: Callable[..., int] = self._load_and_run
        self.run_unlocked: Callable[..., int] = self._load_and_run_unlocked
        self.make: Callable[..., Any] = self._load_and_make
        self._address = 0  # address of the compiled code
        self._dispatcher: Any = None  # owns the code

    def load(self, announce: bool = True) -> bool:
        """Load or compile it; returns whether it had to be compiled.

        Args:
            announce: report on stderr that it is being compiled: that takes seconds, and must not look like a
                hang.
        """
        with _lock:
            if self.run != self._load_and_run:
                return False
            if INTERPRETED:
                self.run = self.run_unlocked = interpret(
                    self.name, self.function, self.arguments, self._converters()
                )
                return False
            if numba.config.DISABLE_JIT:
                raise RuntimeError('NUMBA_DISABLE_JIT is set, but the kernels have to be compiled')
            if not getattr(sys, '_is_gil_enabled', lambda: True)():
                raise RuntimeError(
                    'the kernels rely on the global interpreter lock, which this Python has off'
                )
            check_compiler()
            dispatcher = self._dispatcher = njit(**OPTIONS)(self.function)
            cache = dispatcher._cache = _AnnouncingCache(self.name, announce)
            with cache, global_compiler_lock, _optimize_only(self.name):
                dispatcher.compile(self.signature)
            result = dispatcher.overloads[self.signature]
            address = self._address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
            self.run_unlocked = make_entry(self.name, self.arguments, address, release=True)
            self.run = make_entry(self.name, self.arguments, address)
            return cache.missed

    def _converters(self) -> Iterator[Callable[[Any], Any]]:
        """How interpreted kernels convert each argument."""
        known = {ADDRESS: memory_at, INT: operator.index, FLOAT: np.float64}
        known |= {kind: _record_at(kind.record) for kind in self.signature if isinstance(kind, RootType)}
        return (known.get(kind, lambda argument: argument) for kind in self.signature)

    def _load_and_run(self, *args: Any) -> int:
        self.load()
        return self.run(*args)

    def _load_and_make(self, *args: Any) -> Any:
        self.load()
        with _lock:
            if INTERPRETED:
                self.make = creating(self.run)
            else:
                self.make = make_entry(self.name, self.arguments, self._address, creates=True)
        return self.make(*args)

    def _load_and_run_unlocked(self, *args: Any) -> int:
        self.load()
        return self.run_unlocked(*args)


def _record_at(record: type[Record]) -> Callable[[int], Record]:
    """A function that makes a root record from its address."""
    return lambda address: record(memory_at(address))


class _AnnouncingCache(DiskCache):
    """Announces when a kernel is compiled, and when that is done."""

    def __init__(self, name: str, announce: bool) -> None:
        super().__init__(name)
        self._announce = announce
        self._start = 0.0

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None:
            self._start = time.perf_counter()
            self._say(f'quad_dynamics: compiling {self._name} (once on this machine) ... ')
            _tell(self._name)
        return found

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._start:
            _tell('')
        if self.missed:
            self._say(f'{time.perf_counter() - self._start:.1f} s\n')
        if self.problem and self.problem not in _told:
            _told.add(self.problem)
            _write(f'quad_dynamics: {self.problem}\n')

    def _say(self, text: str) -> None:
        if self._announce:
            _write(text)


_told: set[str] = set()  # messages that were already printed; each appears once per process


def _write(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # stderr may be closed
            print(text, end='', file=sys.stderr, flush=True)


def _tell(name: str) -> None:
    for listener in LISTENERS:
        listener(name)


@contextlib.contextmanager
def _optimize_only(name: str) -> Iterator[None]:
    """Make numba optimise and compile only the kernel of this name.

    By default numba also optimises and compiles every routine that the kernel calls, although each is inlined
    into the kernel and optimised there. That takes half of the time.
    """
    library = codegen.JITCodeLibrary
    optimize, make_code = library._optimize_final_module, library._finalize_specific

    def optimize_kernel(self: Any) -> None:
        if self.name == name:
            for function in self._final_module.functions:
                # Otherwise calls might be linked to the copy of another kernel, or to one that is not
                # optimised.
                if function.linkage == Linkage.linkonce_odr:
                    function.linkage = Linkage.internal
            optimize(self)

    def make_kernel(self: Any) -> None:
        if self.name == name:
            make_code(self)

    library._optimize_final_module, library._finalize_specific = optimize_kernel, make_kernel
    try:
        yield
    finally:
        library._optimize_final_module, library._finalize_specific = optimize, make_code


def kernel(*kinds: Any) -> Callable[[Callable[..., int]], Kernel]:
    """Declare a function as a kernel; it returns a status (see `kernels.validation`).

    Args:
        kinds: types of its arguments: the class of a root record, ADDRESS, INT, FLOAT; OBJECT for objects
            that the kernel validates itself; `array`, `table`, `tuple_of`, `each` of `arguments` for arrays
            that are validated on entry.
    """
    kinds = tuple(type_of_record(kind) if isinstance(kind, type) else kind for kind in kinds)

    def declare(function: Callable[..., int]) -> Kernel:
        if INTERPRETED:
            plain(function)
        made = KERNELS[function.__name__] = Kernel(function, kinds)
        return made

    return declare
