# SPDX-License-Identifier: Apache-2.0
"""Controllers of others, on `joint_states` and `joint_torques`: the example, and ros2_control over topics."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.realtime, pytest.mark.usefixtures('ros_domain')]

EXAMPLE = Path(__file__).resolve().parents[2] / 'examples' / 'stand_controller.py'
STANDING = 0.27  # height of the base of a robot that stands [m]


class Sim:
    """`quad_dynamics sim --controller none`, running."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, '-m', 'quad_dynamics', 'sim', '--headless', '--controller', 'none']
        self.process = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def __enter__(self) -> Sim:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=20.0)


@pytest.fixture
def ear() -> Iterator[Any]:
    from node_processes import probe

    with probe() as made:
        yield made


@pytest.mark.parametrize(
    'arguments', [[], ['--lock-step', '--real-time-factor', '0']], ids=['free', 'lock_step']
)
def test_the_example_stands_up(ear: Any, arguments: list[str]) -> None:
    with Sim(*arguments):
        ear.until(lambda: 'waiting for commands' in ear.value('sim_node', 'message') or arguments, 'sim_node')
        controller = subprocess.Popen([sys.executable, str(EXAMPLE)])
        try:
            ear.until(lambda: ear.odom is not None and ear.height > STANDING, 'the robot stands')
            ear.listen(0.5)
            assert ear.height > STANDING
            assert ear.value('sim_node', 'level') == '0'
            assert ear.value('force_node', 'message') == ''  # there is none
            # A reset puts it on its belly again; the controller notices, and begins anew.
            assert ear.trigger('sim_node/reset').success
            ear.until(lambda: ear.height < 0.2, 'it lies')
            ear.until(lambda: ear.height > STANDING, 'it stands again')
        finally:
            controller.terminate()
            assert controller.wait(10.0) == 0
        if not arguments:
            ear.until(lambda: 'no commands' in ear.value('sim_node', 'message'), 'a warning')
            assert ear.value('sim_node', 'level') == '1'


class TopicSystem:
    """What a topic-based hardware interface of ros2_control does in each period, on its topics.

    Its messages have the names of the joints, the time of the node's clock, and the command interfaces of the
    robot's description, here effort; a command interface is NaN until a controller has it. It publishes
    reliably with depth 1, and subscribes with the profile for sensor data.

    Attributes:
        active: whether a controller commands: a spring to the pose of the first state since then.
        rounds: how many periods there were.
    """

    def __init__(self, node: Any, names: list[str], use_sim_time: bool) -> None:
        from rclpy.qos import QoSProfile, qos_profile_sensor_data
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import JointState

        self._kind, self._node, self._names, self._use_sim_time = JointState, node, names, use_sim_time
        self._publisher = node.create_publisher(JointState, 'joint_torques', QoSProfile(depth=1))
        node.create_subscription(JointState, 'joint_states', self._read, qos_profile_sensor_data)
        node.create_subscription(Clock, '/clock', self._tick, QoSProfile(depth=10))
        self._state: Any = None
        self._first: Any = None
        self._now: Any = None
        self.active, self.rounds = False, 0

    def _read(self, message: Any) -> None:
        self._state = message
        self._first = self._first or message

    def hold(self) -> None:
        """Command the pose of the next state."""
        self._first, self.active = None, True

    def _tick(self, message: Any) -> None:
        if self._now != message.clock:
            self._now = message.clock
            if self._use_sim_time and self._state is not None:
                self.write()

    def write(self) -> None:
        """The end of a period: publish the commands."""
        self.rounds += 1
        message = self._kind(name=self._names)
        message.header.stamp = self._now if self._use_sim_time else self._node.get_clock().now().to_msg()
        order = [self._state.name.index(name) for name in self._names]
        message.effort = [math.nan] * len(self._names)
        if self.active and self._first is not None:
            q, qd, goal = (
                np.array(x)[order] for x in (self._state.position, self._state.velocity, self._first.position)
            )
            message.effort = (60.0 * (goal - q) - 2.0 * qd).tolist()
        self._publisher.publish(message)


@pytest.mark.parametrize('use_sim_time', [True, False], ids=['clock', 'wall'])
@pytest.mark.parametrize('lock_step', [True, False], ids=['lock_step', 'free'])
def test_ros2_control_over_topics(ear: Any, lock_step: bool, use_sim_time: bool) -> None:
    """Time goes on while no controller is active; then its commands count. The order of joints is its own."""
    from quad_dynamics import load_model

    names = sorted(load_model('mini_cheetah').joint_names, key=lambda name: name[::-1])
    system = TopicSystem(ear.node, names, use_sim_time)
    with Sim('--initial-pose', 'standing', *(['--lock-step'] if lock_step else [])):
        ear.until(lambda: ear.value('sim_node', 'message'), 'sim_node')
        begin = time.monotonic()
        while system.rounds < 100 and time.monotonic() - begin < 30.0:
            ear.box.wait(0.002)
            if not use_sim_time and system._state is not None:
                system.write()
        if lock_step and not use_sim_time:
            # Stamps of the wall clock answer no state.
            ear.until(lambda: 'in lock-step, expected' in ear.value('sim_node', 'last_fault'), 'a refusal')
            assert 'use_sim_time' in ear.value('sim_node', 'last_fault')
            return
        assert system.rounds >= 100
        ear.until(lambda: 'no commands' in ear.value('sim_node', 'message'), 'the drives damp')
        assert 'no active controller?' in ear.value('sim_node', 'last_fault')
        assert ear.trigger('sim_node/reset').success  # it has sunk meanwhile
        system.hold()
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            ear.box.wait(0.002)
            if not use_sim_time:
                system.write()
        assert ear.height > STANDING - 0.02
        assert ear.value('sim_node', 'message') == 'running'


def test_passthrough_warns_when_commands_stop(ear: Any) -> None:
    from node_processes import Process
    from sensor_msgs.msg import JointState

    from quad_dynamics import load_model

    model = load_model('mini_cheetah')
    with Process('sim_node', initial_pose='standing'), Process('force_node', mode='passthrough'):
        ear.until(lambda: 'no joint_commands for' in ear.value('force_node', 'message'), 'a warning')
        assert ear.value('force_node', 'level') == '1'
        commands = ear.publisher(JointState, 'joint_commands')
        message = JointState(name=list(model.joint_names), position=model.standing[7:].tolist())

        def commanded() -> bool:
            commands.publish(message)
            return bool(ear.value('force_node', 'message') == 'passthrough command')

        ear.until(commanded, 'commands are sent on')
        assert ear.value('force_node', 'level') == '0'
        ear.until(lambda: 'no joint_commands for' in ear.value('force_node', 'message'), 'a warning')
