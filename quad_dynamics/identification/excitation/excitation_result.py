# SPDX-License-Identifier: Apache-2.0
"""A designed motion compared with naive ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.excitation.excitation_bag import Trajectory
from quad_dynamics.identification.excitation.excitation_information import Quality
from quad_dynamics.identification.excitation.excitation_motion import States
from quad_dynamics.model.model import Model


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion and its quality.

    Attributes:
        name: of the type of motion.
        states: at all points of the trajectory.
        quality: of it.
        tightest: the limit with the smallest margin.
    """

    name: str
    states: States
    quality: Quality
    tightest: str


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion, compared with naive ones.

    Attributes:
        model: robot.
        joint_names: of the moving joints.
        time: (n,) from 0 to the end [s].
        position: (n, joints) of the moving joints [rad or m].
        velocity: (n, joints) [rad/s or m/s].
        acceleration: (n, joints) [rad/s^2 or m/s^2].
        best: the complete designed motion.
        sway: its part with all feet on the ground; the same if no leg swings.
        naive: sines and chirps within the same limits, of the length of the sway.
        lifted: names of the legs that swing after the sway.
        period: of the motion [s].
        criterion: of the design.
        notes: assumptions.
    """

    model: Model
    joint_names: tuple[str, ...]
    time: Floats
    position: Floats
    velocity: Floats
    acceleration: Floats
    best: Candidate
    sway: Candidate
    naive: tuple[Candidate, ...]
    lifted: tuple[str, ...]
    period: float
    criterion: str
    notes: tuple[str, ...]

    def trajectory(self, lead: float) -> Trajectory:
        """The trajectory for the joints, after a lead time for the motion to the rest pose [s]."""
        return Trajectory(self.joint_names, self.time + lead, self.position, self.velocity, self.acceleration)

    @property
    def beats_naive(self) -> bool:
        """Whether the designed motion is better than each naive one, by its criterion.

        This is the condition number; or log det, and the mean of the standard deviations. Motions of the same
        duration are compared: if legs swing, the sway before that.
        """
        ours = self.sway.quality
        others = [other.quality for other in self.naive]
        if self.criterion == 'condition':
            return all(ours.condition < other.condition for other in others)
        return all(ours.log_det > other.log_det and std_ratio(ours, other) < 1.0 for other in others)


def std_ratio(ours: Quality, other: Quality) -> float:
    """Ratio of predicted standard deviations to those of another motion: geometric mean of all parameters."""
    return float(np.exp(np.mean(np.log(ours.std) - np.log(other.std))))
