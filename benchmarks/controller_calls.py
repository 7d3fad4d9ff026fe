# SPDX-License-Identifier: Apache-2.0
"""Calls of a controller beyond plain dynamics, against the same calls composed of Pinocchio's functions.

Pinocchio gets favourable conditions: external forces in the frames of its joints, contact models and frame
indices are prepared beforehand, and its results stay in `data`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

import quad_dynamics as qd
from benchmarks.timing import Calls, Contest
from quad_dynamics.array_types import Floats

_WORLD = pin.LOCAL_WORLD_ALIGNED


class Peer:
    """The calls, composed of Pinocchio's functions.

    Attributes:
        model: Pinocchio's model of the robot.
        feet: indices of the feet's frames.
    """

    def __init__(self, model: Any, feet: tuple[str, ...]) -> None:
        self.model, self._data = model, model.createData()
        self.feet = [model.getFrameId(foot) for foot in feet]
        self._zero = np.zeros(model.nv)
        self._contacts = pin.StdVec_RigidConstraintModel()
        self._contact_data = pin.StdVec_RigidConstraintData()
        for foot in self.feet:
            frame = model.frames[foot]
            contact = pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, model, frame.parentJoint, frame.placement, _WORLD
            )
            self._contacts.append(contact)
            self._contact_data.append(contact.createData())

    def forces(self, wrenches: Floats) -> Any:
        """Forces on all joints, from wrenches (feet, 6) in the frames of the feet."""
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero()] * self.model.njoints)
        for foot, wrench in zip(self.feet, wrenches, strict=True):
            frame = self.model.frames[foot]
            forces[frame.parentJoint] = frame.placement.act(pin.Force(wrench))
        return forces

    def inverse_dynamics(self, q: Floats, u: Floats, du: Floats, forces: Any) -> None:
        """Recursive Newton-Euler algorithm with external forces."""
        pin.rnea(self.model, self._data, q, u, du, forces)

    def forward_dynamics(self, q: Floats, u: Floats, tau: Floats, forces: Any) -> None:
        """Articulated-body algorithm with external forces."""
        pin.aba(self.model, self._data, q, u, tau, forces)

    def factored_dynamics(self, q: Floats, u: Floats, tau: Floats) -> None:
        """Forward dynamics by factoring the mass matrix."""
        model, data = self.model, self._data
        pin.crba(model, data, q)
        h = pin.nonLinearEffects(model, data, q, u)
        pin.cholesky.decompose(model, data)
        pin.cholesky.solve(model, data, tau - h)

    def contact_inertia(self, q: Floats) -> None:
        """J M^-1 J^T of the feet."""
        pin.computeDelassusMatrix(self.model, self._data, q, self._contacts, self._contact_data)

    def unit_response(self, q: Floats, force: Floats) -> None:
        """M^-1 J^T f of a force on a foot."""
        model, data = self.model, self._data
        pin.crba(model, data, q)
        pin.cholesky.decompose(model, data)
        J = pin.computeFrameJacobian(model, data, q, self.feet[0], _WORLD)
        pin.cholesky.solve(model, data, force @ J[:3])

    def frame_pose(self, q: Floats) -> None:
        """Pose of a foot."""
        pin.forwardKinematics(self.model, self._data, q)
        pin.updateFramePlacement(self.model, self._data, self.feet[0])

    def controller_terms(self, q: Floats, u: Floats) -> None:
        """All terms at one state; the fastest of several variants."""
        model, data = self.model, self._data
        pin.computeAllTerms(model, data, q, u)
        pin.computeCentroidalMomentumTimeVariation(model, data, q, u, self._zero)
        for foot in self.feet:
            pin.updateFramePlacement(model, data, foot)
            pin.getFrameJacobian(model, data, foot, _WORLD)
            pin.getFrameClassicalAcceleration(model, data, foot, _WORLD)


def contests(model: qd.Model, peer_model: Any, states: tuple[Floats, Floats, Floats]) -> list[Contest]:
    """One contest for each call.

    Args:
        model: robot.
        peer_model: the same in Pinocchio.
        states: q (N, nq), u (N, nv), and (N, nv) accelerations or forces.
    """
    peer, feet = Peer(peer_model, model.foot_names), list(model.foot_names)
    rng = np.random.default_rng(1)
    wrenches = rng.normal(size=(len(states[0]), len(feet), 6))
    f_ext = [dict(zip(feet, rows, strict=True)) for rows in wrenches]
    forces = [peer.forces(rows) for rows in wrenches]
    offset, up = np.zeros(3), np.array([0.0, 0.0, 1.0])
    out = qd.controller_terms(model, states[0][0], states[1][0])
    rows = list(zip(*states, strict=True))
    with_forces = [(*row, f) for row, f in zip(rows, forces, strict=True)]
    with_f_ext = [(model, *row, f) for row, f in zip(rows, f_ext, strict=True)]
    qs, moving = [(q,) for q, _, _ in rows], [(q, u) for q, u, _ in rows]
    return [
        Contest(
            'rnea_f_ext', Calls(qd.inverse_dynamics, with_f_ext), Calls(peer.inverse_dynamics, with_forces)
        ),
        Contest(
            'aba_f_ext', Calls(qd.forward_dynamics, with_f_ext), Calls(peer.forward_dynamics, with_forces)
        ),
        Contest(
            'cholesky',
            Calls(qd.forward_dynamics, [(model, *row, None, False, 'cholesky') for row in rows]),
            Calls(peer.factored_dynamics, rows),
        ),
        Contest(
            'contact_inertia',
            Calls(qd.contact_inertia, [(model, q, feet) for (q,) in qs]),
            Calls(peer.contact_inertia, qs),
        ),
        Contest(
            'unit_response',
            Calls(qd.unit_response, [(model, q, feet[0], offset, up) for (q,) in qs]),
            Calls(peer.unit_response, [(q, up) for (q,) in qs]),
        ),
        Contest(
            'frame_pose',
            Calls(qd.frame_pose, [(model, q, feet[0]) for (q,) in qs]),
            Calls(peer.frame_pose, qs),
        ),
        Contest(
            'controller_terms',
            Calls(qd.controller_terms, [(model, q, u) for q, u in moving]),
            Calls(peer.controller_terms, moving),
        ),
        Contest(
            'controller_terms_out',
            Calls(qd.controller_terms, [(model, q, u, None, out) for q, u in moving]),
            Calls(peer.controller_terms, moving),
        ),
    ]
