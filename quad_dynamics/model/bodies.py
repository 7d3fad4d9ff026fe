# SPDX-License-Identifier: Apache-2.0
"""Merges links that fixed joints hold together into bodies, and checks their masses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from quad_dynamics.model.inertia import (
    SINGULAR,
    Floats,
    full_inertia,
    implausible_bodies,
    pi_of,
    principal_moments,
    rotation_of_rpy,
)
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.topology import Topology
from quad_dynamics.model.urdf import Inertial, Joint, Link, Origin, Urdf

# An inertia below that of the mass on a circle of this radius [m] is the rounding noise of a point mass.
_NOISE_RADIUS = 1e-6
# Figures of three or four digits of a flat body miss the triangle inequality by that much.
_TRIANGLE_TOLERANCE = 1e-3

_MASSLESS = 'links with mass 0 and inertia 0 were taken as massless: {}'
_POINT_LIKE = 'links whose inertia is singular (usable only because they are fixed to others): {}'
_TRIANGLE = (
    'the inertia of some links violates the triangle inequality, as that of no real body does; it is used as '
    'it stands (largest principal moment over sum of the others, at most 1 for a real body): {}'
)


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
    """Parameters (nb, 10) of the bodies, links fixed to them included."""
    pi = np.zeros((len(bodies), 10))
    row = {main: i for i, main in enumerate(bodies)}
    for link in urdf.links:
        i = row.get(topology.main_link[link.name])
        if i is not None and link.inertial is not None:
            pi[i] += pi_of_inertial(link.inertial, poses[link.name])
    return pi


def check_links(urdf: Urdf, problems: Problems) -> set[str]:
    """Check the inertial of every link for itself; return the names of the links that are faulty."""
    faulty = {link.name for link in urdf.links if link.inertial is None and link.has_inertial}
    for link in urdf.links:
        n_errors = problems.n_errors
        if link.inertial is not None:
            _check_inertial(link, link.inertial, problems)
        if problems.n_errors > n_errors:
            faulty.add(link.name)
    return faulty


def _check_inertial(link: Link, inertial: Inertial, problems: Problems) -> None:
    where = f"link '{link.name}' (line {link.line})"
    if inertial.mass < 0.0:
        problems.error(f'{where}: mass is {inertial.mass:g}; expected > 0')
        return
    if inertial.mass == 0.0:
        if any(inertial.inertia):
            problems.error(f'{where}: mass is 0, but the inertia is not; expected mass > 0')
        else:
            problems.warn(_MASSLESS, link.name)
        return
    low, middle, high = (float(w) for w in principal_moments(full_inertia(inertial.inertia)))
    noise = inertial.mass * _NOISE_RADIUS**2
    if low < -noise and (high < 0.0 or low < -SINGULAR * max(high, -low)):
        problems.error(
            f'{where}: inertia is not positive definite (principal moments {low:.3g}, {middle:.3g}, '
            f'{high:.3g} kg m^2; expected all > 0)'
        )
    elif low <= SINGULAR * high:
        problems.warn(_POINT_LIKE, link.name)
    elif high > (low + middle) * (1.0 + _TRIANGLE_TOLERANCE):
        problems.warn(_TRIANGLE, f'{link.name} ({high / (low + middle):.3f})')


def check_bodies(
    urdf: Urdf, topology: Topology, bodies: tuple[str, ...], pi: Floats, faulty: set[str], problems: Problems
) -> None:
    """Check that every body that moves has mass, and an inertia that can be inverted.

    Args:
        urdf: the file.
        topology: its tree.
        bodies: main links.
        pi: (nb, 10) their parameters.
        faulty: links that have been complained about already; their bodies are passed over.
        problems: receives what is found.
    """
    passed_over = {topology.main_link[link] for link in faulty}
    lines = {link.name: link.line for link in urdf.links}
    for i, fault in implausible_bodies(pi):
        main = bodies[i]
        if main not in passed_over:
            where = f"link '{main}' (line {lines[main]})"
            _complain(where, topology.parent_joint.get(main), float(pi[i, 0]), fault, problems)


def check_bodies_without_tree(urdf: Urdf, faulty: set[str], problems: Problems) -> None:
    """Check the bodies of a file whose links and joints form no tree, as far as they are certain.

    A body is certain if its main link is the child of one movable joint, and if every link that is fixed to
    it exists once and hangs on one joint. Nothing is said while a link with mass hangs on a fixed joint whose
    parent is unknown: it may be what makes up for a link without mass.
    """
    named = Counter(link.name for link in urdf.links)
    parents = Counter(joint.child for joint in urdf.joints)
    links = {link.name: link for link in urdf.links if link.name and named[link.name] == 1}
    fixed: dict[str, list[Joint]] = {}
    for joint in urdf.joints:
        if not joint.is_movable:
            fixed.setdefault(joint.parent, []).append(joint)
    # Below a link with two parents nothing is certain; to go on there from each of them would take long.
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
            _complain(where, joint, float(pi[0, 0]), fault, problems)


def _fixed_below(mains: list[str], fixed: dict[str, list[Joint]]) -> dict[str, Pose]:
    """Poses in each main link of all links that fixed joints hold to it, itself included."""
    poses = dict.fromkeys(mains, IDENTITY)
    stack = list(mains)
    while stack:
        link = stack.pop()
        for joint in fixed.get(link, []):
            if joint.child not in poses:
                poses[joint.child] = poses[link] @ pose_of(joint.origin)
                stack.append(joint.child)
    return poses


def _complain(where: str, joint: Joint | None, mass: float, fault: str, problems: Problems) -> None:
    moves = f"moves with joint '{joint.name}'" if joint is not None else 'is the floating base'
    if mass == 0.0:
        problems.error(
            f'{where} {moves}, but neither it nor a link fixed to it has mass; '
            'expected an <inertial> with mass > 0'
        )
    else:
        problems.error(f'{where} {moves}, but its {fault}, links fixed to it included')
