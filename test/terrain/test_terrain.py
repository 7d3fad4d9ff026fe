# SPDX-License-Identifier: Apache-2.0
"""The ground: distances against closed forms and dense samples, seams, and distances that do not jump."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from slow_variants import slow_but

from quad_dynamics.kernels.terrain import ground as ground_kernels
from quad_dynamics.kernels.terrain import height_map
from quad_dynamics.terrain.terrain import Box, HeightMap, Plane, Stairs, Terrain

over_seeds = pytest.mark.parametrize('seed', slow_but([0], [0, 1, 2]), ids=['seed0', 'seed1', 'seed2'])
# Sums of a few products of numbers up to 10: some units in the last place of 10.
ROUNDING = 1e-14


def ground(shapes: Any, points: Any, radius: float = 0.0) -> np.ndarray:
    """Distance, normal, friction and restitution, from the compiled function that the simulator uses."""
    p = np.array(points, dtype=float, order='C').reshape(-1, 3)
    out = np.full((len(p), 6), np.nan)
    ground_kernels.ground_distances.run(len(p), radius, p, Terrain.load(shapes).pack(0.5, 0.0), out)
    return out


def hills(seed: int, amplitude: float, shape: tuple[int, int] = (7, 9)) -> HeightMap:
    rng = np.random.default_rng(seed)
    return HeightMap(rng.uniform(0.0, amplitude, shape), 0.05, (0.3, -0.2, 0.1), 0.4)


def into_world(part: Any, local: np.ndarray) -> np.ndarray:
    return Rotation.from_euler('z', part.yaw).apply(local) + part.position


ALL_SHAPES = {
    'plane': [Plane(normal=(0.2, -0.3, 1.0), point=(0.0, 0.0, 0.1))],
    'box': [Box((0.4, 0.3, 0.2), (0.1, 0.2, 0.0), (0.3, -0.4, 1.0))],
    'staircase': [Stairs(0.1, 0.2, 4, 0.8, (-0.5, 0.0, -0.1), 0.3, down=True)],
    'height_map': [hills(0, 0.05)],
    'mixed': [
        Plane(),
        Plane(pitch=-0.2, point=(0.3, 0.0, 0.0)),
        Box((0.5, 0.4, 0.2), rpy=(0.1, 0.2, 0.3)),
        hills(1, 0.2),
    ],
    'room': [Plane(), Box((1.0, 1.4, 1.0), (-0.7, 0.0, 0.3)), Box((1.4, 1.0, 1.0), (0.0, -0.7, 0.3))],
    'bricks': [
        Box((0.4, 0.3, 0.1), (0.4 * i + 0.2 * (k % 2) - 0.5, 0.3 * j - 0.3, 0.1 * k))
        for i, j, k in product(range(3), range(3), range(3))
        if k < 2 or i + j < 3
    ],
    **{name: [name] for name in Terrain.names()},
}
over_shapes = pytest.mark.parametrize('name', ALL_SHAPES)


# ---------------------------------------------------------------- planes


@pytest.mark.parametrize(('roll', 'pitch'), [(0.0, 0.0), (0.0, -0.26), (0.5, 0.0), (-0.3, 0.7), (0.0, 1.5)])
def test_plane_by_angles(roll: float, pitch: float) -> None:
    normal = Rotation.from_euler('xyz', [roll, pitch, 0.0]).apply([0.0, 0.0, 1.0])
    plane, point = Plane(roll=roll, pitch=pitch, point=(1.0, 2.0, 3.0), mu=0.7), np.array([1.0, 2.0, 3.0])
    p = np.random.default_rng(0).normal(size=(100, 3))
    found = ground(plane, p, radius=0.02)
    assert np.allclose(found[:, 0], (p - point) @ normal - 0.02, rtol=0.0, atol=ROUNDING)
    assert np.allclose(found[:, 1:4], normal, rtol=0.0, atol=ROUNDING)
    assert np.all(found[:, 4] == 0.7)
    same = ground(Plane(normal=3.0 * normal, point=point), p, radius=0.02)
    assert np.allclose(same[:, :4], found[:, :4], rtol=0.0, atol=ROUNDING)
    on = np.column_stack([p[:, :2], Terrain((plane,)).height(p[:, 0], p[:, 1])])
    # heights reach 60 m on the steepest plane
    assert np.abs(ground(plane, on)[:, 0]).max() < 10.0 * ROUNDING


def test_the_slope_rises_by_15_degrees_towards_x() -> None:
    slope = Terrain.named('slope')
    assert slope.height(0.0, 5.0) == 0.0
    assert math.isclose(slope.height(2.0, 0.0), 2.0 * math.tan(math.radians(15.0)), rel_tol=1e-14)


# ---------------------------------------------------------------- boxes


@over_seeds
def test_box(seed: int) -> None:
    """Outside, the nearest point of the box is the point limited to it; inside, the nearest face."""
    rng = np.random.default_rng(seed)
    size, position, rpy = rng.uniform(0.1, 1.0, 3), rng.normal(size=3), rng.uniform(-3.0, 3.0, 3)
    R, half = Rotation.from_euler('xyz', rpy), 0.5 * size
    x = rng.uniform(-1.5, 1.5, (4000, 3)) * half
    p = R.apply(x) + position
    found = ground(Box(size, position, rpy), p)
    beyond = np.abs(x) - half
    inside = beyond.max(axis=1) < 0.0
    assert 500 < inside.sum() < 3500
    away = x - np.clip(x, -half, half)
    expected = np.where(inside, beyond.max(axis=1), np.linalg.norm(away, axis=1))
    assert np.allclose(found[:, 0], expected, rtol=0.0, atol=ROUNDING)
    with np.errstate(invalid='ignore'):
        normal = np.where(
            inside[:, None],
            np.sign(x) * (beyond == beyond.max(axis=1, keepdims=True)),
            away / np.linalg.norm(away, axis=1, keepdims=True),
        )
    # a direction from a distance of 1e-4 and more, which is known to 1e-15
    sure = inside | (expected > 1e-4)
    assert np.allclose(found[sure, 1:4], R.apply(normal)[sure], rtol=0.0, atol=1e-10)


def test_a_sphere_rolls_over_an_edge() -> None:
    angles = np.linspace(0.0, 0.5 * np.pi, 50)
    around = np.column_stack([np.cos(angles), 0.0 * angles, np.sin(angles)])
    found = ground(Box((1.0, 1.0, 1.0)), [0.5, 0.0, 0.5] + 0.02 * around, radius=0.02)
    assert np.allclose(found[:, 0], 0.0, rtol=0.0, atol=ROUNDING)
    # the direction comes from 0.02 m that are known to 1e-16
    assert np.allclose(found[:, 1:4], around, rtol=0.0, atol=1e-13)


@over_seeds
def test_the_top_of_a_box(seed: int) -> None:
    """Just above the height that it gives, a vertical line is outside, just below it is inside."""
    rng = np.random.default_rng(seed)
    box = Box(rng.uniform(0.2, 1.0, 3), rng.normal(size=3), rng.uniform(-3.0, 3.0, 3) if seed else (0, 0, 1))
    xy = np.array(box.position[:2]) + rng.uniform(-0.8, 0.8, (2000, 2))
    top = Terrain((box,)).height(xy[:, 0], xy[:, 1])
    hit = np.isfinite(top)
    assert 100 < hit.sum() < 1990
    assert np.abs(ground(box, np.column_stack([xy, top])[hit])[:, 0]).max() < 10.0 * ROUNDING
    assert ground(box, np.column_stack([xy, top + 1e-3])[hit])[:, 0].min() > 0.0
    # beside it, the line misses the box at all heights
    for z in np.linspace(-1.0, 1.0, 41):
        column = np.column_stack([xy, np.full(len(xy), box.position[2] + z)])[~hit]
        assert ground(box, column)[:, 0].min() > 0.0


# ---------------------------------------------------------------- height maps


def surface_samples(part: HeightMap, n: int) -> tuple[np.ndarray, float]:
    """Points of the surface, n x n in each cell, in the map's frame; and how far apart they are at most."""
    rows, columns = part.grid.shape
    a, b = np.meshgrid(np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, n))
    found, step = [], 0.0
    for j, i in product(range(rows - 1), range(columns - 1)):
        h00, h10, h01, h11 = part.grid[j : j + 2, i : i + 2].ravel()
        z = h00 + a * (h10 - h00) + b * (h01 - h00) + a * b * (h00 - h10 - h01 + h11)
        cell = np.stack([(i + a) * part.spacing, (j + b) * part.spacing, z], axis=-1)
        found.append(cell.reshape(-1, 3))
        step = max(step, np.linalg.norm(np.diff(cell, axis=0), axis=2).max())
        step = max(step, np.linalg.norm(np.diff(cell, axis=1), axis=2).max())
    return np.concatenate(found) - [*part.half, 0.0], step


