# SPDX-License-Identifier: Apache-2.0
"""Convex bodies as sets of balls, and their approximation by few balls.

A ball is a row (x, y, z, radius); radius 0 is a point. A set of balls represents its convex hull, described
by the support function h(d) = max(c . d + r) over the balls: how far the hull extends in the direction d.
"""

from __future__ import annotations

import itertools

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.urdf import Geometry

_RIM = 24  # points on each rim of a cylinder: the error between them is 0.9 % of the radius
_POWERS = (2, 1)  # exponents of the deficit when the next ball is chosen: neither is always better
_STEPS = 9  # centres tried on each half axis of a shape
_CHUNK = 10_000  # vertices processed at once


def _even_directions(n: int) -> Floats:
    """About n unit vectors, spread evenly and mirrored in all three axes, the axes first.

    Mirrored robots thus get mirrored points. One octant is from the Fibonacci sphere.
    """
    z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    angle = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(n)
    s = np.sqrt(1.0 - z * z)
    sphere = np.stack([s * np.cos(angle), s * np.sin(angle), z], axis=1)
    octant = sphere[(sphere > 0.0).all(axis=1)]
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=3)))
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    return np.concatenate([axes, (octant[:, None] * signs).reshape(-1, 3)])


DIRECTIONS = _even_directions(600)


def support(balls: Floats, directions: Floats = DIRECTIONS) -> Floats:
    """Support function of a set of balls in each direction; -inf without balls."""
    if len(balls) == 0:
        return np.full(len(directions), -np.inf)
    return np.asarray((balls[:, :3] @ directions.T + balls[:, 3:]).max(axis=0))


def balls_of(geometry: Geometry) -> Floats:
    """Balls (n, 4) whose hull is a box, sphere, capsule or (to 0.9 % of the radius) cylinder."""
    if geometry.kind == 'sphere':
        return np.array([[0.0, 0.0, 0.0, geometry.size[0]]])
    if geometry.kind == 'box':
        half = 0.5 * np.array(geometry.size)
        corners = [[*(half * signs), 0.0] for signs in itertools.product((1.0, -1.0), repeat=3)]
        return np.array(corners)
    radius, length = geometry.size
    if geometry.kind == 'capsule':  # length is that of the cylinder between the hemispheres
        return np.array([[0.0, 0.0, 0.5 * length, radius], [0.0, 0.0, -0.5 * length, radius]])
    angles = 2.0 * np.pi * np.arange(_RIM) / _RIM
    rim = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1)
    ends = [np.column_stack([rim, np.full(_RIM, z), np.zeros(_RIM)]) for z in (0.5 * length, -0.5 * length)]
    return np.concatenate(ends)


def extreme_points(points: Floats) -> Floats:
    """The points of (n, 3) that are farthest in one of the directions, as balls of radius 0.

    They are vertices of the convex hull. Unlike with Qhull, flat and straight sets need no special treatment.
    """
    best = np.full(len(DIRECTIONS), -np.inf)
    index = np.zeros(len(DIRECTIONS), dtype=np.int64)
    for start in range(0, len(points), _CHUNK):
        reach = points[start : start + _CHUNK] @ DIRECTIONS.T
        rows = reach.argmax(axis=0)
        value = reach[rows, np.arange(len(DIRECTIONS))]
        better = value > best
        best[better], index[better] = value[better], start + rows[better]
    chosen = points[np.unique(index)]
    return np.column_stack([chosen, np.zeros(len(chosen))])


def principal_axes(balls: Floats) -> Floats:
    """(3, 3) principal axes of a set of balls, as columns; the longest is last."""
    offsets = balls[:, :3] - balls[:, :3].mean(axis=0)
    return np.asarray(np.linalg.eigh(offsets.T @ offsets)[1])


def medial_centres(balls: Floats, axes: Floats) -> Floats:
    """Points (n, 3) on three axes through the middle of a hull, where the centres of inner balls may be.

    Args:
        balls: (n, 4).
        axes: (3, 3), as columns.
    """
    high, low = support(balls, axes.T), -support(balls, -axes.T)
    middle = axes @ (0.5 * (high + low))
    steps = np.arange(-_STEPS, _STEPS + 1) / (_STEPS + 1)
    return np.concatenate([middle + np.outer(steps * 0.5 * (high[k] - low[k]), axes[:, k]) for k in range(3)])


def inner_balls(hull: Floats, centres: Floats) -> Floats:
    """The largest balls about the centres inside the hull of other balls, without those inside others.

    Args:
        hull: (n, 4).
        centres: (m, 3).
    """
    normals = _face_normals(hull)
    radii = (support(hull, normals) - centres @ normals.T).min(axis=1, initial=np.inf)
    balls = np.column_stack([centres, radii])[(radii > 0.0) & np.isfinite(radii)]
    kept: list[int] = []
    for i in np.argsort(-np.round(balls[:, 3], 9), kind='stable'):  # a ball can only be inside a larger one
        apart = np.linalg.norm(balls[kept, :3] - balls[i, :3], axis=1)
        if not (apart + balls[i, 3] <= balls[kept, 3] + 1e-9).any():
            kept.append(int(i))
    return np.asarray(balls[kept])


