# SPDX-License-Identifier: Apache-2.0
"""Spring-damper contact, with the dynamics of the robot solved once per time step.

Springs are stiff, the robot is not: in a millisecond its mass matrix, the Jacobians of its contact points and
its bias forces hardly change. They are evaluated at the middle of the step, where the error of this is of
second order. With them constant, the velocities v of all points near the ground follow

    v' = a + G f(x, v),    x' = v,    G = J M^-1 J^T

where a is their acceleration without the contact forces f, and x are their positions. These few variables are
integrated in sub-steps: half a drift, a kick by the forces there, half a drift (position Verlet). The kick
uses the velocity in the middle of the sub-step, predicted with the last acceleration. The effect of the
forces on the robot is computed at the end, from two sums of the rows of G (see `constraints`): that of the
impulses gives its change of velocity, that of the impulses times the remaining time gives its displacement.

If a joint reaches a limit, or its dry friction has to be solved for, the step is left to `spring_contact`,
which solves the dynamics in every sub-step.
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.trace import apart, fill_zero, formula, memory_at, routine, subroutine
from quad_dynamics.compiler.types import LANES, Bool, Int, Number, Vec3
from quad_dynamics.kernels.contact.constraints import add_block, add_contact, contact_velocity
from quad_dynamics.kernels.contact.impulse_contact import base_motion, copy_limb, point_velocity
from quad_dynamics.kernels.contact.spring_force import spring_force
from quad_dynamics.kernels.contact.stops import add_stops, find_stops, keep_joints
from quad_dynamics.kernels.simulation.drives import STUCK, change_modes, guess_modes, load_joints, stop_stuck
from quad_dynamics.kernels.simulation.scene import BASE_COLUMNS, Scene
from quad_dynamics.kernels.simulation.solve_step import add_impulses, open_constraints, respond_to
from quad_dynamics.kernels.simulation.unconstrained_motion import (
    move_along,
    start_bodies,
    unconstrained_velocity,
)
from quad_dynamics.kernels.spatial import add, cross, scale, sub
from quad_dynamics.kernels.terrain.ground import ground_below
from quad_dynamics.kernels.tree import base_rows, body_at, move_bodies, place_bodies, position_of_point
from quad_dynamics.memory.layout import Robot

_ROUNDS = 4  # iterations of the search for the sticking joints


@subroutine
def step_at_midpoint(
    robot: Robot, scene: Scene, near: Int, substeps: Int, fade: Number, predicts: Bool
) -> tuple[Bool, Number]:
    """Advance q and u by a time step.

    Args:
        robot: its memory.
        scene: prepared by `spring_contact.look_around`.
        near: number of points near the ground.
        substeps: number of sub-steps.
        fade: remaining fraction of the deflection of a point in the air after a sub-step.
        predicts: whether forces use the velocity predicted for the middle of a sub-step.

    Returns:
        Whether it succeeded, and the kinetic energy. On failure the state is unchanged, but the bodies have
        moved.
    """
    apart(robot)
    dt, energy, changed = scene.settings.dt, 0.0, 1
    find_stops(robot, scene, dt)
    guess_modes(robot, scene, dt)
    if scene.n_stops > 0:
        return False, energy
    go_half_way(robot, scene, 0.5 * dt)
    open_points(robot, scene, near)
    for round_ in range(_ROUNDS):
        energy = start_bodies(robot, scene)
        load_joints(robot, scene, dt, True)
        unconstrained_velocity(robot, scene, dt)
        if near > 0:
            open_constraints(robot, scene, near, scene.zero)
            start_points(robot, scene, near, dt)
            follow_points(robot, scene, near, substeps, dt, fade, predicts)
            add_impulses(robot, scene, scene.y)
        changed = change_modes(robot, scene, dt, round_) + add_stops(robot, scene, dt)
        if changed == 0 or scene.n_stops > 0:
            break
    if changed > 0:
        return False, energy
    stop_stuck(robot, scene, dt)
    keep_joints(robot, scene)
    move_on_average(robot, scene, near, dt)
    keep_points(scene, near)
    return True, energy


@subroutine
def go_half_way(robot: Robot, scene: Scene, h: Number) -> None:
    """Place the bodies where they are after moving with u for a time h, and set their velocities from u."""
    apart(robot)
    nq, nv, nj = robot.nq, robot.nv, robot.nj
    q, u, to = scene.q, scene.u, scene.rates
    if nv > nj:
        # the norm of the quaternion does not matter here, nor does the third power of the angle
        x, y, z, w = q[3], q[4], q[5], q[6]
        a, b, c = 0.5 * h * u[3], 0.5 * h * u[4], 0.5 * h * u[5]
        to[3] = x + w * a + y * c - z * b
        to[4] = y + w * b + z * a - x * c
        to[5] = z + w * c + x * b - y * a
        to[6] = w - (x * a + y * b + z * c)
    for j in range(nj):
        to[nq - nj + j] = q[nq - nj + j] + h * u[nv - nj + j]
    place_bodies(robot, to, 0)
    move_bodies(robot, u, 0)


# ---------------------------------------------------------------- points near the ground


@subroutine
def open_points(robot: Robot, scene: Scene, near: Int) -> None:
    """Make contacts of the points near the ground, with rows along the world axes z, x, y."""
    apart(robot)
    points, memories, springs, contacts = scene.points, scene.point_memory, scene.springs, scene.contacts
    for k in range(near):
        spring, contact = springs[k], contacts[k]
        i = spring.point
        point = points[i]
        body = body_at(robot, point.lane)
        copy_limb(contact, point, i)
        contact.normal = (0.0, 0.0, 1.0)
        contact.tangent = (1.0, 0.0, 0.0)
        arm = scale(memories[i].normal, -point.radius)
        contact.place = add(position_of_point(body, point.position), arm)
        spring.spin = cross(arm, body.w)


@formula
def from_world(a: Vec3) -> Vec3:
    """A vector in world axes, in the order of the rows of a contact."""
    return a[2], a[0], a[1]


@formula
def to_world(a: Vec3) -> Vec3:
    """A vector in the order of the rows of a contact, in world axes."""
    return a[1], a[2], a[0]


@routine
def start_points(robot: Robot, scene: Scene, near: Int, dt: Number) -> None:
    """Initialise the points for the step; `free_velocity` becomes the acceleration without forces."""
    points, memories, springs, contacts = scene.points, scene.point_memory, scene.springs, scene.contacts
    _, v_B = base_motion(robot, scene)
    for k in range(near):
        spring, contact = springs[k], contacts[k]
        i = spring.point
        v = add(v_B, point_velocity(body_at(robot, points[i].lane), contact.place))
        contact.free_velocity = scale(sub(contact.free_velocity, from_world(v)), 1.0 / dt)
        spring.velocity = v
        spring.way = (0.0, 0.0, 0.0)
        spring.acceleration = (0.0, 0.0, 0.0)
        spring.impulse = (0.0, 0.0, 0.0)
        spring.deflection = memories[i].deflection
    size = BASE_COLUMNS + robot.nj + LANES
    fill_zero(scene.y, 0, size)
    fill_zero(scene.y_push, 0, size)


@subroutine
def follow_points(
    robot: Robot, scene: Scene, near: Int, substeps: Int, dt: Number, fade: Number, predicts: Bool
) -> None:
    """Integrate the points in sub-steps. y = sum of impulses, y_push = sum of impulses times time left."""
    apart(robot)
    h = dt / substeps
    lead = 0.5 * h if predicts else 0.0
    y, y_push, y_force = scene.y, scene.y_push, scene.y_force
    size = BASE_COLUMNS + robot.nj + LANES
    for k in range(substeps):
        time = (k + 0.5) * h
        fill_zero(y_force, 0, size)
        press_points(scene, near, time, h, lead, fade)
        kick_points(scene, near, h)
        for b in range(0, size, LANES):
            add_block(part(y_force, b), h, part(y, b))
            add_block(part(y_force, b), h * (dt - time), part(y_push, b))


@routine
def press_points(scene: Scene, near: Int, time: Number, h: Number, lead: Number, fade: Number) -> None:
    """Forces in the middle of a sub-step, deflections at its end; y_force = rows times forces."""
    terrain, K, D = memory_at(scene.terrain), scene.settings.stiffness, scene.settings.damping
    for k in range(near):
        spring, contact = scene.springs[k], scene.contacts[k]
        v = spring.velocity
        way = add(spring.way, scale(v, 0.5 * h))
        p = add(spring.centre, add(way, scale(spring.spin, time)))
        distance, normal, mu, _ = ground_below(terrain, p, scene.points[spring.point].radius)
        if distance < 0.0:
            v = add(v, scale(spring.acceleration, lead))
            force, delta = spring_force(K, D, mu, -distance, normal, v, spring.deflection, h, lead)
            spring.deflection = delta
            spring.impulse = add(spring.impulse, scale(force, h))
            add_contact(scene, contact, from_world(force), scene.y_force)
        else:
            spring.deflection = scale(spring.deflection, fade)


@routine
def kick_points(scene: Scene, near: Int, h: Number) -> None:
    """Velocities at the end of a sub-step, and the displacement up to there."""
    for k in range(near):
        spring = scene.springs[k]
        a = to_world(contact_velocity(scene, scene.contacts[k], scene.y_force))
        v = spring.velocity
        after = add(v, scale(a, h))
        spring.way = add(spring.way, scale(add(v, after), 0.5 * h))
        spring.velocity = after
        spring.acceleration = a


@routine
def keep_points(scene: Scene, near: Int) -> None:
    """Store impulses and deflections of the points for the next step."""
    for k in range(near):
        spring = scene.springs[k]
        memory = scene.point_memory[spring.point]
        memory.impulse = spring.impulse
        memory.deflection = spring.deflection


# ---------------------------------------------------------------- the robot


@routine
def move_on_average(robot: Robot, scene: Scene, near: Int, dt: Number) -> None:
    """Set u = velocity, and move q with the mean velocity of the step.

    That is (u + u') / 2 for a constant acceleration. Contact forces add M^-1 J^T of their impulses times the
    time by which they act before the middle of the step.
    """
    nv, nj, skip = robot.nv, robot.nj, base_rows(robot)
    u, v, w = scene.u, scene.velocity, scene.response
    if near > 0:
        y, y_push = scene.y, scene.y_push
        for i in range(BASE_COLUMNS + nj):
            y_push[i] = y_push[i] / dt - 0.5 * y[i]
        respond_to(robot, scene, y_push)
        for j in range(nj):
            if scene.modes[j].mode == STUCK:
                w[skip + j] = 0.0
    else:
        fill_zero(w, 0, nv)
    for i in range(nv):
        mean = 0.5 * (u[i] + v[i]) + w[i]
        u[i] = v[i]
        v[i] = mean
    move_along(robot, scene, dt)
