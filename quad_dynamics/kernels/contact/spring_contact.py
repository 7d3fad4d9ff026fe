# SPDX-License-Identifier: Apache-2.0
"""One time step with spring-damper contact, in sub-steps.

The forces (`spring_force`) are stiff. The sub-step is chosen in every step from the deepest penetration and
the smallest effective mass at a contact, so that damping, which limits an explicit scheme first, stays far
from its stability limit. The dynamics of the robot are solved once per step, and only the contact points are
integrated in sub-steps (`spring_midpoint`). If many points need few sub-steps, or if the number of sub-steps
is given, the dynamics are solved in each sub-step, with semi-implicit Euler.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, memory_at, routine, subroutine
from quad_dynamics.compiler.types import Int, Number, Vec3
from quad_dynamics.kernels.contact.impulse_contact import base_motion, point_velocity
from quad_dynamics.kernels.contact.spring_force import spring_force
from quad_dynamics.kernels.contact.spring_midpoint import step_at_midpoint
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.kernels.simulation.solve_step import solve_step
from quad_dynamics.kernels.simulation.unconstrained_motion import move_along, place_and_move, take_velocity
from quad_dynamics.kernels.spatial import add, dot, scale
from quad_dynamics.kernels.terrain.ground import ground_below
from quad_dynamics.kernels.tree import body_at, position_of_point
from quad_dynamics.memory.layout import Robot

REACH = 0.01  # points closer than this plus their travel in a step are evaluated in every sub-step [m]
QUIET = 0.35  # maximum fraction of a velocity that damping removes in a sub-step
MAX_SUBSTEPS = 200
# Velocities are predicted if damping removes less than this fraction of them in a sub-step. The prediction is
# stable up to 1; without it the limit is 2.
CROWDED = 0.6
# Solving the dynamics in a sub-step costs as much as integrating this number of points.
POINTS_OF_A_SOLUTION = 4


@subroutine
def step_springs(robot: Robot, scene: Scene, dt: Number) -> Number:
    """Advance q and u by dt with contact; returns the kinetic energy before the step."""
    apart(robot)
    place_and_move(robot, scene)
    near, substeps, crowd = look_around(robot, scene, dt)
    if scene.settings.substeps > 0:
        substeps = scene.settings.substeps
    scene.state.substeps = substeps
    h = dt / substeps
    fade = fading(scene, h)
    if scene.settings.substeps == 0 and near <= POINTS_OF_A_SOLUTION * substeps:
        done, energy = step_at_midpoint(robot, scene, near, substeps, fade, h * crowd < CROWDED)
        if done:
            return energy
        place_and_move(robot, scene)
    return step_by_step(robot, scene, near, substeps, h, fade)


@routine
def fading(scene: Scene, time: Number) -> Number:
    """The remaining fraction of the deflection of a point in the air after some time."""
    K, D = scene.settings.stiffness, scene.settings.damping
    return math.exp(-K / D * time) if D > 0.0 else 0.0


@routine
def step_by_step(robot: Robot, scene: Scene, near: Int, substeps: Int, h: Number, fade: Number) -> Number:
    """Advance q and u in sub-steps of length h, with the dynamics solved in each; kinetic energy before."""
    energy = 0.0
    for k in range(substeps):
        if k > 0:
            place_and_move(robot, scene)
        press_springs(robot, scene, near, h, fade)
        energy = solve_step(robot, scene, h, scene.zero, near)
        take_velocity(robot, scene)
        move_along(robot, scene, h)
    return energy


@subroutine
def look_around(robot: Robot, scene: Scene, dt: Number) -> tuple[Int, Int, Number]:
    """List the points near the ground.

    Returns:
        Their number, the number of sub-steps they need, and the largest damping rate of all points of one
        body together [1/s].
    """
    apart(robot)
    terrain = memory_at(scene.terrain)
    points, memories, springs = scene.points, scene.point_memory, scene.springs
    count, D, K = scene.n_points, scene.settings.damping, scene.settings.stiffness
    p_B, v_B = base_motion(robot, scene)
    n, last = 0, -1
    fastest, together, crowd = 0.0, 0.0, 0.0
    for i in range(count):
        point, memory = points[i], memories[i]
        lane, radius = point.lane, point.radius
        if lane != last:  # the points of a body are consecutive
            together, last = 0.0, lane
        p = position_of_point(body_at(robot, lane), point.position)
        distance, normal, _, _ = ground_below(terrain, add(p, p_B), radius)
        memory.impulse = (0.0, 0.0, 0.0)
        memory.normal = normal
        memory.distance = distance
        v = add(v_B, point_velocity(body_at(robot, lane), add(p, scale(normal, -radius))))
        reach = 2.0 * dt * math.sqrt(dot(v, v))
        if distance < REACH + reach:
            springs[n].point = i
            springs[n].centre = add(p, p_B)
            n += 1
            depth = max(-distance, 0.0) + dt * max(-dot(normal, v), 0.0)
            if distance < reach:
                s = math.sqrt(depth)
                rate = D * s * point.mobility
                fastest = max(fastest, rate, math.sqrt(1.5 * K * s * point.mobility))
                together += rate
                crowd = max(crowd, together)
        else:
            memory.deflection = scale(memory.deflection, fading(scene, dt))
    return n, int(min(max(math.ceil(dt * fastest / QUIET), 1.0), MAX_SUBSTEPS)), crowd


@subroutine
def press_springs(robot: Robot, scene: Scene, near: Int, h: Number, fade: Number) -> None:
    """Contact forces of the points near the ground, and their deflections after a sub-step."""
    apart(robot)
    terrain = memory_at(scene.terrain)
    points, memories, springs = scene.points, scene.point_memory, scene.springs
    K, D = scene.settings.stiffness, scene.settings.damping
    p_B, v_B = base_motion(robot, scene)
    for k in range(near):
        spring = springs[k]
        i = spring.point
        point, memory = points[i], memories[i]
        lane, radius = point.lane, point.radius
        p = position_of_point(body_at(robot, lane), point.position)
        distance, normal, mu, _ = ground_below(terrain, add(p, p_B), radius)
        p = add(p, scale(normal, -radius))
        delta = memory.deflection
        force: Vec3 = (0.0, 0.0, 0.0)
        if distance < 0.0:
            v = add(v_B, point_velocity(body_at(robot, lane), p))
            force, delta = spring_force(K, D, mu, -distance, normal, v, delta, h, 0.0)
        else:
            delta = scale(delta, fade)
        memory.deflection = delta
        memory.impulse = add(memory.impulse, scale(force, h))
        spring.force = force
        spring.place = p
