# SPDX-License-Identifier: Apache-2.0
"""Messages with high rates: the latest is kept, and read when the page is refreshed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.ros.cdr import JointReader, JointSample
from quad_dynamics.ros.qos import COMMAND, CONTROL
from quad_dynamics.ros.readers import ANY, ODOMETRY, WRENCH, NumberReader
from quad_dynamics.simulation.bag import topic_names
from viewer_node.markers import Marker, read_markers

Fault = Callable[[str, str], None]  # kind, sentence

MARKER_TOPICS = ('markers', 'plan_markers')  # that come many times a second
_MOST_MARKER_MESSAGES = 100  # that wait until the page is refreshed
_OLD_FORCE = 0.5  # age after which a force is not shown any more [s]


def read_marker_array(raw: bytes) -> list[Marker]:
    """The markers of a visualization_msgs/MarkerArray."""
    return read_markers(raw, lambda whole: deserialize_message(whole, MarkerArray))


def _pose_reader() -> Callable[[bytes], tuple[Floats, Floats]]:
    """A function that reads position (3,) [m] and orientation (4,) w x y z from the bytes of an Odometry."""
    reader = NumberReader(Odometry, ODOMETRY, 'odom')

    def read(raw: bytes) -> tuple[Floats, Floats]:
        pose = reader.read(raw).arrays['pose']
        norm = float(np.linalg.norm(pose[3:]))
        if norm < 1e-6:
            raise ArgumentError('odom: the quaternion has zero length; expected a unit quaternion')
        return pose[:3].copy(), pose[[6, 3, 4, 5]] / norm

    return read


def _keeper(waiting: deque[bytes]) -> Callable[[bytes], None]:
    """A callback that keeps messages; rclpy does not take `waiting.append` for one."""

    def keep(raw: bytes) -> None:
        waiting.append(raw)

    return keep


def _force_reader(topic: str, link: str) -> Callable[[bytes], tuple[Floats, bool]]:
    """A function that reads a force (3,) [N], and whether it is in the axes of the foot's link."""
    reader = NumberReader(WrenchStamped, WRENCH, topic, {'header.frame_id': (link, ANY)})

    def read(raw: bytes) -> tuple[Floats, bool]:
        force = reader.read(raw).arrays['wrench'][:3]
        return force, reader.frames['header.frame_id'] == link

    return read


@dataclass
class Slot:
    """The latest message of a topic.

    Attributes:
        raw: its bytes; None once they are read.
        came: arrival time, monotonic [s].
        value: the value read from it, or from the last valid message.
    """

    raw: bytes | None = None
    came: float = -1e9
    value: Any = field(default=None, repr=False)


