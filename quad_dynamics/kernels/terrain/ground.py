# SPDX-License-Identifier: Apache-2.0
"""Distance from a point to the ground, which consists of solid shapes: half spaces, boxes and height maps.

The ground T is an array: `Ground`, then a `Shape` for each shape, then the heights of height maps.
`Terrain.pack` makes it.

For a point outside, the nearest shape counts. For a point inside, the way out must lead out of all shapes:
if two boxes are side by side, a point below their common top is not pushed through the seam from one into
the other. A way out leads through a face of a shape; if it ends in another shape, it continues through a face
of that one, and so on. The shortest way counts. A point is therefore one contact, regardless of the number of
shapes that contain it.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.arguments import array, table
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.record_types import record_at
from quad_dynamics.compiler.records import FLOAT as NUMBER
from quad_dynamics.compiler.records import INT as COUNT
from quad_dynamics.compiler.records import MAT3, VEC3, Record, Table, constant, embedded, field
from quad_dynamics.compiler.registry import FLOAT, INT, kernel
from quad_dynamics.compiler.trace import apart, formula, load, routine, store, subroutine
from quad_dynamics.compiler.types import LANES, Address, Bool, Int, Number, Object, Vec3
from quad_dynamics.kernels.spatial import add, dot, rotate, scale, sub, unrotate
from quad_dynamics.kernels.terrain.height_map import SKIN, HeightMap, heights_distance, surface_distance

PLANE, BOX, HEIGHTS = 0, 1, 2


class Shape(Record):
    """A shape of the ground; only one of `level`, `half` and `map` is used, depending on `kind`."""

    kind = constant(COUNT, 'PLANE, BOX or HEIGHTS')
    mu = constant(NUMBER, 'friction')
    restitution = constant(NUMBER, 'restitution')
    origin = constant(VEC3, 'p_WS; in the middle of a height map or box', 'm')
    axes = constant(MAT3, 'R_WS; the normal of a plane is its z axis')
    level = constant(NUMBER, 'plane: normal . origin', 'm')
    half = constant(VEC3, 'box: half lengths', 'm')
    map = embedded(HeightMap, 'height map')
    bound = constant(NUMBER, 'radius of the bounding sphere about the origin; FAR if unbounded', 'm')


class Ground(Record):
    """The beginning of the ground's array, followed by the shapes and the heights of height maps."""

    count = field(NUMBER, 'number of shapes')
    maps = constant(NUMBER, 'number of height maps among them')


ground_at = record_at(Ground)


FAR = 1e30
LIFT = 5e-3  # minimum height of a second surface [m]
ACROSS = 0.7  # and it is turned by at least 45 degrees, for a point: maximum cosine
SPHERE_ACROSS = 0.9  # for a sphere, which touches the edges of steps and gaps at smaller angles
STEP = 1e-6  # how far beyond a face a way out continues [m]
LEGS = 4  # maximum number of shapes on a way out

GROUND_WORDS = 6  # distance, normal (3), friction, restitution


@kernel(INT, FLOAT, table(lambda n: 3 * n), table(lambda: 1), array(lambda n: GROUND_WORDS * n))
def ground_distances(n: Int, radius: Number, points: Object, terrain: Object, out: Object) -> Int:
    """Results of `ground_below` for n points (n, 3); out: (n, GROUND_WORDS). The arrays are not validated."""
    points, T, out = data(points), data(terrain), data(out)
    for i in range(n):
        p = (points[3 * i], points[3 * i + 1], points[3 * i + 2])
        distance, normal, mu, e = ground_below(T, p, radius)
        write_ground(out, GROUND_WORDS * i, distance, normal, mu, e)
    return 0


@formula
def write_ground(out: Address, at: Int, distance: Number, normal: Vec3, mu: Number, e: Number) -> None:
    """Write out[at : at + GROUND_WORDS]."""
    for k, x in enumerate((distance, *normal, mu, e)):
        out[at + k] = x


