# SPDX-License-Identifier: Apache-2.0
"""Markers in the scene of the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from viewer_node.marker_batches import batches
from viewer_node.marker_nodes import NODES, MarkerNode
from viewer_node.marker_store import MarkerStore
from viewer_node.markers import Marker
from viewer_node.robot_view import safe_name


class MarkerView:
    """The nodes of all markers of one topic."""

    def __init__(self, scene: Any, path: str, frames: Collection[str], shadows: bool) -> None:
        """Start empty.

        Args:
            scene: of the server.
            path: name of the node that will hold them.
            frames: whose markers are accepted.
            shadows: whether markers cast and receive shadows, as terrain does.
        """
        self._scene, self._path, self._shadows = scene, path, shadows
        self._store = MarkerStore(frames)
        self._nodes: dict[tuple[str, str], MarkerNode] = {}
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
        """Take markers; `draw` shows them. Returns a message for each rejected marker."""
        return self._store.apply(markers, now)

    def draw(self, now: float) -> list[str]:
        """Update the scene; returns a message for each marker that cannot be drawn."""
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
                self._nodes[key] = NODES[type(batch)](self._scene, name, kind, self._shadows)
            self._nodes[key].draw(batch)
        return problems
