# SPDX-License-Identifier: Apache-2.0
"""Requests of the page to other nodes: services, parameters, pushes, velocities."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import Twist, WrenchStamped
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from quad_dynamics.ros.qos import COMMAND

Report = Callable[[str, str, bool], None]  # title, text, whether it is good news
_TWIST_PERIOD = 0.05  # of cmd_vel [s]
_ZERO_TIME = 0.5  # for which zeros follow the last velocity: one alone may get lost [s]
# Beginnings of the names of nodes that subscribe to everything and obey nothing.
_ONLY_LISTEN = ('quad_dynamics_', 'rosbag2', '_ros2cli', 'ros2cli', 'rqt', 'foxglove', 'rosbridge')


@dataclass
class _Call:
    """A request that waits for its answer."""

    title: str
    client: Any
    future: Any
    deadline: float
    is_quiet: bool


class Remote:
    """Service clients and publishers."""

    def __init__(
        self, node: Node, sim: str, force: str, planner: str, patience: float, report: Report
    ) -> None:
        """Make them.

        Args:
            node: of rclpy.
            sim: name of the node that simulates.
            force: name of the node that commands torques.
            planner: name of the node that plans walking.
            patience: longest wait for an answer [s].
            report: called with the results of calls.
        """
        self._patience, self._report = patience, report
        self._calls: list[_Call] = []
        self._pause = node.create_client(SetBool, f'{sim}/pause')
        self._triggers = {
            name: node.create_client(Trigger, f'{owner}/{name}')
            for owner, name in ((sim, 'step'), (sim, 'reset'), (force, 'recover'))
        }
        self._setters = {
            name: node.create_client(SetParameters, f'{name}/set_parameters')
            for name in (sim, force, planner)
        }
        self._getters = {
            name: node.create_client(GetParameters, f'{name}/get_parameters') for name in (sim, force)
        }
        self._push = node.create_publisher(WrenchStamped, 'push', COMMAND)
        self._twist = node.create_publisher(Twist, 'cmd_vel', COMMAND)
        self._node = node
        self._velocity = (0.0, 0.0, 0.0)
        self._next_twist = self._zeros_until = 0.0

    # ---- services

    def pause(self, is_paused: bool, then: Callable[[], None]) -> None:
        """Pause or resume time; `then` is called on success."""
        title = 'pause' if is_paused else 'resume'
        self._call(title, self._pause, SetBool.Request(data=is_paused), lambda _: then())

    def trigger(self, name: str, then: Callable[[], None] | None = None) -> None:
        """Call 'step', 'reset' or 'recover'; `then` is called on success."""
        self._call(
            name, self._triggers[name], Trigger.Request(), lambda _: then() if then is not None else None
        )

    def set_parameter(self, node: str, name: str, value: str, is_quiet: bool = False) -> None:
        """Set a text parameter of another node; report the result unless `quiet`."""
        wanted = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)
        request = SetParameters.Request(parameters=[Parameter(name=name, value=wanted)])
        self._call(f'{name} of {node}: {value}', self._setters[node], request, is_quiet=is_quiet)

    def ask_parameter(self, node: str, name: str, then: Callable[[str], None]) -> None:
        """Ask for a text parameter of another node; '' if that node is not available."""
        client = self._getters[node]
        if not client.service_is_ready():
            then('')
            return
        request = GetParameters.Request(names=[name])

        def tell(response: Any) -> None:
            then(response.values[0].string_value if response.values else '')

        self._call(f'{name} of {node}', client, request, tell, is_quiet=True)

    def _call(
        self,
        title: str,
        client: Any,
        request: Any,
        then: Callable[[Any], None] | None = None,
        is_quiet: bool = False,
    ) -> None:
        if not client.service_is_ready():
            self._report(title, f'service {client.srv_name} not available: is its node running?', False)
            return
        future = client.call_async(request)
        self._calls.append(_Call(title, client, future, time.monotonic() + self._patience, is_quiet))
        future.add_done_callback(lambda done: self._answer(title, client, done, then, is_quiet))

    def _answer(
        self, title: str, client: Any, future: Any, then: Callable[[Any], None] | None, is_quiet: bool
    ) -> None:
        self._calls = [call for call in self._calls if call.future is not future]
        if future.cancelled():
            return
        response = future.result()
        results = getattr(response, 'results', None)
        first = results[0] if results else response
        success = bool(getattr(first, 'success', getattr(first, 'successful', True)))
        text = str(getattr(first, 'message', getattr(first, 'reason', '')))
        if title == 'recover' and not success:
            text += '; use Reset to return to the initial pose'
        if not is_quiet:
            self._report(title, text or ('done' if success else f'{client.srv_name} failed'), success)
        if success and then is not None:
            then(response)

    def give_up(self) -> None:
        """Drop calls that were not answered in time, and report them."""
        now = time.monotonic()
        for call in [call for call in self._calls if call.deadline < now]:
            self._calls.remove(call)
            call.client.remove_pending_request(call.future)
            if not call.is_quiet:
                text = f'{call.client.srv_name} did not answer within {self._patience:g} s'
                self._report(call.title, text, False)

    # ---- topics

    def push(self, force: tuple[float, float, float]) -> None:
        """Push the base with a force in world axes [N], and report it."""
        if not self._push.get_subscription_count():
            self._report('push', f'{self._push.topic_name} has no subscribers: is sim_node running?', False)
            return
        message = WrenchStamped()
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force
        self._push.publish(message)
        self._report('push', f'{math.hypot(*force):.0f} N', True)

    def walkers(self) -> list[str]:
        """Names of the nodes that subscribe to cmd_vel, except those that only record or print it."""
        topic = self._twist.topic_name
        if not self._twist.get_subscription_count():
            return []
        names = {info.node_name for info in self._node.get_subscriptions_info_by_topic(topic)}
        return sorted(name for name in names if not name.startswith(_ONLY_LISTEN))

    def move(self, velocity: tuple[float, float, float], now: float) -> None:
        """Publish a velocity if it is due or has changed: forward, left [m/s], turn [rad/s].

        Args:
            velocity: zeros are published for some time after a nonzero velocity.
            now: monotonic time [s].
        """
        if any(velocity):
            self._zeros_until = now + _ZERO_TIME
        if now > self._zeros_until or (velocity == self._velocity and now < self._next_twist):
            return
        self._next_twist, self._velocity = now + _TWIST_PERIOD, velocity
        self._publish_velocity(velocity)

    def _publish_velocity(self, velocity: tuple[float, float, float]) -> None:
        message = Twist()
        message.linear.x, message.linear.y, message.angular.z = velocity
        self._twist.publish(message)
