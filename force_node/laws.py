# SPDX-License-Identifier: Apache-2.0
"""The control laws of all modes, with the same face: begin at a state, then give a setpoint for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from force_node.settings import ForceSettings
from force_node.targets import Targets
from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.control.damping import Damping
from quad_dynamics.control.gravity import GravityCompensation
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import MODES
from quad_dynamics.control.stand import StandUp
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.velocity_command import VelocityCommand
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan

if TYPE_CHECKING:
    from quad_dynamics.control.walker import Walker


class Law(Protocol):
    """What every mode has."""

    @property
    def phase(self) -> str:
        """What it is doing, '' if it does always the same."""

    def start(self, state: RobotState) -> None:
        """Begin at a state."""

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state."""

    def change(self, settings: ForceSettings) -> None:
        """Take other settings, without beginning anew."""


class DampingLaw:
    """No torque, and all joints come to rest."""

    phase = ''

    def __init__(self, model: Model, settings: ForceSettings) -> None:
        self._law = Damping(model)

    def start(self, state: RobotState) -> None:
        """Nothing to remember."""

    def update(self, state: RobotState | None) -> Setpoint:
        """See `Damping`."""
        return self._law.update(state)

    def change(self, settings: ForceSettings) -> None:
        """Nothing to change: the drives have the gains."""


class GravityLaw:
    """The feet that touch the ground carry the weight."""

    phase = ''

    def __init__(self, model: Model, settings: ForceSettings) -> None:
        self._law = GravityCompensation(model, settings.mu)
        self.change(settings)

    def start(self, state: RobotState) -> None:
        """Nothing to remember."""

    def update(self, state: RobotState) -> Setpoint:
        """See `GravityCompensation`."""
        return self._law.update(state)

    def change(self, settings: ForceSettings) -> None:
        """Take other friction and threshold."""
        self._law.mu, self._law.threshold = settings.mu, settings.contact_threshold


class StandLaw:
    """Gets up, and stands."""

    def __init__(self, model: Model, settings: ForceSettings) -> None:
        self._law = StandUp(model, settings)

    @property
    def phase(self) -> str:
        """See `StandUp`."""
        return self._law.phase

    def start(self, state: RobotState) -> None:
        """Get up from here."""
        self._law.start(state)

    def update(self, state: RobotState) -> Setpoint:
        """See `StandUp`."""
        return self._law.update(state)

    def change(self, settings: ForceSettings) -> None:
        """Take other times and friction."""
        self._law.settings = settings


class TrackingLaw:
    """Follows joint targets; holds the joints where they are until some come."""

    def __init__(self, model: Model, settings: ForceSettings) -> None:
        self._law = ComputedTorque(model, settings)

    @property
    def phase(self) -> str:
        """Whether targets are followed, or the last one is held."""
        return 'hold' if self._law.finished else 'follow'

    def start(self, state: RobotState) -> None:
        """Hold the joints where they are."""
        self._law.reset()

    def follow(self, targets: Targets) -> None:
        """Follow these targets in place of any other."""
        self._law.set_trajectory(targets.times, targets.q, targets.qd, targets.qdd, targets.start)

    def update(self, state: RobotState) -> Setpoint:
        """See `ComputedTorque`."""
        return self._law.update(state)

    def change(self, settings: ForceSettings) -> None:
        """Take another frequency and damping."""
        self._law.settings = settings


class PassthroughLaw:
    """Sends the last command on; damps when it is too old."""

    def __init__(self, model: Model, settings: ForceSettings) -> None:
        self._damping = Damping(model)
        self._timeout = settings.command_timeout
        self._command: Setpoint | None = None
        self._received = -np.inf
        self._time = 0.0
        self.phase = 'no command'

    def start(self, state: RobotState) -> None:
        """Forget commands that were meant for another time."""
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

    def change(self, settings: ForceSettings) -> None:
        """Take another timeout."""
        self._timeout = settings.command_timeout


class WholeBodyLaw:
    """Stands up, stands, and walks at the velocity of the last command; stops when it is too old.

    Time is that of the states: also how old a command is.
    """

    def __init__(self, model: Model, settings: ForceSettings) -> None:
        self._walker = _make_walker(model, settings)
        self._velocity = VelocityCommand(self._walker, settings.cmd_timeout)
        self._is_led = settings.planner == 'external'

    @property
    def phase(self) -> str:
        """See `Walker`."""
        return self._walker.phase

    def start(self, state: RobotState) -> None:
        """Get up from here, or stand; commands that were meant for another time are forgotten."""
        self._velocity.stop()
        self._walker.start(state)
        self._velocity.watch(state.time)

    def command(self, vx: float, vy: float, wz: float) -> str:
        """Take a velocity; its time is that of the last state.

        Where plans come from another node, velocities are for that node: without plans the robot stands.

        Returns:
            '' for a velocity that is within limits, else what was limited.

        Raises:
            ArgumentError: a value that is not finite; the command is as before then.
        """
        return '' if self._is_led else self._velocity.take(vx, vy, wz)

    def follow(self, plan: MotionPlan) -> None:
        """Follow a plan of another node; see `Walker`."""
        self._walker.follow(plan)

    def update(self, state: RobotState) -> Setpoint:
        """See `Walker`."""
        self._velocity.watch(state.time)
        return self._walker.update(state)

    def change(self, settings: ForceSettings) -> None:
        """Take other settings of walking, and another timeout."""
        self._walker.change(settings)
        self._velocity.timeout = settings.cmd_timeout

    def details(self) -> dict[str, Any]:
        """What a user wants to know about walking, by name."""
        walker, counts, plan = self._walker, self._walker.counts, self._walker.plan
        command = (0.0, 0.0, 0.0) if plan is None else plan.command
        return {
            'gait': walker.gait,
            **self._velocity.details(command),
            'solver_failures': counts.failures,
            'solver_limited': counts.limited,
            'late_feet': counts.late,
            'lost_feet': counts.lost,
            'stale_plans': counts.stale_plans,
            'update_us': 1e6 * walker.times.total,
        }


def _make_walker(model: Model, settings: ForceSettings) -> Walker:
    # Here, for all other modes work without a solver.
    try:
        from quad_dynamics.control.walker import Walker
    except ImportError as error:
        raise ArgumentError(f'{error}; expected the solver of whole-body control to be installed') from error
    return Walker(model, settings)


_LAWS: dict[str, type[Law]] = {
    'gravity': GravityLaw,
    'stand': StandLaw,
    'computed_torque': TrackingLaw,
    'damping': DampingLaw,
    'passthrough': PassthroughLaw,
    'whole_body': WholeBodyLaw,
}


def make_laws(model: Model, settings: ForceSettings) -> tuple[dict[str, Law], dict[str, str]]:
    """All laws that a robot can have, and for the other modes why it cannot have them."""
    laws: dict[str, Law] = {}
    refused: dict[str, str] = {}
    for mode in MODES:
        try:
            laws[mode] = _LAWS[mode](model, settings)  # type: ignore[call-arg] # a Protocol has no constructor
        except ArgumentError as error:
            refused[mode] = str(error)
    return laws, refused
