# SPDX-License-Identifier: Apache-2.0
"""Markers of sim_node: the arrow of a push, and the ground."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
import rclpy
from cases import load
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from visualization_msgs.msg import Marker

from quad_dynamics.api.kinematics import frame_pose
from sim_node.markers import Markers
from sim_node.settings import SimNodeSettings
from sim_node.world import World

pytestmark = pytest.mark.usefixtures('ros_domain')


@pytest.fixture
def markers() -> Iterator[Markers]:
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = Node('markers')
    yield Markers(node, World(load('mini_cheetah'), SimNodeSettings(push_duration=0.1)))
    node.destroy_node()
    rclpy.shutdown()


def test_push_has_an_arrow_while_it_acts_and_long_enough_to_be_seen(markers: Markers) -> None:
    world = markers._world
    force = np.array([30.0, -40.0, 0.0])
    world.push('FL_hip', np.append(force, np.zeros(3)))
    markers.note_push('FL_hip', force)
    (arrow,) = markers._push_arrows(world.sim.q)
    assert (arrow.ns, arrow.type, arrow.action) == ('push', Marker.ARROW, Marker.ADD)
    start, end = (np.array([p.x, p.y, p.z]) for p in arrow.points)
    assert np.allclose(start, frame_pose(world.model, world.sim.q, 'FL_hip')[1])
    assert np.allclose((end - start) / np.linalg.norm(end - start), force / 50.0)
    for _ in range(490):
        world.step()
    assert markers._push_arrows(world.sim.q)[0].action == Marker.ADD
    for _ in range(20):
        world.step()
    for _ in range(2):  # who missed it is told again
        assert [arrow.action for arrow in markers._push_arrows(world.sim.q)] == [Marker.DELETE]
    markers.note_push('', force)
    assert [arrow.action for arrow in markers._push_arrows(world.sim.q)] == [Marker.ADD]


def test_many_pushes_and_one_without_a_force(markers: Markers) -> None:
    markers.note_push('', np.zeros(3))
    assert [arrow.action for arrow in markers._push_arrows(markers._world.sim.q)] == [Marker.DELETE]
    for _ in range(100):
        markers.note_push('', np.array([0.0, 0.0, 1.0]))
    assert len(markers._push_arrows(markers._world.sim.q)) == 16


def test_deletions_are_repeated_and_survive_another_contact_model(markers: Markers) -> None:
    p, forces = np.zeros((4, 3)), np.ones((4, 3))
    actions = {Marker.ADD: 'add', Marker.DELETE: 'delete'}
    for loaded, expected in (([0, 2], ['add', 'add']), ([2], ['delete', 'add']), ([2], ['delete', 'add'])):
        found = markers._forces(p, forces, loaded)
        assert [(arrow.id, actions[arrow.action]) for arrow in found] == list(
            zip((0, 2), expected, strict=True)
        )
    none = np.zeros((0, 3))
    assert [actions[arrow.action] for arrow in markers._forces(none, none, [])] == ['delete', 'delete']
