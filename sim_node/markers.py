# SPDX-License-Identifier: Apache-2.0
"""Contact markers for RViz and the viewer: points, forces, cones, support polygon, centre of mass."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from quad_dynamics.api.centroidal import center_of_mass
from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.ros.marker_parts import make_marker, points, removed
from quad_dynamics.ros.qos import COMMAND, LATCHED
from sim_node.terrain_look import look_of
from sim_node.world import World

_TOUCHING = 1e-3  # distance at which a point counts as touching [m]
_LEAST_FORCE = 0.1  # that gets an arrow [N]
_CONE_SIDES = 16
_MOST_PUSHES = 16  # that are shown at once
_PUSH_SEEN = 0.5  # for which the arrow of a push is seen at least [s]
_ORANGE = ColorRGBA(r=0.95, g=0.45, b=0.10, a=1.0)
_RED = ColorRGBA(r=0.85, g=0.15, b=0.15, a=1.0)
_BLUE = ColorRGBA(r=0.15, g=0.40, b=0.85, a=1.0)
_GREEN = ColorRGBA(r=0.20, g=0.65, b=0.30, a=1.0)
_PALE_BLUE = ColorRGBA(r=0.15, g=0.40, b=0.85, a=0.25)
_GRID = ColorRGBA(r=0.50, g=0.53, b=0.55, a=1.0)
_VIOLET = ColorRGBA(r=0.60, g=0.15, b=0.75, a=1.0)
_EDGE = ColorRGBA(r=0.36, g=0.25, b=0.13, a=1.0)


@dataclass(frozen=True)
class _Push:
    """A force (3,) on a link [N], and the time span in which it is shown [ns]."""

    link: str
    force: Floats
    start_ns: int
    end_ns: int

    def is_seen(self, now_ns: int) -> bool:
        """Whether it is shown at a time [ns]; time may be reset."""
        return self.start_ns <= now_ns <= self.end_ns


class Markers:
    """The topics `markers` and `terrain`."""

    def __init__(self, node: Node, world: World) -> None:
        """Make the publishers, and publish the terrain."""
        self._world = world
        self._frame = world.settings.odom_frame
        self._publisher = node.create_publisher(MarkerArray, 'markers', COMMAND)
        self._terrain = node.create_publisher(MarkerArray, 'terrain', LATCHED)
        self._arrows: set[int] = set()  # ever shown: deletions are repeated, so that none is missed
        self._pushes: list[_Push] = []  # including those that are over, until others take their places
        height = max(float(world.sim.standing()[2]), 0.05) if world.model.floating_base else 0.3
        self._size = 0.05 * height
        weight = world.model.total_mass * float(np.linalg.norm(world.model.gravity)) or 1.0
        self._scale = world.settings.force_scale or 1.5 * height / weight
        self.publish_terrain()

    def publish_terrain(self) -> None:
        """Publish the terrain, replacing the previous one; it is latched for late subscribers."""
        look = look_of(self._world.sim.terrain)
        markers = [Marker(action=Marker.DELETEALL)]
        for i, ((r, g, b), triangles) in enumerate(look.triangles.items()):
            color = ColorRGBA(r=r, g=g, b=b, a=1.0)
            marker = make_marker('terrain', i, Marker.TRIANGLE_LIST, color, (1.0, 1.0, 1.0))
            marker.points = points(triangles.reshape(-1, 3))
            markers.append(marker)
        for i, (color, width, lines) in enumerate([(_GRID, 0.003, look.grid), (_EDGE, 0.006, look.edges)]):
            marker = make_marker('terrain_lines', i, Marker.LINE_LIST, color, (width, 0.0, 0.0))
            marker.points = points(lines.reshape(-1, 3))
            markers += [marker] if len(lines) else []
        for marker in markers:
            marker.header.frame_id = self._frame
        self._terrain.publish(MarkerArray(markers=markers))

    def note_push(self, link: str, force: Floats) -> None:
        """Show an arrow for a push while it acts, and long enough to be seen.

        Args:
            link: that is pushed; '' for the base.
            force: (3,) in world axes [N].
        """
        now = self._world.now_ns
        end = now + round(1e9 * max(self._world.settings.push_duration, _PUSH_SEEN))
        push = _Push(link or self._world.model.base_name, force, now, end)
        over = [i for i, other in enumerate(self._pushes) if not other.is_seen(now)]
        if over:
            self._pushes[over[0]] = push
        elif len(self._pushes) < _MOST_PUSHES:
            self._pushes.append(push)

    def publish(self) -> None:
        """Publish the current markers if there are subscribers."""
        if self._publisher.get_subscription_count() == 0:
            return
        sim = self._world.sim
        q = sim.q
        p, forces, normals = self._places(q), sim.contact_forces, sim.contact_normals
        touching = np.flatnonzero((sim.contact_distances < _TOUCHING) & np.any(normals, axis=1))
        loaded = [int(i) for i in touching if np.linalg.norm(forces[i]) > _LEAST_FORCE]
        markers = [
            self._spheres(p[touching]),
            self._cones(p[loaded], normals[loaded]),
            self._polygon(p[loaded]),
        ]
        markers += self._forces(p, forces, loaded) + self._centre(q) + self._push_arrows(q)
        stamp = divmod(self._world.now_ns, 10**9)
        for marker in markers:
            marker.header.frame_id = self._frame
            marker.header.stamp.sec, marker.header.stamp.nanosec = stamp
        self._publisher.publish(MarkerArray(markers=markers))

    def _places(self, q: Floats) -> Floats:
        """(points, 3) where the contact points touch: the lowest points of their spheres."""
        places = []
        for point, normal in zip(
            self._world.sim.contact_points, self._world.sim.contact_normals, strict=True
        ):
            R_WF, p_WF = frame_pose(self._world.model, q, point.link)
            places.append(p_WF + R_WF @ np.array(point.position) - point.radius * normal)
        return np.array(places).reshape(-1, 3)

    def _spheres(self, p: Floats) -> Any:
        size = self._size
        marker = make_marker('contact_points', 0, Marker.SPHERE_LIST, _ORANGE, (size, size, size))
        marker.points = points(p)
        return marker if len(p) else removed(marker)

    def _forces(self, p: Floats, forces: Floats, loaded: Sequence[int]) -> list[Any]:
        size = self._size
        markers = []
        self._arrows.update(loaded)
        for i in sorted(self._arrows):
            marker = make_marker('forces', i, Marker.ARROW, _RED, (0.5 * size, 1.2 * size, 1.5 * size))
            if i in loaded:  # others may belong to a contact model that is no longer in use
                marker.points = points(np.array([p[i], p[i] + self._scale * forces[i]]))
            markers.append(marker if i in loaded else removed(marker))
        return markers

    def _push_arrows(self, q: Floats) -> list[Any]:
        """Arrows that start at the pushed link and are long enough to leave the body of the robot."""
        size, now = self._size, self._world.now_ns
        markers = []
        for i, push in enumerate(self._pushes):
            marker = make_marker('push', i, Marker.ARROW, _VIOLET, (0.8 * size, 2.0 * size, 3.0 * size))
            strength = float(np.linalg.norm(push.force))
            if not push.is_seen(now) or strength == 0.0:
                markers.append(removed(marker))
                continue
            _, p_WL = frame_pose(self._world.model, q, push.link)
            length = 24.0 * size + 0.5 * self._scale * strength
            marker.points = points(np.array([p_WL, p_WL + push.force * (length / strength)]))
            markers.append(marker)
        return markers

    def _cones(self, p: Floats, normals: Floats) -> Any:
        """Friction cones: their sides as triangles, all in one marker."""
        marker = make_marker('cones', 0, Marker.TRIANGLE_LIST, _PALE_BLUE, (1.0, 1.0, 1.0))
        height, mu = 4.0 * self._size, min(self._world.settings.mu, 3.0)
        angles = np.linspace(0.0, 2.0 * math.pi, _CONE_SIDES + 1)
        triangles = []
        for tip, n in zip(p, normals, strict=True):
            t = np.cross(n, [0.0, 1.0, 0.0] if abs(n[1]) < 0.9 else [1.0, 0.0, 0.0])
            t /= np.linalg.norm(t)
            around = np.outer(np.cos(angles), t) + np.outer(np.sin(angles), np.cross(n, t))
            rim = tip + height * (n + mu * around)
            for a, b in itertools.pairwise(rim):
                triangles += [tip, a, b]
        marker.points = points(np.array(triangles).reshape(-1, 3))
        return marker if triangles else removed(marker)

    def _polygon(self, p: Floats) -> Any:
        """The support polygon: the convex hull of the loaded points, seen from above."""
        marker = make_marker('support_polygon', 0, Marker.LINE_STRIP, _GREEN, (0.3 * self._size, 0.0, 0.0))
        if len(p) < 2:
            return removed(marker)
        corners = p[_hull(p[:, :2])]
        marker.points = points(np.vstack([corners, corners[:1]]))
        return marker

    def _centre(self, q: Floats) -> list[Any]:
        """The centre of mass and its projection onto the ground."""
        c, size = np.asarray(center_of_mass(self._world.model, q)), self._size
        below = np.array([c[0], c[1], float(self._world.sim.terrain.height(c[0], c[1]))])
        markers = []
        for i, (p, flat) in enumerate([(c, 1.0), (below, 0.1)]):
            marker = make_marker('com', i, Marker.SPHERE, _BLUE, (1.2 * size, 1.2 * size, 1.2 * size * flat))
            if np.isfinite(p).all():
                marker.pose.position = Point(x=float(p[0]), y=float(p[1]), z=float(p[2]))
                markers.append(marker)
        return markers


def _hull(p: Floats) -> list[int]:
    """Indices of the convex hull of points (n, 2), anticlockwise (monotone chain)."""
    order = sorted(range(len(p)), key=lambda i: (p[i, 0], p[i, 1]))

    def half(indices: Sequence[int]) -> list[int]:
        chain: list[int] = []
        for i in indices:
            while len(chain) > 1:
                a, b = p[chain[-1]] - p[chain[-2]], p[i] - p[chain[-2]]
                if a[0] * b[1] - a[1] * b[0] > 0.0:
                    break
                chain.pop()
            chain.append(i)
        return chain[:-1]

    return half(order) + half(order[::-1])
