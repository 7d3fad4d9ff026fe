# SPDX-License-Identifier: Apache-2.0
"""The convex hull of points in a plane."""

from __future__ import annotations

from collections.abc import Sequence

Vec2 = tuple[float, float]

_FLAT = 1e-9  # area, relative to the squared largest distance, below which points are collinear


def convex_hull(points: Sequence[Vec2]) -> list[Vec2]:
    """Corners counter-clockwise (Andrew's monotone chain); two for collinear points, one for one point."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    span = max(ordered[-1][0] - ordered[0][0], max(p[1] for p in ordered) - min(p[1] for p in ordered))
    least = _FLAT * span * span
    lower, upper = _chain(ordered, least), _chain(ordered[::-1], least)
    return lower[:-1] + upper[:-1]


def _chain(points: Sequence[Vec2], least: float) -> list[Vec2]:
    """One side of the hull, from the first to the last point."""
    chain: list[Vec2] = []
    for p in points:
        while len(chain) > 1 and _area(chain[-2], chain[-1], p) <= least:
            chain.pop()
        chain.append(p)
    return chain


def _area(a: Vec2, b: Vec2, c: Vec2) -> float:
    """Twice the area of a triangle, positive if it is counter-clockwise [m^2]."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
