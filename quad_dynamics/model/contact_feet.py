# SPDX-License-Identifier: Apache-2.0
"""Contact points of the feet, which carry the robot and are chosen more carefully than the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import Pose
from quad_dynamics.model.contact_bodies import Piece
from quad_dynamics.model.contact_hull import DIRECTIONS, inner_balls, reduce_balls, support
from quad_dynamics.model.foot_ends import find_end, wheel_ball
from quad_dynamics.model.model import Model

MOST_FOOT_POINTS = 8
_NEAR = 0.01  # a sphere belongs to a foot if the foot's origin is at most this far from its surface [m]
# Relative to the length of the last body: distance of the foot's origin from its end; thickness of the sole.
_SOLE = 0.1
_ROUND = 0.15  # a foot is a ball if its lower side deviates from one by less than this fraction of the radius
_LOWER_SIDE = 0.7  # cosine of the angle to the leg up to which the lower side extends
_FINEST, _COARSER = 0.02, 1.25  # relative to the foot's size, as for the other bodies
# A ball is part of a foot if it extends beyond the foot by this fraction of the leg's last body, in a
# direction whose angle to that body has at least this cosine.
_FARTHER, _STANDING = 0.005, 0.5
# A foot's origin that is closer to the joint than this fraction of its shapes' reach is that of the joint.
_AT_THE_JOINT = 0.25


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot.

    Attributes:
        link: the foot link.
        body: index of its body.
        balls: (n, 4) in the body's frame [m], n > 0.
    """

    link: str
    body: int
    balls: Floats


def foot_balls(model: Model, foot: str, pieces: list[list[Piece]]) -> Foot:
    """Contact balls of a foot.

    The first that applies: the end of the leg, for a foot that was found there, or a ball with the radius of
    a wheel; the collision spheres of the foot link; its other shapes, as one ball if their lower side is
    round, otherwise as at most eight points; a sphere of the same body at the foot's origin, or the end of
    the body if that is near; the origin itself.

    Args:
        model: the robot.
        foot: name of the foot link.
        pieces: collision shapes of each body.
    """
    frame = model.frames[foot]
    if frame.body < 0:
        return Foot(foot, frame.body, np.array([[*frame.p, 0.0]]))
    body = pieces[frame.body]
    own = [piece for piece in body if piece.link == foot and piece.kind != 'joints']
    special = _end_or_wheel(model, foot, own)
    if special is not None:
        return Foot(foot, frame.body, special)
    spheres = [piece.balls for piece in own if piece.kind == 'sphere']
    near = [piece.balls for piece in body if piece.kind == 'sphere' and _is_near(piece.balls[0], frame.p)]
    if spheres or (near and not own):
        return Foot(foot, frame.body, np.concatenate(spheres or near)[:MOST_FOOT_POINTS])
    cloud = np.concatenate([np.zeros((0, 4)), *(piece.balls for piece in own or body)])
    down = _leg_direction(model, foot, cloud)
    if not own:
        cloud = _end_of_body(cloud, frame.p, down)
    if len(cloud) == 0:
        return Foot(foot, frame.body, np.array([[*frame.p, 0.0]]))
    centres = np.concatenate([frame.p[None], *(piece.centres for piece in own)])
    ball = _round_foot(cloud, centres, down)
    return Foot(foot, frame.body, _few(cloud, centres) if ball is None else ball)


def belongs_to_foot(foot: Foot, p: Floats, ball: Floats) -> bool:
    """Whether a ball of a foot's body would touch the ground before the foot in some pose of the leg.

    Args:
        foot: the foot.
        p: (3,) its position in the body's frame [m].
        ball: (4,) in the body's frame [m].
    """
    length = float(np.linalg.norm(p))
    if not length > 0.0:
        return False
    d = DIRECTIONS[DIRECTIONS @ p >= _STANDING * length]
    farther = support(ball[None], d) - support(foot.balls, d)
    return bool(farther.max() > _FARTHER * length)


def _end_or_wheel(model: Model, foot: str, own: list[Piece]) -> Floats | None:
    """Balls (n, 4) of the end of a leg that has no foot link, or of a wheel; None for all other feet."""
    frame, floating = model.frames[foot], int(model.floating_base)
    poses = {name: Pose(other.R, other.p) for name, other in model.frames.items()}
    if foot in model.description.foot_sources:
        links = [link for link in model.urdf.links if model.frames[link.name].body == frame.body]
        end = find_end(links, poses, model.urdf.path)
        return None if end is None else _at_most(end.balls)
    joint = frame.body - floating
    if joint < 0 or foot != model.body_names[frame.body] or model.is_prismatic[joint]:
        return None
    if own:
        return wheel_ball(np.concatenate([piece.balls for piece in own]), model.joint_axis[joint])
    return None


def _at_most(balls: Floats) -> Floats:
    return balls if len(balls) <= MOST_FOOT_POINTS else _few(balls, balls[:, :3].mean(axis=0)[None])


def _is_near(ball: Floats, p: Floats) -> bool:
    return bool(np.linalg.norm(ball[:3] - p) <= ball[3] + _NEAR)


def _end_of_body(cloud: Floats, p: Floats, down: Floats) -> Floats:
    """The balls at the end of a body that form its sole; none if the foot's origin is not near the end."""
    thickness = _NEAR + _SOLE * float(np.linalg.norm(p))
    reaches = cloud[:, :3] @ down + cloud[:, 3]
    end = float(reaches.max(initial=-np.inf))
    if abs(end - float(p @ down)) > thickness:
        return cloud[:0]
    return np.asarray(cloud[reaches >= end - thickness])


def _leg_direction(model: Model, foot: str, cloud: Floats) -> Floats:
    """Unit vector (3,) in the body's frame from the last joint to the foot's origin, else to its shapes.

    The origin of a foot may coincide with that of the joint, as if the foot were at the knee.
    """
    p = model.frames[foot].p
    reach = np.linalg.norm(cloud[:, :3], axis=1) + cloud[:, 3]
    if np.linalg.norm(p) < _AT_THE_JOINT * reach.max(initial=0.0):
        p = cloud[reach >= 0.97 * reach.max(), :3].mean(axis=0)
    length = float(np.linalg.norm(p))
    return p / length if length > 0.0 else np.array([0.0, 0.0, -1.0])


def _round_foot(cloud: Floats, centres: Floats, down: Floats) -> Floats | None:
    """The ball (1, 4) that matches the lower side of a foot; None if the lower side is not round.

    Its centre is the origin of the foot's frame or the deepest point inside, whichever fits first. Its lowest
    point is that of the foot.
    """
    h = support(cloud)
    lower = DIRECTIONS @ down >= _LOWER_SIDE
    reach = float(support(cloud, down[None])[0])
    deepest = centres[int((h - centres @ DIRECTIONS.T).min(axis=1).argmax())]
    for centre in (centres[0], deepest):
        radius = reach - float(centre @ down)
        off = np.abs(h - DIRECTIONS @ centre - radius)[lower].max()
        if off <= _ROUND * radius:
            return np.array([[*centre, radius]])
    return None


def _few(cloud: Floats, centres: Floats) -> Floats:
    """At most eight balls for the shapes of a foot."""
    h = support(cloud)
    tolerance = _FINEST * float((h + support(cloud, -DIRECTIONS)).max())
    none, inner = np.zeros((0, 4)), inner_balls(cloud, centres)
    while (balls := reduce_balls(cloud, inner, none, tolerance, MOST_FOOT_POINTS)) is None:
        tolerance *= _COARSER
    return balls if len(balls) else cloud[:1]
