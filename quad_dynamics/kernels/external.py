# SPDX-License-Identifier: Apache-2.0
"""External wrenches on the links, as the door hands them to the kernels.

A row of `wrenches` has WRENCH_WORDS numbers: the address of the lane of the link's body (a whole number), the
position of the link's origin in frame K of that body, and the wrench [force; moment] at that origin in world
axes.
"""

from __future__ import annotations

from quad_dynamics.kernels.arrays import data, extent, is_none
from quad_dynamics.kernels.spatial import add, cross
from quad_dynamics.kernels.trace import formula, routine
from quad_dynamics.kernels.tree import point_of_body
from quad_dynamics.kernels.types import Address, Int, Object, Vec3
from quad_dynamics.model import layout as L
from quad_dynamics.model.layout import LANES

WRENCH_WORDS = 10


@routine
def wrench_count(A: Address, wrenches: Object) -> Int:
    """Number of wrenches for each state, from the argument: None, or an array (n, count, WRENCH_WORDS)."""
    return 0 if is_none(A, wrenches) else extent(wrenches, 1)


@routine
def subtract_wrenches(A: Address, wrenches: Object, state: Int, count: Int) -> None:
    """Subtract the external wrenches of a state from the wrenches that the bodies need."""
    x = data(wrenches)
    for k in range(state * count, (state + 1) * count):
        i = k * WRENCH_WORDS
        offset = (x[i + 1], x[i + 2], x[i + 3])
        subtract_wrench(A, int(x[i]), offset, (x[i + 4], x[i + 5], x[i + 6]), (x[i + 7], x[i + 8], x[i + 9]))


@formula
def subtract_wrench(A: Address, lane: Int, offset: Vec3, force: Vec3, moment: Vec3) -> None:
    """Subtract one wrench, given at a point of the body in that lane."""
    subtract_from_body(A, lane, force, add(moment, cross(point_of_body(A, lane, offset), force)))


@formula
def subtract_from_body(A: Address, lane: Int, force: Vec3, moment: Vec3) -> None:
    """Subtract a wrench about the origin of A from what the body in a lane needs."""
    for i in range(3):
        A[lane + L.FORCE_F + LANES * i] = A[lane + L.FORCE_F + LANES * i] - force[i]
        A[lane + L.FORCE_N + LANES * i] = A[lane + L.FORCE_N + LANES * i] - moment[i]
