# SPDX-License-Identifier: Apache-2.0
"""The robot in the scene of the viewer: shapes, meshes, and where they are."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='viser is not installed')
import trimesh
from cases import PUBLISHED, TREES, load, model_of
from fake_scene import FakeScene
from reference_pinocchio import robots_folder

import quad_dynamics as qd
from quad_dynamics.model.meshes import MeshError, find_mesh, read_vertices
from viewer_node.body_meshes import body_meshes
from viewer_node.colors import GREY, STAND_IN, linear
from viewer_node.mesh_files import read_mesh
from viewer_node.mesh_shading import shaded
from viewer_node.robot_view import BodyMeshes, RobotView, quaternions, safe_name

BOX = """<robot name="box"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{shapes}</link></robot>"""


def rotation(wxyz: Any) -> Any:
    w, x, y, z = wxyz
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def world_pose(scene: FakeScene, name: str) -> Any:
    """Where the browser draws a node: all poses on the way to it, one after the other."""
    X = np.eye(4)
    for depth in range(2, name.count('/') + 2):
        node = scene.nodes['/'.join(name.split('/')[:depth])]
        step = np.eye(4)
        step[:3, :3] = rotation(getattr(node, 'wxyz', (1.0, 0.0, 0.0, 0.0)))
        step[:3, 3] = getattr(node, 'position', (0.0, 0.0, 0.0))
        X = X @ step
    return X


@pytest.mark.parametrize('seed', range(20))
def test_quaternions_of_rotations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wxyz = rng.normal(size=(50, 4))
    wxyz[:4] = np.eye(4)  # half turns, where formulas divide by zero
    wxyz /= np.linalg.norm(wxyz, axis=1, keepdims=True)
    R = np.array([rotation(each) for each in wxyz])
    found = quaternions(R)
    # q and -q are the same rotation; the sign of the largest component decides here
    assert np.abs(np.abs(np.einsum('ij,ij->i', found, wxyz)) - 1.0).max() < 1e-12


@pytest.mark.parametrize('case', [*PUBLISHED[::4], *TREES[:6]], ids=str)
def test_nodes_are_where_forward_kinematics_says(case: Any) -> None:
    model, rng = model_of(case), np.random.default_rng(1)
    scene = FakeScene()
    view = RobotView(scene, model, {}, '/robot')
    for q in qd.random_configuration(model, rng, 3):
        if model.floating_base:
            view.place(q[:3], q[[6, 3, 4, 5]])
        view.bend(q[-model.nj :])
        bodies = model.body_names[1 if model.floating_base else 0 :]
        for name, body in zip(view.names, bodies, strict=True):
            R, p = qd.frame_pose(model, q, body)
            X = world_pose(scene, name)
            # joints that move less than can be seen (1e-5) stay where they are; here, chains of at most 9
            assert np.abs(X[:3, 3] - p).max() < 1e-3
            assert np.abs(X[:3, :3] - R).max() < 1e-3


def test_only_what_moved_is_sent() -> None:
    model = load('mini_cheetah')
    view = RobotView(FakeScene(), model, {}, '/robot')
    q_j = np.full(model.nj, 0.3)
    view.bend(q_j)
    before = [node.wxyz for node in view._joints]
    q_j[4] += 0.1
    view.bend(q_j)
    assert [j for j, node in enumerate(view._joints) if node.wxyz is not before[j]] == [4]


def test_robot_of_simple_shapes() -> None:
    model = load('mini_cheetah')
    made = body_meshes(model)
    assert sorted(made.glb) == list(range(model.nb))
    assert made.problems == ()
    base = trimesh.load(io.BytesIO(made.glb[0]), file_type='glb', force='scene')
    assert np.allclose(base.extents, (0.38, 0.098, 0.1), atol=1e-6)
    (material,) = {
        each.visual.material.name: each.visual.material for each in base.geometry.values()
    }.values()
    # 0.75 on a screen is 0.52 of the light
    assert material.baseColorFactor[0] == pytest.approx(0.523 * 255, abs=2)
    calf = trimesh.load(io.BytesIO(made.glb[3]), file_type='glb', force='scene')
    assert calf.bounds[0][2] < -0.19  # the foot is part of this body
    assert 0.5 < made.radius < 1.0


@pytest.mark.parametrize(
    ('robot', 'mesh'),
    [
        ('solo_description/robots/solo12.urdf', '.stl'),
        ('laikago_description/urdf/laikago.urdf', '.obj'),
        ('go2_description/urdf/go2.urdf', '.dae'),
        ('hyq_description/robots/hyq_no_sensors.urdf', '.dae'),
    ],
)
def test_meshes_are_as_large_as_their_vertices_say(robot: str, mesh: str) -> None:
    urdf = load(robots_folder() / robot).urdf
    names = {s.geometry.filename for link in urdf.links for s in link.visuals if s.geometry.kind == 'mesh'}
    assert names
    for name in sorted(names):
        assert name.lower().endswith(mesh)
        found = read_mesh(name, urdf.path)
        assert found.remark == ''
        corners = np.concatenate([each.bounds for each in found.meshes])
        # another reader, of vertices only; files are written with 6 digits
        expected = read_vertices(find_mesh(name, urdf.path))
        assert np.allclose(corners.min(axis=0), expected.min(axis=0), atol=1e-5)
        assert np.allclose(corners.max(axis=0), expected.max(axis=0), atol=1e-5)


def test_robot_of_meshes_keeps_their_colours() -> None:
    made = body_meshes(load(robots_folder() / 'go2_description/urdf/go2.urdf'))
    assert made.problems == ()
    assert len(made.glb) == 13
    base = trimesh.load(io.BytesIO(made.glb[0]), file_type='glb', force='scene')
    colors = {tuple(each.visual.material.baseColorFactor) for each in base.geometry.values()}
    assert len(colors) > 1


def test_scene_that_cannot_be_read_is_shown_as_its_hull() -> None:
    robot = robots_folder() / 'anymal_b_simple_description/robots/anymal.urdf'
    name = 'package://example-robot-data/robots/anymal_b_simple_description/meshes/foot/anymal_foot.dae'
    found = read_mesh(name, str(robot))
    assert 'convex hull' in found.remark
    expected = read_vertices(find_mesh(name, str(robot)))
    assert np.allclose(found.meshes[0].bounds[1], expected.max(axis=0), atol=1e-6)


def write_box(folder: Path, shapes: str) -> Path:
    path = folder / 'box.urdf'
    path.write_text(BOX.format(shapes=shapes))
    return path


def visual(filename: str, scale: str = '1 1 1') -> str:
    return f'<visual><geometry><mesh filename="{filename}" scale="{scale}"/></geometry></visual>'


def test_unit_of_collada_and_scale(tmp_path: Path) -> None:
    raw = trimesh.creation.box(extents=(100.0, 200.0, 300.0)).export(file_type='dae')
    text = raw.decode() if isinstance(raw, bytes) else raw
    unit = '<asset><unit name="millimetre" meter="0.001"/>'
    (tmp_path / 'box.dae').write_text(text.replace('<asset>', unit, 1))
    made = body_meshes(load(write_box(tmp_path, visual('box.dae', '1 -2 1')), floating_base=True))
    shown = trimesh.load(io.BytesIO(next(iter(made.glb.values()))), file_type='glb', force='scene')
    assert np.allclose(shown.extents, (0.1, 0.4, 0.3))


def test_mesh_that_is_missing_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    (tmp_path / 'broken.stl').write_bytes(b'\0' * 90)
    (tmp_path / 'broken.obj').write_text('v 1 2 nan\nv 0 0 1\nv 0 1 0\nf 1 2 3\n')
    (tmp_path / 'broken.dae').write_text('<COLLADA><nothing')
    (tmp_path / 'other.step').write_text('ISO-10303-21;')
    names = ('nowhere.stl', 'broken.stl', 'broken.obj', 'broken.dae', 'other.step')
    shapes = ''.join(visual(name) for name in names)
    shapes += '<visual><geometry><box size="1 2 3"/></geometry></visual>'
    made = body_meshes(load(write_box(tmp_path, shapes), floating_base=True))
    assert [any(f"mesh '{name}'" in problem for problem in made.problems) for name in names] == [True] * 5
    shown = trimesh.load(io.BytesIO(next(iter(made.glb.values()))), file_type='glb', force='scene')
    assert np.allclose(shown.extents, (1.0, 2.0, 3.0))


def looks(made: BodyMeshes) -> list[tuple[tuple[float, ...], tuple[int, ...]]]:
    """Size and colour of each shape of the only body."""
    (data,) = made.glb.values()
    scene = trimesh.load(io.BytesIO(data), file_type='glb', force='scene')
    return [
        (tuple(np.round(each.extents, 6)), tuple(each.visual.material.baseColorFactor))
        for each in scene.dump()
    ]


COLLISION = '<collision><geometry><box size="1 2 3"/></geometry></collision>'
TEAL = tuple(linear(STAND_IN))


def test_collision_shapes_of_a_robot_without_visuals(tmp_path: Path) -> None:
    made = body_meshes(load(write_box(tmp_path, COLLISION), floating_base=True))
    assert looks(made) == [((1.0, 2.0, 3.0), tuple(linear(GREY)))]
    assert (made.problems, made.note) == ((), '')


def test_collision_shape_stands_in_for_a_mesh_that_is_missing(tmp_path: Path) -> None:
    shapes = visual('meshes/nowhere.stl') + COLLISION
    made = body_meshes(load(write_box(tmp_path, shapes), floating_base=True))
    assert looks(made) == [((1.0, 2.0, 3.0), TEAL)]
    assert len(made.problems) == 1
    assert made.note == '1 mesh cannot be shown (nowhere.stl); teal shapes are shown instead'


def test_each_link_has_its_own_stand_in(tmp_path: Path) -> None:
    path = tmp_path / 'two.urdf'
    inertial = BOX[BOX.index('<inertial>') : BOX.index('{shapes}')]
    good = '<visual><geometry><sphere radius="0.5"/></geometry></visual>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    links = f'<link name="a">{inertial}{good}{COLLISION}</link>'
    links += f'<link name="b">{inertial}{visual("x/b.dae")}{visual("y.obj")}{COLLISION}</link>'
    path.write_text(f'<robot name="two">{links}{joint}</robot>')
    made = body_meshes(load(path, floating_base=True))
    # the link with a good visual shape keeps it, and it alone
    first, second = (BodyMeshes({0: made.glb[body]}, 1.0, ()) for body in (0, 1))
    assert [color for _, color in looks(first)] == [tuple(linear(GREY))]
    assert looks(second) == [((1.0, 2.0, 3.0), TEAL)]
    assert made.note == '2 meshes cannot be shown (b.dae, y.obj); teal shapes are shown instead'


def test_link_of_which_nothing_can_be_shown_is_a_box_of_its_inertia(tmp_path: Path) -> None:
    x, y, z, m = 0.3, 0.2, 0.1, 2.0
    moments = m / 12.0 * (np.array([y**2 + z**2, x**2 + z**2, x**2 + y**2]))
    text = BOX.format(
        shapes=visual('no.stl') + COLLISION.replace('<box size="1 2 3"/>', '<mesh filename="no.obj"/>')
    )
    text = text.replace('<mass value="1"/>', f'<mass value="{m}"/>')
    for name, value in zip(('ixx', 'iyy', 'izz'), moments, strict=True):
        text = text.replace(f'{name}="1"', f'{name}="{value}"')
    (tmp_path / 'box.urdf').write_text(text)
    (size, color), *more = looks(body_meshes(load(tmp_path / 'box.urdf', floating_base=True)))
    assert not more
    assert np.allclose(sorted(size), (z, y, x), atol=1e-6)
    assert color == TEAL


def test_collada_without_its_reader_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'box.dae').write_text('<COLLADA/>')
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    with pytest.raises(MeshError, match=r'needs pycollada; install it with: .*pip install pycollada'):
        read_mesh('box.dae', str(tmp_path / 'box.urdf'))


def test_robot_without_any_shape(tmp_path: Path) -> None:
    made = body_meshes(load(write_box(tmp_path, ''), floating_base=True))
    assert made.glb == {}
    assert made.radius > 0.0


def test_mesh_outside_the_package_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / 'robot' / 'urdf'
    inside.mkdir(parents=True)
    trimesh.creation.box().export(tmp_path / 'secret.stl')
    with pytest.raises(MeshError):
        read_mesh('../../../../../../../../../../etc/passwd.stl', str(inside / 'box.urdf'))
    shutil.rmtree(inside)


def test_shading_is_sharp_on_boxes_and_round_on_balls() -> None:
    box = shaded(trimesh.creation.box())
    assert np.allclose(np.abs(box.vertex_normals).max(axis=1), 1.0)
    ball = shaded(trimesh.creation.icosphere(subdivisions=3, radius=2.0))
    outward = ball.vertices / np.linalg.norm(ball.vertices, axis=1, keepdims=True)
    # a facet of 1280 is within 4 degrees of the ball
    assert np.einsum('ij,ij->i', outward, ball.vertex_normals).min() > np.cos(np.radians(4.0))
    assert np.isfinite(
        shaded(trimesh.Trimesh(np.zeros((3, 3)), [[0, 1, 2]], process=False)).vertex_normals
    ).all()


def test_names_cannot_leave_their_place_in_the_scene() -> None:
    assert safe_name('../a/b c') == '.._a_b_c'
    assert safe_name('') == '_'
