# SPDX-License-Identifier: Apache-2.0
"""What force_node subscribes to: the sensors of the robot, read from bytes into `Inputs`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState

from force_node.inputs import Inputs
from force_node.settings import ForceSettings
from force_node.watch import Watch
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.qos import CONTROL, STREAM
from quad_dynamics.ros.readers import ODOMETRY, WRENCH, NumberReader
from quad_dynamics.simulation.bag import topic_names


class Sensors:
    """The subscriptions.

    Attributes:
        inputs: the newest samples.
        watch: of joint states.
        is_new: whether joint states have come that are not answered yet.
        arrived: when the last of them came [s].
        counts: good messages of each topic.
        heard: when the last of each came [s].
    """

    def __init__(self, node: Node, model: Model, settings: ForceSettings, diagnostics: Diagnostics) -> None:
        """Subscribe."""
        self._settings, self._diagnostics = settings, diagnostics
        self.inputs = Inputs(model, settings.lock_step, settings.state_timeout)
        self.watch = Watch(settings.state_timeout)
        self.is_new, self.arrived = False, 0.0
        self.counts: Counter[str] = Counter()
        self.heard: dict[str, float] = {}
        # In lock-step a message that is lost would stop everything.
        qos = STREAM if settings.lock_step else CONTROL
        frame = settings.world_frame if model.floating_base else model.base_name
        if model.floating_base:
            frames = {'header.frame_id': frame, 'child_frame_id': settings.base_frame or model.base_name}
            self._odom = NumberReader(Odometry, ODOMETRY, 'odom', frames)
            node.create_subscription(Odometry, 'odom', self._checked('odom', self._take_odom), qos, raw=True)
        for foot, name in enumerate(topic_names(model.foot_names)):
            topic = f'foot_forces/{name}'
            axes = frame, model.foot_names[foot]
            reader = NumberReader(WrenchStamped, WRENCH, topic, {'header.frame_id': axes})
            take = self._checked('foot_forces', self._foot(reader, foot, axes[0]))
            node.create_subscription(WrenchStamped, topic, take, qos, raw=True)
        # Joint states are taken last, so that the rest is there when they are answered.
        fields = ('position', 'velocity', 'effort')
        self._joints = JointReader(model.joint_names, fields, 'joint_states')
        take = self._checked('joint_states', self._take_joints)
        self.subscription = node.create_subscription(JointState, 'joint_states', take, qos, raw=True)

    def change(self, settings: ForceSettings) -> None:
        """Take another timeout."""
        self.inputs.timeout = self.watch.timeout = settings.state_timeout

    def _checked(self, kind: str, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """A callback that counts what is good, and what is not."""

        def callback(raw: bytes) -> None:
            try:
                take(raw)
            except ArgumentError as error:
                self._diagnostics.fault(f'bad_{kind}', str(error))
                return
            self.counts[kind] += 1
            self.heard[kind] = time.monotonic()

        return callback

    def _take_joints(self, raw: bytes) -> None:
        now = time.monotonic()
        sample = self._joints.read(raw)
        stamp, arrays = sample.stamp_ns, sample.arrays
        if not self._settings.lock_step and self.watch.accept(stamp, now) and stamp < self.inputs.joint_stamp:
            self.inputs.forget()
        self.inputs.joints(stamp, arrays['position'], arrays['velocity'], arrays['effort'])
        self.is_new, self.arrived = True, now

    def _take_odom(self, raw: bytes) -> None:
        sample = self._odom.read(raw)
        self.inputs.odometry(sample.stamp_ns, sample.arrays['pose'], sample.arrays['twist'])

    def _foot(self, reader: NumberReader, foot: int, around: str) -> Callable[[bytes], None]:
        def take(raw: bytes) -> None:
            sample = reader.read(raw)
            in_foot_axes = reader.frames['header.frame_id'] != around
            self.inputs.foot_force(sample.stamp_ns, foot, sample.arrays['wrench'][:3], in_foot_axes)

        return take
