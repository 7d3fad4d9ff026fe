# SPDX-License-Identifier: Apache-2.0
"""One time step with impulse contact: velocities that respect contact, friction and joint limits.

The velocity without contact forces, u + h du, is corrected by impulses, so that no point moves into the
ground, friction stays within its cone (or pyramid), and joints within their limits (see `constraints`).

A point above the ground by z may approach it with z / h: it arrives, and does not dig in. What penetration
there is (a robot that was put into the ground) is removed by displacing the robot, not by giving it a
velocity, so that no motion comes from it. A point that hits the ground leaves it with the restitution times
the velocity that it came with (see `impulses` for how far). With CORRECTION zero, none of this happens, as in
the simulator of the MIT Cheetah: a point takes part when it is below the surface, and stays there.
"""

from __future__ import annotations

import math

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import push_out, row3, write3
from quad_dynamics.kernels.fall import move_along, place_and_move, take_velocity
from quad_dynamics.kernels.solve_step import add_impulses, solve_step
from quad_dynamics.kernels.spatial import add, cross, dot, read3, scale
from quad_dynamics.kernels.terrain import ground_below, second_surface
from quad_dynamics.kernels.trace import (
    apart,
    formula,
    load_int,
    memory_at,
    routine,
    store_int,
    subroutine,
)
from quad_dynamics.kernels.tree import point_of_body
from quad_dynamics.kernels.types import Address, Bool, Int, Number, Vec3
from quad_dynamics.model import layout as L

MARGIN = 1e-4  # a point this near to the ground takes part [m]
FASTEST_START = 200.0  # no free point accelerates faster than this towards the ground [m/s^2]
NEAR, FASTEST = 0.1, 100.0  # points farther away than NEAR + FASTEST h are not looked at [m, m/s]
# A point this near to the ground stays where it is: four stiff legs never fit the ground to the last bit [m].
RESTING = 1e-6
SLOP = 1e-5  # penetration that is left alone [m, rad]
PUSH_SPEED = 1.0  # penetration is removed at this speed at most [m/s, rad/s]


@subroutine
def step_impulse(A: Address, S: Address, h: Number) -> Number:
    """Advance q and u by h with contact; returns the kinetic energy before."""
    apart(A)
    place_and_move(A, S)
    n_contacts = load_int(S, S_.NONE)
    if load_int(S, S_.CONTACT) == S_.IMPULSE:
        n_contacts = find_contacts(A, S, h)
    energy = solve_step(A, S, h, n_contacts, load_int(S, S_.NONE))
    take_velocity(A, S)
    n_stops = load_int(S, S_.N_STOPS)
    if n_contacts + n_stops > 0 and push_out(A, S, n_contacts, n_stops, SLOP, PUSH_SPEED):
        add_impulses(A, S, load_int(S, S_.PUSH))
    move_along(A, S, h)
    write_impulses(S, n_contacts)
    return energy


# ---------------------------------------------------------------- contacts


@subroutine
def find_contacts(A: Address, S: Address, h: Number) -> Int:
    """List the points that may touch the ground in this step; returns how many."""
    apart(A)
    terrain = memory_at(load_int(S, S_.TERRAIN))
    points, contacts, active = load_int(S, S_.POINTS), load_int(S, S_.CONTACTS), load_int(S, S_.ACTIVE)
    count, anticipates = load_int(S, S_.N_POINTS), S[S_.CORRECTION] > 0.0
    p_B, v_B = base_motion(A, S)
    several = anticipates and terrain[0] > 1.0
    n = 0
    for i in range(count):
        at, memory = points + i * S_.POINT_WORDS, contacts + i * S_.CONTACT_WORDS
        lane, radius = load_int(S, at + S_.P_LANE), S[at + S_.P_RADIUS]
        p = point_of_body(A, lane, row3(S, at + S_.P_POSITION))
        distance, normal, mu, e = ground_below(terrain, add(p, p_B), radius)
        S[memory + S_.C_DISTANCE] = distance
        write3(S, memory + S_.C_NORMAL, normal)
        touches = False
        if distance < NEAR + FASTEST * h:
            p = add(p, scale(normal, -radius))
            approach = -dot(normal, add(v_B, point_velocity(A, lane, p)))
            touches = distance < (reach(approach, h) if anticipates else 0.0)
            if touches:
                c = active + n * S_.ACTIVE_WORDS
                list_contact(S, c, at, i, normal, p)
                aim_contact(S, c, distance, approach, mu, e, h, anticipates)
                remember_impulse(S, c, memory)
                n += 1
                if several:
                    n = add_corner(A, S, terrain, at, i, normal, n, h)
        if not touches:
            write3(S, memory + S_.C_IMPULSE, (0.0, 0.0, 0.0))
    return n


