# SPDX-License-Identifier: Apache-2.0
"""The simulated robot of sim_node: clock, commands, and recovery from divergence."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.lying import lying_pose
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.errors import ArgumentError, ModelWarning, SimulationDiverged
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.sensors import Readings
from quad_dynamics.simulation.settings import SensorSettings
from quad_dynamics.simulation.simulator import Simulator
from sim_node.settings import SimNodeSettings

# Maximum number of consecutive divergences after which the robot is only stopped; then it is reset.
_MOST_DIVERGENCES = 3


class World:
    """One robot on its terrain.

    Attributes:
        settings: of the node.
        model: robot.
        sim: simulator; replaced when its settings change.
        is_damped: whether the drives damp because there are no commands.
        commanded_ns: time of the last command [ns].
        torques, forces: motor torques and foot forces since they were last sent.
    """

    def __init__(self, model: Model, settings: SimNodeSettings) -> None:
        """Compile, and place the robot in its initial pose.

        Args:
            model: robot.
            settings: of the node.

        Raises:
            ArgumentError: the settings are invalid.
        """
        self.settings = settings
        self.model = model
        self.sim = _make_simulator(self.model, settings)
        self.dt_ns = round(settings.dt * 1e9)
        self._begin_ns = 0
        self._divergences = 0
        self.torques, self.forces = StepMean(), StepMean()
        self._truth: Readings | None = None  # of this state; None before it is read
        self._has_stepped = False  # since the state was set
        self._lying: Floats | None = None
        self._has_noise = _has_noise(settings.sensors)
        self._kp, self._kd = self._gains(settings)
        self.control_steps = self._steps_in(settings.control_period)
        self.is_damped = True
        self.commanded_ns = 0
        self.reset()
        self.sim.step()  # compiles; the first step is then like any other
        self.reset()
        self._begin_ns = 0

    # ---------------------------------------------------------------- frames

    def frame(self, link: str) -> str:
        """The name of a link's frame in messages."""
        return f'{self.settings.frame_prefix}{link}'

    @property
    def base_frame(self) -> str:
        """The frame of the base in messages."""
        return self.settings.base_frame or self.frame(self.model.base_name)

    # ---------------------------------------------------------------- time

    @property
    def now_ns(self) -> int:
        """Simulated time, which continues across resets [ns]."""
        return self._begin_ns + self.sim.step_count * self.dt_ns

    def step(self) -> str:
        """Advance by one time step; return '' or the error.

        A step that diverges is undone: the robot is stopped in its previous pose.
        """
        try:
            self.sim.step()
        except SimulationDiverged as error:
            self._after_divergence()
            return str(error)
        self._truth, self._has_stepped = None, True
        self._divergences = 0
        self.torques.add(self.sim.tau)
        self.forces.add(self.sim.foot_forces)
        return ''

    def _after_divergence(self) -> None:
        self._divergences += 1
        if self._divergences >= _MOST_DIVERGENCES:
            self.reset()
            return
        self.sim.set_state(u=np.zeros(self.model.nv))
        self._state_was_set()
        self.damp()

    def every(self, rate: float, name: str) -> int:
        """Time steps between two messages of a rate [Hz].

        Raises:
            ArgumentError: the period is not a multiple of the time step.
        """
        steps = round(1.0 / (rate * self.settings.dt))
        if steps < 1 or abs(steps * rate * self.settings.dt - 1.0) > 1e-6:
            raise ArgumentError(
                f'parameter {name} is {rate:g} Hz; expected 1 / dt = {1.0 / self.settings.dt:g} Hz '
                'or an integer fraction of it'
            )
        return steps

    def _steps_in(self, period: float) -> int:
        steps = round(period / self.settings.dt)
        if steps < 1 or abs(steps * self.settings.dt - period) > 1e-9:
            raise ArgumentError(
                f'parameter control_period is {period:g} s; expected a whole number of time steps '
                f'dt = {self.settings.dt:g} s'
            )
        return steps

    # ---------------------------------------------------------------- state

    def reset(self) -> None:
        """Reset the robot to its initial pose, at rest, with damping drives; time continues."""
        now = self.now_ns
        self.sim.reset(self._start())
        self._begin_ns = now
        self._skip_ahead()
        self._divergences = 0
        self._state_was_set()
        self.damp()

    def _state_was_set(self) -> None:
        """Forget what was measured in the previous state."""
        self._truth, self._has_stepped = None, False
        self.torques.clear()
        self.forces.clear()

    def _skip_ahead(self) -> None:
        """Give the state after a jump its own stamp, so that no command for the previous state matches."""
        self._begin_ns += self.control_steps * self.dt_ns

    def _start(self) -> Floats:
        if self.settings.initial_pose == 'standing' or not self.model.floating_base:
            return self.sim.standing()
        if self._lying is None:  # it is computed, which takes a while
            self._lying = lying_pose(self.model)
        return self.sim.on_ground(self._lying)

    def place(self, p_WB: Floats, quaternion: Floats) -> None:
        """Set the pose of the base, at rest, with the joints unchanged.

        Args:
            p_WB: (3,) [m]; a position below the ground is lifted onto it.
            quaternion: (4,) x y z w.

        Raises:
            ArgumentError: the base is fixed, or the numbers are not a valid pose.
        """
        if not self.model.floating_base:
            raise ArgumentError(f'initialpose: {self.model.name} has a fixed base; expected a floating base')
        norm = float(np.linalg.norm(quaternion))
        if not (np.isfinite(p_WB).all() and math.isfinite(norm) and abs(norm - 1.0) < 0.01):
            raise ArgumentError(
                f'initialpose has position {p_WB.tolist()} and orientation {quaternion.tolist()}; '
                'expected finite numbers and a quaternion of unit length'
            )
        q = self.sim.q
        q[:3], q[3:7] = p_WB, quaternion / norm
        q[2] += self._depth(q)
        self.sim.set_state(q, np.zeros(self.model.nv))
        self._state_was_set()
        self._skip_ahead()

    def _depth(self, q: Floats) -> float:
        """How far the robot must be lifted to be above the ground [m]."""
        distance, normal = self.sim.distances(q)
        steepest = 0.1  # of a wall, lifting leads out as of the steepest slope
        return float(np.max(-distance / np.maximum(normal[:, 2], steepest), initial=0.0))

    def push(self, link: str, wrench: Floats) -> None:
        """Apply a wrench to a link for `push_duration`.

        Raises:
            ArgumentError: an unknown link, numbers that are not finite, or too many wrenches at once.
        """
        self.sim.apply_force(link or self.model.base_name, wrench, self.settings.push_duration)

    def change(self, new: SimNodeSettings) -> bool:
        """Change settings during the simulation; return whether the simulator was replaced.

        Raises:
            ArgumentError: the settings are invalid for the robot; nothing has changed.
        """
        kp, kd = self._gains(new)
        other = new.simulator() != self.settings.simulator()
        if other:
            self._replace_simulator(new)
        self.settings, self._kp, self._kd = new, kp, kd
        self._has_noise = _has_noise(new.sensors)
        if self.is_damped:
            self.damp()
        return other

    def _replace_simulator(self, new: SimNodeSettings) -> None:
        sim = _make_simulator(self.model, new)
        sim.set_state(self.sim.q, self.sim.u)
        command = self.sim.current_command
        now = self.now_ns
        self.sim, self._begin_ns = sim, now
        sim.command(**command)

    # ---------------------------------------------------------------- commands

    def command(self, tau: Floats | None, q: Floats | None, qd: Floats | None) -> None:
        """Command the drives from now on.

        Args:
            tau: (nj,) feed-forward torques; None: zero.
            q: (nj,) target positions for kp; None: no position feedback.
            qd: (nj,) target velocities for kd; None: no velocity feedback, or zero velocity if q is given.
        """
        position, velocity = q is not None and self._kp.any(), self._kd.any()
        damps = velocity and (q is not None or qd is not None)
        goal = qd if qd is not None else np.zeros(self.model.nj)
        self.sim.command(
            tau,
            q if position else None,
            goal if damps else None,
            self._kp if position else 0.0,
            self._kd if damps else 0.0,
        )
        self.is_damped = False
        self.commanded_ns = self.now_ns

    def damp(self) -> None:
        """Let the drives damp, without torques or target positions."""
        still = np.zeros(self.model.nj) if self._kd.any() else None  # drives without kd cannot damp
        self.sim.command(None, None, still, 0.0, self._kd)
        self.is_damped = True

    def _gains(self, settings: SimNodeSettings) -> tuple[Floats, Floats]:
        return drive_gains(self.model, ControlSettings(kp=settings.kp, kd=settings.kd), settings.dt)

    # ---------------------------------------------------------------- sensors

    @property
    def has_noise(self) -> bool:
        """Whether sensors have errors, so that ground truth is published as well."""
        return self._has_noise

    @property
    def knows_forces(self) -> bool:
        """Whether foot forces are known: they result from a time step.

        Before the first one they are only known in lock-step, where a controller expects all sensors.
        """
        return self._has_stepped or self.settings.lock_step

    def readings(self) -> tuple[Readings, Readings | None]:
        """The current sensor readings, and the ground truth if it differs; the same until the next step.

        Torques and forces are means since they were last sent (`torques`, `forces`): they change from step to
        step, and sampling only some of the steps would alias.
        """
        if self._truth is None:
            now = self.sim.truth()
            forces = self.forces.mean(now.foot_forces) if self._has_stepped else self._forces_ahead()
            self._truth = replace(now, joint_torque=self.torques.mean(now.joint_torque), foot_forces=forces)
        return (self.sim.measure(self._truth), self._truth) if self._has_noise else (self._truth, None)

    def _forces_ahead(self) -> Floats:
        """(feet, 3) foot forces of the next step with the current command; zero if it would diverge."""
        before = self.sim.snapshot()
        try:
            self.sim.step()
            return self.sim.foot_forces
        except SimulationDiverged:
            return np.zeros((len(self.model.foot_names), 3))
        finally:
            self.sim.restore(before)


def _make_simulator(model: Model, settings: SimNodeSettings) -> Simulator:
    """A simulator, without warnings about contact points, which the node has already logged."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return Simulator(model, settings.simulator())


class StepMean:
    """The mean over time steps of a quantity that is sent less often."""

    def __init__(self) -> None:
        self._sum: Floats | None = None
        self._steps = 0

    def add(self, values: Floats) -> None:
        """Add those of one time step."""
        self._sum = values.copy() if self._sum is None else self._sum + values
        self._steps += 1

    def mean(self, now: Floats) -> Floats:
        """The mean since `clear`; `now` if there was no step since."""
        return now if self._sum is None else self._sum / self._steps

    def clear(self) -> None:
        """Restart the mean."""
        self._sum, self._steps = None, 0


def _has_noise(settings: SensorSettings) -> bool:
    perfect = SensorSettings()
    imu = perfect.imu.replace(link=settings.imu.link, position=settings.imu.position)
    return settings != perfect.replace(imu=imu)
