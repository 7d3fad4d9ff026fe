# SPDX-License-Identifier: Apache-2.0
"""One time step with spring-damper contact, in sub-steps.

With s = sqrt(depth), the normal force is N = s (K depth - D z'), at least zero, and the tangential force
f_t = s (-K delta - D v_t), at most mu N. The deflection delta is that of a bristle between the point and the
ground: it follows v_t while the point sticks, gives way so that the force stays mu N while it slides, and
relaxes with K / D when it is in the air.

It is stiff. The sub-step is chosen in every step from the deepest penetration and the lightest mass that a
contact force feels, so that damping, which limits an explicit scheme first, stays far from its limit.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, memory_at, routine, subroutine
from quad_dynamics.compiler.types import Int, Number, Vec3
from quad_dynamics.kernels.impulse_contact import base_motion, point_velocity
from quad_dynamics.kernels.scene import Scene
from quad_dynamics.kernels.solve_step import solve_step
from quad_dynamics.kernels.spatial import add, dot, scale, sub
from quad_dynamics.kernels.terrain import ground_below
from quad_dynamics.kernels.tree import body_at, position_of_point
from quad_dynamics.kernels.unconstrained_motion import move_along, place_and_move, take_velocity
from quad_dynamics.model.layout import Robot

REACH = 0.01  # points nearer than this, and what they travel in a step, are looked at in every sub-step [m]
QUIET = 0.35  # largest share of a velocity that damping takes in a sub-step
MAX_SUBSTEPS = 200


@subroutine
def step_springs(robot: Robot, scene: Scene, dt: Number) -> Number:
    """Advance q and u by dt with contact; returns the kinetic energy before."""
    apart(robot)
    place_and_move(robot, scene)
    near, wanted = look_around(robot, scene, dt)
    substeps = scene.settings.substeps
    if substeps == 0:
        substeps = wanted
    scene.state.substeps = substeps
    h = dt / substeps
    fade = (
        math.exp(-scene.settings.stiffness / scene.settings.damping * h)
        if scene.settings.damping > 0.0
        else 0.0
    )
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
def look_around(robot: Robot, scene: Scene, dt: Number) -> tuple[Int, Int]:
    """List the points near the ground; returns how many, and how many sub-steps they need."""
    apart(robot)
    terrain = memory_at(scene.terrain)
    points, memories, springs = scene.points, scene.point_memory, scene.springs
    count, D, K = scene.n_points, scene.settings.damping, scene.settings.stiffness
    p_B, v_B = base_motion(robot, scene)
    n = 0
    fastest = 0.0
    for i in range(count):
        point, memory = points[i], memories[i]
        lane, radius = point.lane, point.radius
        p = position_of_point(body_at(robot, lane), point.position)
        distance, normal, _, _ = ground_below(terrain, add(p, p_B), radius)
        memory.impulse = (0.0, 0.0, 0.0)
        memory.normal = normal
        memory.distance = distance
        v = add(v_B, point_velocity(body_at(robot, lane), add(p, scale(normal, -radius))))
        reach = 2.0 * dt * math.sqrt(dot(v, v))
        if distance < REACH + reach:
            springs[n].point = i
            n += 1
            depth = max(-distance, 0.0) + dt * max(-dot(normal, v), 0.0)
            if distance < reach:
                s = math.sqrt(depth)
                rate = D * s * point.mobility
                fastest = max(fastest, rate, math.sqrt(1.5 * K * s * point.mobility))
        else:
            fade = math.exp(-K / D * dt) if D > 0.0 else 0.0
            memory.deflection = scale(memory.deflection, fade)
    return n, int(min(max(math.ceil(dt * fastest / QUIET), 1.0), MAX_SUBSTEPS))


@subroutine
def press_springs(robot: Robot, scene: Scene, near: Int, h: Number, fade: Number) -> None:
    """Contact forces of the points that are near, and their deflections after a sub-step."""
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
            force, delta = spring_force(K, D, mu, -distance, normal, v, delta, h)
        else:
            delta = scale(delta, fade)
        memory.deflection = delta
        memory.impulse = add(memory.impulse, scale(force, h))
        spring.force = force
        spring.place = p


@routine
def spring_force(
    K: Number, D: Number, mu: Number, depth: Number, normal: Vec3, v: Vec3, delta: Vec3, h: Number
) -> tuple[Vec3, Vec3]:
    """Force on a point that is in the ground, and its deflection after a time h."""
    s = math.sqrt(depth)
    sink = dot(normal, v)
    N = max(s * (K * depth - D * sink), 0.0)
    v_t = sub(v, scale(normal, sink))
    delta = sub(delta, scale(normal, dot(normal, delta)))
    f = add(scale(delta, -K * s), scale(v_t, -D * s))
    size = math.sqrt(dot(f, f))
    if size > mu * N:
        f = scale(f, mu * N / size)
        if D > 0.0 and s > 0.0:
            # the bristle gives way: f_t = s (-K delta - D delta')
            rate = scale(add(f, scale(delta, K * s)), -1.0 / (D * s))
            delta = add(delta, scale(rate, h))
    else:
        delta = add(delta, scale(v_t, h))
    return add(scale(normal, N), f), delta
