# SPDX-License-Identifier: Apache-2.0
"""Subscriptions to the sensors of the robot, read into `Inputs`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model
from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.diagnostics import Diagnostics
from quad_dynamics.ros.inputs import Inputs
from quad_dynamics.ros.qos import CONTROL, STREAM
from quad_dynamics.ros.readers import ODOMETRY, WRENCH, NumberReader
from quad_dynamics.ros.sample_order import SampleOrder
from quad_dynamics.ros.stamp_watch import Watch
from quad_dynamics.simulation.bag import topic_names


class SensorTopics(Protocol):
    """Parameters of a node that concern the sensors."""

    @property
    def lock_step(self) -> bool:
        """All samples of a state must have the same stamp."""

    @property
    def state_timeout(self) -> float:
        """Time without joint states after which they are stale; also how much older odometry may be [s]."""

    @property
    def world_frame(self) -> str:
        """frame_id of odometry."""

    @property
    def base_frame(self) -> str:
        """child_frame_id of odometry; '': the base link."""


class Sensors:
    """The subscriptions.

    Attributes:
        inputs: the newest samples.
        watch: of joint states.
        is_new: whether there are unanswered joint states.
        arrived: arrival time of the last joint states [s].
        counts: valid messages by topic.
        heard: arrival time of the last message by topic [s].
    """

    def __init__(
        self,
        node: Node,
        model: Model,
        settings: SensorTopics,
        diagnostics: Diagnostics,
        order: SampleOrder | None = None,
    ) -> None:
        """Subscribe.

        Args:
            node: of rclpy.
            model: robot.
            settings: names of frames, timeout, lock-step.
            diagnostics: counts rejected messages.
            order: delivers samples stamp by stamp; None: they are taken as they arrive.
        """
        self._settings, self._diagnostics, self._order = settings, diagnostics, order
        self.inputs = Inputs(model, settings.lock_step, settings.state_timeout)
        self.watch = Watch(settings.state_timeout)
        self.is_new, self.arrived = False, 0.0
        self.counts: Counter[str] = Counter()
        self.heard: dict[str, float] = {}
        # In lock-step a lost message would stop everything.
        qos = STREAM if settings.lock_step else CONTROL
        frame = settings.world_frame if model.floating_base else model.base_name
        if model.floating_base:
            frames = {'header.frame_id': frame, 'child_frame_id': settings.base_frame or model.base_name}
            self._odom = NumberReader(Odometry, ODOMETRY, 'odom', frames)
            take = self._checked('odom', self._take_odom)
            self._subscribe(node, Odometry, 'odom', take, qos)
        for foot, name in enumerate(topic_names(model.foot_names)):
            topic = f'foot_forces/{name}'
            axes = frame, model.foot_names[foot]
            reader = NumberReader(WrenchStamped, WRENCH, topic, {'header.frame_id': axes})
            take = self._checked('foot_forces', self._foot(reader, foot, axes[0]))
            self._subscribe(node, WrenchStamped, topic, take, qos)
        # Joint states are taken last, so that the rest is known when they are answered.
        fields = ('position', 'velocity', 'effort')
        self._joints = JointReader(model.joint_names, fields, 'joint_states')
        take = self._checked('joint_states', self._take_joints)
        self.subscription = self._subscribe(node, JointState, 'joint_states', take, qos)

    def _subscribe(self, node: Node, kind: Any, topic: str, take: Callable[[bytes], None], qos: Any) -> Any:
        callback = take if self._order is None else self._order.add(take)
        return node.create_subscription(kind, topic, callback, qos, raw=True)

    def change(self, settings: SensorTopics) -> None:
        """Set another timeout."""
        self.inputs.timeout = self.watch.timeout = settings.state_timeout

    def _checked(self, kind: str, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """A callback that counts valid and invalid messages."""

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
