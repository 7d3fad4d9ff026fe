# SPDX-License-Identifier: Apache-2.0
"""A designed motion beside naive ones, and what each of them is worth."""

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
    """A motion and what it is worth.

    Attributes:
        name: of the kind of motion.
        states: at all points of the trajectory.
        quality: of it.
        tightest: limit that it comes nearest to.
    """

    name: str
    states: States
    quality: Quality
    tightest: str


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion, beside naive ones.

    Attributes:
        model: robot.
        joint_names: of the joints that move.
        time: (n,) from 0 to the end [s].
        position: (n, joints) of the joints that move [rad or m].
        velocity: likewise.
        acceleration: likewise.
        best: the designed motion, all of it.
        sway: its part with all feet on the ground; the same where no leg swings.
        naive: single sines, and chirps, within the same limits, as long as the sway.
        lifted: names of the legs that swing after the sway.
        period: of the motion [s].
        criterion: by which it was designed.
        notes: what was assumed.
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
        """As joints are to follow it, after some time for the way to the resting pose [s]."""
        return Trajectory(self.joint_names, self.time + lead, self.position, self.velocity, self.acceleration)

    @property
    def beats_naive(self) -> bool:
        """Whether the designed motion is better than each naive one, in what it was designed for.

        That is the condition number; or log det, and the standard deviations in the mean. What takes the same
        time is compared: where legs swing, the sway before that.
        """
        ours = self.sway.quality
        others = [other.quality for other in self.naive]
        if self.criterion == 'condition':
            return all(ours.condition < other.condition for other in others)
        return all(ours.log_det > other.log_det and std_ratio(ours, other) < 1.0 for other in others)


def std_ratio(ours: Quality, other: Quality) -> float:
    """Predicted standard deviations over those of another motion: the geometric mean of all parameters."""
    return float(np.exp(np.mean(np.log(ours.std) - np.log(other.std))))
