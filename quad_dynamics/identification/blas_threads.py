# SPDX-License-Identifier: Apache-2.0
"""BLAS with one thread: matrices are small here, and threads of BLAS only wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside, and restore the number of threads after.

    Where threadpoolctl is not installed nothing is limited, which costs time only. Of several threads at
    once, the first limits and restores: others take longer after it has left.
    """
    import numpy.linalg  # noqa: F401 (libraries that are not loaded yet cannot be limited)
    import scipy.linalg  # noqa: F401

    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1, user_api='blas'):
        yield
