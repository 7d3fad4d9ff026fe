# SPDX-License-Identifier: Apache-2.0
"""Visual shapes of a robot as one GLB for each body, ready for the browser."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import trimesh
from trimesh.visual.material import PBRMaterial
from trimesh.visual.texture import TextureVisuals

from quad_dynamics.model.meshes import MeshError
from quad_dynamics.model.model import Model
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.urdf import Geometry, Material, Origin, Shape
from viewer_node.colors import GREY, linear
from viewer_node.mesh_files import FoundMesh, read_mesh
from viewer_node.mesh_shading import shaded
from viewer_node.robot_view import BodyMeshes

Floats = npt.NDArray[np.float64]
Color = tuple[float, float, float, float]
# A mesh and its pose in the frame of its body, (4, 4); scaled where the URDF says so.
Part = tuple[trimesh.Trimesh, Floats]

_SECTIONS = 32  # of a cylinder


def body_meshes(model: Model) -> BodyMeshes:
    """Read all visual shapes of a robot; if there is none that can be shown, the collision shapes."""
    shapes = _Shapes(model)
    parts = shapes.parts('visuals') or shapes.parts('collisions')
    glb = {body: _export(inside) for body, inside in parts.items()}
    return BodyMeshes(glb, _radius(model, parts), tuple(dict.fromkeys(shapes.problems)))


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
    """Shapes of a robot; legs are alike, so each file is read once."""

    def __init__(self, model: Model) -> None:
        self.problems: list[str] = []
        self._model = model
        self._colors = {material.name: material for material in model.urdf.materials}
        self._files: dict[str, FoundMesh | MeshError] = {}
        self._painted: dict[tuple[str, int, Color], trimesh.Trimesh] = {}

    def parts(self, kind: str) -> dict[int, list[Part]]:
        """All shapes of a kind, 'visuals' or 'collisions', by index of the body."""
        parts: dict[int, list[Part]] = {}
        for link in self._model.urdf.links:
            frame = self._model.frames[link.name]
            X_BL = _transform(frame.R, frame.p)
            for shape in getattr(link, kind):
                X_BS = X_BL @ origin_transform(shape.origin) @ np.diag([*shape.geometry.scale, 1.0])
                for mesh in self._meshes(shape):
                    parts.setdefault(frame.body, []).append((mesh, X_BS))
        return parts

    def _meshes(self, shape: Shape) -> list[trimesh.Trimesh]:
        """The meshes of one shape, in its own frame; what cannot be read is added to the problems."""
        rgba = self._color(shape.material)
        if shape.geometry.kind != 'mesh':
            return [_painted(_primitive(shape.geometry), rgba)]
        name = shape.geometry.filename
        found = self._file(name)
        if isinstance(found, MeshError):
            self.problems.append(f"mesh '{name}' {found}")
            return []
        if found.remark:
            self.problems.append(f"mesh '{name}' {found.remark}")
        return [
            mesh if _has_look(mesh) else self._with_color(name, i, mesh, rgba)
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
    """Radius of a ball that holds the robot: along every chain, lengths add up at most [m]."""
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
