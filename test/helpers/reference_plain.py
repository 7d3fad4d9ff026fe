# SPDX-License-Identifier: Apache-2.0
"""Rigid-body dynamics as in a textbook, slow and plain: the reference for what no other library has (rotors).

Every link and every rotor is a body of its own. A rotor is carried by the parent of its joint and turns about
its axis at gear * qd relative to it. Bodies have Jacobians of their centre of mass and of their angular
velocity, in world axes, and everything else is a sum over the bodies:

    M = sum  m Jc^T Jc + Jw^T I Jw
    ID = sum  Jc^T m (a_c - g) + Jw^T (I alpha + w x I w)                       (Newton, Euler, d'Alembert)
    C = sum  m Jc^T dJc + Jw^T (I dJw + 1/2 ([w] I - I [w] - [I w]) Jw)

The last bracket turns w into w x I w and has the symmetric part dI/dt / 2, so dM/dt - 2 C is skew-symmetric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rotor:
    """A rotor as an explicit body.

    Attributes:
        joint: index of the joint that it drives.
        mass: [kg]
        com: (3,) in the parent body's frame [m].
        inertia: (3, 3) about the com, axes of the parent body, at joint angle zero [kg m^2].
        axis: (3,) unit spin axis in the parent body's frame, through the com.
        gear: turns of the rotor per turn of the joint.
    """

    joint: int
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    axis: np.ndarray
    gear: float


@dataclass
class Frame:
    """Motion of a frame: its pose, its Jacobians in world axes and their rates."""

    R: np.ndarray
    p: np.ndarray
    Jv: np.ndarray
    Jw: np.ndarray
    dJv: np.ndarray
    dJw: np.ndarray


@dataclass
class Body:
    """A rigid body in world axes: mass, com, inertia about it, Jacobians at the com, and their rates."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray
    Jc: np.ndarray
    Jw: np.ndarray
    dJc: np.ndarray
    dJw: np.ndarray


def skew(v: np.ndarray) -> np.ndarray:
    """(3, 3) with skew(v) @ x == cross(v, x)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation about a unit axis (Rodrigues)."""
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def rotation_of_quaternion(quaternion: np.ndarray) -> np.ndarray:
    """R of a quaternion x y z w (Hamilton)."""
    v, w = np.asarray(quaternion[:3]), quaternion[3]
    return np.eye(3) + 2.0 * w * skew(v) + 2.0 * skew(v) @ skew(v)


