# SPDX-License-Identifier: Apache-2.0
"""The interface of control laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState

if TYPE_CHECKING:
    from quad_dynamics.control.modes.settings import ModeSettings


class Law(Protocol):
    """A control law: it starts at a state, and then returns a setpoint for each state.

    It has no clock; states come with their times. All laws of `quad_dynamics.control` implement this.
    """

    def start(self, state: RobotState) -> None:
        """Start at a state."""

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state."""


class ModeLaw(Law, Protocol):
    """The law of a mode: it reports its phase, and its settings can be changed while it runs."""

    @property
    def phase(self) -> str:
        """Current phase, '' if it has only one."""

    def change(self, settings: ModeSettings) -> None:
        """Change settings without a restart."""
