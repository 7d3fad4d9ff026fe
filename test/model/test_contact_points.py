# SPDX-License-Identifier: Apache-2.0
"""Contact points from collision geometry: closed forms, support functions, meshes, real robots."""

from __future__ import annotations

import functools
import struct
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pytest
from cases import QUADRUPEDS, load
from reference_pinocchio import robots_folder

from quad_dynamics.api.kinematics import frame_pose, random_configuration
from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.contact_bodies import pieces_of_bodies
from quad_dynamics.model.contact_hull import DIRECTIONS, balls_of, extreme_points, support
from quad_dynamics.model.contact_points import ChosenPoints, choose_contact_points, contact_points
from quad_dynamics.model.inertia import rotation_of_rpy
from quad_dynamics.model.meshes import MeshError, find_mesh, read_vertices
from quad_dynamics.model.urdf import Geometry

MOMENTS = 'ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"'
INERTIAL = f'<inertial><mass value="1"/><inertia {MOMENTS}/></inertial>'
# Between the directions that points are chosen with, a body may stand out a little more. The next one is 0.08
# rad away in the mean; a support function curves by at most the size: 0.08^2 / 2 of it, and twice that.
BETWEEN = 0.006


def random_directions(seed: int, n: int = 2000) -> Any:
    d = np.random.default_rng(seed).normal(size=(n, 3))
    return d / np.linalg.norm(d, axis=1)[:, None]


def shape(geometry: str, xyz: Any = (0, 0, 0), rpy: Any = (0, 0, 0)) -> str:
    place = f'xyz="{" ".join(map(repr, map(float, xyz)))}" rpy="{" ".join(map(repr, map(float, rpy)))}"'
    return f'<collision><origin {place}/><geometry>{geometry}</geometry></collision>'


def lone_link(*shapes: str) -> str:
    return f'<robot name="thing"><link name="thing">{INERTIAL}{"".join(shapes)}</link></robot>'


def leg(calf: str, foot: str, thigh: str = '') -> str:
    """A floating base with one leg of two joints; the foot is 0.2 m below the knee."""
    links = {'trunk': shape('<box size="0.4 0.2 0.1"/>'), 'thigh': thigh, 'calf': calf, 'a_foot': foot}
    text = ''.join(f'<link name="{name}">{INERTIAL}{shapes}</link>' for name, shapes in links.items())
    limit = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
    for name, kind, parent, child, z in [
        ('hip', 'revolute', 'trunk', 'thigh', -0.1),
        ('knee', 'revolute', 'thigh', 'calf', -0.2),
        ('end', 'fixed', 'calf', 'a_foot', -0.2),
    ]:
        inner = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 {z}"/>'
        text += f'<joint name="{name}" type="{kind}">{inner}{limit if kind == "revolute" else ""}</joint>'
    return f'<robot name="hopper">{text}</robot>'


def floating(text: str | Path) -> Any:
    return load(text, floating_base=True)


def as_balls(points: Any) -> Any:
    """(n, 4) in the frames of their links."""
    return np.array([[*point.position, point.radius] for point in points]).reshape(-1, 4)


def body_balls(model: Any, points: Any, body: int) -> Any:
    """(n, 4) of the points of one body, in its frame."""
    rows = []
    for point in points:
        frame = model.frames[point.link]
        if frame.body == body:
            rows.append([*(frame.p + frame.R @ point.position), point.radius])
    return np.array(rows).reshape(-1, 4)


def sorted_rows(rows: Any) -> Any:
    return np.array(sorted(np.round(rows, 9).tolist()))


# ---- primitives


