# SPDX-License-Identifier: Apache-2.0
"""Settings of a robot that takes commands, in addition to those of walking."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.modes.names import MEANINGS, MODES, STAND
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.parameters.parameter import param


@dataclass(frozen=True)
class CommandedSettings(WalkerSettings):
    """Settings of a robot that walks at velocities commanded repeatedly."""

    # More cautious than `Walker` alone.
    mu: float = param(
        0.4, 'friction coefficient assumed for the feet', unit='-', low=0.0, high=5.0, dynamic=True
    )
    cmd_timeout: float = param(
        0.2,
        'time without cmd_vel after which the robot stops and stands, in the time of joint_states',
        unit='s',
        low=0.01,
        high=60.0,
        dynamic=True,
    )


@dataclass(frozen=True)
class ModeSettings(CommandedSettings):
    """Settings of the modes."""

    mode: str = param(
        STAND,
        '; '.join(f'{mode}: {meaning}' for mode, meaning in MEANINGS.items()),
        choices=MODES,
        dynamic=True,
    )
    command_timeout: float = param(
        0.25,
        'time without joint_commands after which passthrough damps the joints, in the time of joint_states',
        unit='s',
        low=0.01,
        high=10.0,
        dynamic=True,
    )
