# SPDX-License-Identifier: Apache-2.0
"""Conservation of momentum of a robot in flight.

A semi-implicit step computes accelerations at its beginning. Its error in the momentum about the centre of
mass is of order h per second: percents if legs swing fast. But this momentum is known. In flight, only
gravity and external forces change it:

    m v_G' = m v_G + h (m g + f),    L_G' = L_G + h t

where f and t are the sum of the external forces and their moment about the centre of mass G. After a step
without contact forces, the velocity of the base is therefore corrected so that both hold; joint speeds are
unchanged.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import (
    apart,
    formula,
    lane_sum,
    routine,
    subroutine,
    zero_lanes,
)
from quad_dynamics.compiler.types import Number, Sym3, Vec3
from quad_dynamics.kernels.contact.constraints import write3
from quad_dynamics.kernels.simulation.scene import MAX_FORCES, Scene
from quad_dynamics.kernels.simulation.unconstrained_motion import place_and_move
from quad_dynamics.kernels.spatial import add, cross, dot, inertia_mul, rotate, scale, sub, unrotate, vector3
from quad_dynamics.kernels.tree import (
    base_rotation,
    body_at,
    position_of_point,
    rigid_inertia,
)
from quad_dynamics.memory.layout import Pack, Robot


@subroutine
def keep_momentum(robot: Robot, scene: Scene, h: Number) -> None:
    """Correct the base velocity in u after a step in flight; the bodies are placed as before the step."""
    apart(robot)
    m, c, _, l, L_G = momentum(robot)
    f, t = external_forces(robot, scene)
    gravity = robot.gravity
    L_G = add(L_G, scale(sub(t, cross(c, f)), h))
    v_G = add(vector3(scene.last_u, 0), scale(l, 1.0 / m))
    v_G = add(v_G, scale(add(gravity, scale(f, 1.0 / m)), h))
    place_and_move(robot, scene)
    m, c, I_G, l, spin = momentum(robot)
    w = solve3(I_G, sub(L_G, spin))
    u = scene.u
    write3(u, 0, sub(sub(v_G, scale(l, 1.0 / m)), cross(w, c)))
    write3(u, 3, add(vector3(u, 3), in_base_axes(robot, w)))


@formula
def in_base_axes(robot: Robot, w: Vec3) -> Vec3:
    """Transform a vector from world axes to base axes."""
    return unrotate(base_rotation(robot), w)


@routine
def momentum(robot: Robot) -> tuple[Number, Vec3, Sym3, Vec3, Vec3]:
    """Mass, G and momentum l relative to the base's origin; inertia and angular momentum about G."""
    h: Vec3
    J: Sym3
    l: Vec3
    k: Vec3
    zero = zero_lanes(robot)
    m, h, J = zero, (zero, zero, zero), (zero, zero, zero, zero, zero, zero)
    l, k = (zero, zero, zero), (zero, zero, zero)
    for i in range(robot.n_packs):
        m, h, J, l, k = add_pack(robot.packs[i], m, h, J, l, k)
    if robot.has_rotors != 0:
        for i in range(1, robot.n_packs):
            k = add_rotors(robot.packs[i], k)
    return about_centre(m, h, J, l, k)


@formula
def add_pack(
    pack: Pack, m: Number, h: Vec3, J: Sym3, l: Vec3, k: Vec3
) -> tuple[Number, Vec3, Sym3, Vec3, Vec3]:
    """Add inertia and momentum of the bodies of a pack, about the origin of A."""
    m_i, h_i, J_i = rigid_inertia(pack)
    l_i, k_i = inertia_mul(m_i, h_i, J_i, pack.v, pack.w)
    return m + m_i, add(h, h_i), tuple(x + y for x, y in zip(J, J_i)), add(l, l_i), add(k, k_i)


@formula
def add_rotors(pack: Pack, k: Vec3) -> Vec3:
    """Add the angular momentum of the rotors of a pack: gear J qd about their axes; zero in empty lanes."""
    r = rotate(pack.parent.rotation, pack.rotor_axis)
    qd = pack.qd * (pack.revolute + pack.prismatic)
    return add(k, scale(r, pack.rotor_coupling * qd))


@formula
def about_centre(m: Number, h: Vec3, J: Sym3, l: Vec3, k: Vec3) -> tuple[Number, Vec3, Sym3, Vec3, Vec3]:
    """Sum over the lanes, and shift inertia and angular momentum to the centre of mass."""
    m = lane_sum(m)
    c = tuple(lane_sum(x) / m for x in h)
    l, k = tuple(lane_sum(x) for x in l), tuple(lane_sum(x) for x in k)
    xx, xy, yy, xz, yz, zz = (lane_sum(x) for x in J)
    c2 = dot(c, c)
    I_G = (
        xx - m * (c2 - c[0] * c[0]),
        xy + m * c[0] * c[1],
        yy - m * (c2 - c[1] * c[1]),
        xz + m * c[0] * c[2],
        yz + m * c[1] * c[2],
        zz - m * (c2 - c[2] * c[2]),
    )
    return m, c, I_G, l, sub(k, cross(c, l))


@routine
def external_forces(robot: Robot, scene: Scene) -> tuple[Vec3, Vec3]:
    """Sum of the external forces over this step, and their moment about the origin of A."""
    forces, dt = scene.forces, scene.settings.dt
    f: Vec3 = (0.0, 0.0, 0.0)
    t: Vec3 = (0.0, 0.0, 0.0)
    for i in range(MAX_FORCES):
        wrench = forces[i]
        if wrench.time_left > 0.0:
            share = min(wrench.time_left / dt, 1.0)
            p = position_of_point(body_at(robot, wrench.lane), wrench.position)
            force = scale(wrench.force, share)
            f = add(f, force)
            t = add(t, add(scale(wrench.moment, share), cross(p, force)))
    return f, t


@formula
def solve3(I: Sym3, b: Vec3) -> Vec3:
    """I^-1 b, with I symmetric."""
    xx, xy, yy, xz, yz, zz = I
    robot, B, C = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    D, E, F = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    s = 1.0 / (xx * robot + xy * B + xz * C)
    return (
        (robot * b[0] + B * b[1] + C * b[2]) * s,
        (B * b[0] + D * b[1] + E * b[2]) * s,
        (C * b[0] + E * b[1] + F * b[2]) * s,
    )
