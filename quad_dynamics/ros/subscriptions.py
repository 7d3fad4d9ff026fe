# SPDX-License-Identifier: Apache-2.0
"""Subscribes to topics of any type as they appear, and receives serialized messages."""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from quad_dynamics.bags.topics import Fields, Offer, full_name
from quad_dynamics.ros.mailbox import MOST_AT_ONCE, ExecutorMailbox, Mailbox, make_mailbox

# Topics shared by all robots; they are not below a namespace.
_GLOBAL = ('/clock', '/tf', '/tf_static')
# What DDS keeps for a subscriber that is busy: four seconds at 500 Hz.
DEPTH = 2000

Callback = Callable[[bytes, dict[str, Any]], None]


@dataclass(frozen=True)
class Selection:
    """Which topics are wanted.

    Attributes:
        names: topics to include; none: all. * and ? are wildcards.
        exclude: topics to exclude.
        namespace: of relative names; if no names are given, only topics below it are wanted.
    """

    names: Sequence[str] = ()
    exclude: Sequence[str] = ()
    namespace: str = '/'

    def resolve(self, name: str) -> str:
        """The full name."""
        space = '/' + self.namespace.strip('/')
        return name if name.startswith('/') else f'{space.rstrip("/")}/{name}'

    def wants(self, topic: str) -> bool:
        """Whether a topic is wanted."""
        if any(fnmatch.fnmatchcase(topic, self.resolve(one)) for one in self.exclude):
            return False
        if self.names:
            return any(fnmatch.fnmatchcase(topic, self.resolve(one)) for one in self.names)
        hidden = any(part.startswith('_') for part in topic.split('/'))
        below = topic in _GLOBAL or topic.startswith(self.resolve(''))
        return below and not hidden

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Requested names that match no topic."""
        known = list(topics)
        return [one for one in self.names if not fnmatch.filter(known, self.resolve(one))]


class RawMailbox(Mailbox):
    """A mailbox whose callbacks receive the message and the middleware's information about it."""

    def take(self, subscription: Any) -> int:
        """Run the callback of one subscription for each pending message; return how many."""
        take, kind, callback = subscription.handle.take_message, subscription.msg_type, subscription.callback
        for count in range(MOST_AT_ONCE):
            message = take(kind, True)
            if message is None:
                return count
            callback(*message)
        return MOST_AT_ONCE


def make_raw_mailbox(node: Node) -> RawMailbox | ExecutorMailbox:
    """A mailbox that works with the version of rclpy that is installed."""
    made = make_mailbox(node)
    return RawMailbox(node) if isinstance(made, Mailbox) else made


def message_class(kind: str) -> Any:
    """The class of a type, such as 'sensor_msgs/msg/JointState'; None if it is not installed."""
    package, middle, name = full_name(kind).split('/')
    try:
        return getattr(importlib.import_module(f'{package}.{middle}'), name)
    except (ImportError, AttributeError, ValueError):
        return None


def fields_of(kind: str) -> Fields:
    """Names and types of the fields of a type that is installed."""
    found: Fields = message_class(kind).get_fields_and_field_types()
    return found


def other_publishers(node: Node, topic: str) -> list[Any]:
    """Information about a topic's publishers, except those of the node itself."""
    own = (node.get_name(), node.get_namespace())
    infos = node.get_publishers_info_by_topic(topic)
    return [info for info in infos if (info.node_name, info.node_namespace) != own]


def offer(info: Any) -> Offer:
    """Quality of service of a publisher."""
    qos = info.qos_profile
    return Offer(
        int(qos.history),
        int(qos.depth),
        int(qos.reliability),
        int(qos.durability),
        qos.deadline.nanoseconds,
        qos.lifespan.nanoseconds,
        int(qos.liveliness),
        qos.liveliness_lease_duration.nanoseconds,
    )


def is_latched(publishers: Sequence[Any]) -> bool:
    """Whether all publishers send their last messages to late subscribers."""
    transient = DurabilityPolicy.TRANSIENT_LOCAL
    return all(info.qos_profile.durability == transient for info in publishers)


def matching_qos(publishers: Sequence[Any], depth: int = DEPTH) -> QoSProfile:
    """The best quality of service that all publishers offer."""
    reliable = all(info.qos_profile.reliability == ReliabilityPolicy.RELIABLE for info in publishers)
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=(
            DurabilityPolicy.TRANSIENT_LOCAL if is_latched(publishers) else DurabilityPolicy.VOLATILE
        ),
    )


def topics_of(node: Node) -> Iterator[tuple[str, str]]:
    """Name and type of each topic, except topics with several types."""
    for name, kinds in node.get_topic_names_and_types():
        if len(kinds) == 1:
            yield name, kinds[0]


def subscribe(node: Node, topic: str, kind: Any, callback: Callback, qos: QoSProfile) -> Any:
    """A subscription to serialized messages, with the middleware's information about them."""
    return node.create_subscription(kind, topic, callback, qos, raw=True)
