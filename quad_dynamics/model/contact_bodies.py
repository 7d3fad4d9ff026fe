# SPDX-License-Identifier: Apache-2.0
"""The collision geometry of each body of a robot, as balls in the body's frame."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.bodies import Pose
from quad_dynamics.model.contact_hull import medial_centres, principal_axes
from quad_dynamics.model.link_shapes import LinkShape, inertia_box, moved, read_shapes
from quad_dynamics.model.model import Model
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.urdf import Link

_ANGLES = 9  # joint positions at which it is checked whether the parent encloses a point
_UNREAD = (
    'collision meshes that cannot be read were replaced, so contacts there are approximate; provide the '
    'meshes, or contact_points in the robot description: '
)


@dataclass(frozen=True, eq=False)
class Piece:
    """One collision shape of a body.

    Attributes:
        link: name of its link.
        kind: kind of geometry, as in `Geometry`.
        balls: (n, 4) balls whose hull is the shape, in the body's frame [m].
        centres: (m, 3) possible centres of balls inside it, in the body's frame [m].
    """

    link: str
    kind: str
    balls: Floats
    centres: Floats


def pieces_of_bodies(model: Model, with_root: bool = False) -> list[list[Piece]]:
    """Collision shapes of each moving body, in the order of `model.body_names`.

    An unreadable mesh is replaced by the link's visual shapes. If these cannot be read either, the
    body of a leg uses its joints, and any other link a box with its mass and inertia. A warning reports this.

    Args:
        model: the robot.
        with_root: append the shapes of the immobile root of a fixed-base model (none with a floating base).
    """
    pieces: list[list[Piece]] = [[] for _ in range(model.nb + with_root)]
    unread: list[str] = []
    for link in model.urdf.links:
        body = model.frames[link.name].body
        if body < 0 and not with_root:
            continue
        shapes, reasons = read_shapes(link.collisions, model.urdf.path)
        pieces[body] += [_piece(model, link, shape) for shape in shapes]
        if reasons:
            found, what = _stand_ins(model, link)
            pieces[body] += found
            unread += [f"'{reason.file}' of link '{link.name}' {reason.why} ({what})" for reason in reasons]
    if unread:
        warnings.warn(_UNREAD + '; '.join(unread), ModelWarning, stacklevel=4)
    return pieces


def _piece(model: Model, link: Link, shape: LinkShape) -> Piece:
    frame = model.frames[link.name]
    balls = moved(shape.balls, Pose(frame.R, frame.p))
    axes = principal_axes(balls) if shape.kind == 'mesh' else frame.R @ shape.R
    return Piece(link.name, shape.kind, balls, medial_centres(balls, axes))


def _stand_ins(model: Model, link: Link) -> tuple[list[Piece], str]:
    """The replacement for unreadable collision meshes of a link, and its description."""
    shapes, _ = read_shapes(link.visuals, model.urdf.path)
    if shapes:
        return [_piece(model, link, shape) for shape in shapes], 'its visual shapes are used'
    frame = model.frames[link.name]
    offset = int(model.floating_base)
    if frame.body - offset in {joint for leg in model.legs for joint in leg.joint_indices}:
        if link.name != model.body_names[frame.body]:
            return [], 'nothing is used instead'
        # A box might extend beyond the foot; the line from joint to joint never does.
        ends = [model.joint_p[j] for j in range(model.nj) if model.parents[j] == frame.body - offset]
        ends += [model.frames[foot].p for foot in model.foot_names if model.frames[foot].body == frame.body]
        balls = np.array([[0.0, 0.0, 0.0, 0.0], *([*p, 0.0] for p in ends)])
        return [Piece(link.name, 'joints', balls, np.zeros((0, 3)))], 'points at its joints are used'
    corners = inertia_box(link)
    if len(corners) == 0:
        return [], 'nothing is used instead'
    box = _piece(model, link, LinkShape('mesh', corners, np.eye(3)))
    return [box], 'a box with its inertia is used'


def enclosed_in_parent(model: Model, body: int, balls: Floats, hull: Floats, directions: Floats) -> Floats:
    """Maximum distance by which each ball of a body extends beyond the hull of its parent body [m], (n,).

    Args:
        model: the robot.
        body: index of the body.
        balls: (n, 4) in the body's frame.
        hull: values of the parent's support function.
        directions: directions of these values.
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
        at = moved(balls, Pose(model.joint_R[joint], model.joint_p[joint]) @ Pose(R, p))
        out = np.maximum(out, (at[:, :3] @ directions.T + at[:, 3:] - hull).max(axis=1))
    return out
