# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation: the feet that touch the ground carry the weight, and nothing else is asked for."""

from __future__ import annotations

import numpy as np

from quad_dynamics.control.contact_detector import ContactDetector
from quad_dynamics.control.contact_forces import torques_and_forces
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model


class GravityCompensation:
    """Torques that hold a robot still, wherever it is; the drives damp it, and nothing pulls it back.

    A robot that stands can be moved by hand. With no foot on the ground, the base counts as carried: the
    torques hold the legs of a robot that lies, or that hangs from a stand.

    Attributes:
        mu: friction that the feet may count on.
        threshold: share of a foot's part of the weight, from which on it carries.
    """

    phase = ''

    def __init__(self, model: Model, mu: float = 0.4, threshold: float = 0.25) -> None:
        self._model = model
        self.mu, self.threshold = mu, threshold
        self._still = np.zeros(model.nv)
        self._contacts = ContactDetector(model) if model.floating_base else None

    def start(self, state: RobotState) -> None:
        """Nothing to remember."""

    def update(self, state: RobotState) -> Setpoint:
        """The torques for a state, and velocity targets of zero."""
        model = self._model
        feet = self._contacts.update(state, self.threshold) if self._contacts else ()
        tau, _ = torques_and_forces(model, state.q, self._still, self._still, feet, self.mu)
        down = np.zeros(len(model.foot_names), dtype=np.bool_)
        down[list(feet)] = True
        return Setpoint(tau, None, np.zeros(model.nj), down)

    def change(self, settings: ControlSettings) -> None:
        """Take other friction and threshold."""
        self.mu, self.threshold = settings.mu, settings.contact_threshold
