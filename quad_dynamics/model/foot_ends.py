# SPDX-License-Identifier: Apache-2.0
"""Finds the foot of a leg without a foot link: the end of the leg's last body."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import Pose
from quad_dynamics.model.contact_hull import DIRECTIONS, support
from quad_dynamics.model.legs import says_foot
from quad_dynamics.model.link_shapes import LinkShape, inertia_box, moved, read_shapes
from quad_dynamics.model.topology import Topology
from quad_dynamics.model.urdf import Joint, Link, Origin, Urdf

_FARTHEST = 0.97  # relative to the largest distance from the joint: points beyond it are the end
_AT_THE_END = 0.25  # relative to its distance: a link this close to the end is the foot
_SOLE, _NEAR = 0.1, 0.002  # thickness of the end: relative to its distance, and absolute [m]
_ROUND = 0.15  # an end is a ball if it deviates from one by less than this fraction of the radius
_LOWER_SIDE = 0.7  # cosine of the angle to the leg up to which the lower side extends
_LARGEST_RADIUS = 0.3  # of such a ball, relative to the distance of the end
# Cosine to the leg of directions in which an end must be as wide as a ball, and the minimum relative width.
_SIDEWAYS, _AS_WIDE = 0.15, 0.7
_WHEEL = 0.1  # a wheel deviates from a circle about its axis by less than this fraction of its radius
_WHEEL_DIRECTIONS = 24


@dataclass(frozen=True, eq=False)
class FootEnd:
    """The end of a leg.

    Attributes:
        position: (3,) of the foot in the body's frame [m]: centre of the ball, else middle of the end.
        balls: (n, 4) contact balls, in the body's frame, n > 0.
        source: 'collision', 'visual' or 'inertia': the geometry it was derived from.
    """

    position: Floats
    balls: Floats
    source: str


def body_links(urdf: Urdf, topology: Topology, main: str) -> list[Link]:
    """The links of the file that are fixed to a main link, including itself."""
    return [link for link in urdf.links if topology.main_link[link.name] == main]


def find_end(links: Sequence[Link], poses: dict[str, Pose], urdf_path: str) -> FootEnd | None:
    """Find the end of a body that is farthest from its joint; None if it cannot be determined.

    Args:
        links: links of the body.
        poses: poses of these links in the body's frame.
        urdf_path: path of the robot's file.
    """
    cloud, source = _cloud(links, poses, urdf_path)
    reach = np.linalg.norm(cloud[:, :3], axis=1) + cloud[:, 3]
    length = float(reach.max(initial=0.0))
    if not length > 0.0:
        return None
    farthest = cloud[reach >= _FARTHEST * length, :3].mean(axis=0)
    distance = float(np.linalg.norm(farthest))
    if not distance > 0.0:  # a body centred on its joint has no end
        return None
    down = farthest / distance
    ball = fitted_ball(cloud, down, _LARGEST_RADIUS * length)
    if ball is not None:
        return FootEnd(ball[0, :3], ball, source)
    reaches = cloud[:, :3] @ down + cloud[:, 3]
    end = cloud[reaches >= reaches.max() - _NEAR - _SOLE * _SOLE * length]
    return FootEnd(end[:, :3].mean(axis=0), end, source)


def fitted_ball(cloud: Floats, down: Floats, largest: float) -> Floats | None:
    """The ball (1, 4) that matches the lower side of a hull; None if that is not round.

    The support function of a ball, h(d) = c . d + r, is linear in its centre c and radius r.

    Args:
        cloud: (n, 4) balls of the hull.
        down: (3,) unit vector.
        largest: maximum radius [m].
    """
    d = DIRECTIONS[DIRECTIONS @ down >= _LOWER_SIDE]
    h = support(cloud, d)
    A = np.column_stack([d, np.ones(len(d))])
    ball: Floats = np.asarray(np.linalg.lstsq(A, h, rcond=None)[0], dtype=np.float64)
    off = float(np.abs(A @ ball - h).max())
    if not 0.0 < ball[3] <= largest or off > _ROUND * ball[3] or not _is_as_wide(cloud, down, ball):
        return None
    # its lowest point is that of the hull
    ball[:3] += (float(support(cloud, down[None])[0]) - float(ball[:3] @ down) - ball[3]) * down
    return ball[None]


def _is_as_wide(cloud: Floats, down: Floats, ball: Floats) -> bool:
    """Whether the end of a hull is as wide as a ball: a ball fitted to a thin rod is wider."""
    reaches = cloud[:, :3] @ down + cloud[:, 3]
    end = cloud[reaches >= reaches.max() - 3.0 * ball[3]]
    d = DIRECTIONS[np.abs(DIRECTIONS @ down) <= _SIDEWAYS]
    return bool((support(end, d) - d @ ball[:3] >= _AS_WIDE * ball[3]).all())


def wheel_ball(cloud: Floats, axis: Floats) -> Floats | None:
    """The ball (1, 4) with the radius of a wheel, in the middle of its width; None if it is not a wheel.

    Args:
        cloud: (n, 4) balls of a body in its frame, whose origin is on the joint's axis.
        axis: (3,) unit axis of the joint, in the body's frame.
    """
    if len(cloud) == 0:
        return None
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    side /= np.linalg.norm(side)
    angle = 2.0 * np.pi * np.arange(_WHEEL_DIRECTIONS) / _WHEEL_DIRECTIONS
    d = np.outer(np.cos(angle), side) + np.outer(np.sin(angle), np.cross(axis, side))
    h = support(cloud, d)
    radius = float(h.mean())
    if not radius > 0.0 or np.abs(h - radius).max() > _WHEEL * radius:
        return None
    high, low = support(cloud, np.array([axis, -axis]))
    if high + low > 2.0 * radius:  # a post that rotates about itself
        return None
    return np.array([[*(0.5 * (high - low) * axis), float(h.max())]])


def add_foot_links(
    urdf: Urdf, topology: Topology, poses: dict[str, Pose], feet: tuple[str, ...]
) -> tuple[Topology, tuple[str, ...], dict[str, FootEnd]]:
    """Add a foot link at the end of legs whose last link is not a foot.

    Args:
        urdf: the file.
        topology: its tree.
        poses: pose of each link in its body.
        feet: foot links found in the tree.

    Returns:
        The tree with the new links, the names of the feet, and the ends by the names of the new feet.
    """
    ends: dict[str, FootEnd] = {}
    names: list[str] = []
    for foot in feet:
        main = topology.main_link[foot]
        end = None
        if not says_foot(foot):
            links = body_links(urdf, topology, main)
            if not _is_wheel(links, poses, urdf.path, topology.parent_joint[main]):
                end = find_end(links, poses, urdf.path)
        if end is None or (foot != main and _is_at(end, poses[foot].p)):
            names.append(foot)
            continue
        name = f'{main}_foot'
        while name in topology.main_link:
            name += '_'
        x, y, z = (float(v) for v in end.position)
        topology = _with_link(topology, main, name, (x, y, z))
        ends[name] = end
        names.append(name)
    return topology, tuple(names), ends


def _is_at(end: FootEnd, p: Floats) -> bool:
    """Whether a link is at the end of its body; otherwise it is another part, such as a screw.

    A link is more reliable than a guess from inertias.
    """
    if end.source == 'inertia':
        return True
    apart = float(np.linalg.norm(p - end.position))
    return apart <= _AT_THE_END * float(np.linalg.norm(end.position))


def _with_link(topology: Topology, parent: str, name: str, xyz: tuple[float, float, float]) -> Topology:
    """The tree with an additional link, attached by a fixed joint."""
    joint = Joint(f'{name}_joint', 'fixed', parent, name, Origin(xyz))
    child_joints = {**topology.child_joints, parent: [*topology.child_joints[parent], joint], name: []}
    return dataclasses.replace(
        topology,
        parent_joint={**topology.parent_joint, name: joint},
        child_joints=child_joints,
        main_link={**topology.main_link, name: topology.main_link[parent]},
        links=(*topology.links, name),
        position={**topology.position, joint.name: len(topology.position)},
    )


def _is_wheel(links: Sequence[Link], poses: dict[str, Pose], urdf_path: str, joint: Joint) -> bool:
    if joint.type == 'prismatic':
        return False
    axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
    return wheel_ball(_cloud(links, poses, urdf_path)[0], axis) is not None


def _cloud(links: Sequence[Link], poses: dict[str, Pose], urdf_path: str) -> tuple[Floats, str]:
    """Balls (n, 4) of a body in its frame, and their source.

    Uses its collision shapes. If there are none, or some cannot be read, adds its visual shapes. If these
    cannot be read either, uses boxes with the inertia of its links.
    """
    collision, unread = _all_shapes(links, poses, urdf_path, 'collisions')
    if len(collision) and not unread:
        return collision, 'collision'
    visual, _ = _all_shapes(links, poses, urdf_path, 'visuals')
    if len(visual):
        return np.concatenate([collision, visual]), 'visual'
    if len(collision):
        return collision, 'collision'
    boxes = [moved(inertia_box(link), poses[link.name]) for link in links]
    return np.concatenate([np.zeros((0, 4)), *boxes]), 'inertia'


def _all_shapes(
    links: Sequence[Link], poses: dict[str, Pose], urdf_path: str, kind: str
) -> tuple[Floats, bool]:
    """Balls of all shapes of one kind of a body, and whether some cannot be read."""
    balls, unread = [np.zeros((0, 4))], False
    for link in links:
        shapes: list[LinkShape]
        shapes, reasons = read_shapes(getattr(link, kind), urdf_path)
        balls += [moved(shape.balls, poses[link.name]) for shape in shapes]
        unread = unread or bool(reasons)
    return np.concatenate(balls), unread
