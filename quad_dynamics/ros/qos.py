# SPDX-License-Identifier: Apache-2.0
"""Quality of service of all topics.

Streams are published reliably, so that a recorder loses nothing. A controller needs only the latest message:
it subscribes with best effort, which is compatible with a reliable publisher, and keeps one. Nodes that need
every message beside other work use a deeper queue; drivers of real sensors often offer best effort only.
"""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

STREAM = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
RECORD = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
CONTROL = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
COMMAND = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)

_WORDS = [
    (STREAM, 'reliable, keep last 100'),
    (RECORD, 'best effort, keep last 2000'),
    (CONTROL, 'best effort, keep last 1'),
    (COMMAND, 'reliable, keep last 10'),
    (LATCHED, 'reliable, transient local, keep last 1'),
]


def describe(profile: QoSProfile) -> str:
    """A description of a profile, for the docs."""
    return next(words for known, words in _WORDS if known == profile)