@over_seeds
@pytest.mark.parametrize('amplitude', [0.02, 0.1])
def test_height_map_against_dense_samples(seed: int, amplitude: float) -> None:
    part = hills(seed, amplitude)
    rng = np.random.default_rng([seed, 5])
    local = rng.uniform([-0.2, -0.15, -0.02], [0.2, 0.15, amplitude + 0.04], (3000, 3))
    samples, step = surface_samples(part, 31)
    nearest = cKDTree(samples).query(local)[0]
    p = into_world(part, local)
    above = p[:, 2] > Terrain((part,)).height(p[:, 0], p[:, 1])
    rim = (part.half - np.abs(local[:, :2])).min(axis=1)
    found = ground(part, p, radius=0.02)
    d = found[:, 0] + 0.02
    assert np.array_equal(d > 0.0, above)
    # distances are exact up to NEAR beyond the radius, where no wall of the rim is nearer; in cells as steep
    # as 60 degrees, which have several nearest points, as long as the sphere touches
    reach = 0.02 + height_map.NEAR if amplitude < 0.1 else 0.02
    known = (nearest < reach) & (above | (nearest < rim))
    assert known.sum() > 500
    # no sample is nearer than the nearest point, and one is at most half a diagonal from it
    assert np.all(np.abs(d[known]) <= nearest[known] + 1e-12)
    assert np.all(np.hypot(d[known], math.sqrt(0.5) * step) >= nearest[known] - 1e-12)
    # along the normal, there is the surface
    foot = Rotation.from_euler('z', -part.yaw).apply(p - d[:, None] * found[:, 1:4] - part.position)
    assert cKDTree(samples).query(foot[known])[0].max() < step


