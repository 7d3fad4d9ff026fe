# SPDX-License-Identifier: Apache-2.0
"""What all contact models share: the velocity after a time step without constraints, and moving with one."""

from __future__ import annotations

from quad_dynamics.compiler.trace import apart, formula, lane_sum, load_int, routine, subroutine, zero_lanes
from quad_dynamics.compiler.types import Address, Int, Lanes, Number, Vec3
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.aba import solve_articulated, store_rigid
from quad_dynamics.kernels.constraints import row3
from quad_dynamics.kernels.external import subtract_from_body, subtract_wrench
from quad_dynamics.kernels.joint_space import accelerate_by_factor
from quad_dynamics.kernels.manifold import turn
from quad_dynamics.kernels.spatial import add, cross, dot, inertia_mul, load3, scale, store6
from quad_dynamics.kernels.tree import inertia_in_A, move_bodies, pack_at, place_bodies
from quad_dynamics.model import layout as L


@subroutine
def place_and_move(A: Address, S: Address) -> None:
    """Place and move all bodies as q and u say."""
    apart(A)
    place_bodies(A, S, load_int(S, S_.Q))
    move_bodies(A, S, load_int(S, S_.U))


@subroutine
def start_bodies(A: Address, S: Address) -> Number:
    """Inertias and bias wrenches of the bodies alone, less external forces; returns the kinetic energy."""
    apart(A)
    zero = zero_lanes(A)
    energy, momentum = zero, (zero, zero, zero)
    for k in range(load_int(A, L.PACKS)):
        energy, momentum = start_moving_pack(A, pack_at(A, k), energy, momentum)
    forces, dt = load_int(S, S_.FORCES), S[S_.DT]
    for i in range(S_.MAX_FORCES):
        at = forces + i * S_.FORCE_WORDS
        if S[at + S_.F_LEFT] > 0.0:
            push_link(A, S, at, min(S[at + S_.F_LEFT] / dt, 1.0))
    if load_int(A, L.FLOATING) == 0:
        return sum_energy(energy, momentum, (0.0, 0.0, 0.0), 0.0)
    return sum_energy(energy, momentum, row3(S, load_int(S, S_.U)), S[S_.MASS])


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
def push_link(A: Address, S: Address, at: Int, share: Number) -> None:
    """Let an external wrench act on its link."""
    force, moment = row3(S, at + S_.F_WRENCH), row3(S, at + S_.F_WRENCH + 3)
    lane = load_int(S, at + S_.F_LANE)
    subtract_wrench(A, lane, row3(S, at + S_.F_POSITION), scale(force, share), scale(moment, share))


@formula
def push_body(A: Address, lane: Int, p: Vec3, force: Vec3) -> None:
    """Let a force act at a place in A on the body in a lane."""
    subtract_from_body(A, lane, force, cross(p, force))


@subroutine
def accelerate(A: Address, S: Address, to: Int) -> None:
    """S[to : to + nv] = accelerations without constraints; after `start_bodies` and `load_joints`."""
    apart(A)
    if load_int(S, S_.FORWARD_DYNAMICS) == S_.CHOLESKY:
        accelerate_by_factor(A, S, to)
    else:
        solve_articulated(A, S, 0, False, S, to)


@routine
def fall(A: Address, S: Address, h: Number) -> None:
    """S[V] = u + h du without constraints."""
    nv, u, v, w = load_int(A, L.NV), load_int(S, S_.U), load_int(S, S_.V), load_int(S, S_.W)
    accelerate(A, S, w)
    for i in range(nv):
        S[v + i] = S[u + i] + h * S[w + i]


@routine
def add_response(A: Address, S: Address) -> None:
    """S[V] += S[W]."""
    v, w = load_int(S, S_.V), load_int(S, S_.W)
    for i in range(load_int(A, L.NV)):
        S[v + i] += S[w + i]


@routine
def take_velocity(A: Address, S: Address) -> None:
    """u = S[V]."""
    u, v = load_int(S, S_.U), load_int(S, S_.V)
    for i in range(load_int(A, L.NV)):
        S[u + i] = S[v + i]


@subroutine
def move_along(A: Address, S: Address, h: Number) -> None:
    """q moves with S[V] for a time h, along its manifold."""
    apart(A)
    nq, nv, nj = load_int(A, L.NQ), load_int(A, L.NV), load_int(A, L.NJ)
    q, v = load_int(S, S_.Q), load_int(S, S_.V)
    if nv > nj:
        for k in range(3):
            S[q + k] += h * S[v + k]
        turn(S, q + 3, h * S[v + 3], h * S[v + 4], h * S[v + 5], S, q + 3)
    for j in range(nj):
        S[q + nq - nj + j] += h * S[v + nv - nj + j]
