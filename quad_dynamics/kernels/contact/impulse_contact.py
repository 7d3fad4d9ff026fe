# SPDX-License-Identifier: Apache-2.0
"""One time step with impulse contact: velocities that satisfy contact, friction and joint limits.

Impulses correct the velocity without contact forces, u + h du, so that no point moves into the ground,
friction stays within its cone (or pyramid), and joints stay within their limits (see `constraints`). This is
time stepping at the velocity level (Moreau, Unilateral contact and dry friction in finite freedom dynamics,
1988).

A point at a height z above the ground may approach it with z / h: it reaches the ground without penetrating
it. Existing penetration (a robot that was teleported into the ground) is removed by displacing the robot, not
by a velocity, so it causes no motion. A point that hits the ground leaves it with the restitution times its
impact velocity (see `impulses` for the limits of this). With `correction` zero, none of this happens, as in
the simulator of the MIT Cheetah: a point is active once it is below the surface, and stays there.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import (
    apart,
    formula,
    memory_at,
    routine,
    subroutine,
)
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Vec3
from quad_dynamics.kernels.contact.constraints import push_out
from quad_dynamics.kernels.simulation.flight import keep_momentum
from quad_dynamics.kernels.simulation.scene import IMPULSE, Contact, ContactPoint, PointMemory, Scene
from quad_dynamics.kernels.simulation.solve_step import add_impulses, solve_step
from quad_dynamics.kernels.simulation.unconstrained_motion import move_along, place_and_move, take_velocity
from quad_dynamics.kernels.spatial import add, cross, dot, scale, sub, vector3
from quad_dynamics.kernels.terrain.ground import (
    another_surface,
    gather_near,
    ground_below,
    is_plane,
    map_count,
    shape_count,
)
from quad_dynamics.kernels.tree import ZERO3, base_rows, body_at, move_bodies, position_of_point
from quad_dynamics.memory.layout import Body, Robot

MARGIN = 1e-4  # a point this close to the ground is active [m]
FASTEST_START = 200.0  # no free point accelerates faster than this towards the ground [m/s^2]
# An impact elsewhere may accelerate a point towards the ground within the step: to the speed KICK [m/s], or,
# if joints or the base turn fast, to their speed times KICK_LENGTH [m].
KICK, KICK_LENGTH = 5.0, 0.2
NEAR, FASTEST = 0.1, 100.0  # points farther away than NEAR + FASTEST h are skipped [m, m/s]
# If the terrain has many shapes, the shapes near GROUP neighbouring points are found at once. If the distance
# of a point has grown by more than LATELY [m] since the last step, all shapes are searched.
GROUP, LATELY = 8, 0.02
# A point this close to the ground counts as touching it: four stiff legs never fit the ground exactly [m].
RESTING = 1e-6
# If a joint or the base turns farther than this in a step, paths of points count as curved [rad].
FAST = 0.03
SLOP = 1e-5  # penetration that is not corrected [m, rad]
PUSH_SPEED = 1.0  # maximum speed at which penetration is removed [m/s, rad/s]


@subroutine
def step_impulse(robot: Robot, scene: Scene, h: Number) -> Number:
    """Advance q and u by h with contact; returns the kinetic energy before the step."""
    apart(robot)
    place_and_move(robot, scene)
    n_contacts = scene.zero
    if scene.settings.contact == IMPULSE:
        n_contacts = find_contacts(robot, scene, h)
    energy = solve_step(robot, scene, h, n_contacts, scene.zero)
    take_velocity(robot, scene)
    n_stops = scene.n_stops
    if n_contacts > 0 and scene.settings.correction > 0.0 and fastest_turn(robot, scene.u) * h > FAST:
        bend_paths(robot, scene, n_contacts, h)
    if n_contacts + n_stops > 0 and push_out(robot, scene, n_contacts, n_stops, SLOP, PUSH_SPEED):
        add_impulses(robot, scene, scene.y_push)
        shorten_distances(robot, scene, h)
    move_along(robot, scene, h)
    if scene.settings.momentum_correction != 0 and not any_impulse(scene, n_contacts):
        keep_momentum(robot, scene, h)
    write_impulses(scene, n_contacts)
    return energy


@routine
def any_impulse(scene: Scene, n_contacts: Int) -> Bool:
    """Whether any contact has an impulse."""
    found = False
    for i in range(n_contacts):
        found |= scene.contacts[i].impulse[0] > 0.0
    return found


# ---------------------------------------------------------------- contacts


@subroutine
def find_contacts(robot: Robot, scene: Scene, h: Number) -> Int:
    """List the points that may touch the ground in this step; returns their number.

    On a plane, the distance of a point that is far away is not computed. Its last distance is decreased by
    more than any point of the robot can have moved, until the point may be near. On other terrain,
    `group_reach` skips points in the same way.
    """
    apart(robot)
    points, memories, contacts = scene.points, scene.point_memory, scene.contacts
    count, anticipates = scene.n_points, scene.settings.correction > 0.0
    p_B, v_B = base_motion(robot, scene)
    farthest = NEAR + FASTEST * h
    whole = memory_at(scene.terrain)
    terrain, exact = whole, math.inf
    several = anticipates and shape_count(whole) > 1.0
    fastest = fastest_turn(robot, scene.u)
    kick, spins = max(KICK, KICK_LENGTH * fastest), anticipates and fastest * h > FAST
    way = 2.0 * h * fastest_point(robot, scene, scene.u) + MARGIN
    clear = farthest
    # distances to planes and boxes change by no more than the way of a point, those to height maps may
    skips_early = anticipates and scene.first == 0 and map_count(whole) == 0.0
    skips = anticipates and scene.exact == 0 and scene.first == 0 and is_plane(whole) and way < NEAR
    if skips:
        clear = reach(way / h, kick, h) + way
    n = 0
    for i in range(count):
        if skips and memories[i].distance - way > clear:
            memories[i].distance = memories[i].distance - way
            forget_impulse(memories[i])
            continue
        if i % GROUP == 0 and scene.near_terrain != 0:
            exact = group_reach(robot, scene, i, min(i + GROUP, count), kick, h, skips_early)
            terrain = near_terrain(robot, scene, p_B, i, min(i + GROUP, count), exact)
        point, memory = points[i], memories[i]
        if scene.near_terrain != 0 and scene.far[i] != 0.0:
            forget_impulse(memory)
            continue
        lane, radius = point.lane, point.radius
        p = position_of_point(body_at(robot, lane), point.position)
        distance, normal, mu, e = ground_below(terrain, add(p, p_B), radius)
        if distance >= exact:
            distance, normal, mu, e = ground_below(whole, add(p, p_B), radius)  # another shape may be closer
        memory.distance = distance
        memory.normal = normal
        touches = False
        if distance < farthest:
            centre = p
            p = add(p, scale(normal, -radius))
            v = add(v_B, point_velocity(body_at(robot, lane), p))
            approach = -dot(normal, v)
            touches = distance < (reach(approach, kick, h) if anticipates else 0.0)
            if touches:
                contact = contacts[n]
                list_contact(contact, point, i, normal, p)
                aim_contact(contact, distance, approach, mu, e, h, pull(robot, normal), anticipates)
                if spins and distance > RESTING:
                    bend = 0.5 * h * h * centripetal_acceleration(robot, point, centre, normal)
                    contact.calm_target = min(max(contact.calm_target, -(distance + bend) / h), 0.0)
                remember_impulse(contact, sub(memory.impulse, memory.corner_impulse))
                n += 1
                if several:
                    corner = add_corner(
                        robot, scene, terrain, point, i, normal, -distance, ZERO3, -1, kick, n, h
                    )
                    if corner >= 0:  # a second surface; where three shapes meet, there is a third one
                        second = contacts[n].normal
                        n += 1
                        corner = add_corner(
                            robot, scene, terrain, point, i, normal, -distance, second, corner, kick, n, h
                        )
                        n += 1 if corner >= 0 else 0
        if not touches:
            forget_impulse(memory)
    return n


@formula
def forget_impulse(memory: PointMemory) -> None:
    """Set the stored impulses of a point to zero."""
    memory.impulse = (0.0, 0.0, 0.0)
    memory.corner_impulse = (0.0, 0.0, 0.0)


@subroutine
def bend_paths(robot: Robot, scene: Scene, n_contacts: Int, h: Number) -> None:
    """How far the paths of contacts leave a straight line in this step, with the velocities after it.

    Velocities of bodies are those before the step again when it returns.
    """
    apart(robot)
    move_bodies(robot, scene.u, 0)
    for i in range(n_contacts):
        contact = scene.contacts[i]
        point = scene.points[contact.point]
        centre = add(contact.place, scale(contact.normal, point.radius))
        a = centripetal_acceleration(robot, point, centre, contact.normal)
        contact.bend = 0.5 * h * h * a
    move_bodies(robot, scene.last_u, 0)


@subroutine
def centripetal_acceleration(robot: Robot, point: ContactPoint, p: Vec3, n: Vec3) -> Number:
    """Acceleration along n of a contact point at p while all joint accelerations are zero [m/s^2].

    A step keeps velocities constant: half of this times the time squared is the deviation of the point from a
    straight line.
    """
    apart(robot)
    body = body_at(robot, point.lane)
    a: Vec3 = (0.0, 0.0, 0.0)
    alpha: Vec3 = (0.0, 0.0, 0.0)
    joint, joints = point.joint, robot.joints
    while joint >= 0:
        a = add(a, joints[joint].body.bias_v)
        alpha = add(alpha, joints[joint].body.bias_w)
        joint = joints[joint].parent
    v, w = body.v, body.w
    return dot(n, add(add(a, cross(alpha, p)), cross(w, add(v, cross(w, p)))))


@routine
def group_reach(
    robot: Robot, scene: Scene, first: Int, last: Int, kick: Number, h: Number, early: Bool
) -> Number:
    """Distance up to which terrain shapes near a group of points are searched.

    It is the largest distance of the points before the last step, plus a margin. Unless exact distances are
    required, the distance of a far point is not recomputed: it is decreased by more than the point has moved,
    until the point may be near. If `early`, a point counts as far as soon as it cannot touch the ground in
    this step; this needs distances that change by no more than the way of the point.
    """
    points, memories = scene.points, scene.point_memory
    _, v_B = base_motion(robot, scene)
    distance = 0.0
    for i in range(first, last):
        memory = memories[i]
        scene.far[i] = 0.0
        if scene.exact == 0:
            body = body_at(robot, points[i].lane)
            v = add(v_B, point_velocity(body, position_of_point(body, points[i].position)))
            speed = math.sqrt(dot(v, v))
            way = 2.0 * h * speed
            lowest = memory.distance - way - MARGIN
            if lowest > (reach(speed, kick, h) if early else NEAR + way):
                memory.distance = lowest
                scene.far[i] = 1.0
        if scene.far[i] == 0.0:
            distance = max(distance, memory.distance)
    return distance + LATELY


@routine
def near_terrain(robot: Robot, scene: Scene, p_B: Vec3, first: Int, last: Int, reach: Number) -> Address:
    """The terrain reduced to the shapes closer than `reach` to any point of a group."""
    address, near = scene.terrain, scene.near_terrain
    low, high, radius = (math.inf, math.inf, math.inf), (-math.inf, -math.inf, -math.inf), 0.0
    for i in range(first, last):
        if scene.far[i] == 0.0:
            point = scene.points[i]
            p = add(p_B, position_of_point(body_at(robot, point.lane), point.position))
            low = (min(low[0], p[0]), min(low[1], p[1]), min(low[2], p[2]))
            high = (max(high[0], p[0]), max(high[1], p[1]), max(high[2], p[2]))
            radius = max(radius, point.radius)
    if low[0] > high[0]:
        return memory_at(address)  # all points are far away
    gather_near(memory_at(address), near, low, high, reach + radius)
    return memory_at(address + 8 * near)


@routine
def add_corner(
    robot: Robot,
    scene: Scene,
    terrain: Address,
    point: ContactPoint,
    i: Int,
    first: Vec3,
    depth: Number,
    second: Vec3,
    second_shape: Int,
    kick: Number,
    n: Int,
    h: Number,
) -> Int:
    """List another contact of a point as the nth if it touches another surface too (see `another_surface`).

    Returns the index of the shape, or -1.
    """
    lane, radius = point.lane, point.radius
    p_B, v_B = base_motion(robot, scene)
    p = position_of_point(body_at(robot, lane), point.position)
    distance, normal, mu, e, shape = another_surface(
        terrain, add(p, p_B), radius, first, depth, second, second_shape
    )
    if distance > NEAR:
        return -1
    p = add(p, scale(normal, -radius))
    approach = -dot(normal, add(v_B, point_velocity(body_at(robot, lane), p)))
    if distance >= reach(approach, kick, h):
        return -1
    contact = scene.contacts[n]
    list_contact(contact, point, i, normal, p)
    aim_contact(contact, distance, approach, mu, e, h, pull(robot, normal), True)
    remember_impulse(contact, scene.point_memory[i].corner_impulse if second_shape < 0 else ZERO3)
    return shape


@routine
def shorten_distances(robot: Robot, scene: Scene, h: Number) -> None:
    """Decrease all distances by the displacement in `response`, which velocities do not include."""
    if scene.exact == 0:
        way = h * fastest_point(robot, scene, scene.response)
        for i in range(scene.n_points):
            memory = scene.point_memory[i]
            memory.distance -= way


@routine
def fastest_turn(robot: Robot, u: Numbers) -> Number:
    """The largest speed of a joint, or about an axis of the base [rad/s, m/s]."""
    fastest = 0.0
    for i in range(base_rows(robot) // 2, robot.nv):
        fastest = max(fastest, abs(u[i]))
    return fastest


@routine
def fastest_point(robot: Robot, scene: Scene, u: Numbers) -> Number:
    """An upper bound of the speed of any point of the robot [m/s]."""
    v: Vec3 = (0.0, 0.0, 0.0)
    if robot.floating != 0:
        v = vector3(u, 0)
    return math.sqrt(dot(v, v)) + scene.reach * fastest_turn(robot, u)


@routine
def reach(approach: Number, kick: Number, h: Number) -> Number:
    """The distance below which a point may touch the ground in a step."""
    return MARGIN + FASTEST_START * h * h + h * (kick + 2.0 * max(approach, 0.0))


@routine
def aim_contact(
    contact: Contact,
    distance: Number,
    approach: Number,
    mu: Number,
    e: Number,
    h: Number,
    g: Number,
    anticipates: Bool,
) -> None:
    """Set friction and distance of a contact, and its target velocities with and without restitution."""
    contact.mu = mu
    contact.distance = distance
    contact.bend = 0.0
    contact.calm_target = -distance / h if anticipates and distance > RESTING else 0.0
    contact.bounce_target = 0.0
    if e > 0.0 and approach > 0.0:
        if anticipates:
            contact.bounce_target = rebound(distance, approach, e, g, h)
        elif distance <= h * approach:
            contact.bounce_target = e * approach


@routine
def rebound(distance: Number, approach: Number, e: Number, g: Number, h: Number) -> Number:
    """The velocity with which a point leaves the ground after this step; 0 if it does not hit the ground.

    At the start of the step the point is at a height z above the ground. It would hit the ground faster than
    it moves now, and rebound from there. In free fall, the semi-implicit steps conserve the energy
    E = v^2/2 + g z - g h v/2. The velocity is chosen so that E becomes e^2 times its value before the impact,
    with z measured from the ground. The point then rises to e^2 times the height it fell from, wherever
    between two steps the impact is.
    """
    if distance > h * (approach + g * h):
        return 0.0
    z = max(distance, 0.0)
    left = e * e * (0.5 * approach * approach + g * z + 0.5 * g * h * approach) - g * z
    if left <= 0.0:
        return 0.0
    return math.sqrt(0.25 * g * g * h * h + 2.0 * left) - 0.5 * g * h


@formula
def gravity_along(robot: Robot, n: Vec3) -> Number:
    """The component of gravity opposite to a normal [m/s^2]."""
    return -dot(robot.gravity, n)


@routine
def pull(robot: Robot, n: Vec3) -> Number:
    """The component of gravity that pulls a point to the ground; 0 if it pulls it away [m/s^2]."""
    return max(gravity_along(robot, n), 0.0)


@routine
def base_motion(robot: Robot, scene: Scene) -> tuple[Vec3, Vec3]:
    """Position and velocity of the base's origin; zero for a fixed base."""
    if robot.floating != 0:
        return vector3(scene.q, 0), vector3(scene.u, 0)
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


