# SPDX-License-Identifier: Apache-2.0
"""Joints that move only massless links: their dynamics would be singular, so they are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import Pose, pose_of, poses_in_bodies
from quad_dynamics.model.description import RobotDescription
from quad_dynamics.model.legs import find_feet, leg_chains
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.topology import Topology, find_topology
from quad_dynamics.model.urdf import Joint, Origin, Urdf

_HELD = 'joints that move only massless links ({n}) are fixed at the position closest to 0: {}'


def hold_massless_limbs(
    urdf: Urdf, topology: Topology, description: RobotDescription, faulty: set[str], problems: Problems
) -> tuple[Urdf, Topology]:
    """Fix joints that move only massless links. This does not affect the rest of the robot.

    Legs are not changed, because contact depends on them, nor are joints that the description names; without
    mass, these are rejected later.

    Args:
        urdf: the file.
        topology: its tree.
        description: from the YAML file.
        faulty: links with unknown mass.
        problems: receives the joints.

    Returns:
        The file and its tree, changed or unchanged.
    """
    held = _massless(urdf, topology, faulty) - _needed(topology, description)
    movable = {joint.name for joint in urdf.joints if joint.is_movable}
    if not held or held == movable:
        return urdf, topology
    for joint in urdf.joints:
        if joint.name in held:
            problems.warn(_HELD, joint.name)
    joints = tuple(_fixed(joint) if joint.name in held else joint for joint in urdf.joints)
    changed = dataclasses.replace(urdf, joints=joints)
    found = find_topology(changed, problems)
    if found is None:
        raise AssertionError('the tree is the same')
    return changed, found


def _massless(urdf: Urdf, topology: Topology, faulty: set[str]) -> set[str]:
    """Names of the movable joints below which nothing has mass or inertia."""
    heavy = set(faulty)
    for link in urdf.links:
        if link.inertial is not None and (link.inertial.mass != 0.0 or any(link.inertial.inertia)):
            heavy.add(link.name)
    for name in reversed(topology.links):
        joint = topology.parent_joint.get(name)
        if joint is not None and name in heavy:
            heavy.add(joint.parent)
    return {
        joint.name for name, joint in topology.parent_joint.items() if joint.is_movable and name not in heavy
    }


def _needed(topology: Topology, description: RobotDescription) -> set[str]:
    """Names of the joints of legs, and of those that the description mentions."""
    named = {*description.rotors, *description.motors}
    named |= set(description.standing.joints) if description.standing is not None else set()
    feet = description.feet
    if description.feet_from_tree:
        feet = find_feet(topology, poses_in_bodies(topology))
    return named.union(*leg_chains(topology, feet))


def _fixed(joint: Joint) -> Joint:
    """The joint fixed at its position closest to zero within its limits."""
    low = -math.inf if joint.limit.lower is None else joint.limit.lower
    high = math.inf if joint.limit.upper is None else joint.limit.upper
    position = min(max(0.0, low), high)
    origin = joint.origin
    if position != 0.0:
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        turn = Pose(rotation_about(axis, position), np.zeros(3))
        X = pose_of(origin) @ (Pose(np.eye(3), position * axis) if joint.type == 'prismatic' else turn)
        origin = Origin((float(X.p[0]), float(X.p[1]), float(X.p[2])), _rpy(X.R))
    return dataclasses.replace(joint, type='fixed', origin=origin)


def _rpy(R: Floats) -> tuple[float, float, float]:
    """Angles of a rotation, as in URDF: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) < 1e-12:
        return math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])
