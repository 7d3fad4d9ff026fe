# SPDX-License-Identifier: Apache-2.0
"""Measures rate, size and age of messages on topics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from quad_dynamics.ros.subscriptions import (
    Selection,
    is_latched,
    make_raw_mailbox,
    matching_qos,
    message_class,
    other_publishers,
    subscribe,
    topics_of,
)

_NAP = 0.002  # time for which messages are collected before they are taken [s]
_LOOK_EVERY = 0.25  # for new topics [s]


@dataclass(frozen=True)
class TopicRow:
    """Measurements of a topic.

    Attributes:
        name: of the topic.
        type: of its messages.
        publishers: number of publishers.
        subscribers: number of subscribers, excluding this process.
        rate: messages per second; None if none arrived.
        size: mean message size [bytes]; None if none arrived.
        age: time since the last message [s]; None if none has arrived yet.
    """

    name: str
    type: str
    publishers: int
    subscribers: int
    rate: float | None
    size: float | None
    age: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class _Counter:
    """Counts the messages of one topic."""

    def __init__(self) -> None:
        self.count = self.bytes = 0
        self.last: float | None = None

    def receive(self, raw: bytes, info: dict[str, Any]) -> None:
        """Count a message."""
        self.count += 1
        self.bytes += len(raw)
        self.last = time.monotonic()


class TopicWatch:
    """Watches all topics of the ROS graph."""

    def __init__(self, selection: Selection) -> None:
        """Make a node.

        Args:
            selection: which topics.
        """
        self._selection = selection
        self._node = Node('quad_dynamics_topics', start_parameter_services=False, enable_rosout=False)
        self._box = make_raw_mailbox(self._node)
        self._counters: dict[str, _Counter] = {}
        self._since = time.monotonic()

    def measure(self, seconds: float, stop: Callable[[], bool]) -> list[TopicRow]:
        """Listen for a while, and return the measurements."""
        deadline, look = time.monotonic() + seconds, 0.0
        while not stop() and (now := time.monotonic()) < deadline:
            if now >= look:
                look = now + _LOOK_EVERY
                self._look()
            self._box.wait(min(_LOOK_EVERY, max(deadline - now, 0.0)))
            time.sleep(min(_NAP, max(deadline - time.monotonic(), 0.0)))
        return self._rows()

    def settle(self, stop: Callable[[], bool], seconds: float = 0.5) -> None:
        """Discover the topics, and discard messages that arrived meanwhile."""
        self.measure(seconds, stop)

    def close(self) -> None:
        """Release all resources."""
        self._node.destroy_node()

    def _look(self) -> None:
        for name, kind in topics_of(self._node):
            if name in self._counters or not self._selection.wants(name):
                continue
            publishers, found = other_publishers(self._node, name), message_class(kind)
            if not publishers or found is None:
                continue
            counter = self._counters[name] = _Counter()
            qos: QoSProfile = matching_qos(publishers, depth=100)
            if not is_latched(publishers):
                qos.reliability = ReliabilityPolicy.BEST_EFFORT  # no publisher shall wait for us
            subscribe(self._node, name, found, counter.receive, qos)

    def _rows(self) -> list[TopicRow]:
        now = time.monotonic()
        elapsed, self._since = now - self._since, now
        rows = []
        for name, kind in sorted(topics_of(self._node)):
            publishers = len(other_publishers(self._node, name))
            counter = self._counters.get(name)
            subscribers = self._node.count_subscribers(name) - (counter is not None)
            if not self._selection.wants(name) or not publishers + subscribers:
                continue
            rate = size = age = None
            if counter is not None and counter.last is not None:
                age = now - counter.last
                if counter.count:
                    rate, size = counter.count / elapsed, counter.bytes / counter.count
                counter.count = counter.bytes = 0
            rows.append(TopicRow(name, kind, publishers, subscribers, rate, size, age))
        return rows
