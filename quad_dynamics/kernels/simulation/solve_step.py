# SPDX-License-Identifier: Apache-2.0
"""The velocity after a time step: solves forces, joint friction, contacts and joint limits together."""

from __future__ import annotations

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, routine, subroutine
from quad_dynamics.compiler.types import Int, Number
from quad_dynamics.kernels.contact.constraints import (
    number_rows,
    open_contact,
    open_stop,
    respond,
    root_inertias,
)
from quad_dynamics.kernels.contact.impulses import find_impulses
from quad_dynamics.kernels.contact.stops import add_stops, find_stops, keep_joints
from quad_dynamics.kernels.simulation.drives import (
    change_modes,
    guess_modes,
    load_joints,
    solve_all_friction,
    stop_stuck,
)
from quad_dynamics.kernels.simulation.joint_space import (
    open_factored_contact,
    open_factored_stop,
    respond_by_factor,
)
from quad_dynamics.kernels.simulation.scene import CHOLESKY, Scene
from quad_dynamics.kernels.simulation.unconstrained_motion import (
    add_response,
    push_body,
    start_bodies,
    unconstrained_velocity,
)
from quad_dynamics.kernels.tree import body_at
from quad_dynamics.memory.layout import Robot

MAX_ROUNDS = 60  # of the search for joints that stick or reach a limit


@subroutine
def solve_step(robot: Robot, scene: Scene, h: Number, n_contacts: Int, near: Int) -> Number:
    """velocity = that after the step; returns the kinetic energy before the step."""
    apart(robot)
    energy, state = 0.0, scene.state
    changed, solved = 0, True
    find_stops(robot, scene, h)
    guess_modes(robot, scene, h)
    n_stops = scene.n_stops
    for round_ in range(MAX_ROUNDS):
        n_stops = scene.n_stops
        energy = start_bodies(robot, scene)
        push_bodies(robot, scene, near)
        load_joints(robot, scene, h, False)
        unconstrained_velocity(robot, scene, h)
        if n_contacts + n_stops > 0:
            open_constraints(robot, scene, n_contacts, n_stops)
            state.residual = 0.0  # only that of the last round counts
            solved = find_impulses(robot, scene, n_contacts, n_stops)
            add_impulses(robot, scene, scene.y)
        if solved:
            changed = change_modes(robot, scene, h, round_) + add_stops(robot, scene, h)
        else:
            changed = solve_all_friction(robot, scene, h)
        if changed == 0:
            break
    if changed > 0 or not solved:
        state.converged = 0.0
    scene.n_stops = n_stops  # constraints that the last round added were not solved
    stop_stuck(robot, scene, h)
    keep_joints(robot, scene)
    return energy


@routine
def open_constraints(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Rows, free velocities and inverse inertias of all constraints, if the robot moves with `velocity`."""
    contacts, stops = scene.contacts, scene.stops
    number_rows(scene, n_contacts, n_stops)
    if scene.settings.forward_dynamics == CHOLESKY:
        for i in range(n_contacts):
            open_factored_contact(robot, scene, contacts[i])
        for i in range(n_stops):
            open_factored_stop(robot, scene, stops[i])
        return
    root_inertias(robot)
    for i in range(n_contacts):
        open_contact(robot, scene, contacts[i])
    for i in range(n_stops):
        open_stop(robot, scene, stops[i])


@routine
def add_impulses(robot: Robot, scene: Scene, y: Numbers) -> None:
    """velocity += M^-1 J^T of the impulses in y."""
    respond_to(robot, scene, y)
    add_response(robot, scene)


@routine
def respond_to(robot: Robot, scene: Scene, y: Numbers) -> None:
    """response = M^-1 J^T of the impulses in y."""
    if scene.settings.forward_dynamics == CHOLESKY:
        respond_by_factor(robot, scene, y, scene.response)
    else:
        respond(robot, y, scene.response)


@routine
def push_bodies(robot: Robot, scene: Scene, near: Int) -> None:
    """Apply the contact forces to the bodies."""
    points, springs = scene.points, scene.springs
    for k in range(near):
        spring = springs[k]
        lane = points[spring.point].lane
        push_body(body_at(robot, lane), spring.place, spring.force)