@routine
def ground_below(T: Address, p: Vec3, radius: Number) -> tuple[Number, Vec3, Number, Number]:
    """The surface nearest to a sphere at p: distance [m], negative inside; normal, friction, restitution.

    A single plane is handled here; everything else is in a separate function, to keep this one short.
    """
    shape = shape_of(T, 0, 0)
    if is_plane(T):
        return plane_distance(shape, p) - radius, plane_normal(shape), shape.mu, shape.restitution
    distance, normal, i = nearest_shape(T, p, radius)
    shape = shape_of(T, 0, i)
    return distance - radius, normal, shape.mu, shape.restitution


@routine
def is_plane(T: Address) -> Bool:
    """Whether the ground is a single plane."""
    return shape_count(T) == 1.0 and shape_of(T, 0, 0).kind == PLANE


@formula
def shape_count(T: Address) -> Number:
    """Number of shapes of the ground."""
    return ground_at(T, 0).count


@formula
def map_count(T: Address) -> Number:
    """Number of height maps among the shapes of the ground."""
    return ground_at(T, 0).maps


@formula
def shape_of(T: Address, start: Int, i: Int) -> Shape:
    """Shape i of the ground that begins at T[start]."""
    return Table(Shape, T, start + Ground.words)[i]


@subroutine
def another_surface(
    T: Address, p: Vec3, radius: Number, first: Vec3, depth: Number, second: Vec3, second_shape: Int
) -> tuple[Number, Vec3, Number, Number, Int]:
    """Another surface beside the one with the normal `first`, as in a corner; FAR if there is none.

    A third surface, where three shapes meet, is neither of the shape `second_shape` nor parallel to the
    surface with the normal `second`. To find the second one, these are -1 and zero. The last value returned
    is the index of the shape.

    It rises above the first surface: an edge level with it does not count. It belongs to another shape, or
    to the same height map on the other side of a steep valley. A point that penetrates the first surface by
    `depth` is evaluated at the place where it has left it, so it does not slip below a box that stands there.
    If the point is inside the other shape as well, the surface is the face through which it would leave if it
    were slightly higher.
    """
    apart(T)
    distance, normal, found = FAR, first, 0
    limit = SPHERE_ACROSS if radius > LIFT else ACROSS
    out = add(p, scale(first, max(depth, 0.0) + STEP))
    lifted = add(out, scale(first, LIFT))
    for i in range(int(shape_count(T))):
        shape = shape_of(T, 0, i)
        if i == second_shape or is_beyond(shape, p, LIFT + radius):
            continue
        d, n = shape_distance(shape, out, radius)
        if d < distance and (d <= SKIN or dot(n, first) < limit):
            d_lifted, n_lifted = shape_distance(shape, lifted, radius)
            across = dot(n_lifted, first)
            rises = across < limit
            if d <= SKIN:
                rises = d_lifted <= SKIN and abs(across) < limit
                d, n = d_lifted - LIFT * across, n_lifted
            if rises and d < distance and dot(n, second) < limit:
                distance, normal, found = d, n, i
    shape = shape_of(T, 0, found)
    return distance - radius, normal, shape.mu, shape.restitution, found


@subroutine
def nearest_shape(T: Address, p: Vec3, radius: Number) -> tuple[Number, Vec3, Int]:
    """Distance of a point, normal, and index of the shape."""
    apart(T)
    normal: Vec3
    normal_inside: Vec3
    outside, inside, count = FAR, -FAR, 0
    normal, normal_inside = (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)
    at, at_inside = 0, 0
    for i in range(int(shape_count(T))):
        shape = shape_of(T, 0, i)
        limit = 0.0 if count > 0 else outside
        if is_beyond(shape, p, limit) or is_box_beyond(shape, p, limit):
            continue
        d, n = shape_distance(shape, p, radius)
        if d <= SKIN:
            count += 1
            if d > inside:
                inside, normal_inside, at_inside = d, n, i
        elif d < outside:
            outside, normal, at = d, n, i
    if count == 0:
        return outside, normal, at
    if shape_count(T) == 1.0 or is_way_out(T, at_inside, p, -inside, normal_inside, radius):
        return inside, normal_inside, at_inside
    return best_way_out(T, p, radius, -inside, normal_inside, at_inside)


