# SPDX-License-Identifier: Apache-2.0
"""The topics that sim_node publishes about the robot, each at its rate in simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from quad_dynamics.ros import messages
from quad_dynamics.ros.qos import LATCHED, STREAM
from quad_dynamics.simulation.sensors import Readings
from sim_node.sensor_topics import GROUND_TRUTH, OdometryTopic, SensorTopics, Transforms
from sim_node.world import World


class Outputs:
    """The topics of the robot's state.

    Attributes:
        before_joint_states: called when all other due messages have been published.
        on_joint_states: called with the stamp of published joint states [ns].
    """

    def __init__(self, node: Node, world: World) -> None:
        """Make the publishers.

        Raises:
            ArgumentError: a rate is not an integer fraction of the rate of time steps.
        """
        self._node, self._world = node, world
        settings, floats = world.settings, world.model.floating_base
        self._measured = SensorTopics(node, world)
        self._odometry = OdometryTopic(node, world) if floats and settings.publish_odom else None
        self._tf = Transforms(node, world) if self._has_tf() else None
        self._truth: SensorTopics | None = None
        self._true_odometry: OdometryTopic | None = None
        self._make_truth()
        self._due = self._when_due()
        if settings.publish_description:
            description = node.create_publisher(String, 'robot_description', LATCHED)
            description.publish(String(data=world.model.to_urdf()))
        self._readings: tuple[int, tuple[Readings, Readings | None]] | None = None
        self.before_joint_states: Callable[[], None] = lambda: None
        self.on_joint_states: Callable[[int], None] = lambda stamp_ns: None

    def _has_tf(self) -> bool:
        return Transforms.exist and self._world.model.floating_base and self._world.settings.publish_tf

    def _make_truth(self) -> None:
        """Publish ground truth if it differs from the measurements, or if odom is not published."""
        node, world = self._node, self._world
        if world.has_noise and self._truth is None:
            self._truth = SensorTopics(node, world, GROUND_TRUTH)
        apart = world.has_noise or not world.settings.publish_odom
        if world.model.floating_base and apart and self._true_odometry is None:
            self._true_odometry = OdometryTopic(node, world, GROUND_TRUTH)

    def _when_due(self) -> list[tuple[int, Callable[[int], None]]]:
        """Time steps between two messages, and the function that publishes them."""
        world, settings = self._world, self._world.settings
        rates = {'imu_rate': self._imu, 'odom_rate': self._odom, 'foot_forces_rate': self._foot_forces}

        def every(name: str) -> int:
            # In lock-step a controller gets all sensors for each of its commands.
            return world.control_steps if settings.lock_step else world.every(getattr(settings, name), name)

        due = [(every(name), publish) for name, publish in rates.items()]
        if self._tf is not None:
            due.append((world.every(settings.tf_rate, 'tf_rate'), self._publish_tf))
        clock = [self._make_clock()] if settings.publish_clock else []
        # Last: a node that is woken by joint_states finds the rest already there. In lock-step a controller
        # may be woken by /clock, as ros2_control is, and finds joint_states there.
        joint_states = (every('joint_states_rate'), self._joint_states)
        return [*due, joint_states, *clock] if settings.lock_step else [*due, *clock, joint_states]

    def _make_clock(self) -> tuple[int, Callable[[int], None]]:
        """Publish /clock; in lock-step with every state, so that the clock can stamp the answer."""
        world, settings = self._world, self._world.settings
        self._clock = self._node.create_publisher(Clock, '/clock', STREAM)
        self._clock_template = messages.clock()
        every = world.every(settings.clock_rate, 'clock_rate')
        return math.gcd(every, world.control_steps) if settings.lock_step else every, self._publish_clock

    @property
    def state_topics(self) -> list[Any]:
        """The publishers of what a controller needs."""
        odometry = [] if self._odometry is None else [self._odometry.publisher]
        return [self._measured.joint_states, *odometry, *self._measured.feet]

    def change_sensors(self) -> None:
        """Adapt to changed sensor errors; publish ground truth if there are any."""
        self._measured.describe_errors()
        self._make_truth()

    def publish(self, everything: bool = False) -> None:
        """Publish what is due after the last time step.

        Args:
            everything: publish all topics, due or not.
        """
        step, stamp = self._world.sim.step_count, self._world.now_ns
        self._readings = None
        for every, publish in self._due:
            if everything or step % every == 0:
                publish(stamp)

    def publish_joint_states(self) -> None:
        """Publish only joint_states, due or not."""
        self._joint_states(self._world.now_ns)

    def _read(self) -> tuple[Readings, Readings]:
        """The current measurements and the ground truth; read once."""
        step = self._world.sim.step_count
        if self._readings is None or self._readings[0] != step:
            self._readings = step, self._world.readings()
        measured, truth = self._readings[1]
        return measured, measured if truth is None else truth

    def _of_both(self, stamp: int, publish: str) -> None:
        measured, truth = self._read()
        getattr(self._measured, publish)(stamp, measured)
        if self._world.has_noise and self._truth is not None:
            getattr(self._truth, publish)(stamp, truth)

    def _joint_states(self, stamp: int) -> None:
        self.before_joint_states()
        self._of_both(stamp, 'publish_joint_states')
        self._world.torques.clear()
        self.on_joint_states(stamp)

    def _imu(self, stamp: int) -> None:
        if self._world.model.floating_base:
            self._of_both(stamp, 'publish_imu')

    def _odom(self, stamp: int) -> None:
        if not self._world.model.floating_base:
            return
        measured, truth = self._read()
        if self._odometry is not None:
            self._odometry.publish(stamp, measured)
        if self._true_odometry is not None and (self._world.has_noise or self._odometry is None):
            self._true_odometry.publish(stamp, truth)

    def _foot_forces(self, stamp: int) -> None:
        if not self._world.knows_forces:
            return
        self._of_both(stamp, 'publish_feet')
        self._world.forces.clear()

    def _publish_clock(self, stamp: int) -> None:
        self._clock.publish(self._clock_template.bytes(stamp))

    def _publish_tf(self, stamp: int) -> None:
        assert self._tf is not None
        self._tf.publish(stamp, self._read()[0])
