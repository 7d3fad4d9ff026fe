# SPDX-License-Identifier: Apache-2.0
"""The shapes of a link as balls in its frame, read from its geometry or estimated from its inertia."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import Pose, pose_of
from quad_dynamics.model.contact_hull import balls_of, extreme_points
from quad_dynamics.model.inertia import full_inertia
from quad_dynamics.model.meshes import MeshError, find_mesh, read_vertices
from quad_dynamics.model.urdf import Geometry, Link, Shape, Urdf


@dataclass(frozen=True, eq=False)
class LinkShape:
    """One shape of a link.

    Attributes:
        kind: kind of geometry, as in `Geometry`.
        balls: (n, 4) balls whose hull is the shape, in the link's frame [m], n > 0.
        R: (3, 3) rotation of the shape's frame in the link's frame.
    """

    kind: str
    balls: Floats
    R: Floats


@dataclass(frozen=True)
class Unread:
    """An unreadable mesh: its file as written in the URDF, and the reason, as the end of a sentence."""

    file: str
    why: str


def read_shapes(shapes: Sequence[Shape], urdf_path: str) -> tuple[list[LinkShape], list[Unread]]:
    """Read the shapes of a link.

    Args:
        shapes: collisions or visuals of the link.
        urdf_path: path of the robot's file, for its meshes.

    Returns:
        The readable shapes, and the unreadable meshes.
    """
    found: list[LinkShape] = []
    unread: list[Unread] = []
    for shape in shapes:
        X = pose_of(shape.origin)
        try:
            balls = _balls(shape.geometry, urdf_path)
        except (MeshError, OSError) as error:
            unread.append(Unread(shape.geometry.filename, str(error)))
            continue
        if len(balls):
            found.append(LinkShape(shape.geometry.kind, moved(balls, X), X.R))
    return found, unread


def missing_meshes(urdf: Urdf) -> list[str]:
    """Collision meshes of a file that are not found: "calf (meshes/calf.stl)"; does not open any."""
    missing: list[str] = []
    for link in urdf.links:
        for shape in link.collisions:
            if shape.geometry.kind != 'mesh':
                continue
            try:
                find_mesh(shape.geometry.filename, urdf.path)
            except (MeshError, OSError):
                missing.append(f'{link.name} ({shape.geometry.filename})')
    return missing


def moved(balls: Floats, X: Pose) -> Floats:
    """Transform balls (n, 4) to another frame, in which the pose of their frame is X."""
    return np.column_stack([balls[:, :3] @ X.R.T + X.p, balls[:, 3]])


def inertia_box(link: Link) -> Floats:
    """Corners of the solid box with the mass and inertia of a link, in its frame; none without mass."""
    if link.inertial is None or not link.inertial.mass > 0.0:
        return np.zeros((0, 4))
    moments, axes = np.linalg.eigh(full_inertia(link.inertial.inertia))
    # I_x = m (b^2 + c^2) / 12 and so on
    squares = 6.0 / link.inertial.mass * (moments.sum() - 2.0 * moments)
    sides = np.sqrt(np.maximum(squares, 0.0))
    X = pose_of(link.inertial.origin)
    corners = balls_of(Geometry('box', (float(sides[0]), float(sides[1]), float(sides[2]))))
    return moved(corners, Pose(X.R @ axes, X.p))


def _balls(geometry: Geometry, urdf_path: str) -> Floats:
    """Balls of a geometry in its own frame.

    Raises:
        MeshError: a mesh cannot be found or read.
    """
    if geometry.kind != 'mesh':
        return balls_of(geometry)
    path = find_mesh(geometry.filename, urdf_path)
    status = path.stat()
    vertices = _extreme_vertices(path, status.st_mtime_ns, status.st_size)
    return np.asarray(vertices * np.array([*geometry.scale, 0.0]))


@functools.lru_cache(maxsize=1024)
def _extreme_vertices(path: Path, _changed: int, _size: int) -> Floats:
    """Hull vertices of a mesh file; cached, because robots use a file for several legs."""
    return extreme_points(read_vertices(path))
