# SPDX-License-Identifier: Apache-2.0
"""Checks that a kernel does itself before it computes: sizes and finiteness of its arguments.

They cost a few nanoseconds here and hundreds in Python. A kernel returns 0 when all is well; otherwise the number of
the argument that is wrong (1 for the first after the model), and `quad_dynamics.api` then finds out what is wrong with it.
Nothing is computed or written in that case.
"""

from __future__ import annotations

from quad_dynamics.kernels.trace import load_int, routine
from quad_dynamics.model import layout as L

# A quaternion whose squared length is off by more than this is refused; a smaller error is normalised away.
QUATERNION_TOLERANCE = 1e-3


@routine
def all_finite(x):
    """Whether an array holds neither NaN nor inf."""
    bad = False
    for i in range(x.size):
        bad |= x[i] * 0.0 != 0.0
    return not bad


@routine
def contiguous(x):
    """Whether the elements of an array lie side by side (a view with strides is copied by the caller, then)."""
    return x.size < 2 or x.strides[0] == x.itemsize


@routine
def good_configuration(A, n, q):
    """Whether q holds n finite configurations with unit quaternions."""
    nq = load_int(A, L.NQ)
    if q.size != n * nq or not contiguous(q) or not all_finite(q):
        return False
    if load_int(A, L.FLOATING) != 0:
        for i in range(3, n * nq, nq):
            length2 = q[i] ** 2 + q[i + 1] ** 2 + q[i + 2] ** 2 + q[i + 3] ** 2
            if abs(length2 - 1.0) > QUATERNION_TOLERANCE:
                return False
    return True


@routine
def good_vector(n, size, x):
    """Whether x holds n vectors of the given size, all finite."""
    return x.size == n * size and contiguous(x) and all_finite(x)


@routine
def good_optional(n, size, x):
    """As `good_vector`; an empty x stands for zeros."""
    return x.size == 0 or good_vector(n, size, x)
