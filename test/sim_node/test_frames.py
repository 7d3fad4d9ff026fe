# SPDX-License-Identifier: Apache-2.0
"""Frames, odometry and foot forces of sim_node, as others receive them."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError
from quad_dynamics.simulation.odometry import odometry_covariance
from quad_dynamics.simulation.settings import OdometrySettings
from sim_node.settings import SimNodeSettings

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

FEET = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
Heard = dict[str, dict[int, Any]]


@cache
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        return qd.load_model('mini_cheetah')


def hear(*parameters: str, seconds: float = 0.25) -> Heard:
    """Messages of a robot that sinks from standing, by topic and stamp [ns]."""
    import rclpy
    from geometry_msgs.msg import WrenchStamped
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import Imu, JointState
    from visualization_msgs.msg import MarkerArray

    from quad_dynamics.ros.qos import COMMAND, RECORD
    from sim_node.node import SimNode

    words = [word for one in ('initial_pose:=standing', *parameters) for word in ('-p', one)]
    rclpy.init(args=['--ros-args', *words])
    node = SimNode()
    heard: Heard = defaultdict(dict)

    def keep(topic: str) -> Any:
        def take(message: Any) -> None:
            header = message.header if hasattr(message, 'header') else message.markers[0].header
            heard[topic][header.stamp.sec * 10**9 + header.stamp.nanosec] = message

        return take

    kinds = {'joint_states': JointState, 'odom': Odometry, 'imu/data': Imu}
    kinds |= {f'foot_forces/{foot}': WrenchStamped for foot in FEET}
    kinds |= {f'ground_truth/{topic}': kind for topic, kind in kinds.items()}
    for topic, kind in kinds.items():
        node.node.create_subscription(kind, topic, keep(topic), RECORD)
    node.node.create_subscription(MarkerArray, 'markers', keep('markers'), COMMAND)
    deadline = time.monotonic() + 20.0
    try:
        end = round(seconds * 1e9)
        node.spin(lambda: node.world.now_ns > end or time.monotonic() > deadline)  # type: ignore[arg-type]
        node._box.poll()
    finally:
        node.close()
        rclpy.try_shutdown()
    return heard


def force(message: Any) -> np.ndarray:
    f = message.wrench.force
    return np.array([f.x, f.y, f.z])


def pose(message: Any) -> np.ndarray:
    p, turn = message.pose.pose.position, message.pose.pose.orientation
    return np.array([p.x, p.y, p.z, turn.x, turn.y, turn.z, turn.w])


def configuration(heard: Heard, stamp: int, odom: str = 'odom') -> np.ndarray:
    states = heard['joint_states'][stamp]
    position = dict(zip(states.name, states.position, strict=True))
    return np.concatenate([pose(heard[odom][stamp]), [position[name] for name in model().joint_names]])


def test_foot_forces_are_in_the_frames_of_the_feet(ros_domain: int) -> None:
    """The same motion twice; each force, turned into the world with the pose of its frame, is the same."""
    in_feet, in_world = hear(), hear('foot_force_frame:=odom')
    compared, turned = 0, 0.0
    for foot in FEET:
        topic = f'foot_forces/{foot}'
        stamps = sorted(set(in_feet[topic]) & set(in_world[topic]) & set(in_feet['joint_states']))
        assert len(stamps) > 20
        for stamp in stamps:
            local, world = in_feet[topic][stamp], in_world[topic][stamp]
            assert (local.header.frame_id, world.header.frame_id) == (foot, 'odom')
            R_WF, _ = qd.frame_pose(model(), configuration(in_feet, stamp), foot)
            np.testing.assert_allclose(R_WF @ force(local), force(world), atol=1e-9)  # of 100 N
            compared += bool(force(world).any())
            turned = max(turned, float(np.abs(force(local) - force(world)).max()))
    assert compared > 50
    assert turned > 5.0  # the axes of the feet are others


def test_frames_have_the_names_that_are_asked_for(ros_domain: int) -> None:
    heard = hear('odom_frame:=there', "frame_prefix:='r1/'", 'base_frame:=torso', seconds=0.15)
    odom = next(iter(heard['odom'].values()))
    assert (odom.header.frame_id, odom.child_frame_id) == ('there', 'torso')
    assert next(iter(heard['foot_forces/FL_foot'].values())).header.frame_id == 'r1/FL_foot'
    assert next(iter(heard['imu/data'].values())).header.frame_id == 'torso'
    markers = next(iter(heard['markers'].values())).markers
    assert {marker.header.frame_id for marker in markers} == {'there'}


@pytest.mark.parametrize('bad', [{'odom_frame': '/odom'}, {'odom_frame': ''}, {'frame_prefix': '/r1/'}])
def test_bad_names_of_frames_are_refused(bad: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        SimNodeSettings(**bad)


def test_exact_odometry_is_as_it_was(ros_domain: int) -> None:
    heard = hear(seconds=0.15)
    assert heard['odom']
    assert not heard['ground_truth/odom']
    for message in heard['odom'].values():
        assert not np.any(message.pose.covariance)
        assert not np.any(message.twist.covariance)


def test_odometry_drifts_and_the_truth_is_apart(ros_domain: int) -> None:
    errors = {'position_noise': 0.001, 'position_walk': 0.2, 'yaw_walk': 0.1, 'linear_velocity_noise': 0.01}
    given = [f'sensors.odometry.{name}:={value}' for name, value in errors.items()]
    heard, exact = hear(*given, 'seed:=3'), hear()
    settings = OdometrySettings(**errors)
    stamps = sorted(set(heard['odom']) & set(heard['ground_truth/odom']) & set(exact['odom']))
    assert len(stamps) > 20
    for stamp in stamps:
        measured, true = heard['odom'][stamp], heard['ground_truth/odom'][stamp]
        # Errors touch nothing but odom: the truth is that of a robot with perfect sensors, bit for bit.
        assert pose(true).tolist() == pose(exact['odom'][stamp]).tolist()
        assert not np.any(true.pose.covariance)
        of_pose, of_twist = odometry_covariance(settings, stamp * 1e-9)
        np.testing.assert_allclose(measured.pose.covariance, of_pose, rtol=1e-6)
        np.testing.assert_allclose(measured.twist.covariance, of_twist)
    last = stamps[-1]
    shift = pose(heard['odom'][last])[:3] - pose(heard['ground_truth/odom'][last])[:3]
    assert 1e-3 < np.abs(shift).max() < 5.0 * 0.2 * np.sqrt(last * 1e-9)
    turn = Rotation.from_quat(pose(heard['odom'][last])[3:])
    turn *= Rotation.from_quat(pose(heard['ground_truth/odom'][last])[3:]).inv()
    assert abs(turn.as_rotvec()[2]) > 1e-3
    assert np.abs(turn.as_rotvec()[:2]).max() < 1e-12


def test_odometry_can_be_left_to_others(ros_domain: int) -> None:
    heard = hear('publish_odom:=false', seconds=0.15)
    assert not heard['odom']
    assert len(heard['ground_truth/odom']) > 10
    assert not heard['ground_truth/joint_states']  # sensors are perfect


def test_tf_has_the_pose_of_odom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tf2_msgs, of which there is no wheel: what would be sent."""
    from sim_node import sensor_topics
    from sim_node.world import World

    sent: list[Any] = []
    publisher = SimpleNamespace(publish=sent.append)
    node = SimpleNamespace(create_publisher=lambda *arguments: publisher)
    monkeypatch.setattr(sensor_topics, 'TFMessage', lambda transforms: transforms)
    settings = SimNodeSettings(
        odom_frame='there', frame_prefix='r1/', sensors={'odometry': {'position_walk': 9.0}}
    )
    world = World(model(), settings)
    for _ in range(5):
        world.step()
    measured, truth = world.readings()
    sensor_topics.Transforms(node, world).publish(1_500_000_000, measured)
    [[transform]] = sent
    assert (transform.header.frame_id, transform.child_frame_id) == ('there', 'r1/base_link')
    assert (transform.header.stamp.sec, transform.header.stamp.nanosec) == (1, 500_000_000)
    p, turn = transform.transform.translation, transform.transform.rotation
    assert [p.x, p.y, p.z, turn.x, turn.y, turn.z, turn.w] == measured.base_pose.tolist()
    assert truth is not None
    assert p.x != truth.base_pose[0]
