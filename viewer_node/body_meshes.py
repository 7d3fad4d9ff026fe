# SPDX-License-Identifier: Apache-2.0
"""Visual shapes of a robot as one GLB for each body, ready for the browser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import trimesh
from trimesh.visual.material import PBRMaterial
from trimesh.visual.texture import TextureVisuals

from quad_dynamics.array_types import Floats
from quad_dynamics.model.inertia import full_inertia
from quad_dynamics.model.meshes import MeshError
from quad_dynamics.model.model import Model
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.urdf import Geometry, Inertial, Link, Material, Origin, Shape
from viewer_node.colors import GREY, STAND_IN, linear
from viewer_node.mesh_files import FoundMesh, read_mesh
from viewer_node.mesh_shading import shaded
from viewer_node.robot_view import BodyMeshes

Color = tuple[float, float, float, float]
# A mesh and its pose in the frame of its body, (4, 4); scaled where the URDF says so.
Part = tuple[trimesh.Trimesh, Floats]

_SECTIONS = 32  # of a cylinder
_THINNEST = 0.005  # edge of a box that stands in [m]


def body_meshes(model: Model) -> BodyMeshes:
    """Read all visual shapes of a robot.

    A link with a mesh that cannot be shown gets its collision shapes, in another colour. If these cannot be
    shown either, it gets a box with the same mass and inertia. A robot without any visual shape gets its
    collision shapes.
    """
    shapes = _Shapes(model)
    parts = shapes.parts()
    glb = {body: _export(inside) for body, inside in parts.items()}
    problems = tuple(dict.fromkeys(shapes.problems))
    return BodyMeshes(glb, _radius(model, parts), problems, shapes.note())


def origin_transform(origin: Origin) -> Floats:
    """(4, 4) pose that an <origin> gives: R = Rz Ry Rx."""
    x, y, z = np.eye(3)
    roll, pitch, yaw = origin.rpy
    R = rotation_about(z, yaw) @ rotation_about(y, pitch) @ rotation_about(x, roll)
    return _transform(R, np.array(origin.xyz))


def _transform(R: Floats, p: Floats) -> Floats:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    return X


class _Shapes:
    """Shapes of a robot; legs share files, so each file is read once."""

    def __init__(self, model: Model) -> None:
        self.problems: list[str] = []
        self._missing: list[str] = []  # file names of meshes
        self._failed = False  # whether any of the last shapes cannot be shown
        self._has_stand_ins = False
        self._model = model
        self._colors = {material.name: material for material in model.urdf.materials}
        self._files: dict[str, FoundMesh | MeshError] = {}
        self._painted: dict[tuple[str, int, Color], trimesh.Trimesh] = {}

    def parts(self) -> dict[int, list[Part]]:
        """All shapes to show, by index of the body."""
        links = self._model.urdf.links
        has_visuals = any(link.visuals for link in links)
        parts: dict[int, list[Part]] = {}
        for link in links:
            found = self._shown(link.visuals if has_visuals else link.collisions)
            if self._failed and has_visuals:
                found += self._stand_ins(link, not found)
            frame = self._model.frames[link.name]
            X_BL = _transform(frame.R, frame.p)
            if found:
                parts.setdefault(frame.body, []).extend((mesh, X_BL @ X_LS) for mesh, X_LS in found)
        return parts

    def note(self) -> str:
        """Which meshes are not shown, in one line."""
        names = list(dict.fromkeys(name.replace('\\', '/').rpartition('/')[2] for name in self._missing))
        if not names:
            return ''
        listed = ', '.join(names[:3]) + (f' and {len(names) - 3} more' if len(names) > 3 else '')
        shown = '; teal shapes are shown instead' if self._has_stand_ins else ''
        return f'{len(names)} mesh{"" if len(names) == 1 else "es"} cannot be shown ({listed}){shown}'

    def _shown(self, shapes: Iterable[Shape], color: Color | None = None) -> list[Part]:
        """Meshes of those shapes that can be shown, with their poses in the frame of the link."""
        self._failed = False
        found = []
        for shape in shapes:
            X_LS = origin_transform(shape.origin) @ np.diag([*shape.geometry.scale, 1.0])
            found += [(mesh, X_LS) for mesh in self._meshes(shape, color)]
        return found

    def _stand_ins(self, link: Link, is_unseen: bool) -> list[Part]:
        """Shapes to show instead of a mesh of a link; at least one for a link that would be invisible."""
        found = self._shown(link.collisions, STAND_IN)
        if is_unseen and not found and link.inertial is not None:
            found = _inertia_box(link.inertial)
        self._has_stand_ins |= bool(found)
        return found

    def _meshes(self, shape: Shape, color: Color | None) -> list[trimesh.Trimesh]:
        """The meshes of one shape, in its own frame; unreadable files are added to the problems."""
        rgba = color or self._color(shape.material)
        if shape.geometry.kind != 'mesh':
            return [_painted(_primitive(shape.geometry), rgba)]
        name = shape.geometry.filename
        found = self._file(name)
        if isinstance(found, MeshError):
            self.problems.append(f"mesh '{name}' {found}")
            self._missing.append(name)
            self._failed = True
            return []
        if found.remark:
            self.problems.append(f"mesh '{name}' {found.remark}")
        return [
            mesh if _has_look(mesh) and color is None else self._with_color(name, i, mesh, rgba)
            for i, mesh in enumerate(found.meshes)
        ]

    def _file(self, name: str) -> FoundMesh | MeshError:
        if name not in self._files:
            try:
                self._files[name] = read_mesh(name, self._model.urdf.path)
            except MeshError as error:
                self._files[name] = error
        return self._files[name]

    def _with_color(self, name: str, i: int, mesh: trimesh.Trimesh, rgba: Color) -> trimesh.Trimesh:
        key = name, i, rgba
        if key not in self._painted:
            self._painted[key] = _painted(mesh, rgba)
        return self._painted[key]

    def _color(self, material: Material | None) -> Color:
        """Colour of a shape: its own, or that of the robot's material of this name."""
        if material is None:
            return GREY
        return material.rgba or getattr(self._colors.get(material.name), 'rgba', None) or GREY


