# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario in lock-step: simulator and controller take turns, independent of the wall clock."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning, SimulationDiverged
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.model import Model
from quad_dynamics.parameters.parameter import unknown
from quad_dynamics.scenarios.controller import (
    ControllerSource,
    WalkingController,
    drive_settings,
    gait_period,
    make_controller,
    solver_failures,
    standing_height,
)
from quad_dynamics.scenarios.draws import generator
from quad_dynamics.scenarios.falls import FallDetector
from quad_dynamics.scenarios.measures import measure
from quad_dynamics.scenarios.scenario_file import ScenarioFile
from quad_dynamics.scenarios.settings import CONTROL_PERIOD, Event, Push, Scenario
from quad_dynamics.scenarios.traces import Traces
from quad_dynamics.scenarios.true_robot import payload_link, true_robot
from quad_dynamics.simulation.command import JointCommand
from quad_dynamics.simulation.log import Log
from quad_dynamics.simulation.simulator import Simulator

Progress = Callable[[float], None]

_CHUNK = 50  # control periods between two checks for a fall
_AFTER_FALL = 0.2  # time that a run continues after a fall [s]


@dataclass(frozen=True, eq=False)
class ScenarioRun:
    """A run of one seed.

    Attributes:
        row: of results.csv, by column.
        traces: time series at 500 Hz.
        log: of the simulator, at 500 Hz.
        sim: the simulator at the end of the run.
        scenario: as it was drawn.
        height: target height of the base [m].
    """

    row: Mapping[str, Any]
    traces: Traces
    log: Log
    sim: Simulator
    scenario: Scenario
    height: float


def run_scenario(
    source: str | os.PathLike[str] | Mapping[str, Any] | ScenarioFile,
    seed: int | None = None,
    controller: ControllerSource = None,
    progress: Progress | None = None,
) -> ScenarioRun:
    """Run one seed of a scenario.

    Args:
        source: path of a YAML file, or a mapping as in such a file (docs/scenarios.md).
        seed: of all random values, including sensor noise; None: the first seed of the scenario.
        controller: a controller, a function that makes one from a model, or None for `Walker` with the
            settings of the scenario.
        progress: called regularly with the time simulated since the last call [s].

    Raises:
        ArgumentError: the scenario is invalid (lists all problems), or the controller rejects something.
    """
    file = source if isinstance(source, ScenarioFile) else ScenarioFile.load(source)
    chosen = file.seeds[0] if seed is None else seed
    if isinstance(chosen, bool) or not isinstance(chosen, (int, np.integer)) or chosen < 0:
        raise ArgumentError(f'seed is {seed!r}; expected a whole number of at least 0')
    return run_seed(file, int(chosen), controller, progress, {})


def run_seed(
    file: ScenarioFile,
    seed: int,
    controller: ControllerSource,
    progress: Progress | None,
    loaded: dict[str, Model],
) -> ScenarioRun:
    """As `run_scenario`, for several runs with the same robots.

    Args:
        file: the scenario.
        seed: of all random values.
        controller: as for `run_scenario`.
        progress: likewise.
        loaded: robots by name or path; new ones are added.
    """
    scenario, model, robot = _robots(file, seed, loaded)
    sim = Simulator(robot, scenario.simulator)
    made = make_controller(controller, model, scenario.control)
    return _Run(scenario, model, sim, made, progress).whole()


def check_robot(file: ScenarioFile, seed: int, loaded: dict[str, Model]) -> None:
    """Check that the robot of a scenario can be loaded and modified as specified by its truth.

    Args:
        file: the scenario.
        seed: of all random values.
        loaded: robots by name or path; new ones are added.

    Raises:
        ArgumentError: it cannot; the message has file and line.
    """
    _robots(file, seed, loaded)


def _robots(file: ScenarioFile, seed: int, loaded: dict[str, Model]) -> tuple[Scenario, Model, Model]:
    """The scenario of a seed, the controller's model of the robot, and the simulated robot."""
    scenario = file.draw(seed)
    source = scenario.robot
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # `quad_dynamics inspect` reports them
        if isinstance(source, Model):
            model = source
        else:
            if source not in loaded:
                try:
                    loaded[source] = load_model(source)
                except ModelError as error:
                    raise ArgumentError(f'{file.place("scenario.robot")}: {error}') from error
            model = loaded[source]
        if not model.floating_base or model.standing is None or not model.foot_names:
            raise ArgumentError(
                f"{file.place('scenario.robot')}: '{model.name}' cannot walk; expected a floating base, feet "
                'and a standing pose'
            )
    link = payload_link(model, scenario.truth.payload)
    if link not in model.frames:
        where = file.place('scenario.truth.payload.link')
        raise ArgumentError(f'{where}: {unknown("", "link", link, model.frames)}')
    try:
        return scenario, model, true_robot(model, scenario.truth)
    except ArgumentError as error:
        raise ArgumentError(f'{file.place("scenario.truth")}: {error}') from error