@pytest.mark.parametrize('seed', range(5), ids=lambda seed: f'seed{seed}')
class TestPrimitives:
    """One link in a random pose; the expected points are written down by hand."""

    @staticmethod
    def pose(seed: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        xyz, rpy = rng.uniform(-1.0, 1.0, 3), rng.uniform(-1.5, 1.5, 3)
        return xyz, rpy, rotation_of_rpy(tuple(rpy))

    def test_sphere(self, seed: int) -> None:
        xyz, rpy, _ = self.pose(seed)
        points = contact_points(floating(lone_link(shape('<sphere radius="0.07"/>', xyz, rpy))))
        np.testing.assert_allclose(as_balls(points), [[*xyz, 0.07]], atol=1e-15)  # a rounding

    def test_box(self, seed: int) -> None:
        xyz, rpy, R = self.pose(seed)
        points = contact_points(floating(lone_link(shape('<box size="0.4 0.2 0.1"/>', xyz, rpy))))
        corners = [[*(xyz + R @ (np.array(s) * [0.2, 0.1, 0.05])), 0.0] for s in product((1, -1), repeat=3)]
        # coordinates of about 1, a few roundings
        np.testing.assert_allclose(sorted_rows(as_balls(points)), sorted_rows(corners), atol=2e-9)

    def test_capsule(self, seed: int) -> None:
        xyz, rpy, R = self.pose(seed)
        points = contact_points(floating(lone_link(shape('<capsule radius="0.03" length="0.4"/>', xyz, rpy))))
        ends = [[*(xyz + R @ [0, 0, z]), 0.03] for z in (0.2, -0.2)]
        np.testing.assert_allclose(sorted_rows(as_balls(points)), sorted_rows(ends), atol=2e-9)

    @pytest.mark.parametrize(('radius', 'length'), [(0.02, 0.5), (0.1, 0.1), (0.2, 0.02)])
    def test_cylinder(self, seed: int, radius: float, length: float) -> None:
        xyz, rpy, R = self.pose(seed)
        text = shape(f'<cylinder radius="{radius}" length="{length}"/>', xyz, rpy)
        chosen = choose_contact_points(floating(lone_link(text)))
        d = random_directions(seed)
        along = np.abs(d @ R[:, 2])
        exact = d @ xyz + radius * np.sqrt(1.0 - along**2) + 0.5 * length * along
        off = support(as_balls(chosen.points), d) - exact
        size = 2.0 * np.hypot(radius, 0.5 * length)
        allowed = chosen.tolerances[0] + BETWEEN * size + 0.009 * radius  # the last: 24 corners, not a circle
        assert np.abs(off).max() <= allowed
        assert len(chosen.points) <= 32

    def test_several_shapes_are_one_hull(self, seed: int) -> None:
        """What the others enclose gets no point."""
        xyz, rpy, R = self.pose(seed)
        inside = [
            shape('<sphere radius="0.04"/>', xyz, rpy),
            shape('<box size="0.3 0.1 0.05"/>', xyz + R @ [0.01, 0.0, 0.0], rpy),
            shape('<cylinder radius="0.04" length="0.1"/>', xyz, rpy),
        ]
        box = shape('<box size="0.4 0.2 0.1"/>', xyz, rpy)
        alone = contact_points(floating(lone_link(box)))
        together = contact_points(floating(lone_link(*inside, box)))
        # the same corners, moved by a rounding at most
        np.testing.assert_allclose(sorted_rows(as_balls(together)), sorted_rows(as_balls(alone)), atol=2e-9)


def test_capsule_length_is_that_of_the_cylinder() -> None:
    h = support(balls_of(Geometry('capsule', (0.1, 0.6))), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(h, [0.4, 0.1], atol=1e-15)  # sums of two numbers


def test_directions_are_mirrored_and_dense() -> None:
    known = {tuple(row) for row in np.round(DIRECTIONS, 12) + 0.0}
    assert len(known) == len(DIRECTIONS)
    for sign in product((1.0, -1.0), repeat=3):
        assert {tuple(row) for row in np.round(DIRECTIONS * sign, 12) + 0.0} == known
    nearest = (random_directions(0) @ DIRECTIONS.T).max(axis=1)
    assert np.arccos(nearest.min()) < 0.2  # twice the mean distance of 600 directions


# ---- meshes


def octahedron(a: float = 0.1, b: float = 0.2, c: float = 0.3) -> Any:
    """(8, 3, 3) triangles of an octahedron with six vertices on the axes, moved by (0.5, 0, 0)."""
    ends = np.diag([a, b, c])
    faces = [[sx * ends[0], sy * ends[1], sz * ends[2]] for sx, sy, sz in product((1, -1), repeat=3)]
    return np.add(faces, [0.5, 0.0, 0.0])


def corners_of(triangles: Any) -> Any:
    return np.unique(np.round(triangles.reshape(-1, 3), 6), axis=0)


def binary_stl(triangles: Any, header: bytes = b'solid but binary') -> bytes:
    body = b''.join(struct.pack('<12fH', 0, 0, 0, *np.ravel(t), 0) for t in triangles)
    return header.ljust(80, b' ') + struct.pack('<I', len(triangles)) + body


def ascii_stl(triangles: Any) -> bytes:
    rows = ['solid thing']
    for triangle in triangles:
        rows += ['facet normal 0 0 1', ' outer loop', *(f'  vertex {x} {y} {z:e}' for x, y, z in triangle)]
        rows += [' endloop', 'endfacet']
    return '\n'.join([*rows, 'endsolid thing', '']).encode()


def obj(triangles: Any) -> bytes:
    """With a vertex far away that no face uses."""
    rows = ['mtllib /etc/passwd', 'v 9 9 9', *(f'v {x} {y} {z}' for x, y, z in triangles.reshape(-1, 3))]
    rows += [f'vn 0 0 {i}' for i in range(1, 3)]
    rows += [f'f {k}//1 {k + 1}//1 {k + 2}//1' for k in range(2, 3 * len(triangles), 3)]
    return '\r\n'.join(rows).encode()


def dae(triangles: Any, unit: float = 1.0, node: str = '') -> bytes:
    """With a vertex far away that no face uses, and normals between the indices."""
    numbers = ' '.join(map(str, [*(triangles.ravel() / unit), 9e3, 9e3, 9e3]))
    indices = ' '.join(f'{k} 0' for k in range(3 * len(triangles)))
    return f"""<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
 <asset><unit name="some" meter="{unit}"/><up_axis>Y_UP</up_axis></asset>
 <library_geometries><geometry id="g"><mesh>
  <source id="p"><float_array id="pa" count="{3 * len(triangles) * 3 + 3}">{numbers}</float_array>
   <technique_common><accessor source="#pa" count="{3 * len(triangles) + 1}" stride="3"/></technique_common>
  </source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles count="{len(triangles)}"><input semantic="VERTEX" source="#v" offset="0"/>
   <input semantic="NORMAL" source="#n" offset="1"/><p>{indices}</p></triangles>
 </mesh></geometry></library_geometries>
 <library_visual_scenes><visual_scene id="s"><node>{node}<instance_geometry url="#g"/></node></visual_scene>
 </library_visual_scenes><scene><instance_visual_scene url="#s"/></scene>
</COLLADA>""".encode()


WRITERS = {
    'binary.stl': binary_stl,
    'UPPER.STL': binary_stl,
    'text.stl': ascii_stl,
    'thing.obj': obj,
    'meters.dae': dae,
    'inches.dae': functools.partial(dae, unit=0.0254),
}


@pytest.mark.parametrize('name', WRITERS)
class TestMeshFiles:
    def test_vertices(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(WRITERS[name](octahedron()))
        found = corners_of(read_vertices(tmp_path / name))
        np.testing.assert_allclose(found, corners_of(octahedron()), atol=1e-6)  # float32 of binary STL

    @pytest.mark.parametrize('scale', [(1, 1, 1), (2, 2, 2), (0.5, 1, 1.5), (1, -1, 1), (-1, -1, -1)])
    def test_points(self, name: str, scale: Any, tmp_path: Path) -> None:
        """Six vertices are few enough to be points themselves, scaled and mirrored as the URDF says."""
        (tmp_path / name).write_bytes(WRITERS[name](octahedron()))
        urdf = tmp_path / 'thing.urdf'
        numbers = ' '.join(map(str, scale))
        urdf.write_text(lone_link(shape(f'<mesh filename="{name}" scale="{numbers}"/>')))
        points = contact_points(floating(urdf))
        expected = np.column_stack([corners_of(octahedron()) * scale, np.zeros(6)])
        np.testing.assert_allclose(sorted_rows(as_balls(points)), sorted_rows(expected), atol=1e-6)


def test_collada_nodes(tmp_path: Path) -> None:
    """Transforms apply in the order in which they stand."""
    node = '<translate>1 0 0</translate><rotate>0 0 1 90</rotate><scale>2 1 1</scale>'
    (tmp_path / 'a.dae').write_bytes(dae(octahedron(), node=node))
    points = octahedron().reshape(-1, 3) * [2, 1, 1]
    expected = np.column_stack([1.0 - points[:, 1], points[:, 0], points[:, 2]])
    found = corners_of(read_vertices(tmp_path / 'a.dae'))
    np.testing.assert_allclose(found, corners_of(expected), atol=1e-6)  # corners_of rounds so far


@pytest.mark.parametrize('kind', ['stl', 'obj', 'dae'])
def test_published_meshes_against_assimp(kind: str) -> None:
    files = sorted(p for p in robots_folder().rglob(f'*.{kind}') if p.stat().st_size < 1_000_000)[::12]
    assert len(files) >= 5
    for path in files:
        loaded = coal.MeshLoader().load(str(path))
        reference = np.array(loaded.vertices())
        bounds = np.array([reference.min(axis=0), reference.max(axis=0)])
        vertices = read_vertices(path)
        found = np.array([vertices.min(axis=0), vertices.max(axis=0)])
        # the loader keeps float32 on its way
        np.testing.assert_allclose(found, bounds, atol=1e-5 * np.abs(bounds).max(), err_msg=str(path))


BROKEN = {
    'missing.stl': (None, 'was not found'),
    'empty.stl': (b'', 'is invalid'),
    'no_triangles.stl': (binary_stl([]), 'has no vertices'),
    'short.stl': (binary_stl(octahedron())[:-9], 'is invalid'),
    'words.stl': (b'solid thing\nvertex one two three\n', 'is invalid'),
    'nan.stl': (ascii_stl(octahedron()).replace(b'vertex 0.5 ', b'vertex nan ', 1), 'not finite'),
    'index.obj': (b'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 7\n', 'is invalid'),
    'empty.obj': (b'# nothing\n', 'has no vertices'),
    'broken.dae': (b'<COLLADA><asset>', 'is invalid'),
    'bomb.dae': (b'<!DOCTYPE a [<!ENTITY b "bbb">]><COLLADA>&b;</COLLADA>', 'is invalid'),
    'loop.dae': (
        dae(octahedron()).replace(b'<node>', b'<node id="n">' + 3 * b'<instance_node url="#n"/>'),
        'more than 10000 nodes',
    ),
    'rotate.dae': (dae(octahedron(), node='<rotate>0 0 1</rotate>'), 'is invalid'),
    'bare.dae': (b'<COLLADA/>', 'has no vertices'),
    'picture.png': (b'\x89PNG', 'has an unsupported format'),
}


@pytest.mark.parametrize('name', BROKEN)
def test_unreadable_mesh_is_named_and_replaced(name: str, tmp_path: Path) -> None:
    """By the box with the link's inertia: here m = 1, I = m (2 a^2) / 12 = 0.02, so a^2 = 0.12."""
    content, reason = BROKEN[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    urdf = tmp_path / 'thing.urdf'
    urdf.write_text(lone_link(shape(f'<mesh filename="{name}"/>', (5, 5, 5))))
    with pytest.warns(ModelWarning, match=f"{name}' of link 'thing' .*{reason}"):
        points = contact_points(floating(urdf))
    half = 0.5 * np.sqrt(0.12)
    corners = [[*(half * np.array(signs)), 0.0] for signs in product((1.0, -1.0), repeat=3)]
    np.testing.assert_allclose(sorted_rows(as_balls(points)), sorted_rows(corners), atol=2e-9)  # roundings


def test_readable_mesh_does_not_warn(tmp_path: Path) -> None:
    (tmp_path / 'a.stl').write_bytes(binary_stl(octahedron()))
    (tmp_path / 'thing.urdf').write_text(lone_link(shape('<mesh filename="a.stl"/>')))
    model = floating(tmp_path / 'thing.urdf')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert len(contact_points(model)) == 6


def test_too_long_mesh_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'a.stl').write_bytes(binary_stl(octahedron()))
    monkeypatch.setattr('quad_dynamics.model.meshes.MOST_BYTES', 100)
    with pytest.raises(MeshError, match='larger than 100 bytes'):
        read_vertices(tmp_path / 'a.stl')


@pytest.mark.slow
def test_huge_mesh(tmp_path: Path) -> None:
    """A ball of 100 000 triangles becomes few points, whose hull is the ball to the tolerance."""
    corners = 0.2 * random_directions(3, 300_000)
    triangles = corners.reshape(-1, 3, 3)
    record = np.zeros(len(triangles), dtype=[('n', '<f4', 3), ('c', '<f4', (3, 3)), ('a', '<u2')])
    record['c'] = triangles
    (tmp_path / 'a.stl').write_bytes(bytes(80) + struct.pack('<I', len(triangles)) + record.tobytes())
    (tmp_path / 'thing.urdf').write_text(lone_link(shape('<mesh filename="a.stl"/>')))
    chosen = choose_contact_points(floating(tmp_path / 'thing.urdf'))
    off = support(as_balls(chosen.points), random_directions(4)) - 0.2
    assert np.abs(off).max() <= chosen.tolerances[0] + BETWEEN * 0.4
    assert len(chosen.points) <= 32


@pytest.mark.parametrize('rank', [0, 1, 2])
def test_flat_meshes(rank: int) -> None:
    """A point, a line and a plane, which have no hull in space."""
    rng = np.random.default_rng(rank)
    points = np.zeros((50, 3))
    points[:, :rank] = rng.normal(size=(50, rank))
    extreme = extreme_points(points)
    d = random_directions(rank)
    # what stands out between the directions, as above
    np.testing.assert_allclose(support(extreme, d), (points @ d.T).max(axis=0), atol=BETWEEN * 5.0)


def test_package_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'prefix'))
    places = {
        'package://robot/meshes/a.stl': 'src/other_folder/meshes/a.stl',
        'package://sister/a.stl': 'src/sister/a.stl',
        'package://installed/a.stl': 'prefix/share/installed/a.stl',
        'package://renamed/meshes/b.stl': 'src/other_folder/meshes/b.stl',
        '../meshes/with%20space.stl': 'src/other_folder/meshes/with space.stl',
        f'file://{tmp_path}/src/other_folder/c.stl': 'src/other_folder/c.stl',
    }
    for place in [*places.values(), 'src/other_folder/urdf/robot.urdf']:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(b'x')
    for folder, name in [('other_folder', 'robot'), ('sister', 'sister')]:
        (tmp_path / 'src' / folder / 'package.xml').write_text(f'<package><name>{name}</name></package>')
    urdf = str(tmp_path / 'src/other_folder/urdf/robot.urdf')
    for written, place in places.items():
        assert find_mesh(written, urdf) == tmp_path / place, written
    for refused in ['/etc/passwd', '../../../a.stl', 'http://example.org/a.stl', 'package://robot/../a.stl']:
        with pytest.raises(MeshError, match=r'package|scheme'):
            find_mesh(refused, urdf)
    with pytest.raises(MeshError, match='was not found'):
        find_mesh('package://robot/none.stl', '')


# ---- feet


def test_foot_has_its_sphere() -> None:
    model = floating(
        leg(shape('<box size="0.02 0.02 0.2"/>', (0, 0, -0.1)), shape('<sphere radius="0.03"/>'))
    )
    feet = [point for point in contact_points(model) if point.link == 'a_foot']
    assert [(p.name, p.position, p.radius) for p in feet] == [('a_foot', (0.0, 0.0, 0.0), 0.03)]


def test_foot_takes_the_sphere_of_its_body() -> None:
    calf = shape('<sphere radius="0.03"/>', (0.01, 0, -0.2)) + shape('<sphere radius="0.04"/>')
    feet = [p for p in contact_points(floating(leg(calf, ''))) if p.link == 'a_foot']
    assert [p.name for p in feet] == ['a_foot']
    np.testing.assert_allclose(as_balls(feet), [[0.01, 0.0, 0.0, 0.03]], atol=1e-15)  # a difference


def test_foot_without_geometry_takes_the_end_of_the_calf() -> None:
    calf = shape('<box size="0.04 0.06 0.2"/>', (0, 0, -0.1))
    feet = [p for p in contact_points(floating(leg(calf, ''))) if p.link == 'a_foot']
    corners = [[x, y, 0.0, 0.0] for x in (0.02, -0.02) for y in (0.03, -0.03)]
    np.testing.assert_allclose(sorted_rows(as_balls(feet)), sorted_rows(corners), atol=2e-9)  # roundings
    assert [p.name for p in feet] == [f'a_foot_{i}' for i in range(4)]


def test_foot_far_from_all_geometry_is_its_origin() -> None:
    calf = shape('<sphere radius="0.03"/>', (0, 0, -0.05))
    [foot] = [p for p in contact_points(floating(leg(calf, ''))) if p.link == 'a_foot']
    assert (foot.name, foot.position, foot.radius) == ('a_foot', (0.0, 0.0, 0.0), 0.0)


def test_flat_foot_has_its_corners() -> None:
    feet = [
        p
        for p in contact_points(floating(leg('', shape('<box size="0.2 0.1 0.03"/>'))))
        if p.link == 'a_foot'
    ]
    corners = [[*(np.array(s) * [0.1, 0.05, 0.015]), 0.0] for s in product((1, -1), repeat=3)]
    np.testing.assert_allclose(sorted_rows(as_balls(feet)), sorted_rows(corners), atol=2e-9)  # roundings


def test_wheel_foot_is_a_ball_of_its_radius() -> None:
    wheel = shape('<cylinder radius="0.02" length="0.02"/>', rpy=(np.pi / 2, 0, 0))
    [foot] = [p for p in contact_points(floating(leg('', wheel))) if p.link == 'a_foot']
    np.testing.assert_allclose(as_balls([foot]), [[0.0, 0.0, 0.0, 0.02]], atol=1e-4)  # 0.9 % between corners


def test_upper_end_of_a_foot_link_is_no_foot() -> None:
    """The foot link of some robots holds the shank, too."""
    foot = shape('<sphere radius="0.03"/>') + shape('<capsule radius="0.02" length="0.16"/>', (0, 0, 0.1))
    points = contact_points(floating(leg('', foot)))
    assert [p.name for p in points if p.link == 'a_foot'] == ['a_foot']
    [knee] = [p for p in points if p.link == 'calf']
    assert knee.position[2] > -0.1


def test_knee_inside_the_thigh_has_no_point_of_its_own() -> None:
    thigh = shape('<capsule radius="0.04" length="0.2"/>', (0, 0, -0.1))
    calf = shape('<capsule radius="0.02" length="0.2"/>', (0, 0, -0.1))
    points = contact_points(floating(leg(calf, shape('<sphere radius="0.02"/>'), thigh)))
    assert [p.link for p in points if p.link in ('thigh', 'calf')] == ['thigh', 'thigh']


# ---- whole robots


def test_description_comes_first() -> None:
    for name, n in [('mini_cheetah', 16), ('mini_cheetah_leg', 2)]:
        model = load(name)
        assert contact_points(model) == model.description.contact_points
        assert len(contact_points(model)) == n


def test_without_collision_geometry() -> None:
    model = floating(leg('', '').replace(shape('<box size="0.4 0.2 0.1"/>'), ''))
    assert [p.name for p in contact_points(model)] == ['a_knee', 'a_foot']


def test_immobile_root_has_no_points() -> None:
    model = load(leg('', shape('<sphere radius="0.03"/>')), floating_base=False)
    assert {p.link for p in contact_points(model)} == {'a_foot'}


def test_names_are_unique() -> None:
    """Though another link has the name that a point gets."""
    ball = '<sphere radius="0.1"/>'
    box = '<box size="1 1 1"/>'
    text = f'<link name="thing">{INERTIAL}{shape(box)}</link>'
    for name, xyz in [('thing_3', (3, 0, 0)), ('thing_3_foot', (0, 3, 0))]:
        text += f'<link name="{name}">{INERTIAL}{shape(ball, xyz)}</link>'
        text += f'<joint name="to_{name}" type="fixed"><parent link="thing"/><child link="{name}"/></joint>'
    names = [point.name for point in contact_points(floating(f'<robot name="r">{text}</robot>'))]
    assert len(set(names)) == len(names)


@functools.cache
def robot(name: str) -> tuple[Any, ChosenPoints]:
    model = load(robots_folder() / QUADRUPEDS[name])
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # every mesh is found and read
        return model, choose_contact_points(model)


FOOT_RADIUS = {  # of the collision spheres in the files; go2 and solo12 have meshes, measured by hand
    'a1': 0.02, 'go1': 0.02, 'go2': 0.0229, 'b1': 0.04, 'anymal_b': 0.031, 'anymal_c': 0.03, 'hyq': 0.02175,
    'solo12': 0.016, 'laikago': 0.0265,
}  # fmt: skip


@pytest.mark.parametrize('name', QUADRUPEDS)
class TestQuadrupeds:
    def test_few_points_in_order(self, name: str) -> None:
        model, chosen = robot(name)
        points = chosen.points
        assert 16 <= len(points) <= 36
        assert len({p.name for p in points}) == len(points)
        assert [p.name for p in points[-4:]] == list(model.foot_names)
        bodies = [model.frames[p.link].body for p in points[:-4]]
        assert bodies == sorted(bodies)  # base, then leg by leg
        assert bodies[0] == 0

    def test_documented_figures(self, name: str) -> None:
        """Another machine may round otherwise: a few points, or one step of the tolerance."""
        page = (Path(__file__).parents[2] / 'docs' / 'robot_description.md').read_text()
        rows = [[cell.strip() for cell in row.split('|')] for row in page.splitlines() if row.startswith('|')]
        [names] = [row for row in rows if 'anymal_b' in row]
        column = names.index(name)
        [n] = [int(row[column]) for row in rows if row[1] == 'points']
        [tolerance] = [float(row[column]) for row in rows if row[1] == 'largest tolerance [mm]']
        _, chosen = robot(name)
        assert abs(len(chosen.points) - n) <= 4
        assert 1e3 * max(chosen.tolerances) == pytest.approx(tolerance, rel=0.3)

    def test_one_ball_at_each_foot(self, name: str) -> None:
        model, chosen = robot(name)
        for foot in model.foot_names:
            [point] = [p for p in chosen.points if p.link == foot]
            assert np.linalg.norm(point.position) < 0.03
            assert point.radius == pytest.approx(FOOT_RADIUS[name], abs=2e-4)  # what was measured by hand

    def test_again_the_same(self, name: str) -> None:
        model, chosen = robot(name)
        assert contact_points(model) == chosen.points

    def test_legs_are_alike(self, name: str) -> None:
        """Left and right legs have equally many points, of equal radii."""
        model, chosen = robot(name)
        # left and right meshes of these two are not mirrored exactly: a thin part may need one point more
        if name in ('go2', 'solo12'):
            bodies = [1 + np.array(leg.joint_indices) for leg in model.legs]
            counts = [sum(len(body_balls(model, chosen.points, b)) for b in leg) for leg in bodies]
            assert max(counts) - min(counts) <= 2
            return
        for left, right in [(0, 1), (2, 3)]:
            radii = []
            for side in (left, right):
                bodies = 1 + np.array(model.legs[side].joint_indices)
                balls = np.concatenate([body_balls(model, chosen.points, body) for body in bodies])
                radii.append(np.sort(balls[:, 3]))
            # origins in the files have ten digits or so
            np.testing.assert_allclose(radii[0], radii[1], atol=1e-6)

    def test_bodies_reach_as_far_as_their_geometry(self, name: str) -> None:
        """The base exactly so; others nowhere too far, for a part of them may be inside their parents."""
        model, chosen = robot(name)
        d = random_directions(0)
        feet = {model.frames[foot].body for foot in model.foot_names}
        for body, pieces in enumerate(pieces_of_bodies(model)):
            balls = body_balls(model, chosen.points, body)
            if not pieces or body in feet or len(balls) == 0:
                continue
            h = support(np.concatenate([piece.balls for piece in pieces]), d)
            allowed = chosen.tolerances[body] + BETWEEN * (h.max() - h.min())
            off = support(balls, d) - h
            assert off.max() <= allowed
            assert body > 0 or off.min() >= -allowed

    def test_robot_does_not_sink(self, name: str) -> None:
        """In random poses, all points together reach as far as all geometry together.

        A part inside its parent to the tolerance may stand out of the parent's points by the tolerance again,
        but that is rare: one tolerance is asked for here.
        """
        model, chosen = robot(name)
        off = reach_errors(model, chosen.points, random_directions(1, 200), seeds=range(20))
        size = max(
            np.ptp(piece.balls[:, :3], axis=0).max() for pieces in pieces_of_bodies(model) for piece in pieces
        )
        allowed = max(chosen.tolerances) + BETWEEN * size
        assert off.min() >= -allowed
        assert off.max() <= allowed
        assert (
            np.median(np.abs(off)) <= 0.005
        )  # mostly it is a corner or a foot that is lowest: these are exact

    def test_sinking_would_be_seen(self, name: str) -> None:
        """Without one foot the robot does sink by more than what is allowed above."""
        model, chosen = robot(name)
        off = reach_errors(model, chosen.points[:-1], random_directions(1, 200), seeds=range(20))
        assert off.min() < -2.0 * max(chosen.tolerances) - 0.01


def reach_errors(model: Any, points: Any, d: Any, seeds: Any) -> Any:
    """(poses, directions): how much farther the points reach than the geometry [m]."""
    pieces, errors = pieces_of_bodies(model), []
    for seed in seeds:
        q = random_configuration(model, np.random.default_rng(seed))
        full, few = np.full(len(d), -np.inf), np.full(len(d), -np.inf)
        for body, link in enumerate(model.body_names):
            R, p = frame_pose(model, q, link)
            own = [piece.balls for piece in pieces[body]]
            for result, sets in ((full, own), (few, [body_balls(model, points, body)])):
                balls = np.concatenate([np.zeros((0, 4)), *sets])
                moved = np.column_stack([balls[:, :3] @ R.T + p, balls[:, 3]])
                np.maximum(result, support(moved, d), out=result)
        errors.append(few - full)
    return np.array(errors)
