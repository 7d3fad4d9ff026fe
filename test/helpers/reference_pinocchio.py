# SPDX-License-Identifier: Apache-2.0
"""Pinocchio, asked the same questions as quad_dynamics and answering in its conventions.

Pinocchio's free flyer has its velocity in the body frame, [R_WB^T v_WB_W; w_WB_B]; ours has the linear part
in the world frame. With v_pin = T u, T = blkdiag(R_WB^T, 1, 1),

    M = T^T M_pin T,   tau = T^T tau_pin,   J = J_pin T,   C = T^T (C_pin T + M_pin dT/dt),
    a_pin = T du + dT/dt u,   dT/dt u = [-w x R_WB^T v; 0; 0].

Joints are mapped by name; a continuous joint, which Pinocchio stores as (cos, sin), by its angle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def robots_folder() -> Path:
    """Folder of the robots of example-robot-data, which is installed with Pinocchio."""
    return Path(pin.__file__).resolve().parents[4] / 'share' / 'example-robot-data' / 'robots'


def read_urdf(source: str | Path) -> str:
    """URDF text, of a path or of text."""
    return (
        source if isinstance(source, str) and '<robot' in source else Path(source).read_text(encoding='utf-8')
    )


class PinocchioReference:
    """One robot in Pinocchio; every method speaks the conventions of quad_dynamics."""

    def __init__(
        self,
        source: str | Path,
        floating_base: bool,
        joint_names: Iterable[str] | None = None,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        armature: Sequence[float] | None = None,
    ) -> None:
        """Build from URDF text or path; joint_names gives the order of q_j (default: that of Pinocchio)."""
        text = read_urdf(source)
        self.floating_base = floating_base
        self.model = (
            pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
            if floating_base
            else pin.buildModelFromXML(text)
        )
        self.model.gravity.linear = np.array(gravity, dtype=float)
        self.base = 6 if floating_base else 0
        self.joint_names = (
            list(joint_names)
            if joint_names is not None
            else list(self.model.names)[2 if floating_base else 1 :]
        )
        self._map_joints()
        if armature is not None:
            values = np.zeros(self.model.nv)
            values[self.iv[self.base :]] = armature
            self.model.armature = values
        self.data = self.model.createData()

    def add_frames(self, model: Any) -> None:
        """Add what our model has beside the links of the file: feet at the ends of legs."""
        for name, frame in model.frames.items():
            if not self.model.existFrame(name, pin.FrameType.BODY):
                joint = model.joint_names[frame.body - bool(model.floating_base)]
                placement = pin.SE3(np.array(frame.R), np.array(frame.p))
                index = self.model.getJointId(joint)
                self.model.addFrame(pin.Frame(name, index, placement, pin.FrameType.BODY))
        self.data = self.model.createData()

    def _map_joints(self) -> None:
        known = set(list(self.model.names)[2 if self.floating_base else 1 :])
        assert set(self.joint_names) == known, (
            f'joints {sorted(self.joint_names)}, Pinocchio has {sorted(known)}'
        )
        joints = [self.model.joints[self.model.getJointId(name)] for name in self.joint_names]
        self.iq = [joint.idx_q for joint in joints]
        self.angle_as_pair = [joint.nq == 2 for joint in joints]
        self.iv = np.array([*range(self.base), *(joint.idx_v for joint in joints)], dtype=int)
        self.nj = len(joints)
        self.nv = self.base + self.nj
        self.nq = self.nv + (1 if self.floating_base else 0)

    # ---- conversions

    def R_WB(self, q: np.ndarray) -> np.ndarray:
        """Attitude of the base."""
        return pin.Quaternion(np.asarray(q[3:7], dtype=float)).normalized().toRotationMatrix()

    def q_pin(self, q: np.ndarray) -> np.ndarray:
        """Our q in Pinocchio's order."""
        q_pin = pin.neutral(self.model)
        if self.floating_base:
            q_pin[:7] = q[:7]
        for k, value in enumerate(q[self.nq - self.nj :]):
            if self.angle_as_pair[k]:
                q_pin[self.iq[k] : self.iq[k] + 2] = np.cos(value), np.sin(value)
            else:
                q_pin[self.iq[k]] = value
        return q_pin

    def T(self, q: np.ndarray) -> np.ndarray:
        """(nv, nv) of v_pin[iv] = T u."""
        T = np.eye(self.nv)
        if self.floating_base:
            T[:3, :3] = self.R_WB(q).T
        return T

    def dT(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Rate of T along u."""
        dT = np.zeros((self.nv, self.nv))
        if self.floating_base:
            dT[:3, :3] = -pin.skew(np.asarray(u[3:6], dtype=float)) @ self.R_WB(q).T
        return dT

    def _scatter(self, ordered: np.ndarray) -> np.ndarray:
        result = np.zeros(self.model.nv)
        result[self.iv] = ordered
        return result

    def v_pin(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Our u in Pinocchio's frame and order."""
        return self._scatter(self.T(q) @ u)

    def a_pin(self, q: np.ndarray, u: np.ndarray, du: np.ndarray) -> np.ndarray:
        """Our du in Pinocchio's frame and order."""
        return self._scatter(self.T(q) @ du + self.dT(q, u) @ u)

    def _forces(self, q: np.ndarray, f_ext: Mapping[str, np.ndarray]) -> list[pin.Force]:
        """World-frame wrenches at link origins as Pinocchio wants them: per joint, in the joint's frame."""
        pin.framesForwardKinematics(self.model, self.data, self.q_pin(q))
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, wrench in f_ext.items():
            frame = self.model.frames[self.frame_id(link)]
            R_WF = self.data.oMf[self.frame_id(link)].rotation
            local = pin.Force(R_WF.T @ np.asarray(wrench)[:3], R_WF.T @ np.asarray(wrench)[3:])
            forces[frame.parentJoint] += frame.placement.act(local)
        return forces

    def frame_id(self, link: str) -> int:
        """Index of a link's frame."""
        index = self.model.getFrameId(link, pin.FrameType.BODY)
        assert index < self.model.nframes, f'Pinocchio has no link {link!r}'
        return index

    # ---- dynamics

    def inverse_dynamics(self, q, u, du, f_ext=None) -> np.ndarray:
        """(nv,) by recursive Newton-Euler."""
        arguments = (self.model, self.data, self.q_pin(q), self.v_pin(q, u), self.a_pin(q, u, du))
        tau = pin.rnea(*arguments, self._forces(q, f_ext)) if f_ext else pin.rnea(*arguments)
        return self.T(q).T @ tau[self.iv]

    def forward_dynamics(self, q, u, tau, f_ext=None) -> np.ndarray:
        """(nv,) du by the articulated-body algorithm."""
        T = self.T(q)
        tau_pin = self._scatter(T @ tau)  # tau_pin = T^-T tau, and T is orthogonal
        arguments = (self.model, self.data, self.q_pin(q), self.v_pin(q, u), tau_pin)
        a = pin.aba(*arguments, self._forces(q, f_ext)) if f_ext else pin.aba(*arguments)
        return T.T @ (a[self.iv] - self.dT(q, u) @ u)

    def _mass_matrix_pin(self, q) -> np.ndarray:
        M = pin.crba(self.model, self.data, self.q_pin(q))
        M = np.triu(M) + np.triu(M, 1).T  # older versions fill the upper triangle only
        return M[np.ix_(self.iv, self.iv)]

    def mass_matrix(self, q) -> np.ndarray:
        """(nv, nv) by composite rigid bodies."""
        return self.T(q).T @ self._mass_matrix_pin(q) @ self.T(q)

    def coriolis_matrix(self, q, u) -> np.ndarray:
        """(nv, nv) Pinocchio's Christoffel-consistent factorisation, carried over to our velocities."""
        M, T = self._mass_matrix_pin(q), self.T(q)
        C = pin.computeCoriolisMatrix(self.model, self.data, self.q_pin(q), self.v_pin(q, u))
        return T.T @ (C[np.ix_(self.iv, self.iv)] @ T + M @ self.dT(q, u))

    def gravity(self, q) -> np.ndarray:
        """(nv,) generalised gravity."""
        g = pin.computeGeneralizedGravity(self.model, self.data, self.q_pin(q))
        return self.T(q).T @ g[self.iv]

    def nonlinear_effects(self, q, u) -> np.ndarray:
        """(nv,) h, what inverse dynamics gives with du = 0 in our sense."""
        return self.inverse_dynamics(q, u, np.zeros(self.nv))

    def energy(self, q, u) -> tuple[float, float]:
        """Kinetic and potential energy [J]."""
        kinetic = pin.computeKineticEnergy(self.model, self.data, self.q_pin(q), self.v_pin(q, u))
        return kinetic, pin.computePotentialEnergy(self.model, self.data, self.q_pin(q))

    def regressor(self, q, u, du, body_names: Iterable[str]) -> np.ndarray:
        """(nv, 10 * bodies) joint torque regressor, blocks in the order of body_names."""
        Y = pin.computeJointTorqueRegressor(
            self.model, self.data, self.q_pin(q), self.v_pin(q, u), self.a_pin(q, u, du)
        )
        columns = [10 * (self.joint_of(name) - 1) + k for name in body_names for k in range(10)]
        return self.T(q).T @ Y[np.ix_(self.iv, columns)]

    def joint_of(self, link: str) -> int:
        """Pinocchio's index of the joint that carries a link."""
        return self.model.frames[self.frame_id(link)].parentJoint

    def pi(self, body_names: Iterable[str]) -> np.ndarray:
        """(10 * bodies,) inertial parameters, fixed links merged."""
        return np.concatenate(
            [self.model.inertias[self.joint_of(name)].toDynamicParameters() for name in body_names]
        )

    # ---- kinematics

    def frame_pose(self, q, frame: str) -> tuple[np.ndarray, np.ndarray]:
        """(R_WF, p_WF)."""
        pin.framesForwardKinematics(self.model, self.data, self.q_pin(q))
        pose = self.data.oMf[self.frame_id(frame)]
        return pose.rotation.copy(), pose.translation.copy()

    def frame_velocity(self, q, u, frame: str) -> np.ndarray:
        """(6,) [v_WF_W; w_WF_W]."""
        pin.forwardKinematics(self.model, self.data, self.q_pin(q), self.v_pin(q, u))
        return pin.getFrameVelocity(self.model, self.data, self.frame_id(frame), WORLD_ALIGNED).vector.copy()

    def frame_jacobian(self, q, frame: str) -> np.ndarray:
        """(6, nv), world-aligned at the frame's origin."""
        J = pin.computeFrameJacobian(
            self.model, self.data, self.q_pin(q), self.frame_id(frame), WORLD_ALIGNED
        )
        return J[:, self.iv] @ self.T(q)

    def frame_bias_acceleration(self, q, u, frame: str) -> np.ndarray:
        """(6,) dJ/dt u: the classical acceleration with du = 0 in our sense."""
        a = self.a_pin(q, u, np.zeros(self.nv))
        pin.forwardKinematics(self.model, self.data, self.q_pin(q), self.v_pin(q, u), a)
        pin.updateFramePlacements(self.model, self.data)
        frame_id = self.frame_id(frame)
        return pin.getFrameClassicalAcceleration(self.model, self.data, frame_id, WORLD_ALIGNED).vector.copy()

    def center_of_mass(self, q) -> np.ndarray:
        """(3,) of all that moves."""
        return pin.centerOfMass(self.model, self.data, self.q_pin(q)).copy()

    def com_jacobian(self, q) -> np.ndarray:
        """(3, nv)."""
        return pin.jacobianCenterOfMass(self.model, self.data, self.q_pin(q))[:, self.iv] @ self.T(q)

    def centroidal_momentum_matrix(self, q) -> np.ndarray:
        """(6, nv) A_G, [linear; angular]."""
        return pin.computeCentroidalMap(self.model, self.data, self.q_pin(q))[:, self.iv] @ self.T(q)

    def centroidal_momentum(self, q, u) -> np.ndarray:
        """(6,) [linear; angular]."""
        h = pin.computeCentroidalMomentum(self.model, self.data, self.q_pin(q), self.v_pin(q, u))
        return h.vector.copy()

    def centroidal_bias(self, q, u) -> np.ndarray:
        """(6,) dA_G/dt u."""
        a = self.a_pin(q, u, np.zeros(self.nv))
        pin.computeCentroidalMomentumTimeVariation(self.model, self.data, self.q_pin(q), self.v_pin(q, u), a)
        return self.data.dhg.vector.copy()

    def contact_inertia(self, q, points: Iterable[tuple[str, np.ndarray]]) -> np.ndarray:
        """(3P, 3P) J M^-1 J^T of points (link, offset in the link's frame), world axes."""
        J = np.vstack([self.point_jacobian(q, link, offset) for link, offset in points])
        return J @ np.linalg.solve(self.mass_matrix(q), J.T)

    def point_jacobian(self, q, link: str, offset: np.ndarray) -> np.ndarray:
        """(3, nv) Jacobian of a point of a link."""
        J = self.frame_jacobian(q, link)
        return J[:3] - pin.skew(self.frame_pose(q, link)[0] @ np.asarray(offset, dtype=float)) @ J[3:]

    def operational_space_inertia(self, q, frame: str) -> np.ndarray:
        """(6, 6) (J M^-1 J^T)^-1."""
        J = self.frame_jacobian(q, frame)
        return np.linalg.inv(J @ np.linalg.solve(self.mass_matrix(q), J.T))

    # ---- the manifold R^3 x SO(3) x R^nj

    def integrate(self, q, u, dt: float) -> np.ndarray:
        """Q after moving with constant u (linear part in the world, angular part in the body frame)."""
        if not self.floating_base:
            return q + dt * u
        group = pin.liegroups.SO3()
        quaternion = group.integrate(np.asarray(q[3:7], dtype=float), dt * u[3:6])
        return np.concatenate([q[:3] + dt * u[:3], quaternion, q[7:] + dt * u[6:]])

    def difference(self, q0, q1) -> np.ndarray:
        """(nv,) the velocity that leads from q0 to q1 in one second."""
        if not self.floating_base:
            return q1 - q0
        w = pin.liegroups.SO3().difference(np.asarray(q0[3:7], dtype=float), np.asarray(q1[3:7], dtype=float))
        return np.concatenate([q1[:3] - q0[:3], w, q1[7:] - q0[7:]])
