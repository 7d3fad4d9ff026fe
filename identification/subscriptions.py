# SPDX-License-Identifier: Apache-2.0
"""Subscriptions of the node to the sensors of a robot; messages are validated."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from identification.settings import IdentificationSettings
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.live import LiveRecording
from quad_dynamics.model.model import Model
from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.qos import RECORD
from quad_dynamics.ros.readers import ANY, IMU, ODOMETRY, WRENCH, NumberReader
from quad_dynamics.simulation.bag import topic_names

_LENGTH_ERROR = 0.05  # by which the length of a quaternion may differ from one


class Subscriptions:
    """All subscriptions.

    Attributes:
        recording: receives valid messages; None: not recording.
        counts: valid messages by topic.
        heard: arrival time of the last message by topic [s].
        stamp: of the latest joint states [ns]; -1 before the first.
        force_frames: by foot: '' for world axes, or the link in whose axes its force is.
    """

    def __init__(
        self, node: Node, model: Model, settings: IdentificationSettings, diagnostics: Diagnostics
    ) -> None:
        """Subscribe."""
        self._diagnostics = diagnostics
        self.recording: LiveRecording | None = None
        self.counts: Counter[str] = Counter()
        self.heard: dict[str, float] = {}
        self.stamp = -1
        self.force_frames: dict[str, str] = {}
        self._joints = JointReader(model.joint_names, ('position', 'velocity', 'effort'), 'joint_states')
        self._subscribe(node, JointState, 'joint_states', self._take_joints)
        if not model.floating_base:
            return
        frames = {
            'header.frame_id': settings.world_frame,
            'child_frame_id': settings.base_frame or model.base_name,
        }
        self._odom = NumberReader(Odometry, ODOMETRY, 'odom', frames)
        self._imu = NumberReader(Imu, IMU, 'imu/data')
        self._subscribe(node, Odometry, 'odom', self._take_odom)
        self._subscribe(node, Imu, 'imu/data', self._take_imu)
        for foot, name in zip(model.foot_names, topic_names(model.foot_names), strict=True):
            topic = f'foot_forces/{name}'
            # If the axes are given by a parameter, the frame need not be right.
            wanted = (settings.world_frame, foot) if settings.force_axes == 'auto' else ANY
            reader = NumberReader(WrenchStamped, WRENCH, topic, {'header.frame_id': wanted})
            self._subscribe(node, WrenchStamped, topic, self._foot(reader, foot, settings.force_axes))

    def _subscribe(self, node: Node, kind: type, topic: str, take: Callable[[bytes], None]) -> None:
        """Subscribe to a topic; count valid and invalid messages."""
        short = topic.split('/', maxsplit=1)[0]

        def callback(raw: bytes) -> None:
            try:
                take(raw)
            except ArgumentError as error:
                self._diagnostics.fault(f'bad_{short}', str(error))
                return
            self.counts[short] += 1
            self.heard[short] = time.monotonic()

        node.create_subscription(kind, topic, callback, RECORD, raw=True)

    def _know_frame(self, foot: str, frame: str) -> None:
        """Note the axes of a foot's forces, which must not change within a recording."""
        self.force_frames[foot] = frame
        if self.recording is not None and self.recording.force_frames.setdefault(foot, frame) != frame:
            raise ArgumentError(
                f'foot_forces of {foot} are now in the axes of {frame or "the world"}; expected those of '
                f'{self.recording.force_frames[foot] or "the world"}, as at the start of the recording'
            )

    def _add(self, stamp: int, **quantities: Floats) -> None:
        if self.recording is not None:
            self.recording.add(stamp, **quantities)

    def _take_joints(self, raw: bytes) -> None:
        sample = self._joints.read(raw)
        arrays = sample.arrays
        self.stamp = sample.stamp_ns
        self._add(
            sample.stamp_ns,
            position=arrays['position'],
            velocity=arrays['velocity'],
            effort=arrays['effort'],
        )

    def _take_odom(self, raw: bytes) -> None:
        sample = self._odom.read(raw)
        pose, twist = sample.arrays['pose'], sample.arrays['twist']
        _check_quaternion('odom', pose[3:])
        self._add(sample.stamp_ns, base=np.concatenate([pose, twist]))

    def _take_imu(self, raw: bytes) -> None:
        sample = self._imu.read(raw)
        parts = [sample.arrays[name] for name in IMU]
        _check_quaternion('imu/data', parts[0])
        self._add(sample.stamp_ns, imu=np.concatenate(parts))

    def _foot(self, reader: NumberReader, foot: str, axes: str) -> Callable[[bytes], None]:
        def take(raw: bytes) -> None:
            sample = reader.read(raw)
            in_foot_axes = axes == 'foot' or (axes == 'auto' and reader.frames['header.frame_id'] == foot)
            self._know_frame(foot, foot if in_foot_axes else '')
            self._add(sample.stamp_ns, **{f'force/{foot}': sample.arrays['wrench'][:3]})

        return take


def _check_quaternion(topic: str, quaternion: Floats) -> None:
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1.0) > _LENGTH_ERROR:
        raise ArgumentError(
            f'{topic}: the quaternion {quaternion.tolist()} has length {length:.3g}; expected unit length'
        )
