# SPDX-License-Identifier: Apache-2.0
"""The kernel of the simulator: many time steps in one call."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, is_none
from quad_dynamics.compiler.record_types import clear, words
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.registry import INT, OBJECT, kernel
from quad_dynamics.compiler.trace import apart, fill_zero, memory_at, routine, subroutine
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Object
from quad_dynamics.kernels.contact.constraints import write3
from quad_dynamics.kernels.contact.impulse_contact import step_impulse
from quad_dynamics.kernels.contact.spring_contact import step_springs
from quad_dynamics.kernels.simulation.drives import give_torques
from quad_dynamics.kernels.simulation.runge_kutta import step_runge_kutta
from quad_dynamics.kernels.simulation.scene import MAX_FORCES, SPRING_DAMPER, Scene, scene_at
from quad_dynamics.kernels.spatial import add, scale, vector3
from quad_dynamics.kernels.tree import base_rows
from quad_dynamics.kernels.validation import finite_from, good_vector
from quad_dynamics.memory.layout import Robot

# Return values of the kernel.
GOOD, BAD_TORQUE, NOT_FINITE, TOO_ENERGETIC, TOO_FAST, LOG_FULL = range(6)

# A step in which a body rotates by more than this is rejected: a time step cannot resolve it [rad].
LARGEST_TURN = 1.0


@kernel(Robot, array(lambda: Scene.words), INT, OBJECT)
def simulate(robot: Robot, memory: Object, steps: Int, tau: Object) -> Int:
    """Advance the simulation.

    Args:
        robot: its memory, used by this simulator only.
        memory: of the scene (see `scene`).
        steps: number of time steps.
        tau: (nj,) joint torques from now on; None leaves the command unchanged.

    Returns:
        GOOD, or an error code; the state is then the last valid one. LOG_FULL: the log has no row left for
        the next step, which was not started.
    """
    scene = scene_at(data(memory), 0)
    if not is_none(robot, tau):
        if not good_vector(robot, 0, robot.nj, tau):
            return BAD_TORQUE
        take_torques(robot, scene, data(tau))
    for k in range(steps):
        if scene.log.address != 0 and scene.log.count >= scene.log.room:
            return LOG_FULL
        scene.exact = 1 if k + 1 == steps or fills_log(scene) else 0
        scene.first = 1 if k == 0 else 0
        status = advance(robot, scene)
        if status != GOOD:
            return status
    return GOOD


@routine
def fills_log(scene: Scene) -> Bool:
    """Whether the log may be full after the next step."""
    return scene.log.address != 0 and scene.log.count + 1 >= scene.log.room


@routine
def take_torques(robot: Robot, scene: Scene, tau: Address) -> None:
    """Make torques without gains the command."""
    nj, command = robot.nj, scene.command
    for j in range(nj):
        clear(command[j])
        command[j].tau = tau[j]
    scene.state.has_gains = 0


@routine
def advance(robot: Robot, scene: Scene) -> Int:
    """One time step."""
    dt = scene.settings.dt
    keep_state(scene)
    give_torques(robot, scene)
    if scene.settings.runge_kutta != 0:
        energy = step_runge_kutta(robot, scene, dt)
    elif scene.settings.contact == SPRING_DAMPER:
        energy = step_springs(robot, scene, dt)
    else:
        energy = step_impulse(robot, scene, dt)
    status = judge(robot, scene, energy)
    if status != GOOD:
        copy(scene.kept_state, scene.state_length, words(scene.state))
        return status
    write_results(robot, scene, dt)
    pass_time(scene, dt)
    if scene.log.address != 0:
        write_log(robot, scene)
    return GOOD


@routine
def keep_state(scene: Scene) -> None:
    """Save the state before the step, and reset its results."""
    state = scene.state
    copy(words(state), scene.state_length, scene.kept_state)
    state.sweeps = 0.0
    state.residual = 0.0
    state.substeps = 1.0
    state.converged = 1.0
    state.ldlt_solutions = 0.0
    state.iterations = 0.0


@routine
def copy(x: Numbers, count: Int, to: Numbers) -> None:
    """Copy numbers."""
    for i in range(count):
        to[i] = x[i]


@routine
def judge(robot: Robot, scene: Scene, energy: Number) -> Int:
    """Check whether the step is valid or has diverged."""
    nq, nv = robot.nq, robot.nv
    q, u = scene.q, scene.u
    if not finite_from(q, 0, nq) or not finite_from(u, 0, nv):
        return NOT_FINITE
    if not energy <= scene.settings.energy_limit * scene.mass:
        return TOO_ENERGETIC
    fastest = 0.0
    for i in range(3 if base_rows(robot) > 0 else 0, nv):
        fastest = max(fastest, abs(u[i]))
    return TOO_FAST if fastest * scene.settings.dt > LARGEST_TURN else GOOD


@routine
def write_results(robot: Robot, scene: Scene, dt: Number) -> None:
    """Mean acceleration over the step, and the forces on the feet."""
    u, last_u, to = scene.u, scene.last_u, scene.acceleration
    for i in range(robot.nv):
        to[i] = (u[i] - last_u[i]) / dt
    points, memories, feet = scene.points, scene.point_memory, scene.foot_forces
    fill_zero(feet, 0, 3 * scene.n_feet)
    for i in range(scene.n_points):
        foot = points[i].foot
        if foot >= 0:
            impulse = memories[i].impulse
            write3(feet, 3 * foot, add(vector3(feet, 3 * foot), scale(impulse, 1.0 / dt)))


@routine
def pass_time(scene: Scene, dt: Number) -> None:
    """Count the step, and reduce the remaining time of external forces."""
    state, forces = scene.state, scene.forces
    state.step = state.step + 1
    if state.ldlt_solutions > 0.0:
        state.ldlt_steps = state.ldlt_steps + 1
    for i in range(MAX_FORCES):
        forces[i].time_left = max(forces[i].time_left - dt, 0.0)


@subroutine
def write_log(robot: Robot, scene: Scene) -> None:
    """Write one row of the log, if it is due."""
    apart(robot)
    every, count = scene.log.every, scene.log.count
    state = scene.state
    step = state.step
    if step % every != 0:
        return
    log = memory_at(scene.log.address)
    at = count * scene.log.width
    log[at] = step * scene.settings.dt
    at = copy_out(scene.q, robot.nq, log, at + 1)
    at = copy_out(scene.u, robot.nv, log, at)
    at = copy_out(scene.acceleration, robot.nv, log, at)
    at = copy_out(scene.tau, robot.nj, log, at)
    at = copy_out(scene.foot_forces, 3 * scene.n_feet, log, at)
    log[at] = state.sweeps
    log[at + 1] = state.residual
    log[at + 2] = state.substeps
    log[at + 3] = state.converged
    log[at + 4] = state.ldlt_solutions
    log[at + 5] = state.iterations
    scene.log.count = count + 1


@routine
def copy_out(x: Numbers, count: Int, log: Address, to: Int) -> Int:
    """Copy numbers to the log; returns the offset behind them."""
    for i in range(count):
        log[to + i] = x[i]
    return to + count
