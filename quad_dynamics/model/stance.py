# SPDX-License-Identifier: Apache-2.0
"""Contact points from the tree, and the standing height."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import IDENTITY, Pose, pose_of
from quad_dynamics.model.description import ContactPoint
from quad_dynamics.model.inertia import steiner
from quad_dynamics.model.topology import Topology
from quad_dynamics.model.urdf import Joint, Shape, Urdf, Vector3


def link_poses(topology: Topology, joint_positions: Mapping[str, float]) -> dict[str, Pose]:
    """Pose X_0L of every link in the root link's frame; joints that are not given are at zero."""
    poses = {topology.root: IDENTITY}
    for link in topology.links[1:]:
        joint = topology.parent_joint[link]
        poses[link] = (
            poses[joint.parent]
            @ pose_of(joint.origin)
            @ _joint_pose(joint, joint_positions.get(joint.name, 0.0))
        )
    return poses


def find_contact_points(
    urdf: Urdf, topology: Topology, poses: dict[str, Pose], legs: Sequence[tuple[str, str, int]]
) -> tuple[ContactPoint, ...]:
    """Contact points from the tree: corners of the base's largest collision box, knees, feet.

    Args:
        urdf: the file.
        topology: its tree.
        poses: pose of each link in its body.
        legs: (name, foot link, number of joints) of each leg.
    """
    points = _box_corners(urdf, topology)
    for name, foot, n_joints in legs:
        last = topology.main_link[foot]
        if n_joints > 1 and float(np.linalg.norm(poses[foot].p)) > 0.0:
            points.append(ContactPoint(f'{name}_knee', last, (0.0, 0.0, 0.0)))
    links = {link.name: link for link in urdf.links}
    for _, foot, _ in legs:
        points.append(_foot_point(foot, links[foot].collisions if foot in links else ()))
    return tuple(points)


def standing_height(poses: Mapping[str, Pose], points: Sequence[ContactPoint]) -> float:
    """Height of the root's frame at which the lowest contact point touches the ground [m]."""
    lowest = [(poses[c.link].p + poses[c.link].R @ np.array(c.position))[2] - c.radius for c in points]
    return -float(min(lowest))


def _joint_pose(joint: Joint, position: float) -> Pose:
    if not joint.is_movable or position == 0.0:
        return IDENTITY
    axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
    if joint.type == 'prismatic':
        return Pose(np.eye(3), position * axis)
    return Pose(rotation_about(axis, position), np.zeros(3))


def rotation_about(axis: Floats, angle: float) -> Floats:
    """Rotation by an angle about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # K K = -(1 - a a^T), which steiner gives for a unit mass
    return np.asarray(np.eye(3) + np.sin(angle) * K - (1.0 - np.cos(angle)) * steiner(1.0, axis))


def _box_corners(urdf: Urdf, topology: Topology) -> list[ContactPoint]:
    boxes = [
        (float(np.prod(shape.geometry.size)), link.name, shape)
        for link in urdf.links
        if topology.main_link[link.name] == topology.root
        for shape in link.collisions
        if shape.geometry.kind == 'box'
    ]
    if not boxes:
        return []
    _, link_name, box = max(boxes, key=lambda item: item[0])
    X_LS, half = pose_of(box.origin), 0.5 * np.array(box.geometry.size)
    corners = [X_LS.p + X_LS.R @ (half * signs) for signs in product((1.0, -1.0), repeat=3)]
    return [ContactPoint(f'{link_name}_corner{i}', link_name, _vector3(p)) for i, p in enumerate(corners)]


def _foot_point(foot: str, collisions: Sequence[Shape]) -> ContactPoint:
    """The foot's collision sphere, if it has one, else the origin of its frame."""
    for shape in collisions:
        if shape.geometry.kind == 'sphere':
            return ContactPoint(foot, foot, shape.origin.xyz, shape.geometry.size[0])
    return ContactPoint(foot, foot, (0.0, 0.0, 0.0))


def _vector3(p: Floats) -> Vector3:
    return float(p[0]), float(p[1]), float(p[2])
