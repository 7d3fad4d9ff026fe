# SPDX-License-Identifier: Apache-2.0
"""The appearance of the ground: coloured triangles, and lines that show its shape. Independent of ROS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.terrain.terrain import Box, HeightMap, Plane, Terrain
from quad_dynamics.terrain.terrain_mesh import mesh_of

Color = tuple[float, float, float]

PLANE_SIZE = 40.0  # edge of the square that stands for a plane [m]
_GRID, _PIECE = 0.5, 1.0  # between lines on a plane, and length of their pieces [m]
_LIFT = 0.003  # of lines above the surface that they are drawn on [m]
_GROUND: Color = (0.56, 0.60, 0.62)
_OBSTACLE: Color = (0.80, 0.52, 0.25)
_BANDS = 8  # colours of a height map
_MOST_CELLS = 30_000  # of a height map; a larger one is drawn coarser
_MOST_LINES = 32  # over a height map, in each direction
_MOST_BOXES = 2_000  # whose edges are drawn
# Corners of a box as `product` gives them; an edge joins two that differ in one coordinate.
_CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
_EDGES = np.array([(i, i ^ bit) for i in range(8) for bit in (1, 2, 4) if not i & bit])


@dataclass(frozen=True)
class TerrainLook:
    """What to draw.

    Attributes:
        triangles: (n, 3, 3) corners by colour (r, g, b from 0 to 1), anticlockwise seen from outside [m].
        grid: (n, 2, 3) segments on planes and height maps [m].
        edges: (n, 2, 3) edges of boxes and stairs [m].
    """

    triangles: dict[Color, Floats]
    grid: Floats
    edges: Floats


def look_of(terrain: Terrain) -> TerrainLook:
    """The look of a terrain."""
    triangles: dict[Color, list[Floats]] = {}
    grid, edges = [], []
    for part in terrain.parts:
        if isinstance(part, HeightMap):
            found, lines = _height_map(part)
            grid.append(lines)
        elif isinstance(part, Box):
            found = {_OBSTACLE: _triangles(part)}
            edges.append(_box_edges(part))
        else:
            found = {_GROUND: _triangles(part)}
            grid.append(_plane_lines(part))
        for color, corners in found.items():
            triangles.setdefault(color, []).append(corners)
    joined = {color: np.concatenate(parts) for color, parts in triangles.items()}
    return TerrainLook(joined, _joined(grid), _joined(edges[:_MOST_BOXES]))


def _joined(lines: list[Floats]) -> Floats:
    return np.concatenate([np.zeros((0, 2, 3)), *lines])


def _triangles(part: Plane | Box) -> Floats:
    vertices, faces = mesh_of(part, PLANE_SIZE)
    return vertices[faces]


def _placed(points: Floats, part: Plane | Box | HeightMap) -> Floats:
    """Points (..., 3) of a part's own frame in the world."""
    origin = part.point if isinstance(part, Plane) else part.position
    return np.asarray(points @ part.R_WS.T + np.array(origin))


def _plane_lines(part: Plane) -> Floats:
    """Grid lines, cut into pieces: browsers drop segments that extend behind the camera."""
    half = 0.5 * PLANE_SIZE
    at, along = np.arange(-half, half + 1e-9, _GRID), np.arange(-half, half + 1e-9, _PIECE)
    x, y = np.meshgrid(at, along, indexing='ij')
    points = np.stack([x, y, np.full_like(x, _LIFT)], axis=2)
    lines = _segments(points)
    return _placed(np.concatenate([lines, lines[..., [1, 0, 2]]]), part)


def _segments(lines: Floats) -> Floats:
    """(m, 2, 3) pieces of lines (n, points, 3)."""
    return np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2, 3)


def _box_edges(part: Box) -> Floats:
    return np.asarray(_placed(np.array(part.size) * _CORNERS, part)[_EDGES])


# ---- height maps


def _height_map(part: HeightMap) -> tuple[dict[Color, Floats], Floats]:
    """Triangles by colour, and lines over the surface."""
    rows, columns = part.grid.shape
    stride = math.ceil(math.sqrt((rows - 1) * (columns - 1) / _MOST_CELLS))
    i, j = _every(rows, stride), _every(columns, stride)
    half_x, half_y = part.half
    x, y = np.meshgrid(j * part.spacing - half_x, i * part.spacing - half_y)
    points = np.stack([x, y, part.grid[np.ix_(i, j)]], axis=2)
    corners = _split(points)
    bands = _band(corners[:, :, 2].mean(axis=1), points[..., 2])
    world = _placed(corners, part)
    colors = {_mix(band / (_BANDS - 1)): world[bands == band] for band in np.unique(bands)}
    return colors, _placed(_draped(points), part)


def _every(n: int, stride: int) -> npt.NDArray[np.intp]:
    """Indices 0, stride, ... and always the last one of n."""
    return np.append(np.arange(0, n - 1, stride), n - 1)


def _split(points: Floats) -> Floats:
    """(n, 3, 3) triangles of a grid (rows, columns, 3), two for each cell."""
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    lower, upper = np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)
    return np.concatenate([lower.reshape(-1, 3, 3), upper.reshape(-1, 3, 3)])


def _band(z: Floats, heights: Floats) -> npt.NDArray[np.intp]:
    """Indices of the colours of heights (n,); zero height has the colour of a plane."""
    low, high = float(heights.min()), float(heights.max())
    low = max(low, 0.0) if high > 0.0 else low
    share = (z - low) / max(high - low, 1e-9)
    return np.clip(np.ceil(share * (_BANDS - 1) - 0.05), 0, _BANDS - 1).astype(np.intp)


def _mix(share: float) -> Color:
    r, g, b = ((1.0 - share) * low + share * high for low, high in zip(_GROUND, _OBSTACLE, strict=True))
    return r, g, b


def _draped(points: Floats) -> Floats:
    """(n, 2, 3) lines over a grid (rows, columns, 3), along both of its directions."""
    lifted = points + np.array([0.0, 0.0, _LIFT])
    lines = []
    for grid in (lifted, lifted.swapaxes(0, 1)):
        lines.append(_segments(grid[_every(len(grid), math.ceil((len(grid) - 1) / _MOST_LINES))]))
    return np.concatenate(lines)
