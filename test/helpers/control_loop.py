# SPDX-License-Identifier: Apache-2.0
"""A control law in a closed loop with the simulator, as a robot has it: late, seldom, with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import QUADRUPEDS, Case, load, model_of

from quad_dynamics.control.damping import Damping
from quad_dynamics.control.gains import default_gains
from quad_dynamics.control.lying import lying_pose
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.simulation.command import JointCommand
from quad_dynamics.simulation.settings import SensorSettings
from quad_dynamics.simulation.simulator import Simulator

ROBOTS = ('mini_cheetah', *QUADRUPEDS)


def robot(name: str) -> Any:
    """A floating quadruped, from its file alone."""
    return load('mini_cheetah') if name == 'mini_cheetah' else model_of(Case(name, True))


def state_of(sim: Any, noisy: bool = False) -> RobotState:
    """The state of a simulator, joints and forces as sensors read them if it is noisy."""
    q, u = sim.q, sim.u
    if not noisy:
        return RobotState(sim.time, q, u, sim.foot_forces, sim.tau)
    seen, nj = sim.sensors(), sim.model.nj
    q[len(q) - nj :], u[len(u) - nj :] = seen.joint_position, seen.joint_velocity
    return RobotState(sim.time, q, u, seen.foot_forces, seen.joint_torque)


def command(setpoint: Setpoint, kp: Any, kd: Any) -> JointCommand:
    """What drives with these gains make of a setpoint."""
    if setpoint.q is not None:
        return JointCommand(setpoint.tau, setpoint.q, setpoint.qd, kp, kd)
    return JointCommand(setpoint.tau, None, setpoint.qd, 0.0, 0.0 if setpoint.qd is None else kd)


def drive(
    sim: Any, law: Any, duration: float, noisy: bool = False, every: int = 2, guard: Any = None
) -> dict[str, np.ndarray]:
    """Let a law drive the robot for a while, with a new setpoint every so many steps; what happened."""
    kp, kd = default_gains(sim.model, sim.settings.dt)
    in_force: list[Any] = [None]

    def controller(simulator: Any) -> Any:
        if simulator.step_count % every and in_force[0] is not None:
            return None
        state = state_of(simulator, noisy)
        setpoint = law.update(state)
        if guard is not None:
            setpoint = guard.limit(setpoint, state)
        in_force[0] = command(setpoint, kp, kd)
        return in_force[0]

    log = sim.run(controller, duration, progress=False)
    return {'time': log.time, 'q': log.q, 'u': log.u, 'tau': log.tau, 'foot_forces': log.foot_forces}


def lying_simulator(model: Any, slope: float = 0.0, **settings: Any) -> Any:
    """A simulator with the robot on its belly, as it comes to rest with damped joints."""
    chosen = {'mu': 0.5, 'latency': 2e-3, 'sensors': SensorSettings.typical(), **settings}
    if slope:
        chosen['terrain'] = {'shape': 'plane', 'pitch': slope}
    sim = Simulator(model, **chosen)
    sim.reset(sim.on_ground(lying_pose(model)))
    drive(sim, Damping(model), 0.3)
    return sim
