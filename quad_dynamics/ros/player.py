# SPDX-License-Identifier: Apache-2.0
"""Publishes the serialized messages of a bag with their recorded timing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos, QosDurability, QosReliability
from rosbags.rosbag2 import Reader

from quad_dynamics.bags.damage import check_metadata
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import nearest
from quad_dynamics.ros.motion import KIND, TOPIC, FollowedMotion
from quad_dynamics.ros.pacing import sharpen_timers
from quad_dynamics.ros.qos import STREAM
from quad_dynamics.ros.subscriptions import Selection, message_class

_CLOCK = '/clock'
# A message that is published this much after its time is late [s].
_LATE = 0.005
# Bags do not store the history depth of publishers.
_DEPTH = 100
# Longest time until signals are noticed [s].
_LONGEST_NAP = 0.05
_LONGEST_GOODBYE = 0.5
# A subscriber that we have discovered may discover us a little later, and others may still follow: one
# recorder must not be taken for all of them [s].
_ACQUAINTANCE = 0.5

Publish = Callable[[bytes], None]


@dataclass(frozen=True)
class PlayOptions:
    """What to play, and how.

    Attributes:
        rate: 2 is twice as fast as recorded.
        selection: of topics.
        loop: start over at the end.
        clock_hz: rate of /clock [Hz]; None: only what is in the bag.
        start: offset from the first message [s].
        duration: how much to play [s]; None: to the end.
        remap: new names of topics by their old ones.
        delay: longest wait for subscribers before the first message [s]; for a motion, until force_node is
            ready for it.
        wait_for: name of the node that must subscribe; '': any.
    """

    rate: float = 1.0
    selection: Selection = field(default_factory=Selection)
    loop: bool = False
    clock_hz: float | None = None
    start: float = 0.0
    duration: float | None = None
    remap: Mapping[str, str] = field(default_factory=dict)
    delay: float = 1.0
    wait_for: str = ''


class Player:
    """A node that plays a bag; run by `run_node`.

    Attributes:
        motion: watches force_node follow the trajectories that are played; None: not watched.
        problem: '' or why a motion was not followed to its end.
        is_done: whether there is nothing left to publish or to wait for.
        was_followed: whether a motion was followed to its end.
        count: messages published so far.
        late: how many of them were published more than 5 ms late.
        latest: largest delay [s].
    """

    def __init__(self, folder: Path, options: PlayOptions, motion: FollowedMotion | None = None) -> None:
        """Open the bag and make the publishers.

        Args:
            folder: of the bag.
            options: what, and how.
            motion: watches force_node follow the trajectories that are played; None: not watched.

        Raises:
            ArgumentError: the bag is invalid or contains nothing that can be played.
        """
        self._folder, self._options, self.motion = folder, options, motion
        self.problem, self.is_done, self.was_followed = '', False, False
        self._reader = open_bag(folder)
        self.node = Node('quad_dynamics_player', start_parameter_services=False, enable_rosout=False)
        self.count = self.late = 0
        self.latest = 0.0
        self._publishers: dict[int, Any] = {}
        self._connections: list[Connection] = []
        self.skipped: list[str] = []
        self._make_publishers()
        self._clock = None if options.clock_hz is None else _ClockPublisher(self.node)
        begin = self._reader.start_time if self._reader.message_count else 0
        self._begin = begin + round(options.start * 1e9)
        self._end = None if options.duration is None else self._begin + round(options.duration * 1e9)

    def _make_publishers(self) -> None:
        names = {connection.topic for connection in self._reader.connections}
        for wanted in self._options.selection.missing(names):
            raise ArgumentError(f'{self._folder} has no topic {wanted}{nearest(wanted, sorted(names))}')
        for connection in self._reader.connections:
            if not self._options.selection.wants(connection.topic):
                continue
            if self._options.clock_hz is not None and connection.topic == _CLOCK:
                continue  # ours takes its place
            kind = message_class(connection.msgtype)
            if kind is None:
                self.skipped.append(f'{connection.topic} ({connection.msgtype} is not installed)')
                continue
            name = self._options.remap.get(connection.topic, connection.topic)
            publisher = self.node.create_publisher(kind, name, played_qos(connection))
            self._publishers[connection.id] = publisher
            self._connections.append(connection)
        if not self._connections:
            raise ArgumentError(
                f'{self._folder} contains no topic that can be played; it has {sorted(names)}'
            )

    @property
    def topics(self) -> int:
        """Number of topics that are played."""
        return len(self._connections)

    def spin(self, stop: Callable[[], bool]) -> None:
        """Play until the end of the bag, or until `stop()` is true."""
        sharpen_timers()
        self._wait_for_subscribers(stop)
        try:
            while not stop():
                self._play_once(stop)
                if not self._options.loop or not self.count:
                    break
        except ArgumentError as error:
            self.problem = str(error)
        self.is_done = True
        for publisher in self._publishers.values():
            with suppress(Exception):  # not every middleware can say
                publisher.wait_for_all_acked(Duration(seconds=_LONGEST_GOODBYE))

    def close(self) -> None:
        """Release all resources."""
        self.node.destroy_node()
        self._reader.close()

    def _wait_for_subscribers(self, stop: Callable[[], bool]) -> None:
        """Wait until subscribers have discovered us; some topics may have none."""
        deadline = time.monotonic() + self._options.delay
        counts, since = [0], time.monotonic()
        while time.monotonic() < deadline and not stop():
            found = [self._listeners(one) for one in self._publishers.values()]
            if found != counts:
                counts, since = found, time.monotonic()
            if all(counts) and time.monotonic() - since > _ACQUAINTANCE:
                return
            time.sleep(0.01)

    def _listeners(self, publisher: Any) -> int:
        """Number of subscribers of a topic, of those that are waited for."""
        wanted = self._options.wait_for
        if not wanted:
            return int(publisher.get_subscription_count())
        found = self.node.get_subscriptions_info_by_topic(publisher.topic_name)
        return sum(one.node_name == wanted for one in found)

    def _play_once(self, stop: Callable[[], bool]) -> None:
        """Play the bag, and wait until its motion has been followed."""
        if self.motion is None:
            self._play(stop)
            return
        self.motion.wait_until_ready(self._options.delay, stop)
        self.motion.begin()
        self._play(stop)
        self.motion.wait(stop)
        self.was_followed = not stop()

    def _play(self, stop: Callable[[], bool]) -> None:
        """Publish everything in the bag."""
        publish: dict[int, Publish] = {i: one.publish for i, one in self._publishers.items()}
        rate, start = self._options.rate, time.monotonic()
        for stamp, message in self._timeline():
            deadline = start + (stamp - self._begin) * 1e-9 / rate
            while (left := deadline - time.monotonic()) > 0.0:
                time.sleep(min(left, _LONGEST_NAP))
                if stop():
                    return
            if isinstance(message, tuple):
                number, data = message
                publish[number](data)
                self.count += 1
                if -left > _LATE:
                    self.late += 1
                    self.latest = max(self.latest, -left)
                    if stop():
                        return
            elif self._clock is not None:
                self._clock.publish(stamp)

    def _timeline(self) -> Iterator[tuple[int, tuple[int, bytes] | None]]:
        """Time [ns] and message; None as message: publish /clock."""
        messages = self._reader.messages(self._connections, start=self._begin, stop=self._end)
        period = 0 if self._options.clock_hz is None else round(1e9 / self._options.clock_hz)
        tick = self._begin
        for connection, stamp, data in messages:
            while period and tick <= stamp:
                yield tick, None
                tick += period
            yield stamp, (connection.id, bytes(data))


class _ClockPublisher:
    """Publishes /clock."""

    def __init__(self, node: Node) -> None:
        from rosgraph_msgs.msg import Clock

        self._message = Clock()
        self._publisher = node.create_publisher(Clock, _CLOCK, STREAM)

    def publish(self, stamp: int) -> None:
        """Publish the time [ns]."""
        self._message.clock.sec, self._message.clock.nanosec = divmod(stamp, 10**9)
        self._publisher.publish(self._message)


def motion_namespace(
    folder: Path, selection: Selection | None = None, remap: Mapping[str, str] | None = None
) -> str | None:
    """Namespace of the force_node that a motion in a bag is meant for; None: the bag has no motion.

    Args:
        folder: of the bag.
        selection: of topics that are played; None: all.
        remap: new names of topics by their old ones.

    Raises:
        ArgumentError: it is not a valid bag.
    """
    reader = open_bag(folder)
    try:
        topics = [one.topic for one in reader.connections if one.msgtype == KIND]
    finally:
        reader.close()
    for topic in topics:
        below, _, name = (remap or {}).get(topic, topic).rpartition('/')
        if name == TOPIC and (selection is None or selection.wants(topic)):
            return below.strip('/')
    return None


def open_bag(folder: Path) -> Reader:
    """A reader of a bag.

    Raises:
        ArgumentError: it is not a valid bag.
    """
    if not folder.exists():
        raise ArgumentError(f'{folder} not found; expected the folder of a bag')
    check_metadata(folder)
    try:
        reader = Reader(folder)
        reader.open()
    except Exception as error:  # rosbags raises many kinds for damaged bags
        text = str(error).rstrip('.')
        raise ArgumentError(f'{folder} cannot be read: {text}; try: quad_dynamics repair {folder}') from error
    return reader


def played_qos(connection: Connection) -> QoSProfile:
    """Quality of service of a played topic: as recorded, as far as that is valid."""
    recorded = _offers(connection)
    reliable = all(one.reliability is not QosReliability.BEST_EFFORT for one in recorded)
    latched = bool(recorded) and all(one.durability is QosDurability.TRANSIENT_LOCAL for one in recorded)
    depth = max([one.depth for one in recorded], default=0)
    return QoSProfile(
        depth=max(depth, 1) if latched and depth else _DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        liveliness=LivelinessPolicy.AUTOMATIC,
    )


def _offers(connection: Connection) -> Sequence[Qos]:
    extension = connection.ext
    return extension.offered_qos_profiles if isinstance(extension, ConnectionExtRosbag2) else ()
