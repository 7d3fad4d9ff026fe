# SPDX-License-Identifier: Apache-2.0
"""Positions and velocities of the feet, from the dynamics terms of a controller."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, item
from quad_dynamics.compiler.registry import INT, kernel
from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Int, Object, Vec3
from quad_dynamics.kernels.argument_kinds import TERMS
from quad_dynamics.kernels.controller_terms import P_WF, R_WF, V_WF
from quad_dynamics.kernels.spatial import add, cross, matrix3, rotate, vector3
from quad_dynamics.kernels.whole_body.records import Feet, FootSphere, feet_at
from quad_dynamics.memory.layout import Robot


@kernel(Robot, INT, TERMS, array(lambda: Feet.words))
def foot_motions(robot: Robot, n: Int, terms: Object, memory: Object) -> Int:
    """Position and velocity of n feet, from the controller's dynamics terms.

    Args:
        robot: its memory.
        n: number of legs.
        terms: result of `controller_terms`, with the feet as frames.
        memory: of `Feet`.
    """
    feet, p_WF, v_WF = feet_at(data(memory), 0), data(item(terms, P_WF)), data(item(terms, V_WF))
    for k in range(n):
        sphere, motion = feet.spheres[k], feet.motions[k]
        arm, w = centre_from_frame(terms, sphere), vector3(v_WF, 6 * sphere.frame + 3)
        motion.position = add(vector3(p_WF, 3 * sphere.frame), arm)
        motion.velocity = add(vector3(v_WF, 6 * sphere.frame), cross(w, arm))
        motion.angular_velocity = w
    return 0


@routine
def centre_from_frame(terms: Object, sphere: FootSphere) -> Vec3:
    """Vector from the origin of its frame to the centre of a foot, in world axes."""
    return rotate(matrix3(data(item(terms, R_WF)), 9 * sphere.frame), sphere.offset)
