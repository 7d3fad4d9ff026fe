# SPDX-License-Identifier: Apache-2.0
"""What all contact models share: the velocity after a time step without constraints, and moving with one."""

from __future__ import annotations

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, formula, lane_sum, load_int, routine, subroutine, zero_lanes
from quad_dynamics.compiler.types import Address, Int, Lanes, Number, Vec3
from quad_dynamics.kernels.aba import solve_articulated, store_rigid
from quad_dynamics.kernels.constraints import row3
from quad_dynamics.kernels.external import subtract_from_body, subtract_wrench
from quad_dynamics.kernels.joint_space import accelerate_by_factor
from quad_dynamics.kernels.manifold import turn
from quad_dynamics.kernels.scene import CHOLESKY, MAX_FORCES, ExternalForce, Scene
from quad_dynamics.kernels.spatial import add, cross, dot, inertia_mul, load3, scale, store6
from quad_dynamics.kernels.tree import inertia_in_A, move_bodies, pack_at, place_bodies
from quad_dynamics.model import layout as L


@subroutine
def place_and_move(A: Address, scene: Scene) -> None:
    """Place and move all bodies as q and u say."""
    apart(A)
    place_bodies(A, scene.q, 0)
    move_bodies(A, scene.u, 0)


@subroutine
def start_bodies(A: Address, scene: Scene) -> Number:
    """Inertias and bias wrenches of the bodies alone, less external forces; returns the kinetic energy."""
    apart(A)
    momentum: Vec3
    zero = zero_lanes(A)
    energy, momentum = zero, (zero, zero, zero)
    for k in range(load_int(A, L.PACKS)):
        energy, momentum = start_moving_pack(A, pack_at(A, k), energy, momentum)
    forces, dt = scene.forces, scene.settings.dt
    for i in range(MAX_FORCES):
        force = forces[i]
        if force.time_left > 0.0:
            push_link(A, force, min(force.time_left / dt, 1.0))
    if load_int(A, L.FLOATING) == 0:
        return sum_energy(energy, momentum, (0.0, 0.0, 0.0), 0.0)
    return sum_energy(energy, momentum, row3(scene.u, 0), scene.mass)


@formula
def start_moving_pack(A: Address, at: Int, energy: Lanes, momentum: Vec3) -> tuple[Lanes, Vec3]:
    """As `aba.start_pack`; adds energy and momentum, seen by an observer that moves with the base."""
    m, h, J = inertia_in_A(A, at)
    store_rigid(A, at, m, h, J)
    v, w = load3(A, at + L.VEL_V), load3(A, at + L.VEL_W)
    l, k = inertia_mul(m, h, J, v, w)
    store6(A, at + L.FORCE_F, cross(w, l) + add(cross(w, k), cross(v, l)))
    return energy + (dot(v, l) + dot(w, k)) * 0.5, add(momentum, l)


@formula
def sum_energy(energy: Lanes, momentum: Vec3, v_B: Vec3, mass: Number) -> Number:
    """Kinetic energy in the world: that of the motion about the base's origin, and what its velocity adds."""
    p = tuple(lane_sum(x) for x in momentum)
    return lane_sum(energy) + dot(p, v_B) + dot(v_B, v_B) * (0.5 * mass)


@formula
def push_link(A: Address, force: ExternalForce, share: Number) -> None:
    """Let an external wrench act on its link."""
    f, moment = force.force, force.moment
    lane = force.lane
    subtract_wrench(A, lane, force.position, scale(f, share), scale(moment, share))


@formula
def push_body(A: Address, lane: Int, p: Vec3, force: Vec3) -> None:
    """Let a force act at a place in A on the body in a lane."""
    subtract_from_body(A, lane, force, cross(p, force))


@subroutine
def accelerate(A: Address, scene: Scene, to: Numbers) -> None:
    """to = accelerations (nv) without constraints; after `start_bodies` and `load_joints`."""
    apart(A)
    if scene.settings.forward_dynamics == CHOLESKY:
        accelerate_by_factor(A, scene, to)
    else:
        solve_articulated(A, to, 0, False, to, 0)


@routine
def fall(A: Address, scene: Scene, h: Number) -> None:
    """velocity = u + h du without constraints."""
    nv, u, v, w = load_int(A, L.NV), scene.u, scene.velocity, scene.response
    accelerate(A, scene, w)
    for i in range(nv):
        v[i] = u[i] + h * w[i]


@routine
def add_response(A: Address, scene: Scene) -> None:
    """velocity += response."""
    v, w = scene.velocity, scene.response
    for i in range(load_int(A, L.NV)):
        v[i] += w[i]


@routine
def take_velocity(A: Address, scene: Scene) -> None:
    """u = velocity."""
    u, v = scene.u, scene.velocity
    for i in range(load_int(A, L.NV)):
        u[i] = v[i]


@subroutine
def move_along(A: Address, scene: Scene, h: Number) -> None:
    """q moves with `velocity` for a time h, along its manifold."""
    apart(A)
    nq, nv, nj = load_int(A, L.NQ), load_int(A, L.NV), load_int(A, L.NJ)
    q, v = scene.q, scene.velocity
    if nv > nj:
        for k in range(3):
            q[k] += h * v[k]
        turn(q, 3, h * v[3], h * v[4], h * v[5], q, 3)
    for j in range(nj):
        q[nq - nj + j] += h * v[nv - nj + j]
