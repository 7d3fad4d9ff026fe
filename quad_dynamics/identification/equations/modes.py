# SPDX-License-Identifier: Apache-2.0
"""The modes of identification: which rows of the equation of motion are used."""

from __future__ import annotations

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

AUTO = 'auto'  # selects the mode from robot and recording
MEANINGS = {
    'fixed': 'fixed base',
    'forces': 'floating base, measured forces at the feet',
    'projection': 'floating base, forces at the feet unknown (projected out)',
    'base': 'floating base, rows of the base alone',
}
MODES = tuple(MEANINGS)


def needs_forces(mode: str) -> bool:
    """Whether the equations of a mode contain measured foot forces."""
    return mode in ('forces', 'base')


def choose_mode(model: Model, wanted: str, forces_measured: bool) -> str:
    """The mode of the equations.

    Args:
        model: robot.
        wanted: one of `MODES`, or 'auto'.
        forces_measured: whether the recordings contain the forces of all feet.

    Raises:
        ArgumentError: unknown mode, or one that needs foot forces that were not measured.
    """
    if wanted not in (AUTO, *MODES):
        raise ArgumentError(f'mode is {wanted!r}; expected auto, {", ".join(MODES)}')
    if needs_forces(wanted) and not forces_measured:
        raise ArgumentError(f"mode is '{wanted}', but the recordings contain no foot forces")
    if wanted != AUTO:
        return wanted
    if not model.floating_base:
        return 'fixed'
    return 'forces' if forces_measured else 'projection'
