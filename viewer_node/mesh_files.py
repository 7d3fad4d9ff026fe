# SPDX-License-Identifier: Apache-2.0
"""Mesh files (STL, OBJ, COLLADA) with their materials.

Files are not trusted: sizes are limited, and whatever a parser raises becomes a `MeshError` that names the
file. As in RViz, the unit of a COLLADA file is used and its up axis is ignored, and materials of the file
override those of the URDF.
"""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from quad_dynamics.model.meshes import MOST_BYTES, MeshError, find_mesh, read_vertices
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.ros.environment import pip_command
from viewer_node.colors import GREY, linear

_KINDS = ('.stl', '.obj', '.dae')
_MOST_PIXELS = 1024  # side of a texture
# Errors name the file; the parsers' own messages would not.
logging.getLogger('trimesh').setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class FoundMesh:
    """The contents of a mesh file.

    Attributes:
        meshes: in metres, with the look that the file gives them.
        remark: a problem, as the rest of a sentence about the file; '' if there is none.
    """

    meshes: tuple[trimesh.Trimesh, ...]
    remark: str = ''


def read_mesh(filename: str, urdf_path: str) -> FoundMesh:
    """The mesh that a URDF names.

    Args:
        filename: as written in the URDF.
        urdf_path: of the URDF file; '' for a text.

    Raises:
        MeshError: it is not found, cannot be read, or is empty.
    """
    path = find_mesh(filename, urdf_path)
    if path.suffix.lower() not in _KINDS:
        raise MeshError('has an unsupported format; expected .stl, .obj or .dae')
    reason = why_unreadable(path, 'a mesh', MOST_BYTES)
    if reason:
        raise MeshError(reason)
    if path.suffix.lower() == '.dae' and not importlib.util.find_spec('collada'):
        raise MeshError(f'needs pycollada; install it with: {pip_command("pycollada")}')
    meshes, remark = _parse(path), ''
    if not meshes:
        # Some exporters refer to cameras that they leave out, and the parser drops the whole scene.
        meshes = [trimesh.convex.convex_hull(read_vertices(path))]
        remark = 'has a scene that cannot be read; its convex hull is shown'
    if not all(np.isfinite(mesh.vertices).all() for mesh in meshes):
        raise MeshError('has vertices that are not finite')
    return FoundMesh(tuple(meshes), remark)


def _parse(path: Path) -> list[trimesh.Trimesh]:
    try:
        scene: Any = trimesh.load_scene(path, process=False)
        meshes = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)]
        for mesh in meshes:
            if _unit(mesh) != 1.0:
                mesh.apply_scale(_unit(mesh))
            _tidy(mesh)
    except MemoryError:
        raise
    except Exception as error:  # parsers raise whatever the parsers below them raise
        raise MeshError(f'is invalid: {type(error).__name__}: {error}') from error
    return meshes


def _unit(mesh: trimesh.Trimesh) -> float:
    """Metres in the unit of a COLLADA file, which is noted as '0.001 * meters'."""
    number, _, rest = str(mesh.metadata.get('units', '')).partition(' * ')
    try:
        return float(number) if rest == 'meters' else 1.0
    except ValueError:
        return 1.0


def _tidy(mesh: trimesh.Trimesh) -> None:
    """Make a file's material one that GLB can hold."""
    visual: Any = mesh.visual
    if visual.kind != 'texture' or visual.material is None:
        return
    material = visual.material
    if not isinstance(material, trimesh.visual.material.PBRMaterial):
        material = material.to_pbr()
    texture = material.baseColorTexture
    if visual.uv is None or len(visual.uv) != len(mesh.vertices):
        material.baseColorTexture = texture = None
    if texture is not None:
        texture = texture.convert('RGB')
        texture.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
        texture.format = 'JPEG'  # how the GLB will hold it; PNG takes ten times longer
        material.baseColorTexture = texture
    _set_color(material, texture is not None)
    visual.material = material


def _set_color(material: Any, has_texture: bool) -> None:
    factor = material.baseColorFactor
    if factor is None or has_texture:
        material.baseColorFactor = None if has_texture else linear(GREY)
    else:
        values = np.array(factor, dtype=np.float64)
        rgba = values / 255.0 if values.max(initial=0.0) > 1.0 else values
        rgba = np.concatenate([rgba, [1.0]])[:4]
        # Exporters write a transparency of 0 where they mean its opposite; nobody draws what cannot be seen.
        rgba[3] = 1.0 if rgba[3] < 0.05 else rgba[3]
        material.baseColorFactor = linear(rgba)
        material.alphaMode = 'BLEND' if rgba[3] < 1.0 else 'OPAQUE'
    material.emissiveTexture = None
    material.normalTexture = None
    material.metallicFactor = 0.1
    material.roughnessFactor = 0.6