def parameters(pi: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, com and inertia about the com from [m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz] about the origin."""
    m, xx, xy, yy, xz, yz, zz = pi[0], *pi[4:]
    com = pi[1:4] / m if m > 0.0 else np.zeros(3)
    return m, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + m * skew(com) @ skew(com)


class PlainReference:
    """The dynamics of a Model, or of a Model without rotors together with explicit rotors."""

    def __init__(self, model: Any, rotors: Sequence[Rotor] | None = None) -> None:
        """Without rotors given, those of the model: its lumped masses, and massless discs that spin."""
        self.model = model
        self.base = 6 if model.floating_base else 0
        pi = np.array(model.pi, dtype=float)
        if rotors is None:
            pi = pi + model.rotor_pi
            pi, rotors = self._split_rotors(pi)
        self.pi, self.rotors = pi, list(rotors)

    def _split_rotors(self, pi: np.ndarray) -> tuple[np.ndarray, list[Rotor]]:
        """Take the axial inertia out of the carrying bodies and make a disc of it."""
        model, rotors, pi = self.model, [], pi.copy()
        for k in np.flatnonzero(model.rotor_inertia):
            axis = np.array(model.rotor_axis[k])
            disc = model.rotor_inertia[k] * np.outer(axis, axis)
            body = self._body_of(int(model.parents[k]))
            if body >= 0:
                pi[10 * body + 4 : 10 * body + 10] -= disc[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
            rotors.append(Rotor(int(k), 0.0, np.zeros(3), disc, axis, float(model.rotor_gear[k])))
        return pi, rotors

    def _body_of(self, joint: int) -> int:
        """Index of the body that a joint moves; of joint -1: the base, or -1 for the immobile root."""
        return joint + 1 if self.model.floating_base else joint

    # ---- kinematics

    def _root(self, q: np.ndarray, u: np.ndarray) -> Frame:
        nv = self.model.nv
        root = Frame(np.eye(3), np.zeros(3), *(np.zeros((3, nv)) for _ in range(4)))
        if self.model.floating_base:
            root.R, root.p = rotation_of_quaternion(q[3:7]), np.array(q[:3], dtype=float)
            root.Jv[:, :3], root.Jw[:, 3:6] = np.eye(3), root.R
            root.dJw[:, 3:6] = skew(root.R @ u[3:6]) @ root.R
        return root

    def frames(self, q: np.ndarray, u: np.ndarray) -> list[Frame]:
        """Root frame, then the child frame of each joint."""
        q, u = np.asarray(q, dtype=float), np.asarray(u, dtype=float)
        frames = [self._root(q, u)]
        for k in range(self.model.nj):
            frames.append(
                self._child(
                    k, frames[int(self.model.parents[k]) + 1], q[self.model.nq - self.model.nj + k], u
                )
            )
        return frames

    def _child(self, k: int, parent: Frame, q_k: float, u: np.ndarray) -> Frame:
        model, column = self.model, self.base + k
        R0 = parent.R @ model.joint_R[k]
        axis = R0 @ model.joint_axis[k]
        if model.is_prismatic[k]:
            child = self._carried(parent, R0, parent.R @ model.joint_p[k] + q_k * axis, u)
            child.Jv[:, column] += axis
            # the carried part took the arm as constant: its growth, axis * qd, turns with the parent
            w = parent.Jw @ u
            child.dJv -= skew(axis * u[column]) @ parent.Jw
            child.dJv[:, column] += np.cross(w, axis)
            return child
        child = self._carried(parent, R0 @ turn(model.joint_axis[k], q_k), parent.R @ model.joint_p[k], u)
        child.Jw[:, column] += axis
        child.dJw[:, column] += np.cross(parent.Jw @ u, axis)
        return child

    @staticmethod
    def _carried(parent: Frame, R: np.ndarray, arm: np.ndarray, u: np.ndarray) -> Frame:
        """A frame fixed to the parent, at arm (world axes) from it: v = v_P + w x arm."""
        darm = np.cross(parent.Jw @ u, arm)
        Jv = parent.Jv - skew(arm) @ parent.Jw
        dJv = parent.dJv - skew(arm) @ parent.dJw - skew(darm) @ parent.Jw
        return Frame(R, parent.p + arm, Jv, parent.Jw.copy(), dJv, parent.dJw.copy())

    def link_frame(self, q: np.ndarray, u: np.ndarray, link: str) -> Frame:
        """Frame of any link, merged ones too."""
        frame = self.model.frames[link]
        if frame.body < 0:
            return self._carried(self._root(q, u), np.array(frame.R), np.array(frame.p), u)
        carrier = self.frames(q, u)[frame.body if self.model.floating_base else frame.body + 1]
        return self._carried(carrier, carrier.R @ frame.R, carrier.R @ frame.p, u)

    def point_jacobian(self, q: np.ndarray, link: str, offset: np.ndarray) -> np.ndarray:
        """(3, nv) of a point at an offset in the link's frame."""
        frame = self.link_frame(q, np.zeros(self.model.nv), link)
        return frame.Jv - skew(frame.R @ np.asarray(offset, dtype=float)) @ frame.Jw

    def bodies(self, q: np.ndarray, u: np.ndarray) -> list[Body]:
        """Every link and every rotor."""
        u = np.asarray(u, dtype=float)
        frames = self.frames(q, u)
        carriers = frames if self.model.floating_base else frames[1:]
        result = []
        for frame, pi in zip(carriers, self.pi.reshape(-1, 10), strict=True):
            mass, com, inertia = parameters(pi)
            result.append(self._body(self._carried(frame, frame.R, frame.R @ com, u), mass, inertia))
        for rotor in self.rotors:
            result.append(self._rotor(rotor, frames[int(self.model.parents[rotor.joint]) + 1], q, u))
        return result

    @staticmethod
    def _body(frame: Frame, mass: float, inertia: np.ndarray) -> Body:
        I_W = frame.R @ inertia @ frame.R.T
        return Body(mass, frame.p, I_W, frame.Jv, frame.Jw, frame.dJv, frame.dJw)

    def _rotor(self, rotor: Rotor, parent: Frame, q: np.ndarray, u: np.ndarray) -> Body:
        angle = rotor.gear * q[self.model.nq - self.model.nj + rotor.joint]
        frame = self._carried(parent, parent.R @ turn(rotor.axis, angle), parent.R @ rotor.com, u)
        column, axis = self.base + rotor.joint, parent.R @ rotor.axis
        frame.Jw[:, column] += rotor.gear * axis
        frame.dJw[:, column] += rotor.gear * np.cross(parent.Jw @ u, axis)
        return self._body(frame, rotor.mass, rotor.inertia)

    # ---- dynamics

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(nv, nv)."""
        bodies = self.bodies(q, np.zeros(self.model.nv))
        return sum(b.mass * b.Jc.T @ b.Jc + b.Jw.T @ b.inertia @ b.Jw for b in bodies)

    def inverse_dynamics(self, q, u, du, f_ext: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """(nv,) without friction."""
        tau = np.zeros(self.model.nv)
        for b in self.bodies(q, u):
            w = b.Jw @ u
            tau += b.mass * b.Jc.T @ (b.Jc @ du + b.dJc @ u - self.model.gravity)
            tau += b.Jw.T @ (b.inertia @ (b.Jw @ du + b.dJw @ u) + np.cross(w, b.inertia @ w))
        for link, wrench in (f_ext or {}).items():
            frame = self.link_frame(q, u, link)
            tau -= frame.Jv.T @ np.asarray(wrench)[:3] + frame.Jw.T @ np.asarray(wrench)[3:]
        return tau

    def coriolis_matrix(self, q, u) -> np.ndarray:
        """(nv, nv), exact and Christoffel-consistent."""
        C = np.zeros((self.model.nv, self.model.nv))
        for b in self.bodies(q, u):
            w, inertia = b.Jw @ u, b.inertia
            bracket = 0.5 * (skew(w) @ inertia - inertia @ skew(w) - skew(inertia @ w))
            C += b.mass * b.Jc.T @ b.dJc + b.Jw.T @ (inertia @ b.dJw + bracket @ b.Jw)
        return C

    def nonlinear_effects(self, q, u) -> np.ndarray:
        """(nv,) h."""
        return self.inverse_dynamics(q, u, np.zeros(self.model.nv))

    def forward_dynamics(self, q, u, tau, f_ext=None) -> np.ndarray:
        """(nv,) du by a dense solve."""
        h = self.inverse_dynamics(q, u, np.zeros(self.model.nv), f_ext)
        return np.linalg.solve(self.mass_matrix(q), tau - h)

    def hybrid_dynamics(self, q, u, du, tau, prescribed, f_ext=None) -> tuple[np.ndarray, np.ndarray]:
        """(du, tau) by a dense partition of M du + h = tau."""
        M, h = self.mass_matrix(q), self.inverse_dynamics(q, u, np.zeros(self.model.nv), f_ext)
        given, free = np.flatnonzero(prescribed), np.flatnonzero(~np.asarray(prescribed))
        du = np.array(du, dtype=float)
        du[free] = np.linalg.solve(
            M[np.ix_(free, free)], tau[free] - h[free] - M[np.ix_(free, given)] @ du[given]
        )
        solved = np.array(tau, dtype=float)
        solved[given] = (M @ du + h)[given]
        return du, solved

    def energy(self, q, u) -> tuple[float, float]:
        """Kinetic and potential energy [J]."""
        bodies = self.bodies(q, u)
        kinetic = sum(
            0.5 * b.mass * (b.Jc @ u) @ (b.Jc @ u) + 0.5 * (b.Jw @ u) @ b.inertia @ (b.Jw @ u) for b in bodies
        )
        return float(kinetic), float(-sum(b.mass * self.model.gravity @ b.com for b in bodies))

    def centroidal_momentum(self, q, u) -> np.ndarray:
        """(6,) [linear; angular about the com of all bodies], world axes."""
        bodies = self.bodies(q, u)
        com = sum(b.mass * b.com for b in bodies) / sum(b.mass for b in bodies)
        linear = sum(b.mass * b.Jc @ u for b in bodies)
        angular = sum(np.cross(b.com - com, b.mass * b.Jc @ u) + b.inertia @ (b.Jw @ u) for b in bodies)
        return np.concatenate([linear, angular])

    def unit_response(self, q, link: str, offset, direction) -> np.ndarray:
        """(nv,) M^-1 J^T direction."""
        return np.linalg.solve(self.mass_matrix(q), self.point_jacobian(q, link, offset).T @ direction)
