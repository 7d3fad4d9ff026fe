# SPDX-License-Identifier: Apache-2.0
"""Triangles of terrain shapes, for viewers."""

from __future__ import annotations

from itertools import product

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.terrain.terrain_shapes import Box, HeightMap, Plane

# Corners of a box in the order of `product`; two triangles per face, counterclockwise from outside.
_BOX_FACES = (
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
)  # fmt: skip


def mesh_of(part: Plane | Box | HeightMap, plane_size: float) -> tuple[Floats, Ints]:
    """Vertices (n, 3) in the world [m] and triangles (m, 3), counterclockwise seen from outside.

    Args:
        part: shape.
        plane_size: edge of the square that represents a plane [m].
    """
    if isinstance(part, HeightMap):
        x, faces = _grid(part.grid, part.half)
    elif isinstance(part, Box):
        x = 0.5 * np.array(part.size) * np.array(list(product((-1.0, 1.0), repeat=3)))
        faces = np.array(_BOX_FACES)
    else:
        x, faces = _grid(np.zeros((2, 2)), (0.5 * plane_size, 0.5 * plane_size))
    origin = part.point if isinstance(part, Plane) else part.position
    return x @ part.R_WS.T + np.array(origin), faces


def _grid(heights: Floats, half: tuple[float, float]) -> tuple[Floats, Ints]:
    rows, columns = heights.shape
    x, y = np.meshgrid(np.linspace(-half[0], half[0], columns), np.linspace(-half[1], half[1], rows))
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (k.ravel() for k in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]))
    faces = np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    return np.column_stack([x.ravel(), y.ravel(), heights.ravel()]), faces