def test_height_map_of_a_plane_is_the_plane() -> None:
    x, y = np.meshgrid(0.1 * np.arange(-10, 11), 0.1 * np.arange(-8, 9))
    p = np.random.default_rng(0).uniform([-0.7, -0.5, -0.2], [0.7, 0.5, 0.2], (1000, 3))
    found = ground(HeightMap(0.3 * x - 0.2 * y, 0.1), p)
    expected = ground(Plane(normal=(-0.3, 0.2, 1.0)), p)
    near = np.abs(expected[:, 0]) < height_map.NEAR
    # the iteration stops at 1e-12
    assert np.allclose(found[near, :4], expected[near, :4], rtol=0.0, atol=1e-11)


def test_height_map_at_its_points() -> None:
    part = HeightMap([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]], 0.5, (1.0, 2.0, 3.0))
    found = Terrain((part,)).height([[0.5, 1.0, 1.5]] * 2, [[1.75] * 3, [2.25] * 3])
    assert np.allclose(found, 3.0 + part.grid, rtol=0.0, atol=ROUNDING)
    assert Terrain((part,)).height(1.5001, 2.0) == -math.inf


def test_beside_and_below_a_height_map() -> None:
    part = HeightMap(np.zeros((5, 5)), 0.1)  # to 0.2 m from the middle
    found = ground(
        part, [[0.5, 0, -0.3], [0.199, 0, -1.0], [-0.21, 0, 0.0], [0.23, 0.24, -9.0], [0, -0.21, 0.01]]
    )
    expected = [0.3, -0.001, 0.01, 0.05, math.hypot(0.01, 0.01)]
    assert np.allclose(found[:, 0], expected, rtol=0.0, atol=ROUNDING)
    expected_normals = [
        [1, 0, 0],
        [1, 0, 0],
        [-1, 0, 0],
        [0.6, 0.8, 0.0],
        [0.0, -math.sqrt(0.5), math.sqrt(0.5)],
    ]
    # directions from distances of 0.01 m and more that are known to 1e-16
    assert np.allclose(found[:, 1:4], expected_normals, rtol=0.0, atol=1e-13)


# ---------------------------------------------------------------- several shapes


