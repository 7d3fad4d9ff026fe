# SPDX-License-Identifier: Apache-2.0
"""Parameters of planner_node: those of walking, of nodes that work on states, and these."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param
from quad_dynamics.ros.state_settings import StateNodeSettings


@dataclass(frozen=True)
class PlannerSettings(StateNodeSettings):
    """Parameters of planner_node."""

    plan_time_limit: float = param(
        0.015,
        'wall-clock time after which no further quadratic program of a plan is started; 0: no limit; ignored '
        'in lock-step',
        unit='s',
        low=0.0,
        high=1.0,
    )
    markers_rate: float = param(
        20.0,
        'rate of plan_markers, in the time of joint_states',
        unit='Hz',
        above=0.0,
        high=1000.0,
        dynamic=True,
    )

    def for_planning(self) -> PlannerSettings:
        """The settings for planning: in lock-step there is no time limit."""
        return self.replace(plan_time_limit=0.0) if self.lock_step else self

    def _across(self) -> list[str]:
        problems = super()._across() + frame_problems(self, ('world_frame', 'base_frame'))
        if self.planner != 'com_splines':
            problems.append(
                f"planner is {self.planner!r}; expected 'com_splines': only its plans can be published"
            )
        return problems
