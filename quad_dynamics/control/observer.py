# SPDX-License-Identifier: Apache-2.0
"""External forces on the robot, from its motion and the torques of its motors.

The generalised-momentum observer (De Luca, Albu-Schaeffer, Haddadin, Hirzinger 2006) compares the momentum
p = M u with the integral of all known forces. Its residual

    r = K (p(t) - p(0) - int (S^T tau_m + C^T u - g + r) dt)

tracks the generalised force of everything else, J^T f, as a first-order lag with the time constant 1 / K,
and does not need accelerations. tau_m is the torque of the motors minus the friction of the joints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quad_dynamics.api.drives import joint_friction
from quad_dynamics.api.dynamics import coriolis_matrix, gravity, mass_matrix
from quad_dynamics.array_types import Floats
from quad_dynamics.control.contact_forces import foot_points
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

# Joint speed below which Coulomb friction fades to zero, because it is unknown at rest [rad/s or m/s].
_SLOW = 0.05
# Singular values below this share of the largest are directions in which the feet cannot push.
_RANK = 1e-6


class MomentumObserver:
    """The observer of one robot.

    Attributes:
        gain: K, the bandwidth [1/s].
        residual: (nv,) the latest estimate of the generalised external forces.
    """

    def __init__(self, model: Model, gain: float = 50.0) -> None:
        """Start with a residual of zero.

        Args:
            model: robot.
            gain: bandwidth [1/s].

        Raises:
            ArgumentError: the gain is not above 0.
        """
        if not 0.0 < gain < np.inf:
            raise ArgumentError(f'gain is {gain!r}; expected a number above 0 [1/s]')
        self._model, self.gain = model, float(gain)
        self._viscous, self._coulomb = joint_friction(model)
        self._has_friction = bool(self._viscous.any() or self._coulomb.any())
        for compute in (mass_matrix, gravity):  # loads the kernels now, not at the first update
            compute(model, model.neutral)
        coriolis_matrix(model, model.neutral, np.zeros(model.nv))
        self.reset()

    def reset(self) -> None:
        """Reset the observer; it starts at the next state."""
        self.residual = np.zeros(self._model.nv)
        self._known: Floats | None = None  # p(0) and the integral of all known forces

    def update(self, state: RobotState, dt: float) -> Floats:
        """The residual (nv,) after a time step.

        Between two states, the residual is integrated exactly for constant known forces, so every dt is
        stable.

        Args:
            state: measured state; its torques acted since the previous one.
            dt: time since the previous state [s].
        """
        model = self._model
        skip = model.nv - model.nj
        p = mass_matrix(model, state.q) @ state.u
        if self._known is None:
            self._known = p
            return self.residual.copy()
        known = coriolis_matrix(model, state.q, state.u).T @ state.u - gravity(model, state.q)
        known[skip:] += state.tau
        if self._has_friction:
            qd = state.u[skip:]
            known[skip:] -= self._viscous * qd + self._coulomb * np.clip(qd / _SLOW, -1.0, 1.0)
        # dr/dt = K (dp/dt - known - r), where dp/dt - known is the external force
        force = (p - self._known) / dt - known
        self._known = p
        self.residual = self.residual + (1.0 - np.exp(-self.gain * dt)) * (force - self.residual)
        return self.residual.copy()

    def foot_forces(
        self, q: Floats, residual: Floats, feet: Sequence[int] | Sequence[str] | None = None
    ) -> Floats:
        """Forces on the feet that best explain a residual, by least squares over all rows.

        Args:
            q: (nq,) configuration.
            residual: (nv,) of `update`.
            feet: names or indices of the feet in contact; None: all.

        Returns:
            (feet, 3) in world axes [N], in the order of foot_names; zero for the others.
        """
        points = foot_points(self._model)
        index = list(range(points.count)) if feet is None else points.indices(feet)
        forces = np.zeros((points.count, 3))
        if index:
            # moments are divided by the leg length
            scale = np.full(self._model.nv, 1.0 / points.length)
            if self._model.floating_base:
                scale[:3] = 1.0
            J = points.jacobian(q, index)
            forces[index] = np.linalg.lstsq(J.T * scale[:, None], residual * scale, rcond=_RANK)[0].reshape(
                -1, 3
            )
        return forces