@over_seeds
def test_tiles_of_a_box_are_the_box(seed: int) -> None:
    """Boxes without gaps that fill one box: no seam may be felt, inside or outside."""
    rng = np.random.default_rng(seed)
    cuts = [
        np.concatenate([[-0.5], np.sort(rng.uniform(-0.2, 0.2, n)) + [-0.1, 0.1][:n], [0.5]])
        for n in (2, 2, 1)
    ]
    rpy = (0.0, 0.0, 0.0) if seed == 0 else tuple(rng.uniform(-1.0, 1.0, 3))
    R = Rotation.from_euler('xyz', rpy)
    tiles = []
    for i, j, k in product(range(3), range(3), range(2)):
        low, high = (np.array([c[n + e] for c, n in zip(cuts, (i, j, k), strict=True)]) for e in (0, 1))
        tiles.append(Box(high - low, R.apply(0.5 * (low + high)), rpy))
    x = rng.uniform(-0.6, 0.6, (6000, 3))
    x[:2000, 0] = rng.choice(cuts[0][1:3], 2000)  # in the seams
    p = R.apply(x)
    found, expected = ground(tiles, p), ground(Box((1.0, 1.0, 1.0), rpy=rpy), p)
    # deeper than the thinnest tile, ways through a tile may be shorter than they look
    shallow = expected[:, 0] > -0.1
    assert (expected[shallow, 0] < 0.0).sum() > 500
    assert np.allclose(found[shallow, 0], expected[shallow, 0], rtol=0.0, atol=1e-12)
    # at the rounded edges, and where two faces are as near, the normal is anything between
    ways = np.sort(0.5 - np.abs(x), axis=1)
    clear = shallow & (ways[:, 1] - ways[:, 0] > 1e-9)
    assert np.allclose(found[clear, 1:4], expected[clear, 1:4], rtol=0.0, atol=1e-9)


def test_maps_side_by_side_are_one_map() -> None:
    whole = np.random.default_rng(0).uniform(0.0, 0.02, (5, 9))
    left, right = HeightMap(whole[:, :5], 0.1, (-0.2, 0, 0)), HeightMap(whole[:, 4:], 0.1, (0.2, 0, 0))
    p = np.random.default_rng(1).uniform([-0.1, -0.1, -0.05], [0.1, 0.1, 0.04], (2000, 3))
    p[:500, 0] = 0.0  # in the seam
    found, expected = ground([left, right], p)[:, :4], ground(HeightMap(whole, 0.1), p)[:, :4]
    # beside the seam, a point does not know of the other map, whose surface may be a little nearer
    near = (np.abs(expected[:, 0]) < height_map.NEAR) & ((p[:, 0] == 0.0) | (np.abs(p[:, 0]) > 0.005))
    # the iteration stops at 1e-12, and a normal at an edge comes from a distance of at least 1e-6
    assert np.allclose(found[near, 0], expected[near, 0], rtol=0.0, atol=1e-11)
    assert np.allclose(found[near, 1:], expected[near, 1:], rtol=0.0, atol=1e-5)


SUNK = [Plane(mu=0.1), Box((1.0, 1.0, 1.0), mu=0.9, restitution=0.3)]  # its top is 0.5 above the plane


@pytest.mark.parametrize(
    ('point', 'distance', 'normal', 'mu'),
    [
        ((0.0, 0.0, 0.49), -0.01, (0, 0, 1), 0.9),
        ((0.0, 0.0, -0.3), -0.8, (0, 0, 1), 0.9),  # in both: the plane's surface is inside the box
        ((0.499, 0.0, 0.2), -0.001, (1, 0, 0), 0.9),
        ((0.6, 0.0, -0.1), -0.1, (0, 0, 1), 0.1),
        ((0.499, 0.0, -0.002), -0.002, (0, 0, 1), 0.1),  # in the corner: what it is deeper below
        ((0.498, 0.0, -0.001), -0.002, (1, 0, 0), 0.9),
        ((0.7, 0.0, 0.1), 0.1, (0, 0, 1), 0.1),
        ((0.6, 0.0, 0.3), 0.1, (1, 0, 0), 0.9),
    ],
)
def test_a_box_sunk_in_a_plane(point: Any, distance: float, normal: Any, mu: float) -> None:
    found = ground(SUNK, point)[0]
    assert math.isclose(found[0], distance, abs_tol=ROUNDING)
    assert np.allclose(found[1:4], normal, rtol=0.0, atol=ROUNDING)
    assert found[4] == mu
    assert found[5] == (0.3 if mu == 0.9 else 0.0)
    # the order of the shapes does not matter
    assert np.allclose(ground(SUNK[::-1], point)[0], found, rtol=0.0, atol=ROUNDING)


