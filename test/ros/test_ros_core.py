# SPDX-License-Identifier: Apache-2.0
"""What all nodes share: mailbox, messages as bytes, parameters, pacing, environment."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import group, param
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.ros import messages
from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.mailbox import ExecutorMailbox, Mailbox, make_mailbox
from quad_dynamics.ros.pacing import Pacer
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.qos import COMMAND, STREAM

NAMES = [f'joint_{i}' for i in range(5)]


@pytest.fixture
def context(ros_domain: int) -> Iterator[Any]:
    made = rclpy.Context()
    rclpy.init(args=[], context=made)
    yield made
    made.try_shutdown()


# ---------------------------------------------------------------- mailbox


@pytest.mark.parametrize('kind', [Mailbox, ExecutorMailbox])
def test_mailbox_takes_messages_services_and_answers(context: Any, kind: Any) -> None:
    one, other = Node('one', context=context), Node('other', context=context)
    heard: list[str] = []
    other.create_subscription(String, 'words', lambda message: heard.append(message.data), COMMAND)

    def serve(request: Any, response: Any) -> Any:
        response.success, response.message = True, 'done'
        return response

    other.create_service(Trigger, 'work', serve)
    publisher, client = one.create_publisher(String, 'words', COMMAND), one.create_client(Trigger, 'work')
    boxes = kind(one), kind(other)

    def until(condition: Any) -> None:
        deadline = time.monotonic() + 20.0
        while not condition():
            assert time.monotonic() < deadline
            for box in boxes:
                box.wait(0.01)

    until(lambda: publisher.get_subscription_count() and client.service_is_ready())
    for i in range(5):
        publisher.publish(String(data=str(i)))
    future = client.call_async(Trigger.Request())
    until(lambda: future.done() and len(heard) == 5)
    assert heard == ['0', '1', '2', '3', '4']
    assert future.result().message == 'done'
    # Without anything to take, a wait lasts as long as it is told to.
    begin = time.monotonic()
    while boxes[1].wait(0.2) and time.monotonic() - begin < 5.0:
        begin = time.monotonic()
    assert time.monotonic() - begin >= 0.19
    for node in (one, other):
        node.destroy_node()


def test_errors_of_callbacks_go_where_they_are_asked_to(context: Any) -> None:
    node = Node('one', context=context)
    errors: list[Exception] = []

    def fail(message: Any) -> None:
        raise RuntimeError(message.data)

    node.create_subscription(String, 'words', fail, COMMAND)
    publisher = node.create_publisher(String, 'words', COMMAND)
    box = make_mailbox(node, errors.append)
    assert isinstance(box, Mailbox)
    publisher.publish(String(data='first'))
    deadline = time.monotonic() + 10.0
    while not errors and time.monotonic() < deadline:
        box.wait(0.1)
    assert str(errors[0]) == 'first'
    publisher.publish(String(data='second'))
    with pytest.raises(RuntimeError, match='second'):
        Mailbox(node).wait(10.0)
    node.destroy_node()


def test_a_flood_does_not_hold_up_the_rest(context: Any) -> None:
    node = Node('one', context=context)
    count = 0

    def take(raw: bytes) -> None:
        nonlocal count
        count += 1
        publisher.publish(String(data='again'))  # there is always another one

    subscription = node.create_subscription(String, 'words', take, STREAM, raw=True)
    publisher = node.create_publisher(String, 'words', STREAM)
    box = Mailbox(node)
    publisher.publish(String(data='first'))
    deadline = time.monotonic() + 10.0
    while count < 1000 and time.monotonic() < deadline:
        assert box.take(subscription) <= 200
    assert count >= 1000
    node.destroy_node()


# ---------------------------------------------------------------- messages as bytes


def test_a_template_is_what_rclpy_serializes() -> None:
    template = messages.imu('base', 0.1, 0.2, 0.3)
    template.numbers['orientation'][:] = [0.1, 0.2, 0.3, 0.9]
    template.numbers['angular_velocity'][:] = [1.0, 2.0, 3.0]
    template.numbers['acceleration'][:] = [0.0, 0.0, 9.81]
    raw = template.bytes(12_000_000_034)
    message = deserialize_message(raw, Imu)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (12, 34)
    assert message.header.frame_id == 'base'
    assert message.linear_acceleration.z == 9.81
    assert message.orientation.w == 0.9
    assert message.angular_velocity_covariance[0] == pytest.approx(0.04)
    assert len(serialize_message(message)) == len(raw)
    # Without rclpy it is the same: no byte too many, as rosbags demands.
    store = get_typestore(Stores.ROS2_JAZZY)
    again = store.deserialize_cdr(raw, 'sensor_msgs/msg/Imu')
    assert again.linear_acceleration.z == 9.81
    effort_only = messages.joint_state(NAMES, ['effort']).bytes(0)
    assert len(store.deserialize_cdr(effort_only, 'sensor_msgs/msg/JointState').effort) == len(NAMES)


def joint_message(**fields: Any) -> JointState:
    message = JointState(name=NAMES, position=[0.1] * 5, velocity=[0.2] * 5, effort=[0.3] * 5)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def test_a_joint_state_is_read_by_name() -> None:
    reader = JointReader(NAMES, ('effort',), 'joint_torques')
    message = joint_message(name=NAMES[::-1], effort=[1.0, 2.0, 3.0, 4.0, 5.0])
    message.header.stamp.sec = 7
    for _ in range(2):  # by learning the layout, then by the layout
        sample = reader.read(serialize_message(message))
        assert sample.stamp_ns == 7_000_000_000
        assert sample.arrays['effort'].tolist() == [5.0, 4.0, 3.0, 2.0, 1.0]
    # Another sender, with another order and without positions.
    sample = reader.read(serialize_message(joint_message(position=[], effort=[1.0, 2.0, 3.0, 4.0, 5.0])))
    assert sample.get('position') is None
    assert sample.arrays['effort'].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ('fields', 'names'),
    [
        ({'name': [*NAMES[:4], 'knee']}, r"joint_torques lacks \['joint_4'\]"),
        ({'name': [*NAMES, 'knee']}, r"joint_torques has \['knee'\]"),
        ({'name': [*NAMES, 'joint_0']}, 'a joint twice'),
        ({'effort': [1.0]}, 'effort has 1 numbers; expected 5'),
        ({'effort': []}, 'effort has 0 numbers; expected 5'),
        ({'effort': [0.0, math.nan, 0.0, 0.0, 0.0]}, "effort of 'joint_1' is nan"),
        ({'position': [0.0, 0.0, 0.0, math.inf, 0.0]}, "position of 'joint_3' is inf"),
        ({'position': [math.inf, -math.inf, 0.0, 0.0, 0.0]}, "position of 'joint_0' is inf"),
    ],
)
@pytest.mark.parametrize('known', [False, True], ids=['first', 'later'])
def test_bad_joint_states_are_refused_by_name(fields: dict[str, Any], names: str, known: bool) -> None:
    reader = JointReader(NAMES, ('effort',), 'joint_torques')
    if known:
        reader.read(serialize_message(joint_message()))
    with pytest.raises(ArgumentError, match=names):
        reader.read(serialize_message(joint_message(**fields)))
    assert reader.read(serialize_message(joint_message())).arrays['effort'].tolist() == [0.3] * 5


def test_numbers_near_the_largest_are_numbers() -> None:
    reader = JointReader(NAMES, ('effort',), 'joint_torques')
    assert reader.read(serialize_message(joint_message(effort=[1.7e308] * 5))).arrays['effort'][0] == 1.7e308


def test_damaged_joint_states_are_refused() -> None:
    raw = bytes(serialize_message(joint_message()))
    rng = np.random.default_rng(0)
    for known in (False, True):
        for cut in range(len(raw)):
            reader = JointReader(NAMES, ('effort',), 'joint_torques')
            if known:
                reader.read(raw)
            with pytest.raises(ArgumentError, match='joint_torques'):
                reader.read(raw[:cut])
    # Flipped bytes: refused, or read as finite numbers.
    reader = JointReader(NAMES, ('effort',), 'joint_torques')
    for _ in range(3000):
        damaged = bytearray(raw)
        damaged[rng.integers(len(raw))] ^= int(rng.integers(1, 256))
        try:
            sample = reader.read(bytes(damaged))
        except ArgumentError:
            continue
        assert all(np.isfinite(numbers).all() for numbers in sample.arrays.values())


# ---------------------------------------------------------------- parameters


@dataclass(frozen=True)
class InnerSettings(ParameterSet):
    noise: float = param(0.0, 'of a sensor', unit='m', low=0.0, dynamic=True)


@dataclass(frozen=True)
class SomeSettings(ParameterSet):
    mass: float = param(1.0, 'of it', unit='kg', above=0.0, high=10.0, dynamic=True)
    count: int = param(3, 'of them', low=1, high=5)
    limit: int | None = param(None, 'at most', kind='integer', low=1)
    surface: str = param('smooth', 'of it', choices=('smooth', 'rough'), dynamic=True)
    gains: tuple[float, ...] = param((), 'of the joints', kind='numbers', low=0.0, dynamic=True)
    names: tuple[str, ...] = param((), 'of them', kind='texts')
    inner: InnerSettings = group(InnerSettings, 'more')  # noqa: RUF009 (it returns a field)


def make_node(context: Any, **overrides: Any) -> Node:
    values = [Parameter(name.replace('__', '.'), value=value) for name, value in overrides.items()]
    return Node('some_node', context=context, parameter_overrides=values)


def test_parameters_have_types_bounds_and_meanings(context: Any) -> None:
    node = make_node(context, mass=2, inner__noise=0.5)
    values = NodeParameters(node, SomeSettings).values
    assert values == SomeSettings(mass=2.0, inner=InnerSettings(noise=0.5))
    described = node.describe_parameter('mass')
    assert described.description == 'of it [kg]'
    assert described.floating_point_range[0].to_value == 10.0
    assert not described.read_only
    assert node.describe_parameter('count').read_only
    assert node.describe_parameter('count').integer_range[0].from_value == 1
    assert node.get_parameter('gains').type_ == Parameter.Type.DOUBLE_ARRAY
    node.destroy_node()


@pytest.mark.parametrize(
    ('overrides', 'names'),
    [
        ({'mass': -1.0}, 'mass is -1.0; expected a number above 0 of at most 10'),
        ({'mass': 'heavy'}, "mass is 'heavy'"),
        ({'count': 9}, 'count is 9'),
        ({'surface': 'rogh'}, "surface is 'rogh' .did you mean 'rough'"),
        ({'gains': [1.0, -2.0]}, 'gains is'),
        ({'inner__noise': -1.0}, 'inner.noise is -1.0'),
        ({'mas': 1.0}, "unknown parameter 'mas' .did you mean 'mass'"),
    ],
)
def test_wrong_parameters_are_refused_by_name(context: Any, overrides: dict[str, Any], names: str) -> None:
    node = make_node(context, **overrides)
    with pytest.raises(ArgumentError, match=names):
        NodeParameters(node, SomeSettings)
    node.destroy_node()


def test_parameters_change_while_running_if_they_may(context: Any) -> None:
    node = make_node(context)
    parameters = NodeParameters(node, SomeSettings)
    seen: list[tuple[SomeSettings, SomeSettings]] = []

    def apply(new: SomeSettings, old: SomeSettings) -> None:
        if new.mass == 5.0:
            raise ArgumentError('5 kg are too heavy today')
        seen.append((new, old))

    parameters.on_change(apply)

    def change(name: str, value: Any) -> Any:
        return node.set_parameters([Parameter(name, value=value)])[0]

    assert change('mass', 3.0).successful
    assert change('inner.noise', 0.25).successful
    assert change('gains', [1.0, 2.0]).successful
    assert parameters.values == SomeSettings(mass=3.0, gains=(1.0, 2.0), inner=InnerSettings(0.25))
    assert len(seen) == 3
    for name, value in [('mass', 11.0), ('mass', 'x'), ('mass', math.nan), ('surface', 'wet'), ('count', 2)]:
        result = change(name, value)
        assert not result.successful
        assert result.reason
    assert change('mass', 5.0).reason == '5 kg are too heavy today'
    assert parameters.values.mass == 3.0
    node.destroy_node()


# ---------------------------------------------------------------- pacing, environment


def test_a_pacer_keeps_its_period_on_the_whole() -> None:
    pacer, begin = Pacer(2e-3), time.monotonic()
    for i in range(100):
        if i == 30:
            time.sleep(0.02)  # a stall is caught up with
        pacer.wait()
    took = time.monotonic() - begin
    assert took == pytest.approx(0.2, abs=0.05)
    assert pacer.dropped == 0


def test_a_pacer_drops_a_long_backlog_and_counts_it() -> None:
    pacer = Pacer(1e-3)
    time.sleep(0.3)
    pacer.wait()
    assert pacer.dropped == 1
    begin = time.monotonic()
    pacer.wait()
    assert time.monotonic() - begin > 2e-4  # it goes on from there, without hurry
