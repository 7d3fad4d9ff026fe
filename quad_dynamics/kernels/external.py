# SPDX-License-Identifier: Apache-2.0
"""External wrenches on the links, as the door hands them to the kernels.

A row of `wrenches` has WRENCH_WORDS numbers: the address of the lane of the link's body (a whole number), the position
of the link's origin in frame K of that body, and the wrench [force; moment] at that origin in world axes.
"""

from __future__ import annotations

from quad_dynamics.kernels.spatial import add, cross, read3, read9, rotate
from quad_dynamics.kernels.trace import LANES, formula, routine
from quad_dynamics.model import layout as L

WRENCH_WORDS = 10


@routine
def subtract_wrenches(A, wrenches, start, count):
    """Subtract `count` external wrenches, from wrenches[start] on, from the wrenches that the bodies need."""
    for i in range(start, start + count * WRENCH_WORDS, WRENCH_WORDS):
        x = wrenches[i : i + WRENCH_WORDS]
        subtract_wrench(A, int(x[0]), (x[1], x[2], x[3]), (x[4], x[5], x[6]), (x[7], x[8], x[9]))


@formula
def subtract_wrench(A, lane, offset, force, moment):
    """Subtract one wrench, given at a point of the body in that lane."""
    p = add(read3(A, lane + L.POS), rotate(read9(A, lane + L.ROT), offset))
    moment = add(moment, cross(p, force))
    for i in range(3):
        A[lane + L.FORCE_F + LANES * i] = A[lane + L.FORCE_F + LANES * i] - force[i]
        A[lane + L.FORCE_N + LANES * i] = A[lane + L.FORCE_N + LANES * i] - moment[i]
