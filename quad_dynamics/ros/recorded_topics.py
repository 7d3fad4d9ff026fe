# SPDX-License-Identifier: Apache-2.0
"""Topics that are being recorded: their publishers, lost messages, and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quad_dynamics.bags.metadata import Contents
from quad_dynamics.bags.sequence_numbers import SequenceNumbers
from quad_dynamics.bags.stamp_order import StampedTopic
from quad_dynamics.bags.topics import Topic
from quad_dynamics.ros.subscriptions import matching_qos


class Source:
    """One topic that is being recorded.

    Attributes:
        topic: as it is in the bag.
        kind: class of its messages.
        numbers: counts lost messages.
        number: id in the bag, 0 before it is added.
        qos: of the subscription.
        subscription: of rclpy.
        ordered: sorts its messages; None: they are written as they arrive.
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
        """Register the publishers."""
        gids = {bytes(info.endpoint_gid) for info in publishers}
        if gids and gids != self.gids:
            if self.gids <= gids:
                self.numbers.publishers = len(gids)
            else:
                self.numbers.publishers_changed(len(gids))
            self.gids = gids
            if self.ordered is not None:
                self.ordered.shared = len(gids) > 1


def notes(sim_time: bool, lost: Mapping[str, int], late: int) -> dict[str, str]:
    """The notes on a recording in metadata.yaml.

    Args:
        sim_time: whether its times are simulated.
        lost: number of lost messages by topic.
        late: number of messages that arrived too late to be sorted.
    """
    made = {
        'recorder': 'quad_dynamics',
        'time': 'simulated' if sim_time else 'received',
        'lost_messages': str(sum(lost.values())),
    }
    made |= {f'lost_messages{name}': str(count) for name, count in lost.items()}
    return made | ({'out_of_order_messages': str(late)} if late else {})


def summary(contents: Contents, folder: Path, lost: Mapping[str, int], dropped: int) -> str:
    """The summary printed at the end.

    Args:
        contents: of the bag.
        folder: of the bag.
        lost: number of lost messages by topic.
        dropped: number of messages that could not be written.
    """
    topics = sum(1 for _, count in contents.topics if count)
    each = [f'{name} {count}' for name, count in lost.items()]
    each += [f'not written {dropped}'] if dropped else []
    loss = f'LOST {sum(lost.values()) + dropped}: {", ".join(each)}' if each else 'nothing lost'
    what = f'{contents.count} messages of {topics} topics, {contents.seconds:.3f} s'
    return f'recorded {what}, into {folder}; {loss}'
