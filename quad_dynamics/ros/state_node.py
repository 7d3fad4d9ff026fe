# SPDX-License-Identifier: Apache-2.0
"""What force_node and planner_node share: they work on every state of a robot that comes on topics."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from geometry_msgs.msg import Twist, TwistStamped

from quad_dynamics.control.modes.settings import CommandedSettings
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.compiling import announce_compiling
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.node import OverridableNode
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.priority import Priority
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND
from quad_dynamics.ros.robot import load_robot
from quad_dynamics.ros.velocities import read_velocity

_Settings = TypeVar('_Settings', bound=CommandedSettings)


class Reporter(Protocol):
    """Says on `/diagnostics` what a node does."""

    def watch(self) -> None:
        """Let the next message come at once when something has changed."""

    def publish(self) -> None:
        """Publish everything."""


class StateNode(Generic[_Settings]):
    """A node that works on states as they come.

    Attributes:
        node: of rclpy.
        settings: its parameters.
        model: the robot.
        diagnostics: what it says about itself.
        priority: real-time priority, where it is wanted.
    """

    priority: Priority
    _report: Reporter

    def __init__(self, name: str, kind: type[_Settings]) -> None:
        """Read the parameters and load the robot.

        Args:
            name: of the node.
            kind: class of its parameters.

        Raises:
            QuadDynamicsError: what is wrong with the parameters or the robot.
        """
        self.node = OverridableNode(name)
        self._parameters = NodeParameters(self.node, kind)
        self.settings: _Settings = self._parameters.values
        robot: Any = self.settings
        self.model = load_robot(self.node, robot.robot, robot.xacro_args)
        self.diagnostics = Diagnostics(self.node, self.model.name)
        announce_compiling(self.diagnostics)

    # ---------------------------------------------------------------- the loop

    def _run(self, stop: StopFlag, period: float, greeting: str) -> None:
        """Take turns until asked to stop; whatever goes wrong in one is counted, and the node lives on.

        Args:
            stop: whether to stop.
            period: how long a turn waits for messages [s].
            greeting: for the log, when everything is ready.
        """
        settings: Any = self.settings
        self.priority.want(settings.real_time_priority and not settings.lock_step)
        gc.collect()
        gc.freeze()
        self.node.get_logger().info(greeting)
        while not stop():
            try:
                self.turn(period)
            except Exception as error:  # whatever it is
                self.diagnostics.error(error)
                self._make_safe(error)

    def turn(self, seconds: float) -> None:
        """Wait for messages, at most so long, and work on the states that have come."""
        raise NotImplementedError

    def _make_safe(self, error: Exception) -> None:
        """Called after a turn that failed."""

    def _tell(self) -> None:
        """Publish diagnostics when they are due."""
        self._report.watch()
        if self.diagnostics.is_due:
            self.priority.review()
            self._report.publish()

    # ---------------------------------------------------------------- cmd_vel

    def _listen_to_velocities(self, take: Callable[[float, float, float], None]) -> None:
        """Subscribe to `cmd_vel`; a velocity that is refused is a fault of its sender."""

        def callback(message: Any) -> None:
            try:
                take(*read_velocity(message))
            except ArgumentError as error:
                self.diagnostics.fault('bad_cmd_vel', str(error))

        settings: Any = self.settings
        kind = TwistStamped if settings.cmd_vel_stamped else Twist
        self.node.create_subscription(kind, 'cmd_vel', callback, COMMAND)


def silence_text(seconds: float) -> str:
    """What is missing while there are no joint states, for so long; infinity: from the beginning [s]."""
    return f'no joint_states for {seconds:.2g} s' if math.isfinite(seconds) else 'no joint_states yet'
