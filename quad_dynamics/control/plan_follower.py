# SPDX-License-Identifier: Apache-2.0
"""The plan that is followed, and the next one, which has been made and does not count yet."""

from __future__ import annotations

import math

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.planning.plan_alignment import nearest_time


class PlanFollower:
    """Follows one plan after the other.

    A plan that is made here counts from a fixed time after its state on, however long it took to make. So
    runs are the same bit for bit. They are not those with a planner in another process: who follows plans of
    somebody else has contacts, heading and command from them as well, and not from a clock of its own.

    Attributes:
        plan: that is followed; None if there is none.
    """

    def __init__(self, pendulum: float) -> None:
        """Begin without a plan.

        Args:
            pendulum: time constant sqrt(h / g) of the robot [s].
        """
        self._pendulum = pendulum
        self.reset()

    def reset(self) -> None:
        """Forget all plans."""
        self.plan: MotionPlan | None = None
        self._next: list[MotionPlan] = []
        self._shift = 0.0

    def take(self, plan: MotionPlan) -> None:
        """Follow a plan from its time plus the delay of `advance` on."""
        self._next.append(plan)

    def advance(self, time: float, delay: float, com: Floats, velocity: Floats) -> None:
        """Go over to the newest plan that counts.

        Args:
            time: now [s].
            delay: from the state of a plan until it counts [s].
            com: (3,) centre of mass [m].
            velocity: (3,) its velocity [m/s].
        """
        due = [plan for plan in self._next if time >= plan.time + delay - 1e-9]
        if not due:
            return
        self._next = self._next[len(due) :]
        self.plan = due[-1]
        window = max(time - self.plan.time, 0.0)
        self._shift = nearest_time(self.plan.com, com, velocity, time, window, self._pendulum) - time

    def age(self, time: float) -> float:
        """Of the plan that is followed [s]; infinity if there is none."""
        return math.inf if self.plan is None else time - self.plan.time

    def reference(self, time: float) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration of the centre of mass that the plan has for a time."""
        assert self.plan is not None
        return self.plan.com.at(time + self._shift)
