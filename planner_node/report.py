# SPDX-License-Identifier: Apache-2.0
"""The status of planner_node on `/diagnostics`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.ros.diagnostics import OK, WARN, Crowd

if TYPE_CHECKING:
    from planner_node.node import PlannerNode

_KEPT = 256  # plans, of which the times are kept


class Report:
    """Measures rates and times, and publishes them with what the planner does."""

    def __init__(self, owner: PlannerNode) -> None:
        self._owner = owner
        self._times = np.zeros(_KEPT)
        self._plans = 0
        self._crowd = Crowd(owner.node, owner.sensors.subscription.topic_name, silent_about='sim_node')
        owner.diagnostics.watch(self._crowd, 'bad_joint_states', 'bad_odom', 'bad_foot_forces')
        self._shown: tuple[str, ...] = ()
        self._since, self._counted, self._states = time.monotonic(), 0, 0

    def planned(self, seconds: float) -> None:
        """Record the time of a plan, from the state to the messages [s]."""
        self._times[self._plans % _KEPT] = seconds
        self._plans += 1

    def watch(self) -> None:
        """Publish the next message at once if the behaviour of the planner has changed."""
        now = self._owner.maker.gait, self._owner.maker.phase, self._owner.waiting_for
        if now != self._shown:
            self._shown = now
            self._owner.diagnostics.hurry()

    def publish(self) -> None:
        """Publish everything."""
        owner, now = self._owner, time.monotonic()
        stamp, states = owner.sensors.inputs.joint_stamp, owner.sensors.counts['joint_states']
        elapsed = max(now - self._since, 1e-9)
        times = self._times[: min(self._plans, _KEPT)] * 1e3
        p50, most = (float(np.median(times)), float(times.max())) if len(times) else (0.0, 0.0)
        level, message = self._level()
        owner.diagnostics.publish(
            level,
            message,
            stamp if stamp >= 0 else None,  # in the time of the robot, as soon as it is known
            robot=owner.model.name,
            **owner.maker.details(),
            plan_ms_p50=p50,
            plan_ms_max=most,
            plans_hz=(owner.output.count - self._counted) / elapsed,
            real_time_priority=owner.priority.is_urgent,
            joint_states_hz=(states - self._states) / elapsed,
        )
        self._since, self._counted, self._states = now, owner.output.count, states

    def _level(self) -> tuple[int, str]:
        owner = self._owner
        publishers = self._crowd.count()
        if owner.waiting_for:
            return WARN, f'no plans: {owner.waiting_for}'
        message = f'{owner.maker.phase} ({owner.maker.gait})'
        if publishers > 1:
            return WARN, f'{message}; {publishers} publishers of joint_states, expected one'
        return OK, message
