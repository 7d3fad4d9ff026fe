# SPDX-License-Identifier: Apache-2.0
"""The plan that is followed, and the next one, which has been made and does not count yet."""

from __future__ import annotations

import math
from collections import deque

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.planning.plan_alignment import nearest_time

Vec2 = tuple[float, float]

_MEMORY = 100  # states that are remembered: 0.2 s at 500 Hz


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
        self._states: deque[tuple[float, float, float, float, float]] = deque(maxlen=_MEMORY)
        self._made_at: tuple[float, float, float, float, float] | None = None

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
        (x, y, _), (vx, vy, _) = com.tolist(), velocity.tolist()
        self._states.append((time, x, y, vx, vy))
        due = [plan for plan in self._next if time >= plan.time + delay - 1e-9]
        if not due:
            return
        self._next = self._next[len(due) :]
        self.plan = due[-1]
        made = self.plan.time
        self._made_at = min(self._states, key=lambda state: abs(state[0] - made))
        window = max(time - made, 0.0)
        self._shift = nearest_time(self.plan.com, com, velocity, time, window, self._pendulum) - time

    def age(self, time: float) -> float:
        """Of the plan that is followed [s]; infinity if there is none."""
        return math.inf if self.plan is None else time - self.plan.time

    def surprise(self) -> tuple[Vec2, Vec2]:
        """What the last state differs from the one that the plan was made for, which went on since then.

        A plan is up to `plan_period + plan_delay` old, and its footholds are those of a body that nobody has
        pushed since. Feet that swing need not wait for the next one.

        Returns:
            Differences of the place [m] and of the velocity [m/s], each (x, y) in the world.
        """
        if self._made_at is None:
            return (0.0, 0.0), (0.0, 0.0)
        then, x, y, vx, vy = self._made_at
        time, to_x, to_y, to_vx, to_vy = self._states[-1]
        passed = time - then
        return (to_x - x - passed * vx, to_y - y - passed * vy), (to_vx - vx, to_vy - vy)

    def reference(self, time: float) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration of the centre of mass that the plan has for a time."""
        assert self.plan is not None
        return self.plan.com.at(time + self._shift)
