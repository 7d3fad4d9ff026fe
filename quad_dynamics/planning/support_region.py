# SPDX-License-Identifier: Apache-2.0
"""The region of the zero-moment point for given feet: convex, as half-planes d z + r >= 0 of the ground.

Three or more feet give their convex hull, shrunk by a margin. Two feet give a line, which is widened to a
strip: a line has no interior, and contradicting equalities would leave no solution. One foot gives a square
around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.convex_hull import convex_hull

Vec2 = tuple[float, float]
Edge = tuple[float, float, float]

_MOST_SHRUNK = 0.5  # largest margin, relative to the inner radius or half the length of a region


def support_edges(feet: Sequence[Vec2], margin: float, width: float) -> tuple[Floats, Floats]:
    """Half-planes d z + r >= 0, with d of length 1: (edges, 2) d, (edges,) r; none without feet.

    Args:
        feet: (x, y) of the feet, in any order [m].
        margin: by which polygons, and lines at their ends, are shrunk; less if they are small [m].
        width: half the width of the strip around a line, and of the square around a point [m].
    """
    hull = convex_hull(feet)
    if len(hull) > 2:
        edges = _polygon(hull, margin, width)
    elif len(hull) == 2:
        edges = _strip(hull[0], hull[1], margin, width)
    else:
        edges = [edge for x, y in hull for edge in _box((x, y), (1.0, 0.0), width, width)]
    table = np.array(edges).reshape(-1, 3)
    return table[:, :2], table[:, 2]


def _polygon(hull: list[Vec2], margin: float, width: float) -> list[Edge]:
    """Edges of a polygon with three or more corners."""
    edges = []
    for (x0, y0), (x1, y1) in zip(hull, hull[1:] + hull[:1], strict=True):
        length = math.hypot(x1 - x0, y1 - y0)
        dx, dy = (y0 - y1) / length, (x1 - x0) / length
        edges.append((dx, dy, -dx * x0 - dy * y0))
    x, y = sum(p[0] for p in hull) / len(hull), sum(p[1] for p in hull) / len(hull)
    inside = min(dx * x + dy * y + r for dx, dy, r in edges)
    # a polygon narrower than a strip is widened to a strip
    shrunk = min(margin, max(_MOST_SHRUNK * inside, inside - width)) if inside > width else inside - width
    return [(dx, dy, r - shrunk) for dx, dy, r in edges]


def _strip(a: Vec2, b: Vec2, margin: float, width: float) -> list[Edge]:
    """The strip around a line."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    half = max(0.5 * length - min(margin, 0.5 * _MOST_SHRUNK * length), width)
    axis = ((b[0] - a[0]) / length, (b[1] - a[1]) / length) if length > 0.0 else (1.0, 0.0)
    return _box((0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])), axis, half, width)


def _box(centre: Vec2, axis: Vec2, half_length: float, half_width: float) -> list[Edge]:
    """A rectangle: two sides along an axis of length 1, and two ends."""
    (x, y), (ax, ay) = centre, axis
    along, aside = ax * x + ay * y, ax * y - ay * x
    return [
        (-ay, ax, half_width - aside),
        (ay, -ax, half_width + aside),
        (ax, ay, half_length - along),
        (-ax, -ay, half_length + along),
    ]
