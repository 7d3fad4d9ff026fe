# SPDX-License-Identifier: Apache-2.0
"""Markers: read from bytes, kept, and turned into nodes of the scene."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='viser is not installed')
from fake_scene import FakeScene

from viewer_node.marker_batches import (
    ARROW,
    CUBE,
    CUBE_LIST,
    CYLINDER,
    LINE_LIST,
    LINE_STRIP,
    POINTS,
    SPHERE,
    SPHERE_LIST,
    TEXT,
    TRIANGLE_LIST,
    batches,
)
from viewer_node.marker_store import MOST_MARKERS, MarkerStore
from viewer_node.marker_view import MarkerView
from viewer_node.markers import Marker, from_message, read_markers

FRAMES = ('odom', '')
QUARTER = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])  # about z


def view() -> tuple[FakeScene, MarkerView]:
    scene = FakeScene()
    return scene, MarkerView(scene, '/m', FRAMES, shadows=False)


def one(**fields: Any) -> Any:
    """The only batch of one marker."""
    made, problems = batches([Marker(**fields)])
    assert problems == []
    (batch,) = made.values()
    return batch


def test_arrow_by_points_and_by_pose() -> None:
    points = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    arrow = one(type=ARROW, points=points, scale=np.array([0.02, 0.06, 0.1]))
    assert np.array_equal(arrow.points, points[None])
    assert (arrow.shaft, arrow.head, arrow.head_length) == (0.01, 0.03, 0.1)
    arrow = one(type=ARROW, wxyz=QUARTER, position=np.ones(3), scale=np.array([2.0, 0.1, 0.1]))
    assert np.allclose(arrow.points, [[[1.0, 1.0, 1.0], [1.0, 3.0, 1.0]]])


@pytest.mark.parametrize('kind', [CUBE, SPHERE, CYLINDER])
def test_solids(kind: int) -> None:
    solid = one(type=kind, position=np.arange(3.0), wxyz=2.0 * QUARTER, rgba=np.array([1.0, 0.0, 0.5, 0.25]))
    assert np.array_equal(solid.positions, [[0.0, 1.0, 2.0]])
    assert np.allclose(solid.wxyz, QUARTER)
    assert solid.colors.tolist() == [[255, 0, 128]]
    assert solid.opacities[0] == pytest.approx(0.25, abs=0.01)


def test_lists_are_placed_by_the_pose_of_their_marker() -> None:
    points = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    place = {'points': points, 'wxyz': QUARTER, 'position': np.array([0.0, 0.0, 5.0])}
    expected = np.array([[0.0, 1.0, 5.0], [-1.0, 0.0, 5.0], [0.0, 0.0, 6.0]])
    for kind in (CUBE_LIST, SPHERE_LIST):
        assert np.allclose(one(type=kind, **place).positions, expected)
    assert np.allclose(one(type=POINTS, **place).points, expected)
    assert np.allclose(one(type=TRIANGLE_LIST, **place).points, expected)
    assert np.allclose(one(type=LINE_STRIP, **place).points, [expected[:2], expected[1:]])
    assert np.allclose(one(type=LINE_LIST, **place | {'points': points[:2]}).points, [expected[:2]])


def test_colours_of_points_and_of_triangles() -> None:
    red, green = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0)
    corners = np.eye(3).repeat(2, axis=0)
    lines = one(type=LINE_STRIP, points=corners[:2], colors=np.array([red, green]))
    assert lines.colors.tolist() == [[[255, 0, 0], [0, 255, 0]]]
    for colors in ([red, green], [red] * 3 + [green] * 3):
        triangles = one(type=TRIANGLE_LIST, points=corners, colors=np.array(colors))
        assert triangles.colors[2].tolist() == [255, 0, 0, 255]
        assert triangles.colors[3][1] == 255


@pytest.mark.parametrize(
    ('fields', 'text'),
    [
        ({'type': 99}, 'type 99'),
        ({'type': ARROW, 'points': np.zeros((3, 3))}, '3 points; expected 0 or 2'),
        ({'type': LINE_LIST, 'points': np.zeros((3, 3))}, 'even number'),
        ({'type': TRIANGLE_LIST, 'points': np.zeros((4, 3))}, 'multiple of 3'),
        ({'type': POINTS, 'points': np.zeros((4, 3)), 'colors': np.zeros((2, 4))}, '2 colors; expected 4'),
        (
            {'type': TRIANGLE_LIST, 'points': np.zeros((6, 3)), 'colors': np.zeros((5, 4))},
            '5 colors; expected',
        ),
        ({'type': CUBE, 'position': np.array([0.0, np.nan, 0.0])}, 'pose that is not finite'),
        ({'type': SPHERE, 'wxyz': np.full(4, np.inf)}, 'pose that is not finite'),
        ({'type': CUBE, 'scale': np.full(3, np.nan)}, 'scale that is not finite'),
        ({'type': POINTS, 'points': np.full((1, 3), np.inf)}, 'points that are not finite'),
    ],
)
def test_bad_markers_are_named_and_the_others_are_drawn(fields: Any, text: str) -> None:
    made, problems = batches([Marker(ns='bad', id=7, **fields), Marker(type=SPHERE)])
    assert len(problems) == 1
    assert text in problems[0]
    assert "marker 'bad' 7" in problems[0]
    assert list(made) == ['spheres']


def test_colours_that_are_no_numbers_do_no_harm() -> None:
    assert one(type=CUBE, rgba=np.array([np.nan, 9.0, -1.0, 1.0])).colors.shape == (1, 3)


def test_store_adds_deletes_and_expires() -> None:
    store = MarkerStore(FRAMES)
    store.apply([Marker(ns='a', id=i) for i in range(3)] + [Marker(ns='b', lifetime=1.0)], now=10.0)
    assert [marker.id for marker in store.markers('a')] == [0, 1, 2]
    assert store.changed == {'a', 'b'}
    store.changed.clear()
    store.expire(10.9)
    assert store.changed == set()
    store.expire(11.1)
    assert store.changed == {'b'}
    assert store.markers('b') == []
    store.apply([Marker(ns='a', id=1, action=2), Marker(ns='never', id=1, action=2)], now=11.0)
    assert [marker.id for marker in store.markers('a')] == [0, 2]
    store.apply([Marker(action=3), Marker(ns='c')], now=12.0)
    assert store.markers('a') == []
    assert len(store.markers('c')) == 1
    assert store.namespaces == ['a', 'b', 'c']


def test_store_refuses_strange_frames_actions_and_floods() -> None:
    store = MarkerStore(FRAMES)
    problems = store.apply([Marker(frame='camera'), Marker(action=8), Marker(frame='/odom')], now=0.0)
    assert len(problems) == 2
    assert "frame 'camera'" in problems[0]
    assert 'action 8' in problems[1]
    problems = store.apply([Marker(ns='n', id=i) for i in range(MOST_MARKERS + 5)], now=0.0)
    assert len(problems) == 6


def test_nodes_are_changed_in_place_and_only_ever_grow() -> None:
    scene, markers = view()
    for n in (3, 2, 3, 1):
        spheres = [Marker(ns='s', id=i, type=SPHERE, position=np.full(3, float(i))) for i in range(n)]
        markers.take([Marker(action=3), *spheres], 0.0)
        markers.draw(0.0)
        node = scene.nodes['/m/s/spheres']
        assert node.batched_positions.shape == (3, 3)
        assert node.visible
        assert np.count_nonzero(node.batched_scales.any(axis=1)) == n
    assert scene.added.count('/m/s/spheres') == 1
    markers.take([Marker(action=3)], 0.0)
    markers.draw(0.0)
    assert not scene.nodes['/m/s/spheres'].visible


def test_lines_and_arrows_without_use_hide_behind_the_first() -> None:
    scene, markers = view()
    arrows = [
        Marker(ns='f', id=i, type=ARROW, points=np.array([[i, 0.0, 0.0], [i, 0.0, 1.0]])) for i in range(4)
    ]
    markers.take(arrows, 0.0)
    markers.draw(0.0)
    markers.take([Marker(ns='f', id=i, action=2) for i in (0, 1, 3)], 0.0)
    markers.draw(0.0)
    node = scene.nodes['/m/f/arrows']
    assert scene.added == ['/m/f/arrows']
    assert np.array_equal(node.points, np.repeat(arrows[2].points[None], 4, 0))


def test_triangles_of_one_colour_are_one_mesh_that_is_changed() -> None:
    scene, markers = view()
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    both = [Marker(ns='t', id=i, type=TRIANGLE_LIST, points=corners + np.array([0, 0, i])) for i in range(2)]
    markers.take(both, 0.0)
    assert markers.draw(0.0) == []
    (name,) = scene.nodes
    assert scene.nodes[name].vertices.shape == (6, 3)
    assert scene.nodes[name].faces.shape == (2, 3)
    markers.take([Marker(ns='t', id=1, action=2)], 0.0)
    markers.draw(0.0)
    assert scene.nodes[name].vertices.shape == (3, 3)
    assert len(scene.added) == 1


def test_namespaces_are_hidden_and_shown_again() -> None:
    scene, markers = view()
    markers.take([Marker(ns='a', type=CUBE), Marker(ns='b', type=TEXT, text='hello')], 0.0)
    markers.draw(0.0)
    assert not markers.is_empty
    for visible in (False, True):
        markers.show('a', visible)
        markers.draw(0.0)
        assert scene.nodes['/m/a/cubes'].visible == visible
    markers.show('b', False)
    markers.draw(0.0)
    assert '/m/b/text_0' not in scene.nodes


def test_flat_ground_is_known() -> None:
    _, markers = view()
    square = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    markers.take([Marker(type=TRIANGLE_LIST, points=square)], 0.0)
    markers.draw(0.0)
    assert markers.is_flat
    markers.take([Marker(id=1, type=CUBE)], 0.0)
    markers.draw(0.0)
    assert not markers.is_flat


@pytest.mark.parametrize('seed', range(8))
def test_bytes_are_read_as_rclpy_reads_them(seed: int) -> None:
    pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
    from geometry_msgs.msg import Point
    from rclpy.serialization import deserialize_message, serialize_message
    from std_msgs.msg import ColorRGBA
    from visualization_msgs.msg import Marker as Message
    from visualization_msgs.msg import MarkerArray

    rng = np.random.default_rng(seed)

    def make() -> Any:
        n = rng.integers(0, 8, 12).tolist()
        message = Message(ns='name_sp'[: n[0]], id=n[1], type=n[2], action=n[3], text='grün__'[: n[4]])
        message.header.frame_id = 'odom_'[: n[5]]
        message.pose.position.x, message.pose.orientation.z, message.scale.y = rng.normal(size=3).tolist()
        message.color.g, message.lifetime.nanosec, message.frame_locked = 0.25, n[6], bool(n[7] % 2)
        message.points = [Point(x=float(x)) for x in rng.normal(size=n[8])]
        message.colors = [ColorRGBA(r=0.5, a=1.0) for _ in range(n[9])]
        message.texture_resource, message.mesh_resource = 't' * n[10], 'm' * n[11]
        message.texture.data, message.mesh_file.data = list(range(n[1])), list(range(n[2]))
        return message

    def never(_: bytes) -> Any:
        raise AssertionError('the bytes were not understood')

    for count in range(6):
        array = MarkerArray(markers=[make() for _ in range(count)])
        raw = serialize_message(array)
        found = read_markers(raw, never)
        for marker, message in zip(found, array.markers, strict=True):
            expected = from_message(message)
            for name in expected.__dataclass_fields__:
                assert np.array_equal(getattr(marker, name), getattr(expected, name)), name
        # damaged bytes are left to rclpy, whatever it makes of them, and nothing else is raised
        for cut in rng.integers(0, len(raw), 10).tolist():
            try:
                read_markers(raw[:cut], lambda whole: deserialize_message(whole, MarkerArray))
            except Exception as error:
                assert 'deserialize' in str(error) or 'RMW' in str(error) or 'Fast CDR' in str(error), error
