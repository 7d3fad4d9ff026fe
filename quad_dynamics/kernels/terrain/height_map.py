# SPDX-License-Identifier: Apache-2.0
"""Distance from a point to a height map, a shape of the ground (see `ground`).

A map is the solid below a surface that is bilinear between the points of a grid. It has vertical walls at its
boundary and no bottom.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.records import FLOAT, INT, Numbers, Record, constant, field
from quad_dynamics.compiler.trace import formula, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number, Vec3


class HeightMap(Record):
    """A height map."""

    columns = constant(FLOAT, 'number of points along x')
    rows = constant(FLOAT, 'number of points along y')
    spacing = constant(FLOAT, 'distance between them', 'm')
    heights = field(
        INT, "offset of the heights in the ground's array, row by row, from the lowest x and y on"
    )


SKIN = 1e-9  # a point this close to a surface counts as inside, so that rounding does not open seams [m]
NEAR = 0.02  # distances of spheres up to this one are exact; larger ones may be overestimated [m]
ITERATIONS = 8  # maximum, for the nearest point of one cell
TOLERANCE = 1e-12  # [m]
EDGE = 1e-6  # closer to an edge, the direction from it is rounding, and the normal of the surface is used [m]


@subroutine
def heights_distance(M: HeightMap, x: Vec3, radius: Number) -> tuple[Number, Vec3]:
    """Distance of a point in the map's frame, whose origin is in the middle of the grid, and the normal."""
    half_x = 0.5 * (M.columns - 1.0) * M.spacing
    half_y = 0.5 * (M.rows - 1.0) * M.spacing
    sx, sy = math.copysign(1.0, x[0]), math.copysign(1.0, x[1])
    dx, dy = abs(x[0]) - half_x, abs(x[1]) - half_y
    d, n = surface_distance(M, x, radius)
    if d > SKIN:
        return d, n
    if max(dx, dy) <= SKIN:  # inside: up, or out through a wall
        if d >= dx and d >= dy:
            return d, n
        if dx >= dy:
            return dx, (sx, 0.0, 0.0)
        return dy, (0.0, sy, 0.0)
    ox, oy = max(dx, 0.0), max(dy, 0.0)
    d = math.sqrt(ox * ox + oy * oy)
    return d, (sx * ox / d, sy * oy / d, 0.0)


@subroutine
def surface_distance(M: HeightMap, x: Vec3, radius: Number) -> tuple[Number, Vec3]:
    """Distance to the bilinear surface of a height map; negative below it, also beside the map.

    Searches the cell below the point, and the cells that a sphere may touch soon.
    """
    columns, rows, spacing = int(M.columns), int(M.rows), M.spacing
    u, v = x[0] / spacing + 0.5 * (columns - 1), x[1] / spacing + 0.5 * (rows - 1)
    i, j = cell_of(u, columns), cell_of(v, rows)
    sign = 1.0 if x[2] >= cell_height(M, i, j, u - i, v - j)[0] else -1.0
    reach = radius + NEAR
    w = reach / spacing
    iterations = ITERATIONS if is_within(M, i, j, x[2], reach) else 1
    best, normal = cell_distance(M, i, j, u, v, x[2], sign, iterations)
    for k in range(cell_of(v - w, rows), cell_of(v + w, rows) + 1):
        for c in range(cell_of(u - w, columns), cell_of(u + w, columns) + 1):
            if (c != i or k != j) and is_within(M, c, k, x[2], min(best, reach)):
                d, n = cell_distance(M, c, k, u, v, x[2], sign, ITERATIONS)
                if d < best:
                    best, normal = d, n
    return sign * best, normal


@routine
def cell_of(u: Number, count: Int) -> Int:
    """The cell between `count` points that contains a coordinate or is nearest to it."""
    return int(min(max(u, 0.0), count - 2.0))


@formula
def cell_corner(M: HeightMap, i: Int) -> Numbers:
    """The heights of a map from the i-th on."""
    return Numbers(M.memory, M.heights + i)


