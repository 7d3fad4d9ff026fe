# SPDX-License-Identifier: Apache-2.0
"""A supervisor with a simulated robot, in one process and without ROS."""

from __future__ import annotations

from typing import Any

import numpy as np

import quad_dynamics as qd
from quad_dynamics.api.drives import default_gains
from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.modes.supervisor import Supervisor
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState

STEPS = 2  # of the simulator for each setpoint


class Plant:
    """The robot stands, and is controlled in steps of 2 ms."""

    def __init__(self, model: Any, lying: bool = False, **settings: Any) -> None:
        self.model, self.sim = model, qd.Simulator(model)
        if lying:
            from quad_dynamics.control.lying import lying_pose

            self.sim.reset(lying_pose(model))
        self.faults: list[tuple[str, str]] = []
        self.settings = ModeSettings(**settings)
        self.supervisor = Supervisor(model, self.settings, lambda *fault: self.faults.append(fault))
        self.kp, self.kd = default_gains(model)
        self.offset = 0.0
        self.setpoint = self.supervisor.damped()

    def state(self, **changes: Any) -> RobotState:
        """The state of now, or with other values."""
        sim = self.sim
        values = {
            'time': sim.time + self.offset,
            'q': sim.q,
            'u': sim.u,
            'foot_forces': sim.foot_forces if self.model.floating_base else None,
            'tau': sim.tau,
        }
        return RobotState(**{**values, **changes})

    def step(self) -> Setpoint:
        """One answer, and what the robot does with it."""
        self.apply(self.supervisor.update(self.state()))
        return self.setpoint

    def apply(self, setpoint: Setpoint) -> None:
        """Let the drives follow a setpoint for a control period."""
        self.setpoint = setpoint
        q, qd_ = setpoint.q, setpoint.qd
        if q is not None and qd_ is None:
            qd_ = np.zeros(self.model.nj)
        kp, kd = (self.kp if q is not None else 0.0), (self.kd if qd_ is not None else 0.0)
        self.sim.command(setpoint.tau, q, qd_, kp, kd)
        for _ in range(STEPS):
            self.sim.step()

    def run(self, seconds: float) -> None:
        """Many steps."""
        for _ in range(round(seconds / 0.002)):
            self.step()

    def change(self, **settings: Any) -> None:
        """Set parameters."""
        self.settings = self.settings.replace(**settings)
        self.supervisor.change(self.settings)

    @property
    def height(self) -> float:
        """Of the base [m]."""
        return float(self.sim.q[2])

    @property
    def kinds(self) -> set[str]:
        """Of all faults."""
        return {kind for kind, _ in self.faults}
