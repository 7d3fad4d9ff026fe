# SPDX-License-Identifier: Apache-2.0
"""Forwards external commands; the guard limits them."""

from __future__ import annotations

import numpy as np

from quad_dynamics.control.damping import Damping
from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model


class Passthrough:
    """Forwards the last command; damps when it is too old."""

    def __init__(self, model: Model, settings: ModeSettings) -> None:
        self._damping = Damping(model)
        self._timeout = settings.command_timeout
        self._command: Setpoint | None = None
        self._received = -np.inf
        self._time = 0.0
        self.phase = 'no command'

    def start(self, state: RobotState) -> None:
        """Discard earlier commands."""
        self._command, self.phase = None, 'no command'
        self._time = state.time

    def command(self, command: Setpoint) -> None:
        """Take a command; its time is that of the last state."""
        self._command, self._received = command, self._time

    def update(self, state: RobotState) -> Setpoint:
        """The command, or damping."""
        self._time = state.time
        if self._command is not None and state.time - self._received > self._timeout:
            self._command = None
        self.phase = 'no command' if self._command is None else 'command'
        return self._damping.update(state) if self._command is None else self._command

    def change(self, settings: ModeSettings) -> None:
        """Change the timeout."""
        self._timeout = settings.command_timeout
