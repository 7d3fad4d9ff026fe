# SPDX-License-Identifier: Apache-2.0
"""Distance from a point to the ground, which is made of solid shapes: half spaces, boxes and height maps.

The ground T is an array: the number of shapes, then SHAPE_WORDS numbers for each (the offsets are below),
then the heights of height maps. `Terrain.pack` makes it.

Outside, the nearest shape counts. Inside, the way out must lead out of all shapes: where two boxes stand side
by side, a point below their common top is not pushed through the seam, from one into the other. A way out
leads through a face of a shape; where it ends in another shape, on through a face of that one, and so on. The
shortest counts. So a point is one contact, whatever it is in.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import FLOAT, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import apart, formula, load, routine, store, subroutine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Mat3, Number, Object, Vec3
from quad_dynamics.kernels.height_map import HEIGHTS as HEIGHTS_AT
from quad_dynamics.kernels.height_map import SKIN, heights_distance, surface_distance
from quad_dynamics.kernels.spatial import add, dot, rotate, scale, sub, unrotate

PLANE, BOX, HEIGHTS = 0, 1, 2

# Offsets within a shape.
KIND, MU, RESTITUTION = 0, 1, 2
ORIGIN = 3  # 3: p_WS [m]; a height map has its origin in its middle, a box too
AXES = 6  # 9: R_WS, row by row; the normal of a plane is its z axis
SIZE = 15  # 1 of a plane: normal . origin [m]; 3 of a box: half lengths [m]; 4 of a map: see `height_map`
BOUND = 19  # radius about the origin that holds all of the shape [m]; FAR where there is none
SHAPE_WORDS = 20  # a multiple of LANES

FAR = 1e30
LIFT = 5e-3  # a second surface is at least this high [m]
ACROSS = 0.7  # and turned by 45 degrees at least: largest cosine
STEP = 1e-6  # how far beyond a face a way out goes on [m]
LEGS = 4  # a way out leads through so many shapes at most

GROUND_WORDS = 6  # distance, normal (3), friction, restitution


@kernel(INT, FLOAT, OBJECT, OBJECT, OBJECT)
def ground_distances(n: Int, radius: Number, points: Object, terrain: Object, out: Object) -> Int:
    """What `ground_below` finds for n points (n, 3); out: (n, GROUND_WORDS). The arrays are not checked."""
    points, T, out = data(points), data(terrain), data(out)
    for i in range(n):
        p = (points[3 * i], points[3 * i + 1], points[3 * i + 2])
        distance, normal, mu, e = ground_below(T, p, radius)
        write_ground(out, GROUND_WORDS * i, distance, normal, mu, e)
    return 0


@formula
def write_ground(out: Address, at: Int, distance: Number, normal: Vec3, mu: Number, e: Number) -> None:
    """out[at : at + GROUND_WORDS]."""
    for k, x in enumerate((distance, *normal, mu, e)):
        out[at + k] = x


@routine
def ground_below(T: Address, p: Vec3, radius: Number) -> tuple[Number, Vec3, Number, Number]:
    """The surface nearest to a sphere at p: distance [m], negative inside; normal, friction, restitution.

    Where the ground is one plane, this is all; everything else is kept apart, so that this stays short.
    """
    if T[0] == 1.0 and T[1 + KIND] == PLANE:
        return plane_distance(T, 1, p) - radius, plane_normal(T, 1), T[1 + MU], T[1 + RESTITUTION]
    distance, normal, at = nearest_shape(T, p, radius)
    return distance - radius, normal, T[at + MU], T[at + RESTITUTION]


@subroutine
def second_surface(T: Address, p: Vec3, radius: Number, first: Vec3) -> tuple[Number, Vec3, Number, Number]:
    """Another surface beside the one with the normal `first`, as in a corner; FAR if there is none.

    It belongs to another shape, and rises above the first surface: an edge that is level with it is none.
    """
    apart(T)
    distance, normal, at = FAR, first, 1
    lifted = add(p, scale(first, LIFT))
    for i in range(int(T[0])):
        to = 1 + i * SHAPE_WORDS
        if is_beyond(T, to, p, LIFT + radius):
            continue
        d, n = shape_distance(T, to, p, radius)
        if d > -SKIN and d < distance and dot(n, first) < ACROSS:
            _, n_lifted = shape_distance(T, to, lifted, radius)
            if dot(n_lifted, first) < ACROSS:
                distance, normal, at = d, n, to
    return distance - radius, normal, T[at + MU], T[at + RESTITUTION]


@subroutine
def nearest_shape(T: Address, p: Vec3, radius: Number) -> tuple[Number, Vec3, Int]:
    """Distance of a point, normal, and where the shape stands in T."""
    apart(T)
    normal: Vec3
    normal_inside: Vec3
    outside, inside, count = FAR, -FAR, 0
    normal, normal_inside = (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)
    at, at_inside = 1, 1
    for i in range(int(T[0])):
        to = 1 + i * SHAPE_WORDS
        limit = 0.0 if count > 0 else outside
        if is_beyond(T, to, p, limit) or is_box_beyond(T, to, p, limit):
            continue
        d, n = shape_distance(T, to, p, radius)
        if d <= SKIN:
            count += 1
            if d > inside:
                inside, normal_inside, at_inside = d, n, to
        elif d < outside:
            outside, normal, at = d, n, to
    if count == 0:
        return outside, normal, at
    if T[0] == 1.0 or is_way_out(T, at_inside, p, -inside, normal_inside, radius):
        return inside, normal_inside, at_inside
    return best_way_out(T, p, radius, -inside, normal_inside, at_inside)


@routine
def is_beyond(T: Address, at: Int, p: Vec3, reach: Number) -> Bool:
    """Whether a shape has nothing nearer to a point than `reach`, by its bounding sphere alone."""
    r = sub(p, (T[at + ORIGIN], T[at + ORIGIN + 1], T[at + ORIGIN + 2]))
    bound = T[at + BOUND] + reach
    return bound < FAR and dot(r, r) > (bound + SKIN) * (bound + SKIN)


@routine
def is_box_beyond(T: Address, at: Int, p: Vec3, reach: Number) -> Bool:
    """Whether a shape is a box no part of which is nearer to a point than `reach`; without its normal."""
    if int(T[at + KIND]) != BOX:
        return False
    x = unrotate(rotation(T, at), from_origin(T, at, p))
    dx = max(abs(x[0]) - T[at + SIZE], 0.0)
    dy = max(abs(x[1]) - T[at + SIZE + 1], 0.0)
    dz = max(abs(x[2]) - T[at + SIZE + 2], 0.0)
    nearest = max(reach, SKIN)
    return dx * dx + dy * dy + dz * dz > nearest * nearest


@subroutine
def gather_near(T: Address, to: Int, low: Vec3, high: Vec3, reach: Number) -> None:
    """Write the ground again to T[to ...], with the shapes only that come nearer than `reach` to a box.

    The box is given by its lowest and highest corner. The address of the new ground is that of T[to]: the
    heights of height maps, which are not copied, are then before it.
    """
    apart(T)
    n = 0
    for i in range(int(T[0])):
        at = 1 + i * SHAPE_WORDS
        x, y, z = T[at + ORIGIN], T[at + ORIGIN + 1], T[at + ORIGIN + 2]
        nearest = (
            min(max(x, low[0]), high[0]),
            min(max(y, low[1]), high[1]),
            min(max(z, low[2]), high[2]),
        )
        if not is_beyond(T, at, nearest, reach):
            new = to + 1 + n * SHAPE_WORDS
            copy_shape(T, at, new)
            if T[new + KIND] == HEIGHTS:
                T[new + SIZE + HEIGHTS_AT] -= to
            n += 1
    T[to] = n


@formula
def copy_shape(T: Address, at: Int, to: Int) -> None:
    """T[to : to + SHAPE_WORDS] = T[at : at + SHAPE_WORDS]."""
    for k in range(0, SHAPE_WORDS, LANES):
        store(T, to + k, load(T, at + k))


# ---------------------------------------------------------------- the way out of all shapes


@routine
def is_way_out(T: Address, at: Int, p: Vec3, depth: Number, n: Vec3, radius: Number) -> Bool:
    """Whether a point that leaves a shape along n has left all of them."""
    return way_left(T, at, step_beyond(p, n, depth), n, radius)[0] < -SKIN


@subroutine
def best_way_out(
    T: Address, p: Vec3, radius: Number, depth: Number, normal: Vec3, at: Int
) -> tuple[Number, Vec3, Int]:
    """The shortest way out for a point that is in one or more shapes; returns what `nearest_shape` does.

    Where there is none, it is the way that was given.
    """
    apart(T)
    best = FAR
    for i in range(int(T[0])):
        to = 1 + i * SHAPE_WORDS
        if depth_in(T, to, p, (0.0, 0.0, 0.0), radius)[0] < -SKIN:
            continue
        for face in range(face_count(T, to)):
            d, n = way_to_face(T, to, p, face, radius)
            if d < best:
                length, d, n, last = walk_out(T, p, radius, d, n, to, best)
                if length < best:
                    best, depth, normal, at = length, d, n, last
    return -depth, normal, at


@subroutine
def walk_out(
    T: Address, p: Vec3, radius: Number, depth: Number, normal: Vec3, at: Int, limit: Number
) -> tuple[Number, Number, Vec3, Int]:
    """Leave a shape through a face, and then all others; length of the way, FAR where it is over the limit.

    Of all faces on the way, the one is returned that p is deepest below (depth, normal, and its shape), so
    that the distance does not jump in corners and at seams.
    """
    apart(T)
    length, leaving, heading = depth, at, normal
    x = step_beyond(p, normal, depth)
    for _ in range(LEGS):
        left, n, to = way_left(T, leaving, x, heading, radius)
        if left < -SKIN:
            return length, depth, normal, at
        length += max(left, 0.0)
        if length >= limit:
            break
        below = left + dot(n, sub(x, p))
        if below > depth:
            depth, normal, at = below, n, to
        x, heading, leaving = step_beyond(x, n, left), add(heading, n), to
    return FAR, depth, normal, at


@subroutine
def way_left(T: Address, leaving: Int, p: Vec3, n: Vec3, radius: Number) -> tuple[Number, Vec3, Int]:
    """How deep a point that has left a shape along n is in the others (-FAR if in none), below which face."""
    apart(T)
    deepest, normal, at = -FAR, n, leaving
    for i in range(int(T[0])):
        to = 1 + i * SHAPE_WORDS
        if to != leaving:
            d, n_next = depth_in(T, to, p, n, radius)
            if d >= -SKIN and d > deepest:
                deepest, normal, at = d, n_next, to
    return deepest, normal, at


@subroutine
def depth_in(T: Address, at: Int, p: Vec3, n: Vec3, radius: Number) -> tuple[Number, Vec3]:
    """How deep a point is in one shape, without ways back against n; negative outside. The face's normal."""
    apart(T)
    depth, normal = FAR, n
    if is_beyond(T, at, p, 0.0):
        return -depth, normal
    for face in range(face_count(T, at)):
        d, n_face = way_to_face(T, at, p, face, radius)
        if d < depth and (d < -SKIN or dot(n_face, n) > -0.5):
            depth, normal = d, n_face
    return depth, normal


