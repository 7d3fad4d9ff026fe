# SPDX-License-Identifier: Apache-2.0
"""The status that a node publishes on `/diagnostics`."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.qos import COMMAND

OK, WARN, ERROR = 0, 1, 2
PERIOD = 0.5  # between two messages [s]
FORGOTTEN = 4.0  # time in which the middleware notices that a publisher has died [s]
SHORTEST_PERIOD = 0.05  # when the state changes [s]
# Seconds are an int32 in messages; a stamp that came with too many nanoseconds may be beyond it [ns].
_FIRST_STAMP, _LAST_STAMP = -(2**31) * 10**9, 2**31 * 10**9 - 1


class Diagnostics:
    """The status of one node: level, message and values; also counts faults.

    Attributes:
        hardware_id: name of the robot that the node works for, '' while it is unknown.
        counts: how often each kind of fault was seen.
        last_fault: text of the last one.
    """

    def __init__(self, node: Node, hardware_id: str = '') -> None:
        """Publish for a node.

        Args:
            node: of rclpy.
            hardware_id: name of the robot that it works for.
        """
        self._node = node
        self.hardware_id = hardware_id
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', COMMAND)
        self._next = self._last = 0.0
        self._warned: dict[str, float] = {}
        self._crowds: list[tuple[Crowd, frozenset[str]]] = []
        self.counts: Counter[str] = Counter()
        self.last_fault = ''

    def fault(self, kind: str, text: str) -> None:
        """Count a fault and log it, each kind at most once a second.

        Args:
            kind: short name, such as 'wrong_length'.
            text: a message that names the culprit and what was expected.
        """
        self.counts[kind] += 1
        self.last_fault = text
        self.hurry()
        now = time.monotonic()
        if now >= self._warned.get(kind, 0.0):
            self._warned[kind] = now + 1.0
            if any(kind in kinds and crowd.found() > 1 for crowd, kinds in self._crowds):
                return  # a topic has several publishers, which is logged once
            times = self.counts[kind]
            self._node.get_logger().warning(f'{text}{f" ({times} times so far)" if times > 1 else ""}')

    def watch(self, crowd: Crowd, *kinds: str) -> None:
        """Do not log faults of some kinds while a topic has several publishers, which cause them.

        Args:
            crowd: watches the topic; its warning is logged once.
            kinds: of faults.
        """
        self._crowds.append((crowd, frozenset(kinds)))

    def error(self, error: Exception) -> None:
        """Count an exception of a callback or of the loop: invalid input, or something unforeseen."""
        if isinstance(error, ArgumentError):
            self.fault('bad_input', str(error))
        else:
            self.fault('exception', f'{type(error).__name__}: {error}')

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next message."""
        return time.monotonic() >= self._next

    def hurry(self) -> None:
        """The state has changed: publish soon, but not directly after the last message."""
        self._next = min(self._next, self._last + SHORTEST_PERIOD)

    def publish(self, level: int, message: str, stamp_ns: int | None = None, **values: Any) -> None:
        """Publish the state now.

        Args:
            level: OK, WARN or ERROR.
            message: a short text.
            stamp_ns: time of the message [ns], clipped to the range of message stamps. None: now, by the
                clock of the node.
            values: by name.
        """
        self._last = time.monotonic()
        self._next = self._last + PERIOD
        name = self._node.get_fully_qualified_name().lstrip('/')
        status = DiagnosticStatus(
            level=bytes([level]), name=name, message=message, hardware_id=self.hardware_id
        )
        values |= {f'faults.{kind}': count for kind, count in sorted(self.counts.items())}
        if self.last_fault:
            values['last_fault'] = self.last_fault
        status.values = [KeyValue(key=key, value=_text(value)) for key, value in values.items()]
        array = DiagnosticArray(status=[status])
        if stamp_ns is None:
            stamp_ns = self._node.get_clock().now().nanoseconds
        stamp_ns = min(max(stamp_ns, _FIRST_STAMP), _LAST_STAMP)
        array.header.stamp.sec, array.header.stamp.nanosec = divmod(stamp_ns, 10**9)
        self._publisher.publish(array)


class Crowd:
    """Watches a topic for more than one publisher; one that died is still counted for some seconds."""

    def __init__(self, node: Node, topic: str, silent_about: str = '') -> None:
        """Watch a topic.

        Args:
            node: of rclpy.
            topic: its full name.
            silent_about: name of nodes that log a warning themselves if there are several of them.
        """
        self._node, self._topic, self._silent_about = node, topic, silent_about
        self._since, self._told = math.inf, False

    def found(self) -> int:
        """Number of publishers known to the middleware; for some seconds, this includes those that died."""
        return int(self._node.count_publishers(self._topic))

    def count(self) -> int:
        """Number of publishers; 1 as long as it may be one that was restarted. A crowd is logged once."""
        found, now = self.found(), time.monotonic()
        self._since = min(self._since, now) if found > 1 else math.inf
        if now - self._since <= FORGOTTEN:
            self._told = False
            return min(found, 1)
        if not self._told:
            self._told = True
            self._tell(found)
        return found

    def _tell(self, found: int) -> None:
        infos = self._node.get_publishers_info_by_topic(self._topic)
        names = sorted(f'{one.node_namespace.rstrip("/")}/{one.node_name}' for one in infos)
        if self._silent_about and all(name.endswith(f'/{self._silent_about}') for name in names):
            return
        self._node.get_logger().warning(
            f'{self._topic} has {found} publishers ({", ".join(names)}); expected one. If another simulation '
            f'is running in ROS domain {os.environ.get("ROS_DOMAIN_ID") or 0}, stop it, or give one of '
            'the two another ROS_DOMAIN_ID or namespace. Rejected messages are counted, not logged'
        )


def _text(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else str(value)
