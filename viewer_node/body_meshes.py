# SPDX-License-Identifier: Apache-2.0
"""Visual shapes of a robot as one GLB for each body, ready for the browser."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import trimesh
from trimesh.visual.material import PBRMaterial
from trimesh.visual.texture import TextureVisuals

from quad_dynamics.model.meshes import MeshError
from quad_dynamics.model.model import Model
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.urdf import Geometry, Link, Material, Origin, Shape
from viewer_node.colors import GREY, linear
from viewer_node.mesh_files import read_mesh
from viewer_node.robot_view import BodyMeshes

Floats = npt.NDArray[np.float64]

_SECTIONS = 32  # of a cylinder


def body_meshes(model: Model) -> BodyMeshes:
    """Read all visual shapes of a robot; if there is none that can be shown, the collision shapes."""
    problems: list[str] = []
    parts = _parts(model, 'visuals', problems)
    if not parts:
        parts = _parts(model, 'collisions', problems)
    glb = {body: _export(meshes) for body, meshes in parts.items()}
    return BodyMeshes(glb, _radius(model, parts), tuple(problems))


def _parts(model: Model, kind: str, problems: list[str]) -> dict[int, list[trimesh.Trimesh]]:
    """All shapes of a kind in the frames of the bodies, by index of the body."""
    colors = {material.name: material for material in model.urdf.materials}
    parts: dict[int, list[trimesh.Trimesh]] = {}
    for link in model.urdf.links:
        frame = model.frames[link.name]
        X_BL = _transform(frame.R, frame.p)
        for shape in getattr(link, kind):
            for mesh in _meshes(link, shape, colors, model.urdf.path, problems):
                mesh.apply_transform(X_BL @ origin_transform(shape.origin))
                parts.setdefault(frame.body, []).append(mesh)
    return parts


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


def _meshes(
    link: Link, shape: Shape, colors: dict[str, Material], urdf_path: str, problems: list[str]
) -> Iterable[trimesh.Trimesh]:
    """The meshes of one shape, in its own frame; what cannot be read is added to the problems."""
    rgba = _color(shape.material, colors)
    if shape.geometry.kind != 'mesh':
        return [_painted(_primitive(shape.geometry), rgba)]
    try:
        found = read_mesh(shape.geometry, urdf_path)
    except MeshError as error:
        problems.append(f"mesh '{shape.geometry.filename}' of link '{link.name}' {error}")
        return []
    if found.remark:
        problems.append(f"mesh '{shape.geometry.filename}' of link '{link.name}' {found.remark}")
    return [mesh if _has_look(mesh) else _painted(mesh, rgba) for mesh in found.meshes]


def _color(material: Material | None, colors: dict[str, Material]) -> tuple[float, float, float, float]:
    """Colour of a shape: its own, or that of the robot's material of this name."""
    if material is None:
        return GREY
    own = material.rgba or getattr(colors.get(material.name), 'rgba', None)
    return own or GREY


def _primitive(geometry: Geometry) -> trimesh.Trimesh:
    size = geometry.size
    if geometry.kind == 'box':
        return trimesh.creation.box(extents=size)
    if geometry.kind == 'sphere':
        return trimesh.creation.icosphere(subdivisions=3, radius=size[0])
    if geometry.kind == 'capsule':
        return trimesh.creation.capsule(radius=size[0], height=size[1])
    return trimesh.creation.cylinder(radius=size[0], height=size[1], sections=_SECTIONS)


def _painted(mesh: trimesh.Trimesh, rgba: tuple[float, ...]) -> trimesh.Trimesh:
    """The mesh in one colour, with sharp edges where faces meet at an angle."""
    shaded = trimesh.graph.smooth_shade(mesh, angle=math.radians(35.0))
    material = PBRMaterial(baseColorFactor=linear(rgba), metallicFactor=0.1, roughnessFactor=0.6)
    if rgba[3] < 1.0:
        material.alphaMode = 'BLEND'
    shaded.visual = TextureVisuals(material=material)
    return shaded


def _has_look(mesh: trimesh.Trimesh) -> bool:
    """Whether the file gave the mesh a colour or a texture."""
    visual: Any = mesh.visual
    if visual.kind == 'texture':
        return getattr(visual, 'material', None) is not None
    return visual.kind in ('vertex', 'face')


def _export(meshes: list[trimesh.Trimesh]) -> bytes:
    data = trimesh.Scene(meshes).export(file_type='glb')
    assert isinstance(data, bytes)
    return data


def _radius(model: Model, parts: dict[int, list[trimesh.Trimesh]]) -> float:
    """Radius of a ball that holds the robot: along every chain, lengths add up at most."""
    reach = np.zeros(model.nj + 1)  # of body frames from the base; the last one is the base or root
    for j, parent in enumerate(model.parents):
        reach[j] = reach[parent] + float(np.linalg.norm(model.joint_p[j]))
    first = 1 if model.floating_base else 0  # bodies count the base, joints do not
    radius = 0.1
    for body, meshes in parts.items():
        joint = body - first
        for mesh in meshes:
            radius = max(radius, reach[joint] + float(np.linalg.norm(mesh.vertices, axis=1).max(initial=0.0)))
    return radius