@formula
def point_velocity(body: Body, p: Vec3) -> Vec3:
    """Velocity of the point p of the body in a lane, relative to the velocity of the base."""
    return add(body.v, cross(body.w, p))


@routine
def list_contact(contact: Contact, point: ContactPoint, i: Int, normal: Vec3, p: Vec3) -> None:
    """Set the position, normal and limb of an active contact."""
    copy_limb(contact, point, i)
    contact.normal = normal
    contact.tangent = first_tangent(normal)
    contact.place = p


@formula
def copy_limb(contact: Contact, point: ContactPoint, i: Int) -> None:
    """Set the point and the limb of a contact."""
    contact.point = i
    contact.joint = point.joint
    contact.first = point.first
    contact.blocks = point.blocks


@routine
def first_tangent(n: Vec3) -> Vec3:
    """A unit vector t1 orthogonal to n; t1, n x t1, n is a right-handed frame. On level ground t1 is x."""
    if abs(n[2]) > 0.7:
        s = 1.0 / math.sqrt(n[0] * n[0] + n[2] * n[2])
        if n[2] < 0.0:
            s = -s
        return (n[2] * s, 0.0, -n[0] * s)
    s = 1.0 / math.sqrt(n[0] * n[0] + n[1] * n[1])
    return (-n[1] * s, n[0] * s, 0.0)


@formula
def remember_impulse(contact: Contact, impulse: Vec3) -> None:
    """Warm start with the impulse of the last step, in world axes; the first sweep projects it."""
    n, t1 = contact.normal, contact.tangent
    contact.impulse = (dot(n, impulse), dot(t1, impulse), dot(cross(n, t1), impulse))


@routine
def write_impulses(scene: Scene, n_contacts: Int) -> None:
    """Store the impulses in world axes, for the next step."""
    memories, contacts = scene.point_memory, scene.contacts
    for i in range(n_contacts):
        forget_impulse(memories[contacts[i].point])
    last = -1
    for i in range(n_contacts):
        contact = contacts[i]
        point = contact.point
        memory = memories[point]
        impulse = world_impulse(contact)
        memory.impulse = add(memory.impulse, impulse)
        if point == last:  # other contacts follow the first one of their point
            memory.corner_impulse = add(memory.corner_impulse, impulse)
        last = point


@formula
def world_impulse(contact: Contact) -> Vec3:
    """The impulse of a contact in world axes."""
    n, t1 = contact.normal, contact.tangent
    x = contact.impulse
    return add(add(scale(n, x[0]), scale(t1, x[1])), scale(cross(n, t1), x[2]))
