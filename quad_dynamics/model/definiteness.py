# SPDX-License-Identifier: Apache-2.0
"""Checks whether the mass matrix of a robot is positive definite, so that forces determine its motion.

It is if every body has mass and positive definite inertia; then this check is not needed. A robot with point
masses and rods may also have such a mass matrix, which is checked here. The code is slow and simple, because
few robots need it.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.inertia import full_inertia
from quad_dynamics.model.stance import link_poses
from quad_dynamics.model.topology import Topology
from quad_dynamics.model.urdf import Joint

_SMALLEST = 1e-9  # eigenvalue of the mass matrix with ones on its diagonal
_ROUNDING = 1e-10  # as a fraction of the upper bound of a diagonal entry
_POSES = 3


class MassMatrix:
    """The mass matrix of a tree of bodies."""

    def __init__(
        self, topology: Topology, joints: list[Joint], bodies: tuple[str, ...], pi: Floats, floating: bool
    ) -> None:
        """Prepare the mass matrix of a robot.

        Args:
            topology: its tree.
            joints: in the order of the model.
            bodies: main links.
            pi: (nb, 10) parameters of the bodies.
            floating: whether the root moves freely.
        """
        self.topology, self.joints, self.floating = topology, joints, floating
        self.bodies, self.pi = bodies, pi
        self.columns = {joint.name: 6 * floating + i for i, joint in enumerate(joints)}

    def is_definite(self) -> bool:
        """Whether it is far from singular, in several poses within the limits."""
        rng = np.random.default_rng(0)
        for _ in range(_POSES):
            M, largest = self.at({joint.name: _some_position(joint, rng) for joint in self.joints})
            d = np.sqrt(np.diag(M))
            if not (np.isfinite(M).all() and (d**2 > _ROUNDING * largest).all()):
                return False
            if not np.linalg.eigvalsh(M / np.outer(d, d))[0] > _SMALLEST:
                return False
        return True

    def at(self, positions: dict[str, float]) -> tuple[Floats, Floats]:
        """The matrix (nv, nv) with the root at the origin and the joints at these positions.

        Also returns upper bounds of its diagonal entries (nv,), for any directions of the axes.
        """
        poses = link_poses(self.topology, positions)
        M = np.zeros((6 * self.floating + len(self.joints),) * 2)
        largest = np.zeros(len(M))
        for main, pi in zip(self.bodies, self.pi, strict=True):
            R, p = poses[main].R, poses[main].p
            J = np.zeros((6, len(M)))  # of the origin of the body, in its own frame: linear, angular
            if self.floating:
                J[:3, :3], J[:3, 3:6], J[3:, 3:6] = R.T, -R.T @ _cross(p), R.T
            link = main
            while link != self.topology.root:
                joint = self.topology.parent_joint[link]
                axis = poses[link].R @ (np.array(joint.axis) / np.linalg.norm(joint.axis))
                turn = axis if joint.type != 'prismatic' else np.zeros(3)
                move = np.cross(turn, p - poses[link].p) if joint.type != 'prismatic' else axis
                column = self.columns[joint.name]
                J[:3, column], J[3:, column] = R.T @ move, R.T @ turn
                largest[column] += (
                    pi[0] if joint.type == 'prismatic' else _second_moment(pi, R, p - poses[link].p)
                )
                link = self.topology.main_link[joint.parent]
            M += J.T @ _spatial(pi) @ J
        return M, largest


def _spatial(pi: Floats) -> Floats:
    """Inertia (6, 6) of a body about its origin, linear before angular."""
    C = _cross(pi[1:4])
    return np.block([[pi[0] * np.eye(3), -C], [C, full_inertia(pi[4:])]])


def _second_moment(pi: Floats, R: Floats, d: Floats) -> float:
    """Mass times squared distance from a point; the body's frame is at d from it, rotated by R."""
    return float(0.5 * (pi[4] + pi[6] + pi[9]) + 2.0 * d @ R @ pi[1:4] + pi[0] * d @ d)


def _cross(p: Floats) -> Floats:
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def _some_position(joint: Joint, rng: np.random.Generator) -> float:
    low = -1.0 if joint.limit.lower is None else joint.limit.lower
    high = max(low, 1.0 if joint.limit.upper is None else joint.limit.upper)
    return float(rng.uniform(low, high))
