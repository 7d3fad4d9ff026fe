# SPDX-License-Identifier: Apache-2.0
"""The interface of a controller in a scenario, and how it is created."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from quad_dynamics.api.drives import leg_length
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

DEFAULT_PERIOD = 0.4  # of a gait whose controller does not report its period [s]


@runtime_checkable
class WalkingController(Protocol):
    """A walking controller, such as `qd.Walker`.

    Optional attributes:

    * `settings`, a `ControlSettings`: its kp and kd are the gains of the drives,
    * `counts`, an object or a mapping: its `failures` is the number of failed solves so far,
    * `period`: current period of the gait [s],
    * `standing_height`: target height of the base above the ground [m].

    Attributes:
        gait: name of the gait; it can be set.
    """

    gait: str

    def reset(self, state: RobotState) -> None:
        """Start at a state in which the robot stands."""

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint of the drives at the time of a state."""

    def command(self, vx: float, vy: float, wz: float) -> object:
        """Walk at a velocity in the heading frame [m/s, m/s, rad/s]."""


ControllerSource = WalkingController | Callable[[Model], WalkingController] | None


def make_controller(source: ControllerSource, model: Model, control: Mapping[str, Any]) -> WalkingController:
    """The controller of a scenario.

    Args:
        source: a controller, a function that makes one from a model, or None for `Walker`.
        model: the controller's model of the robot.
        control: settings of `Walker` by name; other controllers have their own.

    Raises:
        ArgumentError: it is not a controller, or the settings are invalid.
    """
    if source is None:
        return _walker(model, control)
    is_object = hasattr(source, 'update') and not isinstance(source, type)
    made = source if is_object else cast('Callable[[Model], Any]', source)(model)
    missing = [name for name in ('reset', 'update', 'command', 'gait') if not hasattr(made, name)]
    if missing:
        raise ArgumentError(
            f'controller is {type(made).__name__}, which lacks {", ".join(missing)}; expected reset(state), '
            'update(state), command(vx, vy, wz) and gait'
        )
    return cast('WalkingController', made)


def walker_settings() -> Any:
    """The class of the settings of `Walker`."""
    from quad_dynamics.control.walker_settings import WalkerSettings

    return WalkerSettings


def _walker(model: Model, control: Mapping[str, Any]) -> WalkingController:
    from quad_dynamics.control.walker import Walker  # needs daqp, and takes a moment

    return Walker(model, walker_settings().from_dict(control))


def drive_settings(controller: WalkingController) -> ControlSettings:
    """The settings that hold the gains of the drives."""
    found = getattr(controller, 'settings', None)
    return found if hasattr(found, 'kp') and hasattr(found, 'kd') else ControlSettings()  # type: ignore[return-value]


def solver_failures(controller: WalkingController) -> int:
    """Number of failed solves of a controller so far; 0 if it does not count them."""
    counts = getattr(controller, 'counts', None)
    found = counts.get('failures', 0) if isinstance(counts, Mapping) else getattr(counts, 'failures', 0)
    return int(found)


def gait_period(controller: WalkingController) -> float:
    """Current period of the gait [s]."""
    found = getattr(controller, 'period', None)
    is_period = isinstance(found, (int, float)) and 0.0 < found < math.inf
    return float(found) if is_period else DEFAULT_PERIOD  # type: ignore[arg-type]


def standing_height(controller: WalkingController, model: Model) -> float:
    """Target height of the base above the ground [m]."""
    found = getattr(controller, 'standing_height', None)
    if isinstance(found, (int, float)):
        return float(found)
    assert model.standing is not None
    lowered = 1.0 - float(getattr(drive_settings(controller), 'stand_height', 1.0))
    return float(model.standing[2]) - lowered * leg_length(model)
