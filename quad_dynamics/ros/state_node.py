# SPDX-License-Identifier: Apache-2.0
"""Common base of force_node and planner_node, which process every state of a robot."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from geometry_msgs.msg import Twist, TwistStamped

from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.compiling import announce_compiling
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.node import OverridableNode
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.priority import Priority
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND
from quad_dynamics.ros.robot import load_robot
from quad_dynamics.ros.state_settings import StateNodeSettings
from quad_dynamics.ros.velocities import read_velocity

_Settings = TypeVar('_Settings', bound=StateNodeSettings)


class Reporter(Protocol):
    """Publishes the status of a node on `/diagnostics`."""

    def watch(self) -> None:
        """Publish the next message at once if something has changed."""

    def publish(self) -> None:
        """Publish everything."""


class StateNode(Generic[_Settings]):
    """A node that processes states as they arrive.

    Attributes:
        node: of rclpy.
        settings: its parameters.
        model: the robot.
        diagnostics: its status.
        priority: real-time priority, if wanted.
    """

    priority: Priority
    _report: Reporter

    def __init__(self, name: str, kind: type[_Settings]) -> None:
        """Read the parameters and load the robot.

        Args:
            name: of the node.
            kind: class of its parameters.

        Raises:
            QuadDynamicsError: the parameters or the robot are invalid.
        """
        self.node = OverridableNode(name)
        self._parameters = NodeParameters(self.node, kind)
        self.settings: _Settings = self._parameters.values
        self.model = load_robot(self.node, self.settings.robot, self.settings.xacro_args)
        self.diagnostics = Diagnostics(self.node, self.model.name)
        announce_compiling(self.diagnostics)

    # ---------------------------------------------------------------- the loop

    def _run(self, stop: StopFlag, period: float, greeting: str) -> None:
        """Loop until asked to stop; exceptions are counted, and the node continues.

        Args:
            stop: whether to stop.
            period: how long a turn waits for messages [s].
            greeting: logged when everything is ready.
        """
        settings = self.settings
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
        """Wait for messages up to a time, and process the states that have arrived."""
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
        """Subscribe to `cmd_vel`; a rejected velocity is counted as a fault."""

        def callback(message: Any) -> None:
            try:
                take(*read_velocity(message))
            except ArgumentError as error:
                self.diagnostics.fault('bad_cmd_vel', str(error))

        kind = TwistStamped if self.settings.cmd_vel_stamped else Twist
        self.node.create_subscription(kind, 'cmd_vel', callback, COMMAND)


def silence_text(seconds: float) -> str:
    """Text for missing joint states after a silence [s]; infinity: none have arrived yet."""
    return f'no joint_states for {seconds:.2g} s' if math.isfinite(seconds) else 'no joint_states yet'
