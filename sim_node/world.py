# SPDX-License-Identifier: Apache-2.0
"""The simulated robot behind sim_node: its clock, its commands, and what happens when it diverges."""

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

# So often in a row may the robot be stopped where it is, when it diverges; then it is put back to its start.
_MOST_DIVERGENCES = 3


class World:
    """One robot on its terrain.

    Attributes:
        settings: all that can be set.
        model: robot.
        sim: simulator; another one when settings of it change.
        is_damped: whether the drives damp, because nobody commands them.
        commanded_ns: time of the last command [ns].
    """

    def __init__(self, model: Model, settings: SimNodeSettings) -> None:
        """Compile, and put the robot to its start.

        Args:
            model: robot.
            settings: all that can be set.

        Raises:
            ArgumentError: what is wrong with the settings.
        """
        self.settings = settings
        self.model = model
        self.sim = _make_simulator(self.model, settings)
        self.dt_ns = round(settings.dt * 1e9)
        self._begin_ns = 0
        self._divergences = 0
        self.torques, self.forces = StepMean(), StepMean()
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
        """Simulated time; it goes on over resets [ns]."""
        return self._begin_ns + self.sim.step_count * self.dt_ns

    def step(self) -> str:
        """Advance by one time step; return '' or what went wrong.

        A step that diverges does not count: the robot is stopped where it was.
        """
        try:
            self.sim.step()
        except SimulationDiverged as error:
            self._after_divergence()
            return str(error)
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
        self.damp()

    def every(self, rate: float, name: str) -> int:
        """Time steps between two messages of a rate [Hz].

        Raises:
            ArgumentError: it is no whole number of them.
        """
        steps = round(1.0 / (rate * self.settings.dt))
        if steps < 1 or abs(steps * rate * self.settings.dt - 1.0) > 1e-6:
            raise ArgumentError(
                f'parameter {name} is {rate:g} Hz; expected 1 / dt = {1.0 / self.settings.dt:g} Hz, '
                'or a whole fraction of it'
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
        """Put the robot to its start, at rest, with drives that damp; time goes on."""
        now = self.now_ns
        self.sim.reset(self._start())
        self._begin_ns = now
        self._skip_ahead()
        self._divergences = 0
        self.torques.clear()
        self.forces.clear()
        self.damp()

    def _skip_ahead(self) -> None:
        """Give the state after a jump a stamp of its own: no command for the one before fits it."""
        self._begin_ns += self.control_steps * self.dt_ns

    def _start(self) -> Floats:
        if self.settings.initial_pose == 'standing' or not self.model.floating_base:
            return self.sim.standing()
        if self._lying is None:  # it is searched for, which takes a while
            self._lying = lying_pose(self.model)
        return self.sim.on_ground(self._lying)

    def place(self, p_WB: Floats, quaternion: Floats) -> None:
        """Put the base elsewhere, at rest, the joints as they are.

        Args:
            p_WB: (3,) [m]; below the ground it is lifted onto it.
            quaternion: (4,) x y z w.

        Raises:
            ArgumentError: a fixed base, or numbers that are none of a pose.
        """
        if not self.model.floating_base:
            raise ArgumentError(f'{self.model.name} has a fixed base; expected a robot that can be moved')
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
        self._skip_ahead()

    def _depth(self, q: Floats) -> float:
        """By how much the robot must be lifted to be above the ground [m]."""
        distance, normal = self.sim.distances(q)
        steepest = 0.1  # of a wall, lifting leads out as of the steepest slope
        return float(np.max(-distance / np.maximum(normal[:, 2], steepest), initial=0.0))

    def push(self, link: str, wrench: Floats) -> None:
        """Let a wrench act on a link, for the time that is set.

        Raises:
            ArgumentError: an unknown link, numbers that are not finite, or too many at once.
        """
        self.sim.apply_force(link or self.model.base_name, wrench, self.settings.push_duration)

    def change(self, new: SimNodeSettings) -> bool:
        """Take other settings, in the middle of everything; return whether the simulator is another one.

        Raises:
            ArgumentError: the robot cannot go on with them; nothing has changed then.
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
            tau: (nj,) feed-forward torque, None is zero.
            q: (nj,) positions to follow with kp, None for none.
            qd: (nj,) velocities to follow with kd, None for none; with positions alone they are damped.
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
        """Let the drives damp, without torques or positions."""
        still = np.zeros(self.model.nj) if self._kd.any() else None  # drives without kd cannot damp
        self.sim.command(None, None, still, 0.0, self._kd)
        self.is_damped = True

    def _gains(self, settings: SimNodeSettings) -> tuple[Floats, Floats]:
        return drive_gains(self.model, ControlSettings(kp=settings.kp, kd=settings.kd), settings.dt)

    # ---------------------------------------------------------------- sensors

    @property
    def has_noise(self) -> bool:
        """Whether sensors have errors, so that the truth is published beside them."""
        return self._has_noise

    def readings(self) -> tuple[Readings, Readings | None]:
        """What the sensors read now, and the truth if it is another.

        Torques and forces are means since they were sent last (`torques`, `forces`): they change from step to
        step, and a sensor that looked at some of the steps only would take what is fast for something slow.
        """
        now = self.sim.truth()
        truth = replace(
            now,
            joint_torque=self.torques.mean(now.joint_torque),
            foot_forces=self.forces.mean(now.foot_forces),
        )
        return (self.sim.measure(truth), truth) if self._has_noise else (truth, None)


def _make_simulator(model: Model, settings: SimNodeSettings) -> Simulator:
    """A simulator; the node has logged already what is doubtful about the robot's contact points."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return Simulator(model, settings.simulator())


class StepMean:
    """The mean over time steps of something that is sent less often."""

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
        """Begin anew."""
        self._sum, self._steps = None, 0


def _has_noise(settings: SensorSettings) -> bool:
    perfect = SensorSettings()
    imu = perfect.imu.replace(link=settings.imu.link, position=settings.imu.position)
    return settings != perfect.replace(imu=imu)