class _Run:
    """One run: the state of the loop, and the data recorded at every update of the controller."""

    def __init__(
        self,
        scenario: Scenario,
        model: Model,
        sim: Simulator,
        controller: WalkingController,
        progress: Progress | None,
    ) -> None:
        self._scenario, self._sim, self._controller, self._progress = scenario, sim, controller, progress
        self._gains = kp, kd = drive_gains(model, drive_settings(controller), sim.settings.dt)
        self._holds, self._damps = bool(kp.any()), bool(kd.any())
        self._height = standing_height(controller, model)
        self._every = round(CONTROL_PERIOD / sim.settings.dt)  # steps of the simulator
        self._falls = FallDetector(sim)
        self._lost = generator(scenario.seed, 'faults.drop')
        self._events = list(scenario.events)
        self._cmd = np.zeros(3)
        self._feet_down = np.ones(len(model.foot_names), dtype=np.bool_)
        self._ticks: list[tuple[Floats, str, npt.NDArray[np.bool_], float, float]] = []

    def whole(self) -> ScenarioRun:
        """Run until the end, or until after a fall."""
        sim, scenario = self._sim, self._scenario
        sim.reset()
        failures = solver_failures(self._controller)
        self._controller.reset(self._state())
        logs: list[Log] = []
        end, fall_time, done = round(scenario.duration / CONTROL_PERIOD), math.nan, 0
        while done < end:
            count = min(_CHUNK, end - done)
            try:
                logs.append(sim.run(self._turn, count * CONTROL_PERIOD, self._every, progress=False))
            except SimulationDiverged as error:
                logs.append(error.log)
                fall_time = error.time if math.isnan(fall_time) else fall_time
                break
            done += count
            if math.isnan(fall_time):
                fall_time = self._falls.first(logs[-1])
                if not math.isnan(fall_time):
                    end = min(end, math.ceil((fall_time + _AFTER_FALL) / CONTROL_PERIOD - 1e-9))
            if self._progress is not None:
                self._progress(count * CONTROL_PERIOD)
        log = Log.joined(logs)
        traces = self._traces(log)
        failures = solver_failures(self._controller) - failures
        row = measure(scenario, log, traces, sim.terrain, self._height, fall_time, failures)
        return ScenarioRun(row, traces, log, sim, scenario, self._height)

    # ---------------------------------------------------------------- one step

    def _turn(self, sim: Simulator) -> JointCommand | None:
        """Called before each step of the simulator."""
        self._falls.look(sim)
        if sim.step_count % self._every:
            return None
        now = sim.time
        while self._events and self._events[0].time <= now + 1e-9:
            self._happen(self._events.pop(0))
        command, wall = None, math.nan
        if not self._scenario.faults.stalls(now):
            state = self._state()
            begin = time.perf_counter()
            setpoint = self._controller.update(state)
            wall = 1e6 * (time.perf_counter() - begin)
            if setpoint.feet_down is not None:
                self._feet_down = np.array(setpoint.feet_down, dtype=np.bool_)
            if self._lost.random() >= self._scenario.faults.drop:
                command = self._command(setpoint)
        gait, period = str(self._controller.gait), gait_period(self._controller)
        self._ticks.append((self._cmd, gait, self._feet_down, period, wall))
        return command

    def _state(self) -> RobotState:
        """The input of the controller: the true state of the base, and measurements of everything else."""
        sim = self._sim
        q, u = sim.q, sim.u
        q[7:], u[6:], tau, forces = sim.leg_sensors()
        return RobotState(sim.time, q, u, forces if self._scenario.foot_sensors else None, tau)

    def _command(self, setpoint: Setpoint) -> JointCommand:
        """The setpoint with the gains of the drives."""
        kp, kd = self._gains
        q = setpoint.q if self._holds else None
        qd = setpoint.qd if self._damps else None
        if q is not None and qd is None and self._damps:
            qd = np.zeros_like(kd)
        return JointCommand(setpoint.tau, q, qd, 0.0 if q is None else kp, 0.0 if qd is None else kd)

    # ---------------------------------------------------------------- events

    def _happen(self, event: Event) -> None:
        try:
            if event.gait is not None:
                self._controller.gait = event.gait
            if event.cmd_vel is not None:
                self._controller.command(*event.cmd_vel)
                self._cmd = np.array(event.cmd_vel)
            if event.push is not None:
                push(self._sim, event.push)
        except (ArgumentError, ValueError) as error:
            raise ArgumentError(f'{event.where}: {error}') from error

    def _traces(self, log: Log) -> Traces:
        """One row for each row of the log: a control period, and the state at its end."""
        n = len(log)
        cmd, gait, contact, period, wall = zip(*self._ticks[:n], strict=True) if n else ((), (), (), (), ())
        return Traces(
            t=log.time,
            q=log.q,
            u=log.u,
            tau=log.tau,
            foot_forces=log.foot_forces,
            cmd=np.array(cmd).reshape(n, 3),
            gait=np.array(gait, dtype=np.str_),
            contact=np.array(contact, dtype=np.bool_).reshape(n, len(log.foot_names)),
            period=np.array(period),
            update_us=np.array(wall),
        )


def push(sim: Simulator, wanted: Push) -> None:
    """Apply a horizontal force to the base, at its current centre of mass."""
    if not wanted.delta_v:
        return
    model = sim.model
    size = model.total_mass * wanted.delta_v / wanted.duration
    force = size * np.array([math.cos(wanted.heading), math.sin(wanted.heading), 0.0])
    frame = model.frames[model.base_name]
    com = model.pi[1:4] / model.pi[0] - frame.p
    R_WB = frame_pose(model, sim.q, model.base_name)[0] @ frame.R.T
    sim.apply_force(model.base_name, np.concatenate([force, np.cross(R_WB @ com, force)]), wanted.duration)
