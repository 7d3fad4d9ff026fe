# SPDX-License-Identifier: Apache-2.0
"""Markers in the scene of the page.

Nodes are changed in place. They keep the largest number of items that they ever had: what is not needed is
drawn on top of the first item, or with no size, because a change of the number makes the browser build the
node again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import trimesh

from viewer_node.marker_batches import (
    Arrows,
    Batch,
    Dots,
    Lines,
    Solids,
    Text,
    Triangles,
    batches,
)
from viewer_node.marker_store import MarkerStore
from viewer_node.markers import Marker
from viewer_node.robot_view import safe_name

_SHAPES: dict[str, Callable[[], trimesh.Trimesh]] = {
    'cubes': lambda: trimesh.creation.box(extents=(1.0, 1.0, 1.0)),
    'spheres': lambda: trimesh.creation.icosphere(subdivisions=2, radius=0.5),
    'cylinders': lambda: trimesh.creation.cylinder(radius=0.5, height=1.0, sections=24),
}


class MarkerView:
    """The nodes of all markers of one topic."""

    def __init__(self, scene: Any, path: str, frames: Collection[str], shadows: bool) -> None:
        """Start empty.

        Args:
            scene: of the server.
            path: name of the node that will hold them.
            frames: whose markers are accepted.
            shadows: whether markers cast and receive them; ground does, signs do not.
        """
        self._scene, self._path, self._shadows = scene, path, shadows
        self._store = MarkerStore(frames)
        self._nodes: dict[tuple[str, str], _Node] = {}
        self._hidden: set[str] = set()
        self._highest = 0.0

    @property
    def namespaces(self) -> list[str]:
        """All that were ever seen."""
        return self._store.namespaces

    @property
    def is_empty(self) -> bool:
        """Whether there are no markers."""
        return not any(self._store.markers(namespace) for namespace in self.namespaces)

    @property
    def is_flat(self) -> bool:
        """Whether nothing rises above the plane z = 0, as far as can be seen from points."""
        return self._highest <= 1e-3

    def show(self, namespace: str, visible: bool) -> None:
        """Show or hide the markers of a namespace."""
        (self._hidden.discard if visible else self._hidden.add)(namespace)
        self._store.changed.add(namespace)

    def take(self, markers: Iterable[Marker], now: float) -> list[str]:
        """Take markers; `draw` shows them. Returns a sentence for each one that is not accepted."""
        return self._store.apply(markers, now)

    def draw(self, now: float) -> list[str]:
        """Bring the scene up to date; returns a sentence for each marker that cannot be drawn."""
        self._store.expire(now)
        problems: list[str] = []
        for namespace in sorted(self._store.changed):
            problems += self._draw(namespace)
        if self._store.changed:
            self._highest = self._top()
        self._store.changed.clear()
        return problems

    def _top(self) -> float:
        """Height of the highest marker [m]."""
        markers = [marker for namespace in self.namespaces for marker in self._store.markers(namespace)]
        tops = [
            marker.position[2]
            + (marker.points[:, 2].max() if len(marker.points) else abs(marker.scale[2]) / 2.0)
            for marker in markers
        ]
        return float(max(tops, default=0.0))

    def _draw(self, namespace: str) -> list[str]:
        wanted, problems = batches(self._store.markers(namespace))
        if namespace in self._hidden:
            wanted = {}
        for key, node in list(self._nodes.items()):
            if key[0] == namespace and key[1] not in wanted:
                node.hide()
                if key[1].startswith(('text_', 'painted_', 'mesh_')):  # named after what they showed
                    node.remove()
                    del self._nodes[key]
        for kind, batch in wanted.items():
            key = namespace, kind
            if key not in self._nodes:
                name = f'{self._path}/{safe_name(namespace)}/{kind}'
                self._nodes[key] = _NODES[type(batch)](self._scene, name, kind, self._shadows)
            self._nodes[key].draw(batch)
        return problems


class _Node:
    """One node of the scene, made at the first draw."""

    def __init__(self, scene: Any, name: str, kind: str, shadows: bool) -> None:
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


class _ArrowNode(_Node):
    def _add(self, batch: Arrows) -> Any:
        return self._scene.add_arrows(
            self._name,
            self._filled(batch.points),
            self._filled(batch.colors),
            shaft_radius=batch.shaft,
            head_radius=batch.head,
            head_length=batch.head_length,
        )

    def _change(self, batch: Arrows) -> None:
        self._handle.points = self._filled(batch.points)
        self._handle.colors = self._filled(batch.colors)
        self._handle.shaft_radius = batch.shaft
        self._handle.head_radius = batch.head
        self._handle.head_length = batch.head_length


class _LineNode(_Node):
    def _add(self, batch: Lines) -> Any:
        return self._scene.add_line_segments(
            self._name, self._filled(batch.points), self._filled(batch.colors), thickness=batch.width
        )

    def _change(self, batch: Lines) -> None:
        self._handle.points = self._filled(batch.points)
        self._handle.colors = self._filled(batch.colors)
        self._handle.thickness = batch.width


class _DotNode(_Node):
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


class _SolidNode(_Node):
    def _count(self, batch: Solids) -> int:
        return len(batch.positions)

    def _add(self, batch: Solids) -> Any:
        shape = _SHAPES[self._kind]()
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
        """None if nothing is transparent: what is transparent is drawn last, and hides less well."""
        return None if batch.opacities.min() >= 1.0 else self._filled(batch.opacities).astype(np.float32)

    def _sizes(self, batch: Solids) -> npt.NDArray[np.float32]:
        sizes = np.zeros((self._size, 3), dtype=np.float32)
        sizes[: len(batch.sizes)] = batch.sizes
        return sizes


class _TriangleNode(_Node):
    """A mesh in one colour is changed in place, one with colours is built again."""

    def draw(self, batch: Triangles) -> None:
        if len(batch.points) == 0:
            self.hide()
        elif self._handle is None or batch.colors.ndim == 2:
            self.remove()
            self._handle = self._add(batch)
        else:
            mesh = _merged(batch)
            self._handle.vertices = mesh.vertices.astype(np.float32)
            self._handle.faces = mesh.faces.astype(np.uint32)
            self._handle.visible = True

    def _add(self, batch: Triangles) -> Any:
        mesh = _merged(batch)
        if batch.colors.ndim == 2:
            shadows = self._shadows
            return self._scene.add_mesh_trimesh(self._name, mesh, cast_shadow=shadows, receive_shadow=shadows)
        alpha = float(batch.colors[3]) / 255.0
        return self._scene.add_mesh_simple(
            self._name,
            mesh.vertices,
            mesh.faces,
            color=tuple(int(x) for x in batch.colors[:3]),
            opacity=alpha if alpha < 1.0 else None,
            # A mesh that casts shadows would shade itself if it had two sides.
            side='front' if self._shadows else 'double',
            flat_shading=True,
            cast_shadow=self._shadows,
            receive_shadow=self._shadows,
        )


def _merged(batch: Triangles) -> trimesh.Trimesh:
    """A mesh in which corners at the same place are one, where they have no colours of their own."""
    faces = np.arange(len(batch.points)).reshape(-1, 3)
    if batch.colors.ndim == 2:
        return trimesh.Trimesh(batch.points, faces, vertex_colors=batch.colors, process=False)
    unique, inverse = np.unique(batch.points, axis=0, return_inverse=True)
    return trimesh.Trimesh(unique, inverse.reshape(-1, 3), process=False)


class _TextNode(_Node):
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


_NODES: dict[type[Batch], type[_Node]] = {
    Arrows: _ArrowNode,
    Lines: _LineNode,
    Dots: _DotNode,
    Solids: _SolidNode,
    Triangles: _TriangleNode,
    Text: _TextNode,
}
