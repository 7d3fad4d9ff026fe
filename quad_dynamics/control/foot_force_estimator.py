# SPDX-License-Identifier: Apache-2.0
"""Forces on the feet, estimated from joint states, torques and odometry."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.observer import MomentumObserver
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model

_SHORTEST_STEP = 1e-4  # between two states of the observer [s]
# Maximum wait for a new state of the base. If the base is at rest, odometry repeats its state exactly [s].
_LONGEST_WAIT = 8e-3


class FootForceEstimator:
    """The momentum observer, updated with incoming states.

    Odometry is less frequent than joint states. Momentum computed from old base velocities and new joint
    velocities would be wrong. So the observer is updated when the state of the base has changed, or after
    8 ms, with the mean of the torques since the last update.
    """

    def __init__(self, model: Model, gain: float) -> None:
        self._model = model
        self.observer = MomentumObserver(model, gain)
        self.restart()

    def restart(self) -> None:
        """Restart with the next state."""
        self.observer.reset()
        self._before: RobotState | None = None
        self._tau, self._count = np.zeros(self._model.nj), 0

    def update(self, state: RobotState) -> None:
        """Take the next state."""
        before = self._before
        self._tau += state.tau
        self._count += 1
        if before is not None:
            dt = state.time - before.time
            if dt < _SHORTEST_STEP or (dt < _LONGEST_WAIT and self._same_base(before.q, state.q)):
                return
            mean = RobotState(state.time, state.q, state.u, None, self._tau / self._count)
            self.observer.update(mean, dt)
        else:
            self.observer.update(state, _SHORTEST_STEP)
        self._before = state
        self._tau, self._count = np.zeros(self._model.nj), 0

    def _same_base(self, before: Floats, now: Floats) -> bool:
        return self._model.floating_base and before[:7].tobytes() == now[:7].tobytes()

    def forces(self) -> Floats:
        """(feet, 3) in world axes [N]; zero before the first estimate."""
        if self._before is None or not self._model.foot_names:
            return np.zeros((len(self._model.foot_names), 3))
        return self.observer.foot_forces(self._before.q, self.observer.residual)
