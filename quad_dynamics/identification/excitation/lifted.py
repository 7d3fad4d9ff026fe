# SPDX-License-Identifier: Apache-2.0
"""A robot that stands still on all feet but one, and swings that leg."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.excitation.excitation_motion import Standing, States


class Lifted:
    """The joints of one leg move; all other joints, the base and the other feet do not.

    Coordinates are the joints of the leg, relative to the pose in which it is lifted.
    """

    def __init__(self, standing: Standing, foot: int, pose: States) -> None:
        """Lift a foot.

        Args:
            standing: the robot on all its feet.
            foot: index of the foot in the air.
            pose: one state, at rest, with that foot lifted.
        """
        model = self.model = standing.model
        self.joints = standing.joints
        self.length = standing.length
        self.standing, self.rest = standing.rest, pose.q[0]
        self.leg = np.array(model.legs[foot].joint_indices)
        self.down = np.delete(standing.down, foot)
        self._standing, self._foot, self._contact = standing, foot, pose.contact[0]
        at = self.rest[7 + self.leg]
        reach = np.minimum(model.q_max[self.leg] - at, at - model.q_min[self.leg])
        self.scale = np.clip(reach, 0.05, np.where(model.is_prismatic[self.leg], 0.1, 1.0))

    def states(
        self, s: Floats, ds: Floats, dds: Floats, near: States | None = None, same: bool = False
    ) -> States:
        """See `Motion`."""
        n, nv = len(s), self.model.nv
        q, u, du = np.tile(self.rest, (n, 1)), np.zeros((n, nv)), np.zeros((n, nv))
        q[:, 7 + self.leg] += s
        u[:, 6 + self.leg], du[:, 6 + self.leg] = ds, dds
        return States(q, u, du, np.zeros(n), np.tile(self._contact, (n, 1, 1)))

    def stretch(self, states: States) -> Floats:
        """See `Standing`; for the feet on the ground."""
        return self._standing.stretch(states)[:, self.down]

    def support(self) -> Floats:
        """(feet on the ground, 2) positions of these feet [m]."""
        return self._standing.support()[self.down]

    def foot_height(self, states: States) -> Floats:
        """(n,) height of the lowest point of the foot in the air [m]."""
        return self._standing.foot_height(states.q, self._foot)