@formula
def step_beyond(p: Vec3, n: Vec3, depth: Number) -> Vec3:
    """A point just beyond a face that is `depth` away along n."""
    return add(p, scale(n, depth + STEP))


@routine
def face_count(T: Address, at: Int) -> Int:
    """Number of faces through which a point can leave a shape."""
    kind = int(T[at + KIND])
    if kind == PLANE:
        return 1
    return 6 if kind == BOX else 5


@subroutine
def way_to_face(T: Address, at: Int, p: Vec3, face: Int, radius: Number) -> tuple[Number, Vec3]:
    """How deep a point is below a face of a shape (negative beyond it), and the face's normal.

    The faces of a box are +x, -x, +y, -y, +z, -z. Of a height map, face 4 is the surface.
    """
    apart(T)
    kind = int(T[at + KIND])
    if kind == PLANE:
        return -plane_distance(T, at, p), plane_normal(T, at)
    if kind == HEIGHTS and face == 4:
        R = rotation(T, at)
        d, n = surface_distance(T, at + SIZE, unrotate(R, from_origin(T, at, p)), radius)
        return -d, rotate(R, n)
    axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
    half = T[at + SIZE + axis]
    if kind == HEIGHTS:
        half = 0.5 * (half - 1.0) * T[at + SIZE + 2]
    n = (sign * T[at + AXES + axis], sign * T[at + AXES + 3 + axis], sign * T[at + AXES + 6 + axis])
    return half - dot(n, from_origin(T, at, p)), n


