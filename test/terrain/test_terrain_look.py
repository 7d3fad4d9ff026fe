# SPDX-License-Identifier: Apache-2.0
"""What is drawn of the ground: the surface that the simulator uses, in few triangles, with lines on it."""

from __future__ import annotations

import numpy as np
import pytest

from quad_dynamics.array_types import Floats
from quad_dynamics.terrain.terrain import Box, HeightMap, Plane, Stairs, Terrain
from sim_node.terrain_look import look_of

LIFT = 0.003  # of lines over the surface; less than a pixel [m]


def area(triangles: Floats) -> float:
    a, b, c = triangles.swapaxes(0, 1)
    return float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())


@pytest.mark.parametrize('name', Terrain.names())
def test_triangles_are_the_mesh_of_the_terrain(name: str) -> None:
    terrain = Terrain.named(name)
    found = look_of(terrain).triangles
    vertices, faces = terrain.mesh(plane_size=40.0)
    assert sum(map(len, found.values())) == len(faces)
    assert sum(map(area, found.values())) == pytest.approx(area(vertices[faces]), rel=1e-12)


@pytest.mark.parametrize('name', ['flat', 'slope', 'rough'])
def test_lines_are_on_the_surface(name: str) -> None:
    terrain = Terrain.named(name)
    ends = look_of(terrain).grid.reshape(-1, 3)
    assert len(ends) > 100
    # Of two surfaces, the lower one has its lines below the ground.
    assert np.all(ends[:, 2] - terrain.height(ends[:, 0], ends[:, 1]) < 1.05 * LIFT)


def test_obstacles_differ_from_the_ground_and_have_edges() -> None:
    terrain = Terrain((Plane(), Stairs(0.1, 0.3, 4), Box((0.2, 0.3, 0.4), (0.0, 2.0, 0.1), (0.1, 0.2, 0.3))))
    look = look_of(terrain)
    ground, obstacles = look.triangles
    assert np.abs(np.subtract(ground, obstacles)).max() > 0.2
    lengths = np.linalg.norm(look.edges[-12:, 1] - look.edges[-12:, 0], axis=1)
    assert np.allclose(np.sort(lengths), np.repeat([0.2, 0.3, 0.4], 4))
    assert len(look.edges) == 5 * 12
    assert look_of(Terrain.named('flat')).edges.shape == (0, 2, 3)


def test_height_map_has_the_colour_of_the_ground_where_it_meets_it() -> None:
    heights = np.zeros((9, 9))
    heights[2:7, 2:7] = 0.5
    look = look_of(Terrain((Plane(), HeightMap(heights, 0.1))))
    ground = next(iter(look.triangles))
    level = [corners[:, :, 2].max() for color, corners in look.triangles.items() if color == ground]
    assert max(level) == 0.0
    assert len(look.triangles) > 2


@pytest.mark.parametrize('shape', [(2, 2), (2, 3000), pytest.param((1201, 1599), marks=pytest.mark.slow)])
def test_large_height_maps_stay_cheap(shape: tuple[int, int]) -> None:
    rows, columns = shape
    heights = np.add.outer(0.1 * np.arange(rows), 0.2 * np.arange(columns))  # a plane: coarser is as good
    terrain = Terrain((HeightMap(heights, 0.1, position=(3.0, -1.0, 0.5), yaw=0.3),))
    look = look_of(terrain)
    corners = np.concatenate(list(look.triangles.values()))
    assert len(corners) <= 70_000
    assert len(look.grid) <= 20_000
    exact, faces = terrain.mesh()
    assert area(corners) == pytest.approx(area(exact[faces]), rel=1e-9)
    for found in (corners.reshape(-1, 3), look.grid.reshape(-1, 3)):
        assert np.allclose(found.min(axis=0), exact.min(axis=0), atol=2.0 * LIFT)
        assert np.allclose(found.max(axis=0), exact.max(axis=0), atol=2.0 * LIFT)
