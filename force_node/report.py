# SPDX-License-Identifier: Apache-2.0
"""What force_node says about itself on `/diagnostics`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from quad_dynamics.ros.diagnostics import ERROR, OK, WARN, Crowd

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
        self._shown: tuple[str, ...] = ()
        self._since = time.monotonic()
        self._counts = dict.fromkeys((*_TOPICS, 'commands'), 0)

    def answered(self, seconds: float) -> None:
        """An answer took so long, from joint states to the command."""
        self._times[self._answers % _KEPT] = seconds
        self._answers += 1

    def watch(self) -> None:
        """Let the next message come at once when what the robot does has changed."""
        supervisor = self._owner.supervisor
        now = supervisor.mode, supervisor.phase, self._owner.settings.gait
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
            **self._inputs(),
        )

    def _level(self) -> tuple[int, str]:
        supervisor = self._owner.supervisor
        publishers = self._crowd.count()
        if supervisor.faults.latched:
            return ERROR, f'damping until ~/recover: {supervisor.faults.latched}'
        if supervisor.waiting_for:
            return WARN, f'damping: {supervisor.waiting_for}'
        gait = self._owner.settings.gait if supervisor.mode == 'whole_body' else ''
        message = ' '.join(filter(None, [supervisor.mode, supervisor.phase, gait and f'({gait})']))
        if supervisor.mode == 'passthrough' and supervisor.phase == 'no command':
            timeout = self._owner.settings.command_timeout
            return WARN, f'{message}: damping, for no joint_commands came for {timeout:g} s'
        if publishers > 1:
            return WARN, f'{message}; {publishers} publishers of joint_states, expected one'
        return OK, message

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