@routine
def is_beyond(shape: Shape, p: Vec3, reach: Number) -> Bool:
    """Whether a shape is farther from a point than `reach`, by its bounding sphere only."""
    r = sub(p, shape.origin)
    bound = shape.bound + reach
    return bound < FAR and dot(r, r) > (bound + SKIN) * (bound + SKIN)


@routine
def is_box_beyond(shape: Shape, p: Vec3, reach: Number) -> Bool:
    """Whether a shape is a box that is farther from a point than `reach`; does not compute the normal."""
    if shape.kind != BOX:
        return False
    x, half = unrotate(shape.axes, from_origin(shape, p)), shape.half
    dx = max(abs(x[0]) - half[0], 0.0)
    dy = max(abs(x[1]) - half[1], 0.0)
    dz = max(abs(x[2]) - half[2], 0.0)
    nearest = max(reach, SKIN)
    return dx * dx + dy * dy + dz * dz > nearest * nearest


@subroutine
def gather_near(T: Address, to: Int, low: Vec3, high: Vec3, reach: Number) -> None:
    """Write a copy of the ground to T[to ...] that only has the shapes closer than `reach` to a box.

    The box is given by its lowest and highest corners. The new ground begins at T[to]. The heights of height
    maps are not copied, so they are before it.
    """
    apart(T)
    n = 0
    for i in range(int(shape_count(T))):
        shape = shape_of(T, 0, i)
        x, y, z = shape.origin
        nearest = (
            min(max(x, low[0]), high[0]),
            min(max(y, low[1]), high[1]),
            min(max(z, low[2]), high[2]),
        )
        if not is_beyond(shape, nearest, reach):
            new = shape_of(T, to, n)
            copy_shape(shape, new)
            if new.kind == HEIGHTS:
                new.map.heights -= to
            n += 1
    ground_at(T, to).count = n


@formula
def copy_shape(shape: Shape, to: Shape) -> None:
    """Copy a shape."""
    for k in range(0, Shape.words, LANES):
        store(to.memory, to.at + k, load(shape.memory, shape.at + k))


# ---------------------------------------------------------------- the way out of all shapes


@routine
def is_way_out(T: Address, at: Int, p: Vec3, depth: Number, n: Vec3, radius: Number) -> Bool:
    """Whether a point that leaves a shape along n has left all shapes."""
    return way_left(T, at, step_beyond(p, n, depth), n, radius)[0] < -SKIN


@subroutine
def best_way_out(
    T: Address, p: Vec3, radius: Number, depth: Number, normal: Vec3, at: Int
) -> tuple[Number, Vec3, Int]:
    """The shortest way out for a point that is in one or more shapes; returns the same as `nearest_shape`.

    If there is none, it is the given way.
    """
    apart(T)
    best = FAR
    for i in range(int(shape_count(T))):
        shape = shape_of(T, 0, i)
        if depth_in(shape, p, (0.0, 0.0, 0.0), radius)[0] < -SKIN:
            continue
        for face in range(face_count(shape)):
            d, n = way_to_face(shape, p, face, radius)
            if d < best:
                length, d, n, last = walk_out(T, p, radius, d, n, i, best)
                if length < best:
                    best, depth, normal, at = length, d, n, last
    return -depth, normal, at