# ---------------------------------------------------------------- one shape


@routine
def shape_distance(T: Address, at: Int, p: Vec3, radius: Number) -> tuple[Number, Vec3]:
    """Distance of a point to one shape, and the outward normal there, in world axes."""
    kind = int(T[at + KIND])
    if kind == PLANE:
        return plane_distance(T, at, p), plane_normal(T, at)
    R = rotation(T, at)
    x = unrotate(R, from_origin(T, at, p))
    if kind == BOX:
        d, n = box_distance(x, (T[at + SIZE], T[at + SIZE + 1], T[at + SIZE + 2]))
    else:
        d, n = heights_distance(T, at + SIZE, x, radius)
    return d, rotate(R, n)


@formula
def from_origin(T: Address, at: Int, p: Vec3) -> Vec3:
    """p_SP in world axes."""
    return sub(p, (T[at + ORIGIN], T[at + ORIGIN + 1], T[at + ORIGIN + 2]))


@formula
def rotation(T: Address, at: Int) -> Mat3:
    """R_WS."""
    return tuple(T[at + AXES + k] for k in range(9))


@formula
def plane_normal(T: Address, at: Int) -> Vec3:
    """The z axis of a plane."""
    return T[at + AXES + 2], T[at + AXES + 5], T[at + AXES + 8]


@formula
def plane_distance(T: Address, at: Int, p: Vec3) -> Number:
    """Distance to a plane."""
    return dot(plane_normal(T, at), p) - T[at + SIZE]


@routine
def box_distance(x: Vec3, half: Vec3) -> tuple[Number, Vec3]:
    """Distance to a box about the origin, and the normal: of the nearest face, or from the nearest edge."""
    sx, sy, sz = math.copysign(1.0, x[0]), math.copysign(1.0, x[1]), math.copysign(1.0, x[2])
    dx, dy, dz = abs(x[0]) - half[0], abs(x[1]) - half[1], abs(x[2]) - half[2]
    if max(dx, dy, dz) <= SKIN:
        if dz >= dx and dz >= dy:
            return dz, (0.0, 0.0, sz)
        if dx >= dy:
            return dx, (sx, 0.0, 0.0)
        return dy, (0.0, sy, 0.0)
    ox, oy, oz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
    d = math.sqrt(ox * ox + oy * oy + oz * oz)
    return d, (sx * ox / d, sy * oy / d, sz * oz / d)