class Streams:
    """Subscriptions that exist only while a page is open, because they also load the publishers."""

    def __init__(self, node: Node, on_fault: Fault) -> None:
        """Subscribe to nothing yet.

        Args:
            node: of rclpy.
            on_fault: called with errors of messages.
        """
        self._node, self._on_fault = node, on_fault
        self._model: Model | None = None
        self._feet: list[str] = []  # as parts of topic names
        self._slots: dict[str, Slot] = {}
        self._readers: dict[str, Callable[[bytes], Any]] = {}
        self._subscriptions: list[Any] = []
        self._markers: dict[str, deque[bytes]] = {
            topic: deque(maxlen=_MOST_MARKER_MESSAGES) for topic in MARKER_TOPICS
        }
        self.opened = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there are subscriptions."""
        return bool(self._subscriptions)

    def open(self, model: Model) -> None:
        """Subscribe to everything that the nodes of a robot publish."""
        self.close()
        self._model = model
        self._feet = topic_names(model.foot_names)
        self.opened = time.monotonic()
        joints = JointReader(model.joint_names, ['position'], 'joint_states')
        self._add('joint_states', JointState, joints.read)
        self._add('odom', Odometry, _pose_reader())
        for foot, link in zip(self._feet, model.foot_names, strict=True):
            for topic in (f'foot_forces/{foot}', f'foot_forces_estimated/{foot}'):
                self._add(topic, WrenchStamped, _force_reader(topic, link))
        # Each of these messages counts: one may delete what another has added.
        for topic, waiting in self._markers.items():
            keep = _keeper(waiting)
            self._subscriptions.append(
                self._node.create_subscription(MarkerArray, topic, keep, COMMAND, raw=True)
            )

    def close(self) -> None:
        """Unsubscribe."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._slots.clear()
        self._readers.clear()
        for waiting in self._markers.values():
            waiting.clear()

    def _add(self, topic: str, kind: Any, read: Callable[[bytes], Any]) -> None:
        slot = self._slots[topic] = Slot()
        self._readers[topic] = read

        def keep(raw: bytes) -> None:
            slot.raw, slot.came = raw, time.monotonic()

        self._subscriptions.append(self._node.create_subscription(kind, topic, keep, CONTROL, raw=True))

    def age(self, topic: str) -> float:
        """Time since the last message of the topic, or since the subscription [s]."""
        slot = self._slots.get(topic)
        now = time.monotonic()
        return now - max(slot.came if slot else -1e9, self.opened)

    def newest(self, topic: str) -> Any:
        """The value of the latest valid message of a topic; None if there was none."""
        slot = self._slots.get(topic)
        if slot is None:
            return None
        self._read(topic, slot)
        return slot.value

    def markers(self, topic: str) -> list[Marker]:
        """The markers of all messages of a topic since the last call, in order."""
        found: list[Marker] = []
        waiting = self._markers[topic]
        while waiting:
            raw = waiting.popleft()
            try:
                found += read_marker_array(raw)
            except Exception as error:  # whatever the deserializer says of damaged bytes
                self._on_fault('bad_message', f'{topic}: cannot read a message of {len(raw)} bytes: {error}')
        return found

    def _read(self, topic: str, slot: Slot) -> None:
        raw, slot.raw = slot.raw, None
        if raw is None:
            return
        try:
            slot.value = self._readers[topic](raw)
        except ArgumentError as error:
            self._on_fault('bad_message', str(error))
        except Exception as error:  # whatever the deserializer says of damaged bytes
            self._on_fault('bad_message', f'{topic}: cannot read a message of {len(raw)} bytes: {error}')

    # ---- what the page shows

    def joints(self) -> JointSample | None:
        """Newest joint states."""
        sample: JointSample | None = self.newest('joint_states')
        return sample

    def base(self) -> tuple[Floats, Floats] | None:
        """Newest position (3,) [m] and orientation (4,) w x y z of the base."""
        pose: tuple[Floats, Floats] | None = self.newest('odom')
        return pose

    def vertical_forces(self) -> Floats:
        """(2 feet,) measured, then estimated [N]; NaN without a recent message."""
        values, q = [], self._configuration()
        for prefix in ('foot_forces', 'foot_forces_estimated'):
            for i, foot in enumerate(self._feet):
                topic = f'{prefix}/{foot}'
                force = self.newest(topic)
                is_old = force is None or self.age(topic) > _OLD_FORCE
                values.append(np.nan if is_old else self._vertical(force[0], force[1], i, q))
        return np.array(values)

    def _vertical(self, force: Floats, in_foot_axes: bool, foot: int, q: Floats | None) -> float:
        """Along the vertical of the world [N]; NaN where it is in the axes of a foot of unknown pose."""
        if not in_foot_axes:
            return float(force[2])
        if q is None or self._model is None:
            return np.nan
        R_WF, _ = frame_pose(self._model, q, self._model.foot_names[foot])
        return float(R_WF[2] @ force)

    def _configuration(self) -> Floats | None:
        """(nq,) from the newest joint states and odometry; None before they came."""
        joints, base = self.joints(), self.base()
        if joints is None or self._model is None:
            return None
        if not self._model.floating_base:
            return joints.arrays['position']
        if base is None:
            return None
        return np.concatenate([base[0], base[1][[1, 2, 3, 0]], joints.arrays['position']])
