# SPDX-License-Identifier: Apache-2.0
"""Computed torque: by inverse dynamics, every joint behaves like an independent spring-damper.

With a fixed base, the desired accelerations of the joints,

    qdd = qdd_r + omega^2 (q_r - q_j) + 2 zeta omega (qd_r - qd_j),

are inserted into the equation of motion. On feet, the equation of motion uses only those of the trajectory,
qdd_r. The motion of the base follows from the feet, which stay in place: J_c du = -dJ_c/dt u, by least
squares; the forces on the feet then balance it (`contact_forces`). Feedback acts only through the inertia of
the legs, M_jj, and through the stiffness and damping of the drives. Feedback through the inertia of the whole
robot would be correct only on rigid ground: on compliant ground a joint at first moves only its shank, and
gains that are right for the whole robot make it oscillate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import joint_friction
from quad_dynamics.api.dynamics import inverse_dynamics, mass_matrix
from quad_dynamics.array_types import Floats
from quad_dynamics.control.contact_detector import ContactDetector
from quad_dynamics.control.contact_forces import foot_points, forces_for
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.trajectory import JointTrajectory
from quad_dynamics.model.model import Model

# Desired joint speed below which Coulomb friction fades to zero [rad/s or m/s].
_SLOW = 0.05
# Singular values below this share of the largest are motions of the base that the feet do not determine.
_RANK = 1e-6
# Time within which a trajectory that starts elsewhere, or has already started, is joined [s].
_BLEND = 0.5


class ComputedTorque:
    """Tracks joint trajectories; without one it holds its initial posture.

    With a fixed base, the setpoints contain torques only: stiffness and damping of the drives are not used.

    Attributes:
        settings: omega, zeta, mu and contact_threshold.
    """

    def __init__(self, model: Model, settings: ControlSettings | None = None) -> None:
        self._model, self.settings = model, settings or ControlSettings()
        self._viscous, self._coulomb = joint_friction(model)
        self._points = foot_points(model) if model.floating_base else None
        self._contacts = ContactDetector(model)
        self.reset()

    def reset(self) -> None:
        """Discard trajectory and posture; it starts at the next state."""
        self._hold: Floats | None = None
        self._trajectory: JointTrajectory | None = None
        self._start = self._time = 0.0
        self._contacts.reset()
        self._now: tuple[Floats, Floats] | None = None
        self._waiting: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None, npt.ArrayLike | None] | None
        self._waiting = None

    def start(self, state: RobotState) -> None:
        """Start at a state: hold the joints in place."""
        self.reset()

    @property
    def phase(self) -> str:
        """'follow' while there is a trajectory, else 'hold'."""
        return 'hold' if self.finished else 'follow'

    @property
    def finished(self) -> bool:
        """Whether no trajectory is being followed."""
        return self._waiting is None and self._trajectory is None

    def set_trajectory(
        self,
        times: npt.ArrayLike,
        q: npt.ArrayLike,
        qd: npt.ArrayLike | None = None,
        qdd: npt.ArrayLike | None = None,
        start_time: float = 0.0,
    ) -> None:
        """Follow a trajectory from now on, instead of the previous one.

        Args:
            times: (n,) since the start, increasing, the first at least 0 [s].
            q: (n, nj) positions [rad or m].
            qd: (n, nj) velocities, None if they are not given.
            qdd: (n, nj) accelerations, likewise; they require velocities.
            start_time: start in the time of the states; if it has passed, it is joined midway [s].

        Raises:
            ArgumentError: the points are invalid; the previous trajectory continues.
        """
        q_now, qd_now = self._now or (np.zeros(self._model.nj), np.zeros(self._model.nj))
        passed = max(self._time - start_time, 0.0)
        made = JointTrajectory(times, q, qd, qdd, q_now, qd_now, _BLEND, passed)
        self._start = float(start_time)
        if self._now is None:  # the initial state is not known yet
            self._waiting = (times, q, qd, qdd)
        else:
            self._trajectory, self._waiting = made, None

    def update(self, state: RobotState) -> Setpoint:
        """Torques for a state; on feet, also positions and velocities that the drives track."""
        model, settings = self._model, self.settings
        skip = model.nv - model.nj
        q_j, qd_j = state.q[model.nq - model.nj :], state.u[skip:]
        q_r, qd_r, qdd_r = self._reference(state, q_j, qd_j)
        back = settings.omega**2 * (q_r - q_j) + 2.0 * settings.zeta * settings.omega * (qd_r - qd_j)
        friction = self._viscous * qd_j + self._coulomb * np.clip(qd_r / _SLOW, -1.0, 1.0)
        if self._points is None:
            return Setpoint(inverse_dynamics(model, state.q, state.u, qdd_r + back) + friction)
        feet = self._contacts.update(state, settings.contact_threshold)
        tau = self._on_feet(state, qdd_r, feet) + mass_matrix(model, state.q)[6:, 6:] @ back
        down = np.zeros(self._points.count, dtype=np.bool_)
        down[list(feet)] = True
        return Setpoint(tau + friction, q_r.copy(), qd_r.copy(), down)

    def change(self, settings: ControlSettings) -> None:
        """Change frequency, damping, friction and threshold without a restart."""
        self.settings = settings

    def _on_feet(self, state: RobotState, qdd: Floats, feet: tuple[int, ...]) -> Floats:
        """Torques (nj,) for accelerations of the joints, with some feet in contact.

        Without feet in contact, the base is assumed to be supported by something else.
        """
        model, points = self._model, self._points
        assert points is not None
        du = np.concatenate([np.zeros(6), qdd])
        if not feet:
            return inverse_dynamics(model, state.q, state.u, du)[6:]
        J = points.jacobian(state.q, feet)
        left = -points.bias(state.q, state.u, feet) - J[:, 6:] @ qdd
        # rotations are multiplied by the leg length
        du[:6] = np.linalg.lstsq(J[:, :6] * points.row_scale, left, rcond=_RANK)[0] * points.row_scale
        wanted = inverse_dynamics(model, state.q, state.u, du)
        forces = forces_for(points, J, feet, wanted, self.settings.mu)
        return np.asarray((wanted - forces[list(feet)].ravel() @ J)[6:])

    def _reference(self, state: RobotState, q_j: Floats, qd_j: Floats) -> tuple[Floats, Floats, Floats]:
        """Current reference positions, velocities and accelerations."""
        if self._hold is None:
            self._hold = np.clip(q_j, self._model.q_min, self._model.q_max)
        if self._waiting is not None:
            passed = max(state.time - self._start, 0.0)
            self._trajectory = JointTrajectory(*self._waiting, np.array(q_j), np.array(qd_j), _BLEND, passed)
            self._waiting = None
        if self._trajectory is None:
            zero = np.zeros(self._model.nj)
            found = self._hold, zero, zero
        else:
            found = self._trajectory.sample(state.time - self._start)
            if state.time - self._start >= max(self._trajectory.duration, self._trajectory.blended):
                self._hold, self._trajectory = found[0], None
        self._now, self._time = (found[0], found[1]), state.time
        return found
