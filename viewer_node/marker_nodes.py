# SPDX-License-Identifier: Apache-2.0
"""Nodes of the scene that show batches of markers.

Nodes are changed in place. They keep the largest number of items that they ever had, because a change of the
number makes the browser rebuild the node. Unused items are drawn on top of the first one, or with zero size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from viewer_node.colors import linear_bytes
from viewer_node.marker_batches import Arrows, Batch, Dots, Lines, Solids, Text, Triangles


def _shape(kind: str) -> Any:
    """A mesh of size 1."""
    from trimesh import creation  # takes half a second, which the page need not wait for

    if kind == 'cubes':
        return creation.box(extents=(1.0, 1.0, 1.0))
    if kind == 'spheres':
        return creation.icosphere(subdivisions=2, radius=0.5)
    return creation.cylinder(radius=0.5, height=1.0, sections=24)


class MarkerNode:
    """One node of the scene, made at the first draw."""

    def __init__(self, scene: Any, name: str, kind: str, shadows: bool) -> None:
        """Show nothing yet.

        Args:
            scene: of the server.
            name: of the node.
            kind: of the batches.
            shadows: whether it casts and receives them.
        """
        self._scene, self._name, self._kind, self._shadows = scene, name, kind, shadows
        self._handle: Any = None
        self._size = 0

    def hide(self) -> None:
        """Show nothing."""
        if self._handle is not None:
            self._handle.visible = False

    def remove(self) -> None:
        """Take the node out of the scene."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def draw(self, batch: Any) -> None:
        """Show a batch."""
        n = self._count(batch)
        if n == 0:
            self.hide()
        elif self._handle is None or n > self._size:
            self._size = max(n, self._size)
            self.remove()
            self._handle = self._add(batch)
        else:
            self._change(batch)
            self._handle.visible = True

    def _count(self, batch: Any) -> int:
        return len(batch.points)

    def _add(self, batch: Any) -> Any:
        raise NotImplementedError

    def _change(self, batch: Any) -> None:
        raise NotImplementedError

    def _filled(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows (n, ...) with the first one repeated up to the size of the node."""
        if len(rows) == self._size:
            return rows
        return np.concatenate([rows, np.repeat(rows[:1], self._size - len(rows), axis=0)])


class _ArrowNode(MarkerNode):
    def _add(self, batch: Arrows) -> Any:
        return self._scene.add_arrows(
            self._name,
            self._filled(batch.points),
            linear_bytes(self._filled(batch.colors)),
            shaft_radius=batch.shaft,
            head_radius=batch.head,
            head_length=batch.head_length,
        )

    def _change(self, batch: Arrows) -> None:
        self._handle.points = self._filled(batch.points)
        self._handle.colors = linear_bytes(self._filled(batch.colors))
        self._handle.shaft_radius = batch.shaft
        self._handle.head_radius = batch.head
        self._handle.head_length = batch.head_length


class _LineNode(MarkerNode):
    def _add(self, batch: Lines) -> Any:
        colors = linear_bytes(self._filled(batch.colors))
        return self._scene.add_line_segments(
            self._name, self._filled(batch.points), colors, thickness=batch.width
        )

    def _change(self, batch: Lines) -> None:
        self._handle.points = self._filled(batch.points)
        self._handle.colors = linear_bytes(self._filled(batch.colors))
        self._handle.thickness = batch.width


class _DotNode(MarkerNode):
    def _add(self, batch: Dots) -> Any:
        return self._scene.add_point_cloud(
            self._name,
            self._filled(batch.points),
            self._filled(batch.colors),
            point_size=batch.size,
            point_shape='circle',
            precision='float32',
        )

    def _change(self, batch: Dots) -> None:
        self._handle.points = self._filled(batch.points).astype(np.float32)
        self._handle.colors = self._filled(batch.colors)
        self._handle.point_size = batch.size


class _SolidNode(MarkerNode):
    def _count(self, batch: Solids) -> int:
        return len(batch.positions)

    def _add(self, batch: Solids) -> Any:
        shape = _shape(self._kind)
        return self._scene.add_batched_meshes_simple(
            self._name,
            shape.vertices,
            shape.faces,
            self._filled(batch.wxyz),
            self._filled(batch.positions),
            batched_scales=self._sizes(batch),
            batched_colors=self._filled(batch.colors),
            batched_opacities=self._opacities(batch),
            flat_shading=self._kind == 'cubes',
            lod='off',
            cast_shadow=self._shadows,
            receive_shadow=self._shadows,
        )

    def _change(self, batch: Solids) -> None:
        self._handle.batched_wxyzs = self._filled(batch.wxyz)
        self._handle.batched_positions = self._filled(batch.positions)
        self._handle.batched_scales = self._sizes(batch)
        self._handle.batched_colors = self._filled(batch.colors)
        self._handle.batched_opacities = self._opacities(batch)

    def _opacities(self, batch: Solids) -> npt.NDArray[np.float32] | None:
        """None if nothing is transparent: transparent objects are drawn last, without exact occlusion."""
        return None if batch.opacities.min() >= 1.0 else self._filled(batch.opacities).astype(np.float32)

    def _sizes(self, batch: Solids) -> npt.NDArray[np.float32]:
        sizes = np.zeros((self._size, 3), dtype=np.float32)
        sizes[: len(batch.sizes)] = batch.sizes
        return sizes


class _TriangleNode(MarkerNode):
    """A mesh with one colour is changed in place, one with several is rebuilt."""

    def draw(self, batch: Triangles) -> None:
        if len(batch.points) == 0:
            self.hide()
        elif self._handle is None or batch.colors.ndim == 2:
            self.remove()
            self._handle = self._add(batch)
        else:
            vertices, faces = _merged(batch.points)
            self._handle.vertices = vertices.astype(np.float32)
            self._handle.faces = faces.astype(np.uint32)
            self._handle.visible = True

    def _add(self, batch: Triangles) -> Any:
        shadows = self._shadows
        if batch.colors.ndim == 2:
            from trimesh import Trimesh

            faces = np.arange(len(batch.points)).reshape(-1, 3)
            mesh = Trimesh(batch.points, faces, vertex_colors=batch.colors, process=False)
            return self._scene.add_mesh_trimesh(self._name, mesh, cast_shadow=shadows, receive_shadow=shadows)
        vertices, faces = _merged(batch.points)
        alpha = float(batch.colors[3]) / 255.0
        return self._scene.add_mesh_simple(
            self._name,
            vertices,
            faces,
            color=tuple(int(x) for x in batch.colors[:3]),
            opacity=alpha if alpha < 1.0 else None,
            # A mesh that casts shadows would shade itself if it had two sides.
            side='front' if shadows else 'double',
            flat_shading=True,
            cast_shadow=shadows,
            receive_shadow=shadows,
        )


def _merged(points: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Vertices and faces (m, 3) of triangles (3 m, 3); corners at the same place are one."""
    unique, inverse = np.unique(points, axis=0, return_inverse=True)
    return unique, inverse.reshape(-1, 3)


class _TextNode(MarkerNode):
    def draw(self, batch: Text) -> None:
        if self._handle is None:
            self._handle = self._scene.add_label(
                self._name,
                batch.text,
                position=batch.position,
                font_size_mode='scene',
                font_scene_height=max(batch.height, 0.01),
            )
        self._handle.text = batch.text
        self._handle.position = batch.position
        self._handle.visible = True


NODES: dict[type[Batch], type[MarkerNode]] = {
    Arrows: _ArrowNode,
    Lines: _LineNode,
    Dots: _DotNode,
    Solids: _SolidNode,
    Triangles: _TriangleNode,
    Text: _TextNode,
}
