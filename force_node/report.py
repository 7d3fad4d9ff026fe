# SPDX-License-Identifier: Apache-2.0
"""The status of force_node on `/diagnostics`."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from quad_dynamics.control.modes.names import PASSTHROUGH, WHOLE_BODY
from quad_dynamics.ros.diagnostics import ERROR, OK, WARN, Crowd
from quad_dynamics.ros.plan_messages import MOTION_TOPIC

if TYPE_CHECKING:
    from force_node.node import ForceNode

_KEPT = 512  # answers, of which the times are kept
_TOPICS = ('joint_states', 'odom', 'foot_forces')


class Report:
    """Measures rates and times, and publishes them with the state of the supervisor."""

    def __init__(self, owner: ForceNode) -> None:
        self._owner = owner
        self._times = np.zeros(_KEPT)
        self._answers = 0
        self._crowd = Crowd(owner.node, owner.sensors.subscription.topic_name, silent_about='sim_node')
        owner.diagnostics.watch(self._crowd, 'bad_joint_states', 'bad_odom', 'bad_foot_forces')
        topic = owner.node.resolve_topic_name(MOTION_TOPIC)
        self._planners = Crowd(owner.node, topic, silent_about='planner_node')
        owner.diagnostics.watch(self._planners, 'bad_plan')
        self._shown: tuple[str | bool, ...] = ()
        self._since = time.monotonic()
        self._counts = dict.fromkeys((*_TOPICS, 'commands'), 0)

    def answered(self, seconds: float) -> None:
        """Record the time of an answer, from joint states to the command."""
        self._times[self._answers % _KEPT] = seconds
        self._answers += 1

    def watch(self) -> None:
        """Publish the next message at once if the behaviour of the robot has changed."""
        supervisor = self._owner.supervisor
        now = supervisor.mode, supervisor.phase, self._owner.settings.gait, bool(self._late_plan())
        if now != self._shown:
            self._shown = now
            self._owner.diagnostics.hurry()

    def publish(self) -> None:
        """Publish everything."""
        owner = self._owner
        stamp = owner.sensors.inputs.joint_stamp
        level, message = self._level()
        supervisor = owner.supervisor
        times = self._times[: min(self._answers, _KEPT)] * 1e6
        p50, p90 = np.percentile(times, [50, 90]).tolist() if len(times) else (0.0, 0.0)
        owner.diagnostics.publish(
            level,
            message,
            stamp if stamp >= 0 else None,  # in the time of the robot, as soon as it is known
            robot=owner.model.name,
            mode=supervisor.mode,
            phase=supervisor.phase,
            damping=supervisor.is_damping,
            latched=supervisor.faults.latched,
            answer_us_p50=p50,
            answer_us_p90=p90,
            jumps=supervisor.jumps,
            last_jump=supervisor.last_jump,
            real_time_priority=owner.priority.is_urgent,
            **supervisor.details(),
            **self._plans(),
            **self._inputs(),
        )

    def _level(self) -> tuple[int, str]:
        supervisor = self._owner.supervisor
        publishers = self._crowd.count()
        if supervisor.faults.latched:
            return ERROR, f'damping until ~/recover: {supervisor.faults.latched}'
        if supervisor.waiting_for:
            return WARN, f'damping: {supervisor.waiting_for}'
        # With plans of another node the gait is that node's.
        has_gait = supervisor.mode == WHOLE_BODY and self._owner.plans is None
        gait = self._owner.settings.gait if has_gait else ''
        message = ' '.join(filter(None, [supervisor.mode, supervisor.phase, gait and f'({gait})']))
        if supervisor.mode == PASSTHROUGH and supervisor.phase == 'no command':
            timeout = self._owner.settings.command_timeout
            return WARN, f'{message}: damping, no joint_commands for {timeout:g} s'
        late = self._late_plan()
        if late:
            return WARN, f'{message}: {late}'
        crowds = {'joint_states': publishers}
        if self._owner.plans is not None:
            crowds[MOTION_TOPIC] = self._planners.count()
        many = [
            f'{count} publishers of {topic}, expected one' for topic, count in crowds.items() if count > 1
        ]
        return (WARN if many else OK), '; '.join([message, *many])

    def _late_plan(self) -> str:
        """The problem with external plans while the robot should follow them; '' if there is none."""
        owner = self._owner
        if owner.plans is None or owner.supervisor.mode != WHOLE_BODY or owner.supervisor.phase == 'rise':
            return ''
        age = owner.plans.age(owner.sensors.inputs.joint_stamp)
        if age <= owner.settings.plan_timeout:
            return ''
        return f'no plan for {age:.2g} s' if math.isfinite(age) else 'no plan yet'

    def _plans(self) -> dict[str, Any]:
        """Number of received plans, and age of the last one."""
        owner = self._owner
        if owner.plans is None:
            return {}
        age = owner.plans.age(owner.sensors.inputs.joint_stamp)
        return {'plans': owner.plans.queue.taken, 'plan_age': age}

    def _inputs(self) -> dict[str, Any]:
        """Rates since the last call, and ages."""
        now, sensors = time.monotonic(), self._owner.sensors
        elapsed = max(now - self._since, 1e-9)
        counts = {name: sensors.counts[name] for name in _TOPICS}
        counts['commands'] = self._owner.output.count
        values: dict[str, Any] = {}
        for name, count in counts.items():
            values[f'{name}_hz'] = (count - self._counts[name]) / elapsed
            if name in sensors.heard:
                values[f'{name}_age'] = now - sensors.heard[name]
        self._since, self._counts = now, counts
        return values
