# SPDX-License-Identifier: Apache-2.0
"""Merges links that fixed joints hold together into bodies, and checks their masses."""

from __future__ import annotations

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
from quad_dynamics.model.urdf import Inertial, Link, Origin, Urdf

# Figures of three or four digits of a flat body miss the triangle inequality by that much.
_TRIANGLE_TOLERANCE = 1e-3

_MASSLESS = 'links with mass 0 and inertia 0 were taken as massless: {}'
_POINT_LIKE = 'links whose inertia is singular (usable only because they are fixed to others): {}'
_TRIANGLE = (
    'the inertia of some links is that of no real body: it violates the triangle inequality, which does not '
    'affect results in practice, because they are computed with it as it stands (largest principal moment '
    'over sum of the others, at most 1 for a real body): {}'
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
    if high < 0.0 or low < -SINGULAR * max(high, -low):
        problems.error(
            f'{where}: inertia is not positive definite (principal moments {low:.3g}, {middle:.3g}, '
            f'{high:.3g} kg m^2)'
        )
    elif low <= SINGULAR * high:
        problems.warn(_POINT_LIKE, link.name)
    elif high > (low + middle) * (1.0 + _TRIANGLE_TOLERANCE):
        problems.warn(_TRIANGLE, f'{link.name} ({high / (low + middle):.3f})')


def check_bodies(
    topology: Topology, bodies: tuple[str, ...], pi: Floats, faulty: set[str], problems: Problems
) -> None:
    """Check that every body that moves has mass, and an inertia that can be inverted.

    Args:
        topology: the tree.
        bodies: main links.
        pi: (nb, 10) their parameters.
        faulty: links that have been complained about already; their bodies are passed over.
        problems: receives what is found.
    """
    passed_over = {topology.main_link[link] for link in faulty}
    for i, fault in implausible_bodies(pi):
        main = bodies[i]
        if main in passed_over:
            continue
        joint = topology.parent_joint.get(main)
        moves = f"moves with joint '{joint.name}'" if joint is not None else 'is the floating base'
        if pi[i, 0] == 0.0:
            problems.error(
                f"link '{main}' {moves}, but neither it nor a link fixed to it has mass; "
                'expected an <inertial> with mass > 0'
            )
        else:
            problems.error(f"link '{main}' {moves}, but its {fault}, links fixed to it included")
