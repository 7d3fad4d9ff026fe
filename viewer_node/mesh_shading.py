# SPDX-License-Identifier: Apache-2.0
"""Normals for meshes that have none: round where faces meet at small angles, sharp elsewhere."""

from __future__ import annotations

import math

import numpy as np
import trimesh

from quad_dynamics.array_types import Floats

_SHARP = math.cos(math.radians(35.0))
_CELLS = 2**20  # along each edge of the box about a mesh; corners in the same cell are one


def shaded(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """The mesh with a corner for each face, and a normal for each corner.

    A corner takes the mean normal of all faces that meet there, unless that is too far from the normal of
    its own face.
    """
    faces = np.asarray(mesh.faces)
    points = np.asarray(mesh.vertices)[faces.ravel()]
    corners = points.reshape(-1, 3, 3)
    weighted = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # twice the area
    own = np.repeat(_unit(weighted), 3, axis=0)
    low, high = points.min(axis=0), points.max(axis=0)
    cells = np.round((points - low) / max(float((high - low).max()), 1e-12) * _CELLS).astype(np.int64)
    _, places = np.unique(cells @ np.array([1, 1 << 21, 1 << 42]), return_inverse=True)
    places = places.ravel()
    summed = np.repeat(weighted, 3, axis=0)
    mean: Floats = np.stack([np.bincount(places, summed[:, k]) for k in range(3)], axis=1)
    around = _unit(mean)[places]
    is_round = np.einsum('ij,ij->i', around, own) > _SHARP
    normals = np.where(is_round[:, None], around, own)
    triangles = np.arange(len(points)).reshape(-1, 3)
    return trimesh.Trimesh(points, triangles, vertex_normals=normals, process=False)


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    upward: Floats = np.tile([0.0, 0.0, 1.0], (len(vectors), 1))  # of faces without an area
    np.divide(vectors, norms, out=upward, where=norms > 0.0)
    return upward
