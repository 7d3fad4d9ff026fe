# SPDX-License-Identifier: Apache-2.0
"""The motion plan that is followed, and the next one, which has been computed but is not in effect yet."""

from __future__ import annotations

import math
from collections import deque

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.planning.plan_alignment import nearest_time

Vec2 = tuple[float, float]

_MEMORY = 100  # number of stored states: 0.2 s at 500 Hz


class PlanFollower:
    """Follows one plan after the other.

    A plan that is made in this process takes effect at a fixed time after its state, however long it took to
    compute, so runs are bit-identical. Results differ from those with a planner in another process: external
    plans also determine contacts, heading and command, which otherwise come from the clock of this process.

    Attributes:
        plan: the current plan; None if there is none.
    """

    def __init__(self, pendulum: float) -> None:
        """Start without a plan.

        Args:
            pendulum: time constant sqrt(h / g) of the robot [s].
        """
        self._pendulum = pendulum
        self.reset()

    def reset(self) -> None:
        """Discard all plans."""
        self.plan: MotionPlan | None = None
        self._next: list[MotionPlan] = []
        self._shift = 0.0
        self._states: deque[tuple[float, float, float, float, float]] = deque(maxlen=_MEMORY)
        self._made_at: tuple[float, float, float, float, float] | None = None

    def take(self, plan: MotionPlan) -> None:
        """Take a plan; it takes effect at its time plus the delay of `advance`."""
        self._next.append(plan)

    def advance(self, time: float, delay: float, com: Floats, velocity: Floats) -> None:
        """Switch to the newest plan that is in effect.

        Args:
            time: current time [s].
            delay: from the state of a plan until it takes effect [s].
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
        """Age of the current plan [s]; infinity if there is none."""
        return math.inf if self.plan is None else time - self.plan.time

    def surprise(self) -> tuple[Vec2, Vec2]:
        """Difference of the last state from that which the plan was made for, extrapolated to now.

        The extrapolation assumes constant velocity. A plan is up to `plan_period + plan_delay` old, and its
        footholds do not account for pushes since then. With this difference, swing feet react at once.

        Returns:
            Differences of the position [m] and of the velocity [m/s], each (x, y) in the world.
        """
        if self._made_at is None:
            return (0.0, 0.0), (0.0, 0.0)
        then, x, y, vx, vy = self._made_at
        time, to_x, to_y, to_vx, to_vy = self._states[-1]
        passed = time - then
        return (to_x - x - passed * vx, to_y - y - passed * vy), (to_vx - vx, to_vy - vy)

    def reference(self, time: float) -> tuple[Floats, Floats, Floats]:
        """Planned position, velocity and acceleration of the centre of mass at a time."""
        assert self.plan is not None
        return self.plan.com.at(time + self._shift)
