# SPDX-License-Identifier: Apache-2.0
"""A topic that is being recorded: who publishes it, and what of it was lost."""

from __future__ import annotations

from typing import Any

from quad_dynamics.ros.bag_topics import Topic
from quad_dynamics.ros.sequence_numbers import SequenceNumbers
from quad_dynamics.ros.stamp_order import StampedTopic
from quad_dynamics.ros.subscriptions import matching_qos


class Source:
    """One topic that is being recorded.

    Attributes:
        topic: as it is in the bag.
        kind: class of its messages.
        numbers: finds out what was lost.
        number: in the bag, 0 before it is in it.
        qos: of the subscription.
        subscription: of rclpy.
        ordered: how its messages are put in order; None: as they come.
    """

    def __init__(self, topic: Topic, kind: Any, publishers: list[Any]) -> None:
        self.topic, self.kind = topic, kind
        self.numbers = SequenceNumbers()
        self.number = 0
        self.qos = matching_qos(publishers)
        self.gids: set[bytes] = set()
        self.subscription: Any = None
        self.ordered: StampedTopic | None = None
        self.know(publishers)

    def know(self, publishers: list[Any]) -> None:
        """Take note of who publishes."""
        gids = {bytes(info.endpoint_gid) for info in publishers}
        if gids and gids != self.gids:
            if self.gids <= gids:
                self.numbers.publishers = len(gids)
            else:
                self.numbers.publishers_changed(len(gids))
            self.gids = gids
            if self.ordered is not None:
                self.ordered.shared = len(gids) > 1
