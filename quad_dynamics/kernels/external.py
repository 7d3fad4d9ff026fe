# SPDX-License-Identifier: Apache-2.0
"""External wrenches on the links.

They are passed as two tuples of the same length: `links` has the frames of the links (see `frames`),
`wrenches` an array (6,) or (n, 6) for each, [force; moment] at the link's origin in world axes. Without
external wrenches, `links` is None.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, is_array, is_none, item, length
from quad_dynamics.compiler.trace import formula, routine
from quad_dynamics.compiler.types import Bool, Int, Object, Vec3
from quad_dynamics.kernels.spatial import add, cross
from quad_dynamics.kernels.tree import body_of, link_frame, position_of_point
from quad_dynamics.kernels.validation import good_vector
from quad_dynamics.memory.layout import Body, Robot


@routine
def good_wrenches(robot: Robot, n: Int, links: Object, wrenches: Object) -> Bool:
    """Whether there is a finite wrench for each link; one (6,) may be used for all states."""
    if is_none(robot, links):
        return True
    if length(links) != length(wrenches):
        return False
    for k in range(length(links)):
        wrench = item(wrenches, k)
        if not (good_vector(robot, 0, 6, wrench) or (n > 0 and good_vector(robot, n, 6, wrench))):
            return False
    return True


@routine
def subtract_wrenches(robot: Robot, links: Object, wrenches: Object, state: Int) -> None:
    """Subtract the external wrenches of a state from the wrenches that the joints must supply."""
    if is_none(robot, links):
        return
    for k in range(length(links)):
        frame, x = link_frame(data(item(links, k))), data(item(wrenches, k))
        i = 6 * state if is_array(robot, item(wrenches, k), 2) else 0
        p_K = frame.position
        force, moment = (x[i], x[i + 1], x[i + 2]), (x[i + 3], x[i + 4], x[i + 5])
        subtract_at_point(body_of(robot, frame), p_K, force, moment)


@formula
def subtract_at_point(body: Body, p_K: Vec3, force: Vec3, moment: Vec3) -> None:
    """Subtract a wrench at a point of a body from the wrench that the joints must supply."""
    subtract_about_origin(body, force, add(moment, cross(position_of_point(body, p_K), force)))


@formula
def subtract_about_origin(body: Body, force: Vec3, moment: Vec3) -> None:
    """Subtract a wrench about the origin of A from the wrench that the joints must supply."""
    # Alternating: the order of the loads determines how the compiler rounds the sums.
    x = [(Body.f.component(body, i), Body.n.component(body, i)) for i in range(3)]
    body.f = tuple(x[i][0] - force[i] for i in range(3))
    body.n = tuple(x[i][1] - moment[i] for i in range(3))
