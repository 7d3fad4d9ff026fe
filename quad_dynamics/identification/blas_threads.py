# SPDX-License-Identifier: Apache-2.0
"""Single-threaded BLAS: the matrices are small, and BLAS threads would only wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the context, and restore the number of threads afterwards.

    Without threadpoolctl nothing is limited; this only costs time. If several threads are inside at once, the
    first one sets and restores the limit; the others run slower after it has left.
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
