# SPDX-License-Identifier: Apache-2.0
"""Everybody who takes foot forces goes by the frame of the message: that of the foot, or of the world."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import quad_dynamics as qd
from identification.settings import IdentificationSettings
from quad_dynamics.identification.recordings.live import LiveRecording
from quad_dynamics.identification.recordings.topics import Topics

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

import rclpy
from rclpy.node import Node

from identification.subscriptions import Subscriptions
from quad_dynamics.ros import messages
from quad_dynamics.ros.diagnostics import Diagnostics
from viewer_node.streams import Streams


@pytest.fixture(scope='module')
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        return qd.load_model('mini_cheetah')


@pytest.fixture
def node(ros_domain: int) -> Iterator[Node]:
    rclpy.init(args=[])
    made = Node('hearer')
    yield made
    made.destroy_node()
    rclpy.try_shutdown()


def send(node: Node, topic: str, raw: bytes) -> None:
    """Hand bytes to the callback of a subscription, as the mailbox does."""
    [subscription] = [one for one in node.subscriptions if one.topic_name == f'/{topic}']
    subscription.callback(raw)


def wrench(frame: str, force: np.ndarray, stamp: int = 1_000_000_000) -> bytes:
    template = messages.wrench(frame)
    template.numbers['wrench'][:3] = force
    return template.bytes(stamp)


def test_the_page_shows_vertical_forces_of_both(node: Node, model: Any) -> None:
    problems: list[str] = []
    streams = Streams(node, lambda kind, text: problems.append(text))
    streams.open(model)
    foot, force = model.foot_names[0], np.array([10.0, -20.0, 70.0])
    q = np.array(model.standing)
    q[3:7] = [0.2, 0.1, 0.3, 0.9]
    q[3:7] /= np.linalg.norm(q[3:7])
    R_WF, _ = qd.frame_pose(model, q, foot)
    send(node, f'foot_forces/{foot}', wrench(f'r1/{foot}', R_WF.T @ force))
    assert np.isnan(streams.vertical_forces()[0])  # where the foot is, is not known yet
    joints = messages.joint_state(model.joint_names, ['position'])
    joints.numbers['position'][:] = q[7:]
    odom = messages.odometry('odom', model.base_name)
    odom.numbers['pose'][:] = q[:7]
    send(node, 'joint_states', joints.bytes(0))
    send(node, 'odom', odom.bytes(0))
    send(node, f'foot_forces_estimated/{foot}', wrench('odom', force))
    shown = streams.vertical_forces()
    assert shown[0] == pytest.approx(70.0, abs=1e-9)
    assert shown[4] == 70.0
    assert problems == []


@pytest.mark.parametrize(
    ('axes', 'frame', 'expected'),
    [
        ('auto', 'odom', ''),
        ('auto', 'FL_foot', 'FL_foot'),
        ('auto', 'r1/FL_foot', 'FL_foot'),
        ('world', 'nonsense', ''),
        ('foot', 'nonsense', 'FL_foot'),
    ],
)
def test_live_identification_takes_both(node: Node, model: Any, axes: str, frame: str, expected: str) -> None:
    diagnostics = Diagnostics(node)
    inputs = Subscriptions(node, model, IdentificationSettings(force_axes=axes), diagnostics)
    inputs.recording = recording = LiveRecording('live', Topics())
    send(node, 'foot_forces/FL_foot', wrench(frame, np.array([1.0, 2.0, 3.0])))
    assert recording.measured_frames() == {'FL_foot': expected}
    assert not diagnostics.counts


def test_axes_must_not_change_within_a_recording(node: Node, model: Any) -> None:
    diagnostics = Diagnostics(node)
    inputs = Subscriptions(node, model, IdentificationSettings(), diagnostics)
    inputs.recording = recording = LiveRecording('live', Topics())
    send(node, 'foot_forces/FL_foot', wrench('odom', np.ones(3)))
    send(node, 'foot_forces/FL_foot', wrench('FL_foot', np.ones(3), 1_010_000_000))
    assert recording.counts == {'force/FL_foot': 1}
    assert 'now in the axes of FL_foot; expected those of the world' in diagnostics.last_fault
    send(node, 'foot_forces/FR_foot', wrench('elsewhere', np.ones(3)))
    assert "header.frame_id is 'elsewhere'; expected 'odom' or 'FR_foot'" in diagnostics.last_fault
