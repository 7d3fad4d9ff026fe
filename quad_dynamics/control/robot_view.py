# SPDX-License-Identifier: Apache-2.0
"""A measured state with derived quantities for walking: centre of mass, heading, and motion of the feet."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quad_dynamics.api.controller import ControllerTerms, controller_terms
from quad_dynamics.api.whole_body import FootMotions
from quad_dynamics.array_types import Floats
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model


@dataclass(frozen=True, eq=False)
class RobotView:
    """A state, and quantities derived from it, in world axes.

    Attributes:
        state: measured state.
        terms: of the dynamics; overwritten by the next view.
        R_WB: (3, 3) orientation of the base.
        yaw: heading of the base [rad].
        com: (3,) centre of mass [m].
        velocity: (3,) of the centre of mass [m/s].
        feet: (legs, 3) centres of the feet [m]; overwritten by the next view.
        motions: of each foot, the numbers of `FootMotions`.
    """

    state: RobotState
    terms: ControllerTerms
    R_WB: Floats
    yaw: float
    com: Floats
    velocity: Floats
    feet: Floats
    motions: list[list[float]]

    @property
    def time(self) -> float:
        """Time of the measurement [s]."""
        return self.state.time


class Viewer:
    """Makes views of states, with arrays that are allocated once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._feet = FootMotions(model)
        self._terms: ControllerTerms | None = None

    def view(self, state: RobotState) -> RobotView:
        """The view of a state.

        Raises:
            ArgumentError: the state is not finite, or has a wrong shape.
        """
        model = self._model
        self._terms = terms = controller_terms(model, state.q, state.u, out=self._terms)
        self._feet.update(terms)
        R_WB = rotation(state.q)
        return RobotView(
            state,
            terms,
            R_WB,
            heading(R_WB),
            terms.p_WG,
            terms.J_G @ state.u,
            self._feet.positions,
            self._feet.numbers.tolist(),
        )


def rotation(q: Floats) -> Floats:
    """(3, 3) rotation R_WB of the base."""
    x, y, z, w = q[3:7].tolist()
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def heading(R_WB: Floats) -> float:
    """Direction of the base's x axis, seen from above [rad]."""
    return math.atan2(R_WB[1, 0], R_WB[0, 0])