@over_seeds
def test_in_a_corner_of_three_the_deepest_face_counts(seed: int) -> None:
    depths = np.random.default_rng(seed).uniform(0.0, 0.01, (500, 3))
    found = ground(ALL_SHAPES['room'], [-0.2, -0.2, 0.0] - depths)
    # the plane's face is at 0, the walls' faces at -0.2, which are sums of rounded numbers
    assert np.allclose(found[:, 0], -depths.max(axis=1), rtol=0.0, atol=ROUNDING)
    assert np.array_equal(np.argmax(found[:, 1:4], axis=1), np.argmax(depths, axis=1))


def test_at_a_step_of_two_boxes_the_deeper_face_counts() -> None:
    boxes = [Box((1.0, 1.0, 1.0), (-0.5, 0.0, 0.5)), Box((1.0, 1.0, 0.98), (0.5, 0.0, 0.49))]
    found = ground(boxes, [[-1e-3, 0.0, 0.975], [1e-3, 0.0, 0.975], [-8e-3, 0.0, 0.975], [-1e-3, 0.0, 0.985]])
    assert np.allclose(found[:, 0], [-5e-3, -5e-3, -8e-3, -1e-3], rtol=0.0, atol=2e-15)
    assert np.allclose(found[:, 1:4], [[0, 0, 1], [0, 0, 1], [1, 0, 0], [1, 0, 0]], rtol=0.0, atol=ROUNDING)


@pytest.mark.parametrize('down', [False, True], ids=['up', 'up and down'])
def test_stairs(down: bool) -> None:
    stairs = Stairs(0.1, 0.25, 4, width=0.8, position=(1.0, 2.0, 0.3), yaw=0.7, landing=0.5, down=down)
    end = 3 * 0.25 + 0.5
    length = end + (3 * 0.25 if down else 0.0)
    rng = np.random.default_rng(0)
    along, across = rng.uniform(-0.2, length + 0.2, 5000), rng.uniform(-0.5, 0.5, 5000)
    step = np.minimum(np.floor(along / 0.25) + 1, 4)
    if down:
        step = np.minimum(step, np.floor((length - along) / 0.25) + 1)
    expected = np.where((along < 0) | (along > length) | (abs(across) > 0.4), -np.inf, 0.3 + 0.1 * step)
    xy = np.array([1.0, 2.0]) + np.column_stack([along, across]) @ [
        [math.cos(0.7), math.sin(0.7)],
        [-math.sin(0.7), math.cos(0.7)],
    ]
    height = Terrain((stairs,)).height(xy[:, 0], xy[:, 1])
    hit = np.isfinite(expected)
    assert np.array_equal(np.isfinite(height), hit)
    assert np.allclose(height[hit], expected[hit], rtol=0.0, atol=ROUNDING)
    # just below a tread, wherever the boxes meet underneath, the way out is up; a riser or side may be nearer
    p = np.column_stack([xy, height - 1e-4])[hit]
    found = ground(stairs, p)
    edge = np.abs(along[hit] / 0.25 - np.round(along[hit] / 0.25)) * 0.25
    clear = (edge > 2e-4) & (np.abs(across[hit]) < 0.399) & (along[hit] < length - 1e-3)
    if down:
        back = length - along[hit]
        clear &= np.abs(back / 0.25 - np.round(back / 0.25)) * 0.25 > 2e-4
    assert clear.sum() > 2000
    assert np.allclose(found[clear, 0], -1e-4, rtol=0.0, atol=ROUNDING)
    assert np.allclose(found[clear, 1:4], [0, 0, 1], rtol=0.0, atol=ROUNDING)


# ---------------------------------------------------------------- properties


def special_points(parts: Any) -> np.ndarray:
    """Middles, corners, middles of edges and faces of boxes; points, borders and corners of height maps."""
    found = []
    for part in parts:
        if isinstance(part, Box):
            local = 0.5 * np.array(part.size) * np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))
            found.append(Rotation.from_euler('xyz', part.rpy).apply(local) + part.position)
        elif isinstance(part, HeightMap):
            samples = surface_samples(part, 3)[0][:: 7 if part.grid.size < 100 else 397]
            found += [into_world(part, samples + np.array([0, 0, dz])) for dz in (-0.5, -1e-9, 0.0, 1e-9)]
        else:
            found.append(np.array([part.point]))
    return np.concatenate(found)


@over_shapes
@over_seeds
def test_normals_have_unit_length(name: str, seed: int) -> None:
    parts = Terrain.load(ALL_SHAPES[name]).parts
    p = np.random.default_rng(seed).uniform(-1.5, 1.5, (4000, 3))
    for points in (p, special_points(parts)):
        found = ground(parts, points, radius=0.01 * seed)
        assert np.isfinite(found).all()
        # products and a root, each rounded
        assert np.abs(np.linalg.norm(found[:, 1:4], axis=1) - 1.0).max() < 1e-14


