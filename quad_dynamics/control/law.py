# SPDX-License-Identifier: Apache-2.0
"""What every control law has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState

if TYPE_CHECKING:
    from quad_dynamics.control.modes.settings import ModeSettings


class Law(Protocol):
    """A control law: it begins at a state, then gives a setpoint for each state.

    It has no clock; states come with their times. All laws of `quad_dynamics.control` are such laws.
    """

    def start(self, state: RobotState) -> None:
        """Begin at a state."""

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state."""


class ModeLaw(Law, Protocol):
    """The law of a mode: it says what it is doing, and its settings may change while it runs."""

    @property
    def phase(self) -> str:
        """What it is doing, '' if it always does the same."""

    def change(self, settings: ModeSettings) -> None:
        """Take other settings, without beginning anew."""
