# SPDX-License-Identifier: Apache-2.0
"""A scene without a server: remembers which nodes were added, and what was set on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class FakeNode:
    """A node; its properties are attributes, as those of viser's handles are."""

    def __init__(self, scene: FakeScene, kind: str, name: str, **properties: Any) -> None:
        self.scene, self.kind, self.name = scene, kind, name
        self.visible = True
        for key, value in properties.items():
            setattr(self, key, value)

    def remove(self) -> None:
        """Take it and all below it out of the scene."""
        for name in [name for name in self.scene.nodes if (name + '/').startswith(self.name + '/')]:
            del self.scene.nodes[name]


class FakeScene:
    """All nodes by name.

    Attributes:
        nodes: that are there.
        added: names, in the order in which nodes were added.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, FakeNode] = {}
        self.added: list[str] = []

    def __getattr__(self, method: str) -> Callable[..., FakeNode]:
        kind = method.removeprefix('add_')
        names = {
            'glb': ('glb_data',),
            'arrows': ('points', 'colors'),
            'line_segments': ('points', 'colors'),
            'point_cloud': ('points', 'colors'),
            'mesh_simple': ('vertices', 'faces'),
            'mesh_trimesh': ('mesh',),
            'label': ('text',),
            'batched_meshes_simple': ('vertices', 'faces', 'batched_wxyzs', 'batched_positions'),
        }.get(kind, ())

        def add(name: str, *values: Any, **properties: Any) -> FakeNode:
            properties |= dict(zip(names, values, strict=True))
            self.added.append(name)
            self.nodes[name] = FakeNode(self, kind, name, **properties)
            return self.nodes[name]

        return add
