# SPDX-License-Identifier: Apache-2.0
"""Shared by all contact models: the velocity after a time step without constraints, and the motion."""

from __future__ import annotations

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, formula, lane_sum, routine, subroutine, zero_lanes
from quad_dynamics.compiler.types import Lanes, Number, Vec3
from quad_dynamics.kernels.aba import articulate_rigid, solve_articulated
from quad_dynamics.kernels.external import (
    subtract_about_origin,
    subtract_at_point,
)
from quad_dynamics.kernels.manifold import turn
from quad_dynamics.kernels.simulation.joint_space import accelerate_by_factor
from quad_dynamics.kernels.simulation.scene import CHOLESKY, MAX_FORCES, ExternalForce, Scene
from quad_dynamics.kernels.spatial import add, cross, dot, inertia_mul, scale, vector3
from quad_dynamics.kernels.tree import (
    body_at,
    move_bodies,
    place_bodies,
    rigid_inertia,
)
from quad_dynamics.memory.layout import Body, Pack, Robot


@subroutine
def place_and_move(robot: Robot, scene: Scene) -> None:
    """Compute poses and velocities of all bodies from q and u."""
    apart(robot)
    place_bodies(robot, scene.q, 0)
    move_bodies(robot, scene.u, 0)


@subroutine
def start_bodies(robot: Robot, scene: Scene) -> Number:
    """Inertias and bias wrenches of the single bodies, minus external forces; returns the kinetic energy."""
    apart(robot)
    momentum: Vec3
    zero = zero_lanes(robot)
    energy, momentum = zero, (zero, zero, zero)
    for k in range(robot.n_packs):
        energy, momentum = start_moving_pack(robot.packs[k], energy, momentum)
    forces, dt = scene.forces, scene.settings.dt
    for i in range(MAX_FORCES):
        force = forces[i]
        if force.time_left > 0.0:
            push_link(robot, force, min(force.time_left / dt, 1.0))
    if robot.floating == 0:
        return sum_energy(energy, momentum, (0.0, 0.0, 0.0), 0.0)
    return sum_energy(energy, momentum, vector3(scene.u, 0), scene.mass)


@formula
def start_moving_pack(pack: Pack, energy: Lanes, momentum: Vec3) -> tuple[Lanes, Vec3]:
    """As `aba.start_pack`; adds energy and momentum, relative to the velocity of the base."""
    m, h, J = rigid_inertia(pack)
    articulate_rigid(pack, m, h, J)
    v, w = pack.v, pack.w
    l, k = inertia_mul(m, h, J, v, w)
    pack.f, pack.n = cross(w, l), add(cross(w, k), cross(v, l))
    return energy + (dot(v, l) + dot(w, k)) * 0.5, add(momentum, l)


@formula
def sum_energy(energy: Lanes, momentum: Vec3, v_B: Vec3, mass: Number) -> Number:
    """Kinetic energy in the world: that of the motion about the base's origin, plus the terms of v_B."""
    p = tuple(lane_sum(x) for x in momentum)
    return lane_sum(energy) + dot(p, v_B) + dot(v_B, v_B) * (0.5 * mass)


@formula
def push_link(robot: Robot, force: ExternalForce, share: Number) -> None:
    """Apply an external wrench to its link."""
    f, moment = force.force, force.moment
    lane = force.lane
    subtract_at_point(body_at(robot, lane), force.position, scale(f, share), scale(moment, share))


@formula
def push_body(body: Body, p: Vec3, force: Vec3) -> None:
    """Apply a force at a point in A to the body in a lane."""
    subtract_about_origin(body, force, cross(p, force))


@subroutine
def accelerate(robot: Robot, scene: Scene, to: Numbers) -> None:
    """to = accelerations (nv) without constraints; after `start_bodies` and `load_joints`."""
    apart(robot)
    if scene.settings.forward_dynamics == CHOLESKY:
        accelerate_by_factor(robot, scene, to)
    else:
        solve_articulated(robot, to, 0, False, to, 0)


@routine
def unconstrained_velocity(robot: Robot, scene: Scene, h: Number) -> None:
    """velocity = u + h du without constraints."""
    nv, u, v, w = robot.nv, scene.u, scene.velocity, scene.response
    accelerate(robot, scene, w)
    for i in range(nv):
        v[i] = u[i] + h * w[i]


@routine
def add_response(robot: Robot, scene: Scene) -> None:
    """velocity += response."""
    v, w = scene.velocity, scene.response
    for i in range(robot.nv):
        v[i] += w[i]


@routine
def take_velocity(robot: Robot, scene: Scene) -> None:
    """u = velocity."""
    u, v = scene.u, scene.velocity
    for i in range(robot.nv):
        u[i] = v[i]


@subroutine
def move_along(robot: Robot, scene: Scene, h: Number) -> None:
    """Move q with `velocity` for a time h, along its manifold."""
    apart(robot)
    nq, nv, nj = robot.nq, robot.nv, robot.nj
    q, v = scene.q, scene.velocity
    if nv > nj:
        for k in range(3):
            q[k] += h * v[k]
        turn(q, 3, h * v[3], h * v[4], h * v[5], q, 3)
    for j in range(nj):
        q[nq - nj + j] += h * v[nv - nj + j]