@routine
def is_within(M: HeightMap, i: Int, j: Int, z: Number, reach: Number) -> Bool:
    """Whether a cell is closer to the height z than `reach`."""
    columns = int(M.columns)
    h = cell_corner(M, j * columns + i)
    a, b, c, d = h[0], h[1], h[columns], h[columns + 1]
    return max(a, b, c, d) > z - reach and min(a, b, c, d) < z + reach


@routine
def cell_height(M: HeightMap, i: Int, j: Int, a: Number, b: Number) -> tuple[Number, Number, Number]:
    """Height of a cell at (a, b), clipped to [0, 1], and its slopes."""
    columns, spacing = int(M.columns), M.spacing
    a, b = min(max(a, 0.0), 1.0), min(max(b, 0.0), 1.0)
    h = cell_corner(M, j * columns + i)
    h00, h10, h01, h11 = h[0], h[1], h[columns], h[columns + 1]
    height = (1.0 - b) * ((1.0 - a) * h00 + a * h10) + b * ((1.0 - a) * h01 + a * h11)
    slope_x = ((1.0 - b) * (h10 - h00) + b * (h11 - h01)) / spacing
    slope_y = ((1.0 - a) * (h01 - h00) + a * (h11 - h10)) / spacing
    return height, slope_x, slope_y


@subroutine
def cell_distance(
    M: HeightMap, i: Int, j: Int, u: Number, v: Number, z: Number, sign: Number, iterations: Int
) -> tuple[Number, Vec3]:
    """Distance to one cell, not negative, and the normal there; sign: -1 for a point below the surface.

    A point at an edge of the cell gets the direction from the edge as normal; edges are thus rounded.
    """
    spacing, twist = M.spacing, cell_twist(M, i, j)
    x, y = (u - i) * spacing, (v - j) * spacing
    s, t = min(max(x, 0.0), spacing), min(max(y, 0.0), spacing)
    h, gx, gy = cell_height(M, i, j, s / spacing, t / spacing)
    for _ in range(iterations):
        ds, dt = step_to_nearest(x - s, y - t, z - h, gx, gy, twist, s, t, spacing)
        s, t = s + ds, t + dt
        h, gx, gy = cell_height(M, i, j, s / spacing, t / spacing)
        if abs(ds) + abs(dt) < TOLERANCE:
            break
    ex, ey, ez = x - s, y - t, z - h
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    if d > EDGE and (s <= 0.0 or s >= spacing or t <= 0.0 or t >= spacing):
        return d, (sign * ex / d, sign * ey / d, sign * ez / d)
    length = math.sqrt(1.0 + gx * gx + gy * gy)
    return d, (-gx / length, -gy / length, 1.0 / length)


@routine
def cell_twist(M: HeightMap, i: Int, j: Int) -> Number:
    """Change of the slope along x with y, the only curvature of a bilinear cell [1/m]."""
    columns, spacing = int(M.columns), M.spacing
    h = cell_corner(M, j * columns + i)
    return (h[0] - h[1] - h[columns] + h[columns + 1]) / (spacing * spacing)


@routine
def step_to_nearest(
    ex: Number,
    ey: Number,
    ez: Number,
    gx: Number,
    gy: Number,
    twist: Number,
    s: Number,
    t: Number,
    spacing: Number,
) -> tuple[Number, Number]:
    """One Newton step from (s, t), within the cell, to its point nearest to an offset e.

    It minimises (ex - ds)^2 + (ey - dt)^2 + (ez - gx ds - gy dt - twist ds dt)^2, to second order, for s + ds
    and t + dt in [0, spacing]; without the twist if that is not a minimum.
    """
    bx, by = ex + gx * ez, ey + gy * ez
    xx, xy, yy = 1.0 + gx * gx, gx * gy - ez * twist, 1.0 + gy * gy
    if xx * yy <= 1.01 * xy * xy:
        xy = gx * gy
    ds = (yy * bx - xy * by) / (xx * yy - xy * xy)
    inside = min(max(ds, -s), spacing - s)
    dt = min(max((by - xy * inside) / yy, -t), spacing - t)
    ds = min(max((bx - xy * dt) / xx, -s), spacing - s)
    return ds, dt