def _face_normals(balls: Floats) -> Floats:
    """Unit normals (n, 3) of the faces of a hull; () for a flat one, which has no interior.

    `DIRECTIONS` are not sufficient: a face between two of them cuts far more off a ball than off the hull.
    """
    from scipy.spatial import ConvexHull, QhullError  # imported only when needed

    round_ = balls[balls[:, 3] > 0.0]
    spheres = round_[:, None, :3] + round_[:, None, 3:] * DIRECTIONS
    points = np.concatenate([balls[balls[:, 3] == 0.0, :3], spheres.reshape(-1, 3)])
    try:
        return np.asarray(ConvexHull(points).equations[:, :3])
    except (QhullError, ValueError):
        return np.zeros((0, 3))


def reduce_balls(wanted: Floats, inner: Floats, given: Floats, tolerance: float, most: int) -> Floats | None:
    """Few balls whose hull, together with given balls, matches that of the wanted ones within a tolerance.

    Two methods are tried. Subsets of the wanted balls never extend too far, and fall short by at most the
    tolerance. Balls from inside the body, all enlarged by half of their deficit, deviate by at most the
    tolerance in both directions; they are used if they save a quarter of the balls.

    Args:
        wanted: (n, 4) balls.
        inner: (m, 4) balls inside the body.
        given: (k, 4) balls that exist already.
        tolerance: [m].
        most: number of balls that may be added.

    Returns:
        The added balls; None if `most` are not enough.
    """
    h, reached = support(wanted), support(given)
    corners = _fewest_corners(wanted, h, reached, tolerance, most)
    best, limit = corners, most if corners is None else 3 * len(corners) // 4
    for power in _POWERS:
        mixed = _fewest_mixed(np.concatenate([inner, wanted]), h, reached, tolerance, limit, power)
        if mixed is not None:
            best, limit = mixed, len(mixed) - 1
    return best


def _fewest_corners(wanted: Floats, h: Floats, reached: Floats, tolerance: float, most: int) -> Floats | None:
    """Repeatedly add the wanted ball that is farthest in the direction of the largest deficit."""
    chosen: list[int] = []
    reaches = wanted[:, :3] @ DIRECTIONS.T + wanted[:, 3:]
    now = reached
    while (h - now).max() > tolerance:
        if len(chosen) == most:
            return None
        # Rounding makes the choice between mirrored directions the same on every machine.
        worst = int(np.round(np.minimum(h - now, 1e9), 9).argmax())
        chosen.append(int(np.round(reaches[:, worst], 9).argmax()))
        now = np.maximum(now, reaches[chosen[-1]])
    chosen = _without_superfluous(chosen, reaches, reached, h - tolerance)
    return wanted[chosen]


def _fewest_mixed(
    balls: Floats, h: Floats, reached: Floats, tolerance: float, most: int, power: int
) -> Floats | None:
    """Greedily add the ball that minimises the deficit, down to twice the tolerance; then enlarge all.

    The deficit is summed over the directions, to the given power.
    """
    if most < 1:
        return None
    reaches = balls[:, :3] @ DIRECTIONS.T + balls[:, 3:]
    enough = h - 2.0 * tolerance
    chosen: list[int] = []
    now = np.maximum(reached, h.min() - np.ptp(h) - 3.0 * tolerance)  # finite, and below the target
    while (enough - now).max() > 0.0:
        if len(chosen) == most:
            return None
        open_ = enough > now  # directions already reached stay so
        lacking = np.minimum(enough[open_] - now[open_], np.maximum(enough[open_] - reaches[:, open_], 0.0))
        lacking = (lacking / tolerance) ** power
        chosen.append(int(np.round(lacking.sum(axis=1), 9).argmin()))
        now = np.maximum(now, reaches[chosen[-1]])
    chosen = _without_superfluous(chosen, reaches, reached, enough)
    result = balls[chosen]
    lack = float((h - np.maximum(reached, support(result))).max())
    result[:, 3] += 0.5 * max(lack, 0.0)
    return result if (h - np.maximum(reached, support(result))).max() <= tolerance else None


def _without_superfluous(chosen: list[int], reaches: Floats, reached: Floats, enough: Floats) -> list[int]:
    """The balls that are still needed: early ones may have become redundant."""
    for i in list(chosen):
        rest = [k for k in chosen if k != i]
        if rest and (np.maximum(reached, reaches[rest].max(axis=0)) >= enough).all():
            chosen = rest
    return chosen
