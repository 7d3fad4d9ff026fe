# SPDX-License-Identifier: Apache-2.0
"""Motion plans of another process: which of them are valid, and when they take effect."""

from __future__ import annotations

from collections import deque

from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning.motion_plan import MotionPlan

_FARTHEST = 250_000_000  # maximum lead of a plan over the newest state [ns]


class PlanQueue:
    """Plans by the stamps of the states that they were made for.

    A plan takes effect when it arrives. In lock-step it takes effect `delay` after its state, whenever it
    arrives: a plan is due for the first state of each period, and a state is not answered before the plan
    that is in effect there has arrived. So races between processes do not change the answer.

    Attributes:
        newest: stamp of the newest plan [ns], -1 before the first.
        taken: number of accepted plans.
    """

    def __init__(self, lock_step: bool, period: float, delay: float) -> None:
        """Start without plans.

        Args:
            lock_step: wait for plans that are due.
            period: of the plans [s].
            delay: from a state until its plan takes effect, in lock-step [s].
        """
        self._lock_step = lock_step
        self._period, self._delay = max(round(1e9 * period), 1), round(1e9 * delay)
        self.newest, self.taken = -1, 0
        self._last = -1  # stamp of the last state
        self._due: deque[int] = deque()  # stamps of states whose plans have not arrived
        self._plans: deque[tuple[int, MotionPlan]] = deque()
        self._must_wait = lock_step

    def restart(self, stamp_ns: int) -> None:
        """Discard all plans except that of a state at which the robot was teleported, or time was reset.

        Args:
            stamp_ns: of the state [ns].
        """
        self._plans = deque(one for one in self._plans if one[0] == stamp_ns)
        self.newest = stamp_ns if self._plans else -1

    def take(self, stamp_ns: int, plan: MotionPlan, now_ns: int) -> None:
        """Take a plan.

        Args:
            stamp_ns: of the state that it was made for [ns].
            plan: for the robot.
            now_ns: stamp of the newest state [ns].

        Raises:
            ArgumentError: it is not newer than the previous one, or too far ahead of the newest state.
        """
        if stamp_ns > now_ns + _FARTHEST:
            raise ArgumentError(
                f'motion_plan has the stamp {stamp_ns * 1e-9:.3f} s, joint_states {now_ns * 1e-9:.3f} s; '
                'expected that of joint_states that have come'
            )
        if stamp_ns <= self.newest:
            raise ArgumentError(
                f'motion_plan has the stamp {stamp_ns * 1e-9:.3f} s, the one before '
                f'{self.newest * 1e-9:.3f} s; expected a later one'
            )
        self.newest, self._must_wait = stamp_ns, self._lock_step
        self.taken += 1
        self._plans.append((stamp_ns, plan))

    def waits_for(self, stamp_ns: int) -> int | None:
        """The stamp of the plan that must arrive before a state can be answered; None if none must [ns].

        It is called one or more times for every state.

        Args:
            stamp_ns: of the state [ns].
        """
        if stamp_ns < self._last:
            self.restart(stamp_ns)
            self._due.clear()
        if self._last < 0 or stamp_ns // self._period != self._last // self._period:
            self._due.append(stamp_ns)
        self._last = stamp_ns
        while self._due and self._due[0] <= self.newest:
            self._due.popleft()
        if not self._must_wait or not self._due or self._due[0] + self._delay > stamp_ns:
            return None
        return self._due[0]

    def give_up(self) -> None:
        """Stop waiting until a plan arrives."""
        self._must_wait = False
        self._due.clear()

    def next(self, stamp_ns: int) -> MotionPlan | None:
        """The plan that takes effect at a state; None if there is no new one.

        Args:
            stamp_ns: of the state [ns].
        """
        latest = stamp_ns - self._delay if self._lock_step else self.newest
        found = None
        while self._plans and self._plans[0][0] <= latest:
            _, found = self._plans.popleft()
        return found
