# SPDX-License-Identifier: Apache-2.0
"""A simulated robot that follows plans, its own or those of a planner beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from control_loop import command, robot, state_of

from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.gait_planner import GaitPlanner
from quad_dynamics.control.walker import Walker
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.simulation.simulator import Simulator

DT = 0.002  # of the controller [s]


class PlannedWalk:
    """A robot that walks in the simulator, on the plans of its own walker.

    Attributes:
        walker: the controller.
        sim: the simulator.
        q: configurations that the controller saw.
    """

    def __init__(self, name: str = 'mini_cheetah', **settings: Any) -> None:
        model = robot(name)
        self.settings = WalkerSettings(**settings)
        self.walker, self.sim = Walker(model, self._walker_settings), Simulator(model)
        self.sim.reset()
        self._gains = drive_gains(model, self.settings, self.sim.settings.dt)
        self.walker.reset(state_of(self.sim))
        self.q: list[np.ndarray] = []

    @property
    def _walker_settings(self) -> WalkerSettings:
        return self.settings

    def command(self, vx: float, vy: float, wz: float) -> None:
        """Walk at a velocity."""
        self.walker.command(vx, vy, wz)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.sim.run(self._turn, seconds, progress=False)

    def _plan(self, state: Any) -> None:
        """Hand plans to the walker; its own planner needs none."""

    def _turn(self, sim: Any) -> Any:
        if sim.step_count % 2:
            return None
        state = state_of(sim)
        self._plan(state)
        self.q.append(state.q)
        return command(self.walker.update(state), *self._gains)

    @property
    def lowest(self) -> float:
        """Smallest height of the base, over that of standing."""
        return float(np.array(self.q)[:, 2].min()) / self.walker.standing_height

    @property
    def tilt(self) -> float:
        """Angle of the base from level now [rad]."""
        return float(2.0 * np.hypot(*self.q[-1][3:5]))

    def velocity(self, seconds: float) -> np.ndarray:
        """(2,) mean velocity of the base over the last time [m/s]."""
        n = round(seconds / DT)
        return np.asarray((self.q[-1] - self.q[-1 - n])[:2] / (n * DT))


class FollowedWalk(PlannedWalk):
    """The same with a planner beside it, whose plans come after `plan_delay`.

    Attributes:
        planner: it.
        is_alive: whether it is asked.
        plans: that it made.
    """

    def __init__(self, name: str = 'mini_cheetah', **settings: Any) -> None:
        super().__init__(name, **settings)
        self.planner = GaitPlanner(robot(name), self.settings)
        self.planner.reset(state_of(self.sim))
        self.is_alive = True
        self.plans: list[MotionPlan] = []
        self._under_way: list[MotionPlan] = []

    @property
    def _walker_settings(self) -> WalkerSettings:
        return self.settings.replace(planner='external')

    def command(self, vx: float, vy: float, wz: float) -> None:
        """Walk at a velocity: the planner is told, not the walker."""
        self.planner.command(vx, vy, wz)

    def _plan(self, state: Any) -> None:
        made = self.planner.update(state) if self.is_alive else None
        if made is not None:
            self._under_way.append(made)
            self.plans.append(made)
        while self._under_way and state.time >= self._under_way[0].time + self.settings.plan_delay - 1e-9:
            self.walker.follow(self._under_way.pop(0))
