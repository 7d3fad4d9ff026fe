# SPDX-License-Identifier: Apache-2.0
"""Poses and velocities of bodies if some are in mixed packs (see `memory.layout`).

A body needs little from its parent: in frame A, velocities and accelerations are sums, and only the pose is a
product. Each step therefore computes the part that does not depend on the parent for four bodies at once, and
then adds the parent's part in place, body by body.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import formula, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Lanes, Number
from quad_dynamics.kernels.spatial import add, cross, matmul, rotate, scale
from quad_dynamics.kernels.tree import base_rows, move_bodies, pick, place_bodies
from quad_dynamics.memory.layout import MixedBody, Pack, Robot

# ---------------------------------------------------------------- positions


@routine
def place_tree(robot: Robot, q: Address, iq: Int) -> None:
    """As `tree.place_bodies`, for robots that may have mixed packs."""
    place_bodies(robot, q, iq)
    for k in range(robot.n_aligned, robot.n_packs):
        place_in_parent(robot.packs[k], q, iq + robot.nq - robot.nj)
    for i in range(robot.n_mixed):
        carry(robot.mixed[i])
    for k in range(robot.n_aligned, robot.n_packs):
        find_axes(robot.packs[k])


@formula
def place_in_parent(pack: Pack, q: Address, iq: Int) -> None:
    """Pose R_PK, p_PK of the bodies of a pack in the frames of their parents; replaces R_AK, p_AK."""
    E, s, c = pack.tree_rotation, pack.sine, pack.cosine
    pack.rotation = (
        E[0] * c + E[1] * s, E[1] * c - E[0] * s, E[2],
        E[3] * c + E[4] * s, E[4] * c - E[3] * s, E[5],
        E[6] * c + E[7] * s, E[7] * c - E[6] * s, E[8],
    )  # fmt: skip
    pack.position = add(pack.tree_position, scale((E[2], E[5], E[8]), pack.prismatic * pick(pack, q, iq)))


@formula
def carry(one: MixedBody) -> None:
    """R_AK = R_AP R_PK, p_AK = p_AP + R_AP p_PK of a body."""
    body, carrier = one.body, one.carrier
    R_AP = carrier.rotation
    body.rotation, body.position = (
        matmul(R_AP, body.rotation),
        add(carrier.position, rotate(R_AP, body.position)),
    )


@formula
def find_axes(pack: Pack) -> None:
    """Joint motion S of the bodies of a pack, from their pose."""
    R = pack.rotation
    z = (R[2], R[5], R[8])
    S_w = scale(z, pack.revolute)
    pack.axis_v = add(cross(pack.position, S_w), scale(z, pack.prismatic))
    pack.axis_w = S_w


# ---------------------------------------------------------------- velocities


@routine
def move_tree(robot: Robot, u: Address, iu: Int) -> None:
    """As `tree.move_bodies`, for robots that may have mixed packs."""
    move_bodies(robot, u, iu)
    for k in range(robot.n_aligned, robot.n_packs):
        turn_in_parent(robot.packs[k], pick(robot.packs[k], u, iu + base_rows(robot)))
    for i in range(robot.n_mixed):
        add_velocity(robot.mixed[i])
    for k in range(robot.n_aligned, robot.n_packs):
        find_bias(robot.packs[k])


@formula
def turn_in_parent(pack: Pack, qd: Lanes) -> None:
    """Velocity S qd of the bodies of a pack relative to their parents."""
    pack.qd = qd
    pack.v, pack.w = scale(pack.axis_v, qd), scale(pack.axis_w, qd)


@formula
def add_velocity(one: MixedBody) -> None:
    """Add the velocity of its parent to that of a body."""
    body, carrier = one.body, one.carrier
    body.v, body.w = add(carrier.v, body.v), add(carrier.w, body.w)


@formula
def find_bias(pack: Pack) -> None:
    """Bias acceleration c = v x S qd of the bodies of a pack."""
    v, w, qd = pack.v, pack.w, pack.qd
    S_v, S_w = scale(pack.axis_v, qd), scale(pack.axis_w, qd)
    pack.bias_v = add(cross(w, S_v), cross(v, S_w))
    pack.bias_w = cross(w, S_w)


# ---------------------------------------------------------------- accelerations


@routine
def accelerate_mixed(robot: Robot, given: Bool, du: Address, i: Int) -> None:
    """Accelerations of the bodies in mixed packs at du[i : i + nv], or at zero; call after all others."""
    for k in range(robot.n_aligned, robot.n_packs):
        pack = robot.packs[k]
        if given:
            accelerate_in_parent(pack, pick(pack, du, i + base_rows(robot)))
        else:
            accelerate_in_parent(pack, 0.0)
    for k in range(robot.n_mixed):
        add_acceleration(robot.mixed[k])


@formula
def accelerate_in_parent(pack: Pack, qdd: Number) -> None:
    """Acceleration c + S qdd of the bodies of a pack relative to their parents."""
    pack.qdd = qdd
    pack.a = add(pack.bias_v, scale(pack.axis_v, qdd))
    pack.alpha = add(pack.bias_w, scale(pack.axis_w, qdd))


@formula
def add_acceleration(one: MixedBody) -> None:
    """Add the acceleration of its parent to that of a body."""
    body, carrier = one.body, one.carrier
    body.a, body.alpha = add(carrier.a, body.a), add(carrier.alpha, body.alpha)
