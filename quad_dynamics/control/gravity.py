# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation: the feet in contact carry the weight, and no motion is commanded."""

from __future__ import annotations

import numpy as np

from quad_dynamics.control.contact_detector import ContactDetector
from quad_dynamics.control.contact_forces import torques_and_forces
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model


class GravityCompensation:
    """Torques that hold a robot in place; the drives damp it, but there is no stiffness.

    A standing robot can be moved by hand. With no foot in contact, the base is assumed to be supported: the
    torques hold the legs of a robot that lies, or that hangs from a stand.

    Attributes:
        mu: assumed friction of the feet.
        threshold: force at which a foot carries load, relative to its share of the weight.
    """

    phase = ''

    def __init__(self, model: Model, mu: float = 0.4, threshold: float = 0.25) -> None:
        self._model = model
        self.mu, self.threshold = mu, threshold
        self._still = np.zeros(model.nv)
        self._contacts = ContactDetector(model) if model.floating_base else None

    def start(self, state: RobotState) -> None:
        """No state to store."""

    def update(self, state: RobotState) -> Setpoint:
        """The torques for a state, and velocity targets of zero."""
        model = self._model
        feet = self._contacts.update(state, self.threshold) if self._contacts else ()
        tau, _ = torques_and_forces(model, state.q, self._still, self._still, feet, self.mu)
        down = np.zeros(len(model.foot_names), dtype=np.bool_)
        down[list(feet)] = True
        return Setpoint(tau, None, np.zeros(model.nj), down)

    def change(self, settings: ControlSettings) -> None:
        """Change friction and threshold."""
        self.mu, self.threshold = settings.mu, settings.contact_threshold