def _primitive(geometry: Geometry) -> trimesh.Trimesh:
    size = geometry.size
    if geometry.kind == 'box':
        return trimesh.creation.box(extents=size)
    if geometry.kind == 'sphere':
        return trimesh.creation.icosphere(subdivisions=3, radius=size[0])
    if geometry.kind == 'capsule':
        return trimesh.creation.capsule(radius=size[0], height=size[1])
    return trimesh.creation.cylinder(radius=size[0], height=size[1], sections=_SECTIONS)


def _inertia_box(inertial: Inertial) -> list[Part]:
    """The box of uniform density with this inertia; nothing for a massless link."""
    moments, axes = np.linalg.eigh(full_inertia(inertial.inertia))
    if inertial.mass <= 0.0 or not np.isfinite(moments).all():
        return []
    # I_x = m (y^2 + z^2) / 12, and so on
    squares = 6.0 / inertial.mass * (moments.sum() - 2.0 * moments)
    size = np.sqrt(np.maximum(squares, _THINNEST**2))
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    X = origin_transform(inertial.origin) @ _transform(axes, np.zeros(3))
    return [(_painted(trimesh.creation.box(extents=size), STAND_IN), X)]


def _painted(mesh: trimesh.Trimesh, rgba: Color) -> trimesh.Trimesh:
    """The mesh in one colour."""
    made = shaded(mesh)
    material = PBRMaterial(baseColorFactor=linear(rgba), metallicFactor=0.1, roughnessFactor=0.6)
    material.alphaMode = 'BLEND' if rgba[3] < 1.0 else 'OPAQUE'
    made.visual = TextureVisuals(material=material)
    return made


def _has_look(mesh: trimesh.Trimesh) -> bool:
    """Whether the file gave the mesh a colour or a texture."""
    visual: Any = mesh.visual
    if visual.kind == 'texture':
        return getattr(visual, 'material', None) is not None
    return visual.kind in ('vertex', 'face')


def _export(parts: list[Part]) -> bytes:
    scene = trimesh.Scene()
    for mesh, X in parts:
        scene.add_geometry(mesh, transform=X)
    data = scene.export(file_type='glb')
    assert isinstance(data, bytes)
    return data


def _radius(model: Model, parts: dict[int, list[Part]]) -> float:
    """Radius of a ball around the robot: an upper bound, the sum of lengths along each chain [m]."""
    reach = np.zeros(model.nj + 1)  # of body frames from the base; the last one is the base or root
    for j, parent in enumerate(model.parents):
        reach[j] = reach[parent] + float(np.linalg.norm(model.joint_p[j]))
    first = 1 if model.floating_base else 0  # bodies count the base, joints do not
    radius = 0.1
    for body, inside in parts.items():
        for mesh, X in inside:
            corners = trimesh.bounds.corners(mesh.bounds) @ X[:3, :3].T + X[:3, 3]
            radius = max(radius, reach[body - first] + float(np.linalg.norm(corners, axis=1).max()))
    return radius
