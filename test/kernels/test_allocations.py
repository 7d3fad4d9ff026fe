# SPDX-License-Identifier: Apache-2.0
"""Kernels allocate nothing, as counted by numba's own runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import Case, model_of
from numba import njit, types
from numba.core.runtime import _nrt_python, rtsys
from public_calls import CALLS, STATES, call, good_arguments


@pytest.fixture
def statistics() -> Iterator[None]:
    """Count allocations of numba's runtime, for one test."""
    before = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not before:
        _nrt_python.memsys_disable_stats()


def allocations(run: Any, *args: Any) -> int:
    """Allocations of numba's runtime during a call."""
    before = rtsys.get_allocation_stats().alloc
    run(*args)
    return rtsys.get_allocation_stats().alloc - before


@pytest.mark.usefixtures('statistics')
def test_an_allocation_would_be_seen() -> None:
    @njit
    def tidy(x):
        x[0] = 1.0

    @njit
    def wasteful(x):
        y = np.empty(x.size + 1)
        y[0] = x[0]
        x[0] = y[: x.size].sum()

    x = np.ones(3)
    tidy(x), wasteful(x)
    assert allocations(tidy, x) == 1  # the header that numba makes for an argument of an array type
    assert allocations(wasteful, x) == 2


@pytest.mark.usefixtures('statistics')
@pytest.mark.parametrize('name', CALLS)
@pytest.mark.parametrize('count', [None, 9], ids=['single', 'batch'])
def test_kernels_allocate_nothing(
    qd: Any, monkeypatch: pytest.MonkeyPatch, name: str, count: int | None
) -> None:
    from quad_dynamics.compiler.registry import KERNELS

    model = model_of(Case('go2', True))
    arguments = good_arguments(model)[name]
    if count is not None:
        arguments = {k: np.array([v] * count) if k in STATES else v for k, v in arguments.items()}
        arguments.pop('f_ext', None)
    call(qd, model, name, arguments)  # compiles or loads what it needs
    seen: dict[str, int] = {}
    for kernel in KERNELS.values():
        for entry in ('run', 'run_unlocked', 'make'):
            run = getattr(kernel, entry)

            def counted(*args: Any, kernel: Any = kernel, run: Any = run) -> Any:
                before = rtsys.get_allocation_stats().alloc
                result = run(*args)
                headers = sum(isinstance(kind, types.Array) for kind in kernel.signature)
                seen[kernel.name] = rtsys.get_allocation_stats().alloc - before - headers
                return result

            monkeypatch.setattr(kernel, entry, counted)
    call(qd, model, name, arguments)
    assert seen, f'{name} ran no kernel'
    assert not any(seen.values()), f'allocations by kernel: {seen}'
