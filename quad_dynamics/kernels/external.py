# SPDX-License-Identifier: Apache-2.0
"""External wrenches on the links.

They come as two tuples of the same length: `links` holds the frames of the links (see `frames`), `wrenches`
for each of them an array (6,) or (n, 6), [force; moment] at the link's origin in world axes. Without external
wrenches, `links` is None.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, is_array, is_none, item, length
from quad_dynamics.compiler.trace import formula, routine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Object, Vec3
from quad_dynamics.kernels.door import good_vector
from quad_dynamics.kernels.spatial import add, cross
from quad_dynamics.kernels.tree import point_of_body
from quad_dynamics.model import layout as L


@routine
def good_wrenches(A: Address, n: Int, links: Object, wrenches: Object) -> Bool:
    """Whether there is a finite wrench for each link; one (6,) may serve all states."""
    if is_none(A, links):
        return True
    if length(links) != length(wrenches):
        return False
    for k in range(length(links)):
        wrench = item(wrenches, k)
        if not (good_vector(A, 0, 6, wrench) or (n > 0 and good_vector(A, n, 6, wrench))):
            return False
    return True


@routine
def subtract_wrenches(A: Address, links: Object, wrenches: Object, state: Int) -> None:
    """Subtract the external wrenches of a state from the wrenches that the bodies need."""
    if is_none(A, links):
        return
    for k in range(length(links)):
        frame, x = data(item(links, k)), data(item(wrenches, k))
        i = 6 * state if is_array(A, item(wrenches, k), 2) else 0
        offset = (frame[1], frame[2], frame[3])
        force, moment = (x[i], x[i + 1], x[i + 2]), (x[i + 3], x[i + 4], x[i + 5])
        subtract_wrench(A, int(frame[0]), offset, force, moment)


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