@routine
def add_corner(
    A: Address, S: Address, terrain: Address, at: Int, i: Int, first: Vec3, n: Int, h: Number
) -> Int:
    """List a second contact of a point, if it touches another surface too; returns how many there are."""
    lane, radius = load_int(S, at + S_.P_LANE), S[at + S_.P_RADIUS]
    p_B, v_B = base_motion(A, S)
    p = point_of_body(A, lane, row3(S, at + S_.P_POSITION))
    distance, normal, mu, e = second_surface(terrain, add(p, p_B), radius, first)
    if distance > NEAR:
        return n
    p = add(p, scale(normal, -radius))
    approach = -dot(normal, add(v_B, point_velocity(A, lane, p)))
    if distance >= reach(approach, h):
        return n
    c = load_int(S, S_.ACTIVE) + n * S_.ACTIVE_WORDS
    list_contact(S, c, at, i, normal, p)
    aim_contact(S, c, distance, approach, mu, e, h, True)
    write3(S, c + S_.A_IMPULSE, (0.0, 0.0, 0.0))
    return n + 1


@routine
def reach(approach: Number, h: Number) -> Number:
    """The distance from which on a point may touch the ground in a step."""
    return MARGIN + FASTEST_START * h * h + 2.0 * h * max(approach, 0.0)


@routine
def aim_contact(
    S: Address,
    c: Int,
    distance: Number,
    approach: Number,
    mu: Number,
    e: Number,
    h: Number,
    anticipates: Bool,
) -> None:
    """Friction and distance of a contact, and what velocity it aims at, with restitution and without."""
    S[c + S_.A_MU] = mu
    S[c + S_.A_DISTANCE] = distance
    S[c + S_.A_CALM] = -distance / h if anticipates and distance > RESTING else 0.0
    hits = approach > 0.0 and distance <= h * approach
    S[c + S_.A_BOUNCE] = e * approach if hits else 0.0


@routine
def base_motion(A: Address, S: Address) -> tuple[Vec3, Vec3]:
    """Position and velocity of the base's origin; zero for a fixed base."""
    if load_int(A, L.FLOATING) != 0:
        return row3(S, load_int(S, S_.Q)), row3(S, load_int(S, S_.U))
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


@formula
def point_velocity(A: Address, lane: Int, p: Vec3) -> Vec3:
    """Velocity at a place p of the body in a lane, seen by an observer that moves with the base."""
    return add(read3(A, lane + L.VEL_V), cross(read3(A, lane + L.VEL_W), p))


@routine
def list_contact(S: Address, c: Int, point: Int, i: Int, normal: Vec3, p: Vec3) -> None:
    """Where an active contact is, and on which limb."""
    copy_limb(S, c, point, i)
    write3(S, c + S_.A_NORMAL, normal)
    write3(S, c + S_.A_TANGENT, first_tangent(normal))
    write3(S, c + S_.A_PLACE, p)


@formula
def copy_limb(S: Address, c: Int, point: Int, i: Int) -> None:
    """Which point a contact is, and on which limb."""
    store_int(S, c + S_.A_POINT, i)
    store_int(S, c + S_.A_JOINT, load_int(S, point + S_.P_JOINT))
    store_int(S, c + S_.A_FIRST, load_int(S, point + S_.P_FIRST))
    store_int(S, c + S_.A_BLOCKS, load_int(S, point + S_.P_BLOCKS))


@routine
def first_tangent(n: Vec3) -> Vec3:
    """A unit vector t1 across n; t1, n x t1, n is a right-handed frame. On level ground t1 is x."""
    if abs(n[2]) > 0.7:
        s = 1.0 / math.sqrt(n[0] * n[0] + n[2] * n[2])
        if n[2] < 0.0:
            s = -s
        return (n[2] * s, 0.0, -n[0] * s)
    s = 1.0 / math.sqrt(n[0] * n[0] + n[1] * n[1])
    return (-n[1] * s, n[0] * s, 0.0)


@formula
def remember_impulse(S: Address, c: Int, memory: Int) -> None:
    """Start with the impulse of the last step; the cone is seen to by the first sweep."""
    impulse = row3(S, memory + S_.C_IMPULSE)
    n, t1 = row3(S, c + S_.A_NORMAL), row3(S, c + S_.A_TANGENT)
    write3(S, c + S_.A_IMPULSE, (dot(n, impulse), dot(t1, impulse), dot(cross(n, t1), impulse)))


@routine
def write_impulses(S: Address, n_contacts: Int) -> None:
    """Keep the impulses, in world axes."""
    contacts, active = load_int(S, S_.CONTACTS), load_int(S, S_.ACTIVE)
    for i in range(n_contacts):
        c = active + i * S_.ACTIVE_WORDS
        write3(S, contacts + load_int(S, c + S_.A_POINT) * S_.CONTACT_WORDS + S_.C_IMPULSE, (0.0, 0.0, 0.0))
    for i in range(n_contacts):
        c = active + i * S_.ACTIVE_WORDS
        add_impulse(S, c, contacts + load_int(S, c + S_.A_POINT) * S_.CONTACT_WORDS)


@formula
def add_impulse(S: Address, c: Int, memory: Int) -> None:
    """Add the impulse of one contact to those of its point, in world axes."""
    n, t1 = row3(S, c + S_.A_NORMAL), row3(S, c + S_.A_TANGENT)
    x = row3(S, c + S_.A_IMPULSE)
    impulse = add(add(scale(n, x[0]), scale(t1, x[1])), scale(cross(n, t1), x[2]))
    write3(S, memory + S_.C_IMPULSE, add(row3(S, memory + S_.C_IMPULSE), impulse))
