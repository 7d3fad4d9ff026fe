# SPDX-License-Identifier: Apache-2.0
"""The collision geometry of each body of a robot, as balls in the body's frame."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.bodies import Pose, pose_of
from quad_dynamics.model.contact_hull import balls_of, extreme_points, medial_centres, principal_axes
from quad_dynamics.model.inertia import Floats, full_inertia
from quad_dynamics.model.meshes import MeshError, find_mesh, read_vertices
from quad_dynamics.model.model import Model
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.urdf import Geometry, Link, Shape

_ANGLES = 9  # joint positions at which it is checked whether a parent encloses a point


@dataclass(frozen=True, eq=False)
class Piece:
    """One collision shape of a body.

    Attributes:
        link: name of its link.
        kind: of geometry, as in `Geometry`.
        balls: (n, 4) whose hull it is, in the body's frame [m].
        centres: (m, 3) where balls inside it may be centred, likewise.
    """

    link: str
    kind: str
    balls: Floats
    centres: Floats


def pieces_of_bodies(model: Model, with_root: bool = False) -> list[list[Piece]]:
    """Collision shapes of each moving body, in the order of `model.body_names`.

    A mesh that cannot be read is replaced by the box with the link's mass and inertia; a warning says so.

    Args:
        model: the robot.
        with_root: append those of the immobile root of a fixed-base model (none with a floating base).
    """
    pieces: list[list[Piece]] = [[] for _ in range(model.nb + with_root)]
    unread: list[str] = []
    for link in model.urdf.links:
        frame = model.frames[link.name]
        if frame.body < 0 and not with_root:
            continue
        for shape in link.collisions:
            balls = _moved(_shape_balls(model, link, shape, unread), Pose(frame.R, frame.p))
            if len(balls) == 0:
                continue
            kind = shape.geometry.kind
            axes = principal_axes(balls) if kind == 'mesh' else frame.R @ pose_of(shape.origin).R
            pieces[frame.body].append(Piece(link.name, kind, balls, medial_centres(balls, axes)))
    if unread:
        warnings.warn(
            'collision meshes that cannot be read were replaced by boxes with the inertia of their links, so '
            'contacts there are rough; give the meshes, or contact_points in the robot description: '
            + '; '.join(unread),
            ModelWarning,
            stacklevel=4,
        )
    return pieces


def enclosed_in_parent(model: Model, body: int, balls: Floats, hull: Floats, directions: Floats) -> Floats:
    """How far each ball of a body reaches out of the hull of its parent body at most [m], (n,).

    Args:
        model: the robot.
        body: index of the body.
        balls: (n, 4) in the body's frame.
        hull: support function of the parent.
        directions: where it was taken.
    """
    joint = body - 1 if model.floating_base else body
    low, high = float(model.q_min[joint]), float(model.q_max[joint])
    prismatic = bool(model.is_prismatic[joint])
    if not prismatic and not high - low < 2.0 * np.pi:
        low, high = -np.pi, np.pi
    if not np.isfinite(high - low):
        return np.full(len(balls), np.inf)
    out = np.full(len(balls), -np.inf)
    axis = model.joint_axis[joint]
    for position in np.linspace(low, high, _ANGLES):
        R = np.eye(3) if prismatic else rotation_about(axis, float(position))
        p = position * axis if prismatic else np.zeros(3)
        at = _moved(balls, Pose(model.joint_R[joint], model.joint_p[joint]) @ Pose(R, p))
        out = np.maximum(out, (at[:, :3] @ directions.T + at[:, 3:] - hull).max(axis=1))
    return out


def _moved(balls: Floats, X: Pose) -> Floats:
    return np.column_stack([balls[:, :3] @ X.R.T + X.p, balls[:, 3]])


def _shape_balls(model: Model, link: Link, shape: Shape, unread: list[str]) -> Floats:
    """Balls of a shape in the link's frame."""
    geometry = shape.geometry
    if geometry.kind != 'mesh':
        return _moved(balls_of(geometry), pose_of(shape.origin))
    try:
        path = find_mesh(geometry.filename, model.urdf.path)
        status = path.stat()
        vertices = _extreme_vertices(path, status.st_mtime_ns, status.st_size)
    except (MeshError, OSError) as error:
        unread.append(f"'{geometry.filename}' of link '{link.name}' {error}")
        return _inertia_box(link)
    return _moved(vertices * np.array([*geometry.scale, 0.0]), pose_of(shape.origin))


@functools.lru_cache(maxsize=256)
def _extreme_vertices(path: Path, _changed: int, _size: int) -> Floats:
    """Hull vertices of a mesh file; robots use a file for several legs."""
    return extreme_points(read_vertices(path))


def _inertia_box(link: Link) -> Floats:
    """Corners of the solid box with the mass and inertia of a link, in its frame; none without a mass."""
    if link.inertial is None or not link.inertial.mass > 0.0:
        return np.zeros((0, 4))
    moments, axes = np.linalg.eigh(full_inertia(link.inertial.inertia))
    # I_x = m (b^2 + c^2) / 12 and so on
    squares = 6.0 / link.inertial.mass * (moments.sum() - 2.0 * moments)
    sides = np.sqrt(np.maximum(squares, 0.0))
    X = pose_of(link.inertial.origin)
    corners = balls_of(Geometry('box', (float(sides[0]), float(sides[1]), float(sides[2]))))
    return _moved(corners, Pose(X.R @ axes, X.p))
