# SPDX-License-Identifier: Apache-2.0
"""An rclpy node with parameters `qos_overrides.<topic>.<publisher or subscription>.<policy>`.

rclpy supports them only for topics that the program lists, and silently ignores all others. Here they work
for every topic of the node and every policy of rclpy; others are rejected.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSPolicyKind, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import nearest, raise_problems
from quad_dynamics.ros.topics import NODES

PREFIX = 'qos_overrides.'
_ENTITIES = ('publisher', 'subscription')


class OverridableNode(Node):  # type: ignore[misc]
    """A node whose quality of service can be overridden by parameters."""

    def __init__(self, name: str) -> None:
        """Make the node.

        Args:
            name: as in `NODES`; it may be remapped.
        """
        self._listed = NODES[name]
        super().__init__(name)

    def create_publisher(self, msg_type: Any, topic: str, qos_profile: Any, **options: Any) -> Any:
        """As in rclpy, with overrides."""
        options |= self._overriding(topic, 'publisher')
        try:
            return super().create_publisher(msg_type, topic, _own(qos_profile, options), **options)
        except Exception as error:
            raise self._named(topic, options, error) from error

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Any:
        """As in rclpy, with overrides."""
        options |= self._overriding(topic, 'subscription')
        try:
            return super().create_subscription(
                msg_type, topic, callback, _own(qos_profile, options), **options
            )
        except Exception as error:
            raise self._named(topic, options, error) from error

    def check_overrides(self) -> None:
        """Reject overrides of unknown topics and unknown policies.

        Raises:
            ArgumentError: all of them, by name.
        """
        problems = [problem for name in self._overrides() if (problem := self._problem(name))]
        raise_problems(self.get_name(), problems)

    def _overrides(self) -> Iterator[str]:
        return (name for name in getattr(self, '_parameter_overrides', {}) if name.startswith(PREFIX))

    def _overriding(self, topic: str, entity: str) -> dict[str, Any]:
        """Options with the policies that are given for a topic; {} if there are none."""
        names = list(self._overrides())
        if not names:
            return {}
        start = f'{PREFIX}{self.resolve_topic_name(topic)}.{entity}.'
        given = [name.removeprefix(start).upper() for name in names if name.startswith(start)]
        kinds = [QoSPolicyKind[one] for one in given if one in QoSPolicyKind.__members__]
        return {'qos_overriding_options': QoSOverridingOptions(kinds)} if kinds else {}

    def _named(self, topic: str, options: dict[str, Any], error: Exception) -> Exception:
        """An error that names the overrides of a topic that has any; else the error itself."""
        if 'qos_overriding_options' not in options:
            return error
        return ArgumentError(f'parameters {PREFIX}{self.resolve_topic_name(topic)}: {error}')

    def _problem(self, name: str) -> str:
        """The problem with the name of an override; '' if there is none."""
        found = re.fullmatch(r'(.+)\.(\w+)\.(\w+)', name.removeprefix(PREFIX))
        topic, entity, policy = found.groups() if found else ('', '', '')
        if entity not in _ENTITIES:
            return (
                f"parameter '{name}'; expected {PREFIX}/topic.publisher.policy or "
                f'{PREFIX}/topic.subscription.policy'
            )
        policies = [one.lower() for one in QoSPolicyKind.__members__ if one != 'INVALID']
        if policy not in policies:
            expected = ', '.join(policies)
            return (
                f"parameter '{name}': unknown policy{nearest(policy, policies)}; expected one of {expected}"
            )
        topics = self._topics(entity)
        if not any(re.fullmatch(one, topic) for one in topics):
            readable = [one.replace(r'\w+', '<foot>') for one in topics]
            return (
                f"parameter '{name}': no such {entity}{nearest(topic, readable)}; expected one "
                f'of {", ".join(readable)}'
            )
        return ''

    def _topics(self, entity: str) -> list[str]:
        """Full names of topics; those of feet are regular expressions."""
        publishes = entity == 'publisher'
        made = self.publishers if publishes else self.subscriptions
        names = [one.topic_name for one in made]
        listed = self._listed.publishes if publishes else self._listed.subscribes
        for name in listed:
            foot = self.resolve_topic_name(name.replace('<foot>', '_foot_'))
            names.append(foot.replace('_foot_', r'\w+'))
        return list(dict.fromkeys(names))


def _own(profile: Any, options: dict[str, Any]) -> Any:
    """A copy of a profile, because rclpy modifies the profile that it is given."""
    changes = 'qos_overriding_options' in options and isinstance(profile, QoSProfile)
    return copy.copy(profile) if changes else profile
