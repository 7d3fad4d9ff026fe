# SPDX-License-Identifier: Apache-2.0
"""A simulated robot that tracks a motion under control, as with the nodes, and is recorded.

The controller is that of force_node in mode computed_torque, every 2 ms, and knows only the URDF. It receives
noisy sensor readings, and its commands are 2 ms late. Everything runs in this process, faster than real time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.excitation_bag import Trajectory
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.command import JointCommand
from quad_dynamics.simulation.sensors import SensorSuite
from quad_dynamics.simulation.settings import SensorSettings
from quad_dynamics.simulation.simulator import Simulator

_DT = 1e-3  # time step [s]
_EVERY = 2  # time steps between two commands, and between two messages of the bag
_LATENCY = 2e-3  # of commands [s]
_BEFORE, _AFTER = 0.5, 0.5  # standing still before and after the motion [s]


class Experiment:
    """A robot that tracks one motion after the other, with the same sensor bias in all of them."""

    def __init__(self, true: Model, believed: Model, seed: int) -> None:
        """Initialise the robot standing.

        Args:
            true: the robot that is simulated.
            believed: the robot according to its URDF; it is used by the controller, and as the
                `robot_description` of bags.
            seed: of the sensor errors.
        """
        self._believed = believed
        sensors = SensorSettings.typical()
        self._sim = Simulator(true, dt=_DT, latency=_LATENCY, sensors=sensors, seed=seed)
        self._suite = SensorSuite(true, sensors, seed, _DT)

    def record(self, trajectory: Trajectory, path: Path) -> None:
        """Track a motion, and write a bag of the sensor readings.

        Args:
            trajectory: of all joints.
            path: of the bag; a new folder.

        Raises:
            ArgumentError: the robot fell, or left its limits.
        """
        controller = _Controller(self._believed, trajectory, self._sim.time + _BEFORE)
        log = self._sim.run(controller, _BEFORE + float(trajectory.time[-1]) + _AFTER)
        rate = 1.0 / (_EVERY * _DT)
        log.to_bag(path, rate, sensors=self._suite, ground_truth=False, described=self._believed)


class _Controller:
    """Computed torque within limits; `Simulator.run` calls it in every time step."""

    def __init__(self, model: Model, trajectory: Trajectory, start: float) -> None:
        self._law = ComputedTorque(model)
        self._guard = Guard(model, self._law.settings, _DT)
        self._kp, self._kd = drive_gains(model, self._law.settings, _DT)
        order = [trajectory.joint_names.index(name) for name in model.joint_names]
        q, qd, qdd = (
            part[:, order] for part in (trajectory.position, trajectory.velocity, trajectory.acceleration)
        )
        self._law.set_trajectory(trajectory.time, q, qd, qdd, start)

    def __call__(self, sim: Simulator) -> Any:
        """The next command; None if the last one remains."""
        if sim.step_count % _EVERY:
            return None
        state = _measured(sim)
        wrong = self._guard.check_state(state)
        if wrong:
            raise ArgumentError(
                f'the simulated robot failed to follow the motion at {sim.time:.3g} s: {wrong}'
            )
        setpoint = self._guard.limit(self._law.update(state), state)
        return JointCommand(setpoint.tau, setpoint.q, setpoint.qd, self._kp, self._kd)


def _measured(sim: Simulator) -> RobotState:
    """The state: joints and feet according to the sensors, the base as it is."""
    q, u = sim.q, sim.u
    joints_q, joints_u = q[len(q) - sim.model.nj :], u[len(u) - sim.model.nj :]
    joints_q[:], joints_u[:], torque, foot_forces = sim.leg_sensors()
    return RobotState(sim.time, q, u, foot_forces, torque)
