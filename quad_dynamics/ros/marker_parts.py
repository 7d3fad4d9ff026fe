# SPDX-License-Identifier: Apache-2.0
"""Parts of visualization_msgs/MarkerArray that several nodes publish."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Point, Vector3
from visualization_msgs.msg import Marker

from quad_dynamics.array_types import Floats


def make_marker(space: str, number: int, kind: int, colour: Any, scale: tuple[float, float, float]) -> Any:
    """A marker without points, at the origin of its frame.

    Args:
        space: its namespace.
        number: in the namespace.
        kind: of Marker.
        colour: a ColorRGBA.
        scale: as its kind wants it [m].
    """
    marker = Marker(ns=space, id=number, type=kind, action=Marker.ADD, color=colour)
    marker.scale = Vector3(x=scale[0], y=scale[1], z=scale[2])
    marker.pose.orientation.w = 1.0
    return marker


def removed(marker: Any) -> Any:
    """The marker, now one that removes what it showed."""
    marker.action = Marker.DELETE
    marker.points = []
    return marker


def points(p: Floats) -> list[Any]:
    """Points (n, 3) as messages [m]."""
    return [Point(x=x, y=y, z=z) for x, y, z in p.tolist()]