@subroutine
def walk_out(
    T: Address, p: Vec3, radius: Number, depth: Number, normal: Vec3, at: Int, limit: Number
) -> tuple[Number, Number, Vec3, Int]:
    """Leave a shape through a face, and then all others; length of the way, FAR if it exceeds the limit.

    Of all faces on the way, returns the one below which p is deepest (depth, normal, and its shape), so that
    the distance is continuous in corners and at seams.
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
    """Depth in the other shapes of a point that has left a shape along n (-FAR if in none), and the face."""
    apart(T)
    deepest, normal, at = -FAR, n, leaving
    for i in range(int(shape_count(T))):
        if i != leaving:
            d, n_next = depth_in(shape_of(T, 0, i), p, n, radius)
            if d >= -SKIN and d > deepest:
                deepest, normal, at = d, n_next, i
    return deepest, normal, at


@subroutine
def depth_in(shape: Shape, p: Vec3, n: Vec3, radius: Number) -> tuple[Number, Vec3]:
    """Depth of a point in one shape, without ways back against n; negative outside. And the face's normal."""
    apart(shape)
    depth, normal = FAR, n
    if is_beyond(shape, p, 0.0):
        return -depth, normal
    for face in range(face_count(shape)):
        d, n_face = way_to_face(shape, p, face, radius)
        if d < depth and (d < -SKIN or dot(n_face, n) > -0.5):
            depth, normal = d, n_face
    return depth, normal


@formula
def step_beyond(p: Vec3, n: Vec3, depth: Number) -> Vec3:
    """A point just beyond a face that is `depth` away along n."""
    return add(p, scale(n, depth + STEP))


@routine
def face_count(shape: Shape) -> Int:
    """Number of faces through which a point can leave a shape."""
    kind = shape.kind
    if kind == PLANE:
        return 1
    return 6 if kind == BOX else 5


@subroutine
def way_to_face(shape: Shape, p: Vec3, face: Int, radius: Number) -> tuple[Number, Vec3]:
    """Depth of a point below a face of a shape (negative beyond it), and the face's normal.

    The faces of a box are +x, -x, +y, -y, +z, -z. Of a height map, face 4 is the surface.
    """
    apart(shape)
    kind = shape.kind
    if kind == PLANE:
        return -plane_distance(shape, p), plane_normal(shape)
    if kind == HEIGHTS and face == 4:
        R = shape.axes
        d, n = surface_distance(shape.map, unrotate(R, from_origin(shape, p)), radius)
        return -d, rotate(R, n)
    axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
    half = half_along(shape, axis)
    if kind == HEIGHTS:
        half = 0.5 * ((shape.map.columns if axis == 0 else shape.map.rows) - 1.0) * shape.map.spacing
    n = axis_of(shape, axis, sign)
    return half - dot(n, from_origin(shape, p)), n


@formula
def half_along(shape: Shape, axis: Int) -> Number:
    """Half length of a box along an axis."""
    return Shape.half.numbers(shape)[axis]


@formula
def axis_of(shape: Shape, axis: Int, sign: Number) -> Vec3:
    """An axis of a shape, times a sign."""
    R = Shape.axes.numbers(shape)
    return sign * R[axis], sign * R[3 + axis], sign * R[6 + axis]


# ---------------------------------------------------------------- one shape


@routine
def shape_distance(shape: Shape, p: Vec3, radius: Number) -> tuple[Number, Vec3]:
    """Distance of a point to one shape, and the outward normal there, in world axes."""
    kind = shape.kind
    if kind == PLANE:
        return plane_distance(shape, p), plane_normal(shape)
    R = shape.axes
    x = unrotate(R, from_origin(shape, p))
    if kind == BOX:
        d, n = box_distance(x, shape.half)
    else:
        d, n = heights_distance(shape.map, x, radius)
    return d, rotate(R, n)


@formula
def from_origin(shape: Shape, p: Vec3) -> Vec3:
    """p_SP in world axes."""
    return sub(p, shape.origin)


@formula
def plane_normal(shape: Shape) -> Vec3:
    """The z axis of a plane."""
    R = Shape.axes.numbers(shape)
    return R[2], R[5], R[8]


@formula
def plane_distance(shape: Shape, p: Vec3) -> Number:
    """Distance to a plane."""
    return dot(plane_normal(shape), p) - shape.level


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
