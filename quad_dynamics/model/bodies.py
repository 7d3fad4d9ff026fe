# SPDX-License-Identifier: Apache-2.0
"""Merges links connected by fixed joints into bodies, and checks their masses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.inertia import (
    SINGULAR,
    about_com,
    full_inertia,
    implausible_bodies,
    pi_of,
    principal_moments,
    rotation_of_rpy,
)
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.topology import Topology
from quad_dynamics.model.urdf import Inertial, Joint, Origin, Urdf

# An inertia below that of the mass on a circle of this radius [m] is rounding noise of a point mass.
NOISE_RADIUS = 1e-6


@dataclass(frozen=True)
class Pose:
    """Rotation R (3, 3) and position p (3,) of a frame in another."""

    R: Floats
    p: Floats

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.R @ other.R, self.p + self.R @ other.p)


IDENTITY = Pose(np.eye(3), np.zeros(3))


def pose_of(origin: Origin) -> Pose:
    """Pose of a URDF <origin>."""
    if not any(origin.rpy):
        return Pose(np.eye(3), np.array(origin.xyz))
    return Pose(rotation_of_rpy(origin.rpy), np.array(origin.xyz))


def poses_in_bodies(topology: Topology) -> dict[str, Pose]:
    """Pose X_BL of every link in the frame of its body (the frame of the body's main link)."""
    poses: dict[str, Pose] = {}
    for link in topology.links:
        joint = topology.parent_joint.get(link)
        if joint is None or joint.is_movable:
            poses[link] = IDENTITY
        else:
            poses[link] = poses[joint.parent] @ pose_of(joint.origin)
    return poses


def poses_at_zero(topology: Topology) -> dict[str, Pose]:
    """Pose X_0L of every link in the root link's frame with all joints at zero."""
    poses = {topology.root: IDENTITY}
    for link in topology.links[1:]:
        joint = topology.parent_joint[link]
        poses[link] = poses[joint.parent] @ pose_of(joint.origin)
    return poses


def pi_of_inertial(inertial: Inertial, X_BL: Pose) -> Floats:
    """Parameters (10,) in the body's frame of a link's <inertial>."""
    X_BC = X_BL @ pose_of(inertial.origin)
    return pi_of(inertial.mass, X_BC.p, X_BC.R @ full_inertia(inertial.inertia) @ X_BC.R.T)


def merged_pi(urdf: Urdf, topology: Topology, poses: dict[str, Pose], bodies: tuple[str, ...]) -> Floats:
    """Parameters (nb, 10) of the bodies, including the links fixed to them."""
    pi = np.zeros((len(bodies), 10))
    row = {main: i for i, main in enumerate(bodies)}
    for link in urdf.links:
        i = row.get(topology.main_link[link.name])
        if i is not None and link.inertial is not None:
            pi[i] += pi_of_inertial(link.inertial, poses[link.name])
    return pi


def check_bodies(
    urdf: Urdf, topology: Topology, bodies: tuple[str, ...], pi: Floats, faulty: set[str], problems: Problems
) -> dict[str, str]:
    """Check that every moving body has mass and an invertible inertia.

    Args:
        urdf: the file.
        topology: its tree.
        bodies: main links.
        pi: (nb, 10) their parameters.
        faulty: links that have already been reported; their bodies are skipped.
        problems: receives the problems.

    Returns:
        Bodies with singular inertia, such as a point mass or a rod, each with the message to report if
        the mass matrix is singular.
    """
    thin: dict[str, str] = {}
    passed_over = {topology.main_link[link] for link in faulty}
    lines = {link.name: link.line for link in urdf.links}
    for i, fault in implausible_bodies(pi):
        main = bodies[i]
        if main in passed_over:
            continue
        where = f"link '{main}' (line {lines[main]})"
        text = _complaint(where, topology.parent_joint.get(main), float(pi[i, 0]), fault)
        if _is_thin(pi[i]):
            thin[main] = text
        else:
            problems.error(text)
    return thin


def _is_thin(pi: Floats) -> bool:
    """Whether a body has mass and an inertia that is singular, but not negative."""
    if not pi[0] > 0.0:
        return False
    with np.errstate(all='ignore'):
        inertia_com = about_com(pi[None])[2]
    if not np.isfinite(inertia_com).all():
        return False
    low, _, high = (float(w) for w in principal_moments(inertia_com)[0])
    rounding = 1e-14 * float(np.abs(pi[[4, 6, 9]]).sum()) + float(pi[0]) * NOISE_RADIUS**2
    return low >= -SINGULAR * abs(high) - rounding


def check_bodies_without_tree(urdf: Urdf, faulty: set[str], problems: Problems) -> None:
    """Check the bodies of a file whose links and joints do not form a tree, as far as they are unambiguous.

    A body is unambiguous if its main link is the child of one movable joint, and if every link that is fixed
    to it exists once and has one parent joint. Nothing is reported while a link with mass has a fixed parent
    joint with an unknown parent: it may compensate for a link without mass.
    """
    named = Counter(link.name for link in urdf.links)
    parents = Counter(joint.child for joint in urdf.joints)
    links = {link.name: link for link in urdf.links if link.name and named[link.name] == 1}
    fixed: dict[str, list[Joint]] = {}
    for joint in urdf.joints:
        if not joint.is_movable:
            fixed.setdefault(joint.parent, []).append(joint)
    # Below a link with two parents nothing is unambiguous, and following each parent would take long.
    certain = {parent: joints for parent, joints in fixed.items() if parents[parent] <= 1}
    loose = _fixed_below([parent for parent in fixed if parent not in links], fixed)
    if any(link.has_inertial and link.name in loose for link in urdf.links):
        return
    for joint in urdf.joints:
        if not joint.is_movable or joint.child not in links or parents[joint.child] > 1:
            continue
        poses = _fixed_below([joint.child], certain)
        if any(name not in links or name in faulty or parents[name] > 1 for name in poses):
            continue
        pi = np.zeros((1, 10))
        for name, X_BL in poses.items():
            inertial = links[name].inertial
            if inertial is not None:
                pi[0] += pi_of_inertial(inertial, X_BL)
        where = f"link '{joint.child}' (line {links[joint.child].line})"
        for _, fault in implausible_bodies(pi):
            problems.error(_complaint(where, joint, float(pi[0, 0]), fault))


def _fixed_below(mains: list[str], fixed: dict[str, list[Joint]]) -> dict[str, Pose]:
    """Poses in each main link of all links fixed to it, including itself."""
    poses = dict.fromkeys(mains, IDENTITY)
    stack = list(mains)
    while stack:
        link = stack.pop()
        for joint in fixed.get(link, []):
            if joint.child not in poses:
                poses[joint.child] = poses[link] @ pose_of(joint.origin)
                stack.append(joint.child)
    return poses


def _complaint(where: str, joint: Joint | None, mass: float, fault: str) -> str:
    moves = f"moves with joint '{joint.name}'" if joint is not None else 'is the floating base'
    if mass == 0.0:
        return (
            f'{where} {moves}, but neither it nor a link fixed to it has mass; '
            'expected an <inertial> with mass > 0'
        )
    return f'{where} {moves}, but its {fault} (including links fixed to it)'