@over_shapes
@over_seeds
def test_distance_does_not_jump(name: str, seed: int) -> None:
    """No distance changes faster than the point moves, near the surface and down to where feet get."""
    rng = np.random.default_rng([seed, 3])
    shapes = ALL_SHAPES[name]
    start = rng.uniform(-1.0, 1.0, (20_000, 3))
    start[:, 2] = Terrain.load(shapes).height(start[:, 0], start[:, 1])
    start = start[np.isfinite(start[:, 2])][:300]
    along = rng.normal(size=(300, 3))
    along *= 0.05 / np.linalg.norm(along, axis=1, keepdims=True)
    t = np.linspace(-1.0, 1.0, 1001)
    p = start[:, None] + t[:, None] * along[:, None]
    d = ground(shapes, p)[:, 0].reshape(300, 1001)
    near = np.abs(d) < 0.01
    near = near[:, 1:] & near[:, :-1]
    assert near.sum() > 10_000
    # the points are 1e-4 m apart; STEP, the way that is looked beyond faces, may show
    assert np.abs(np.diff(d, axis=1))[near].max() < 1e-4 + 2.0 * ground_kernels.STEP


@pytest.mark.parametrize(
    'name', [name for name in ALL_SHAPES if name not in {'box', 'boxes', 'mixed', 'bricks'}]
)
def test_inside_is_below_the_ground(name: str) -> None:
    """Where the ground has no overhangs, the sign of the distance says whether a point is below it."""
    rng = np.random.default_rng(0)
    p = rng.uniform(-1.0, 1.0, (4000, 3))
    height = Terrain.load(ALL_SHAPES[name]).height(p[:, 0], p[:, 1])
    bottom = -0.1 if name == 'staircase' else -np.inf
    inside = (p[:, 2] < height) & (p[:, 2] > bottom)
    found = ground(ALL_SHAPES[name], p)
    assert np.array_equal(found[:, 0] < 0.0, inside)
    assert 0 < inside.sum() < 4000


@pytest.mark.parametrize('name', ['plane', 'box', 'height_map'])
def test_mesh_is_the_surface(name: str) -> None:
    """Vertices are on the surface, and triangles face out of the ground."""
    whole = Terrain.load(ALL_SHAPES[name])
    x, faces = whole.mesh(plane_size=2.0)
    # sums of a few numbers below 2
    assert np.abs(whole.distance(x)[0]).max() < ROUNDING
    a, b, c = (x[faces[:, k]] for k in range(3))
    outward = np.cross(b - a, c - a)
    middle = (a + b + c) / 3.0 + 1e-3 * outward / np.linalg.norm(outward, axis=1, keepdims=True)
    _, normal = whole.distance(middle)
    assert np.all(np.sum(normal * outward, axis=1) > 0.0)


def test_mesh_of_several_shapes() -> None:
    x, faces = Terrain.load([Plane(), Stairs(0.1, 0.3, 3)]).mesh()
    assert x.shape == (4 + 3 * 8, 3)
    assert faces.shape == (2 + 3 * 12, 3)
    assert sorted(set(faces.ravel())) == list(range(len(x)))


@pytest.mark.parametrize('seed', [0], ids=['seed0'])
def test_distances_among_many_shapes(qd: Any, seed: int) -> None:
    """A step looks at the shapes near some points at a time, and finds what all shapes together give."""
    rng = np.random.default_rng(seed)
    shapes: list[Any] = [Plane()]
    for x in np.arange(-1.0, 1.0, 0.2):
        for y in np.arange(-1.0, 1.0, 0.2):
            high = float(rng.uniform(0.01, 0.3))
            middle = (float(x), float(y), 0.5 * high)
            shapes.append(Box((0.15, 0.15, high), position=middle, rpy=(0.0, 0.0, float(rng.random()))))
    sim = qd.Simulator(qd.load_model('go2'), terrain=Terrain(shapes))
    q = sim.standing()
    q[2] += 0.6
    sim.reset(q)
    touched = 0
    for _ in range(800):
        expected, _ = sim.distances(sim.q)
        sim.step()
        np.testing.assert_allclose(sim.contact_distances, expected, rtol=0.0, atol=1e-12)
        touched += int((expected < 1e-3).any())
    assert touched > 100
