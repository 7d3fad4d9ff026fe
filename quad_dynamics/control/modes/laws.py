# SPDX-License-Identifier: Apache-2.0
"""The law of each mode."""

from __future__ import annotations

from collections.abc import Callable

from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.control.damping import Damping
from quad_dynamics.control.gravity import GravityCompensation
from quad_dynamics.control.law import ModeLaw
from quad_dynamics.control.modes import names
from quad_dynamics.control.modes.commanded_walker import CommandedWalker
from quad_dynamics.control.modes.passthrough import Passthrough
from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.stand import StandUp
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

_LAWS: dict[str, Callable[[Model, ModeSettings], ModeLaw]] = {
    names.STAND: StandUp,
    names.GRAVITY: lambda model, settings: GravityCompensation(
        model, settings.mu, settings.contact_threshold
    ),
    names.COMPUTED_TORQUE: ComputedTorque,
    names.DAMPING: lambda model, settings: Damping(model),
    names.PASSTHROUGH: Passthrough,
    names.WHOLE_BODY: CommandedWalker,
}


def make_laws(model: Model, settings: ModeSettings) -> tuple[dict[str, ModeLaw], dict[str, str]]:
    """All laws that a robot supports, and for the other modes the reason why not."""
    laws: dict[str, ModeLaw] = {}
    refused: dict[str, str] = {}
    for mode in names.MODES:
        try:
            laws[mode] = _LAWS[mode](model, settings)
        except ArgumentError as error:
            refused[mode] = str(error)
    return laws, refused
