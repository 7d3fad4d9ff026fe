# SPDX-License-Identifier: Apache-2.0
"""Commands to the drives, received from topics, validated, and watched for timeouts."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.qos import COMMAND, CONTROL
from sim_node.world import World

# Number of unanswered states that are kept to measure latency.
_MOST_SENT = 100


class Commands:
    """Takes commands from `joint_torques`, or from `effort_controller/commands`.

    Attributes:
        topic: their topic.
        subscription: of that topic.
        count: number of accepted commands.
        begun: whether commands have arrived, even if they were all NaN.
    """

    def __init__(self, node: Node, world: World, diagnostics: Diagnostics) -> None:
        """Subscribe."""
        self._world, self._diagnostics = world, diagnostics
        names = world.model.joint_names
        is_array = world.settings.command_type == 'float64_multi_array'
        self.topic = 'effort_controller/commands' if is_array else 'joint_torques'
        kind = Float64MultiArray if is_array else JointState
        take = self._take_array if is_array else self._take_joint_state
        # In lock-step a lost command would stop everything.
        qos = COMMAND if world.settings.lock_step else CONTROL
        self.subscription = node.create_subscription(kind, self.topic, self._checked(take), qos, raw=True)
        self._reader = JointReader(names, (), self.topic)
        self.count = 0
        self.begun = False
        self._stamp_ns = -1
        self._heard = -1.0
        self._was_damped = True
        self._sent: dict[int, float] = {}  # when states were published, by stamp
        self._first_states = 0  # states with the stamp zero that are not answered
        self._latencies: deque[float] = deque(maxlen=500)

    def state_published(self, stamp_ns: int) -> None:
        """Remember when the joint states of this stamp were published."""
        if len(self._sent) > _MOST_SENT:
            self._sent.clear()
        self._sent[stamp_ns] = time.monotonic()
        self._first_states += stamp_ns == 0

    @property
    def is_settled(self) -> bool:
        """Whether all states with the stamp zero are answered.

        A command with the stamp zero has none, and answers any state. So in lock-step, time must not begin
        while answers to copies of the first state are on their way.
        """
        return self._first_states <= 0

    def latency(self, share: float) -> float:
        """Quantile of the time from publishing a state to using the command that answers it [ms]."""
        return float(np.quantile(self._latencies, share)) * 1e3 if self._latencies else 0.0

    def answered(self, stamp_ns: int) -> bool:
        """Whether the command for the state with this stamp has arrived."""
        return self._stamp_ns >= stamp_ns

    def forget(self) -> None:
        """Forget the commands that have arrived."""
        self._stamp_ns = -1

    def watch(self) -> None:
        """Let the drives damp if no command has arrived for too long, in simulated and in wall time."""
        world = self._world
        timeout = world.settings.command_timeout
        if world.is_damped or (world.now_ns - world.commanded_ns) * 1e-9 <= timeout:
            return
        if time.monotonic() - self._heard > timeout:
            world.damp()
            self._was_damped = True
            self._diagnostics.fault('silence', f'no {self.topic} for {timeout:g} s: the drives damp')

    def _checked(self, take: Any) -> Any:
        def callback(raw: bytes) -> None:
            try:
                take(raw)
            except ArgumentError as error:
                self._diagnostics.fault('bad_command', str(error))

        return callback

    def _take_joint_state(self, raw: bytes) -> None:
        sample = self._reader.parse(raw)
        if sample.arrays and all(np.isnan(numbers).all() for numbers in sample.arrays.values()):
            self._take_nothing(sample.stamp_ns)
            return
        self._reader.checked(sample)
        effort, position, velocity = sample.get('effort'), sample.get('position'), sample.get('velocity')
        if effort is None and position is None and velocity is None:
            raise ArgumentError(f'{self.topic} has no numbers; expected effort, position or velocity')
        self._check_age(sample.stamp_ns)
        self._world.command(effort, position, velocity)
        self._taken(sample.stamp_ns)

    def _take_nothing(self, stamp_ns: int) -> None:
        """Reject a command that is all NaN, as sent by ros2_control while no controller is active.

        The last valid command holds until it is too old. Time starts and, in lock-step, advances anyway: a
        controller can only be started while time advances.
        """
        self._check_age(stamp_ns)
        self.begun = True
        self._stamp_ns = stamp_ns or self._world.now_ns
        raise ArgumentError(
            f'{self.topic} contains only NaN (no active controller?); expected finite numbers'
        )

    def _take_array(self, raw: bytes) -> None:
        try:
            numbers = np.array(deserialize_message(raw, Float64MultiArray).data, dtype=np.float64)
        except Exception as error:  # whatever the deserializer raises
            raise ArgumentError(
                f'{self.topic}: not a valid Float64MultiArray message (truncated?)'
            ) from error
        nj = self._world.model.nj
        if numbers.shape != (nj,) or not np.isfinite(numbers).all():
            raise ArgumentError(
                f'{self.topic} has {numbers.size} numbers, {int(np.isfinite(numbers).sum())} of them finite; '
                f'expected {nj} finite numbers, in the order {list(self._world.model.joint_names)}'
            )
        self._world.command(numbers, None, None)
        self._taken(self._world.now_ns)

    def _check_age(self, stamp_ns: int) -> None:
        """Reject commands older than `command_timeout`; a stamp of 0 means no stamp."""
        age, oldest = (self._world.now_ns - stamp_ns) * 1e-9, self._world.settings.command_timeout
        if stamp_ns and age > oldest:
            raise ArgumentError(f'{self.topic} is {age:.3g} s old; expected at most {oldest:g} s')
        if age < 0.0 and self._world.settings.lock_step:
            raise ArgumentError(
                f'{self.topic} has a stamp {-age:.3g} s in the future; in lock-step, expected the '
                'stamp of the joint_states that it answers, or of /clock (use_sim_time)'
            )

    def _taken(self, stamp_ns: int) -> None:
        self.count += 1
        self.begun = True
        if self._was_damped:
            self._was_damped = False
            self._diagnostics.hurry()
        self._first_states -= stamp_ns == 0
        self._stamp_ns = stamp_ns or self._world.now_ns
        self._heard = time.monotonic()
        sent = self._sent.pop(stamp_ns, None)
        if sent is not None:
            self._latencies.append(self._heard - sent)
