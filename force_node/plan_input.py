# SPDX-License-Identifier: Apache-2.0
"""The topics `motion_plan` and `contact_plan`, with plans of another node."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from force_node.settings import ForceSettings
from quad_dynamics.control.plan_queue import PlanQueue
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.plan_messages import CONTACT_TOPIC, MOTION_TOPIC
from quad_dynamics.ros.plan_reader import PlanReader
from quad_dynamics.ros.qos import COMMAND
from quad_dynamics.ros.sensors import Sensors

# Longest wait for a plan in lock-step [s]: much longer than planning takes, but short if the planner died.
LONGEST_WAIT = 2.0

Pair = tuple[int, MotionPlan]


class PlanInput:
    """The subscriptions.

    Attributes:
        queue: of plans.
    """

    def __init__(
        self, node: Node, model: Model, settings: ForceSettings, sensors: Sensors, diagnostics: Diagnostics
    ) -> None:
        """Subscribe."""
        self._sensors, self._diagnostics = sensors, diagnostics
        self.queue = PlanQueue(settings.lock_step, settings.plan_period, settings.plan_delay)
        self._awaited, self._since = -1, 0.0  # the plan that we wait for, and since when [s]
        feet = [leg.foot for leg in model.legs]
        self._reader = PlanReader(feet, settings.world_frame, self._refuse)
        take_motion, take_contacts = self._reader.take_motion, self._reader.take_contacts
        node.create_subscription(
            MultiDOFJointTrajectory, MOTION_TOPIC, self._checked(take_motion), COMMAND, raw=True
        )
        node.create_subscription(
            JointTrajectory, CONTACT_TOPIC, self._checked(take_contacts), COMMAND, raw=True
        )

    def _refuse(self, text: str) -> None:
        self._diagnostics.fault('bad_plan', text)

    def _checked(self, take: Callable[[bytes], Pair | None]) -> Callable[[bytes], None]:
        def callback(raw: bytes) -> None:
            try:
                found = take(raw)
                if found is not None:
                    self.queue.take(*found, self._sensors.inputs.joint_stamp)
            except ArgumentError as error:
                self._refuse(str(error))

        return callback

    def must_wait(self, stamp_ns: int) -> bool:
        """Whether a state has to wait for a plan: in lock-step, for a limited time."""
        awaited, now = self.queue.waits_for(stamp_ns), time.monotonic()
        if awaited is None:
            return False
        if awaited != self._awaited:
            self._awaited, self._since = awaited, now
        if now - self._since <= LONGEST_WAIT:
            return True
        self.queue.give_up()
        self._diagnostics.fault(
            'late_plan', f'no motion_plan for the state of {awaited * 1e-9:.3f} s within {LONGEST_WAIT:g} s'
        )
        return False

    def age(self, stamp_ns: int) -> float:
        """Age of the newest plan at a state; infinity if there was none [s]."""
        newest = self.queue.newest
        return float('inf') if newest < 0 else (stamp_ns - newest) * 1e-9
