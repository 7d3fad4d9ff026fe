# SPDX-License-Identifier: Apache-2.0
"""The ground: an immutable combination of solid shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.validation import check_finite, to_floats
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.terrain import ground as K
from quad_dynamics.terrain.terrain_checks import error_of, show
from quad_dynamics.terrain.terrain_mesh import mesh_of
from quad_dynamics.terrain.terrain_names import NAMES, unknown_name
from quad_dynamics.terrain.terrain_reader import read_file, read_shapes
from quad_dynamics.terrain.terrain_shapes import Box, HeightMap, Plane, Shape, Stairs

__all__ = ['Box', 'HeightMap', 'Plane', 'Stairs', 'Terrain', 'TerrainSource']

# A plane whose normal points sideways or down is not ground.
_WALL = 1e-9


@dataclass(frozen=True)
class Terrain:
    """The ground: solid shapes, which may overlap.

    A point is in contact with one shape at a time, even where shapes overlap. See docs/terrain.md for the
    rules.

    Attributes:
        shapes: Plane, Box, Stairs and HeightMap.
        name: its source.
    """

    shapes: tuple[Shape, ...]
    name: str = field(default='', compare=False)

    def __post_init__(self) -> None:
        shapes = (self.shapes,) if isinstance(self.shapes, Shape) else self.shapes
        if not isinstance(shapes, Sequence) or not shapes or not all(isinstance(s, Shape) for s in shapes):
            raise ArgumentError(
                f'shapes is {show(shapes)}; expected at least one Plane, Box, Stairs or HeightMap'
            )
        object.__setattr__(self, 'shapes', tuple(shapes))

    # ---- constructors

    @staticmethod
    def names() -> tuple[str, ...]:
        """Names accepted by `named`."""
        return tuple(NAMES)

    @classmethod
    def named(cls, name: str) -> Terrain:
        """A named terrain: 'flat', 'slope', 'stairs', 'boxes' or 'rough'.

        Raises:
            ArgumentError: the name is unknown.
        """
        if not isinstance(name, str) or name not in NAMES:
            raise ArgumentError(unknown_name(str(name)))
        return cls(NAMES[name](), name)

    @classmethod
    def load(cls, source: TerrainSource, folder: str | os.PathLike[str] = '.') -> Terrain:
        """A terrain from any kind of description.

        Args:
            source: a name, the path of a YAML file, a mapping as in such a file, a terrain, a shape, or a
                list of shapes, mappings and names.
            folder: base of relative paths. Paths in a YAML file are relative to the file.

        Raises:
            ArgumentError: the description is invalid; lists all problems.
        """
        if isinstance(source, Terrain):
            return source
        if isinstance(source, Shape):
            return cls((source,))
        if isinstance(source, (str, os.PathLike)):
            return cls._from_text(source, Path(folder))
        if isinstance(source, (Mapping, list, tuple)):
            return cls(read_shapes(source, 'terrain', folder))
        raise ArgumentError(
            f'terrain has type {type(source).__name__}; '
            'expected a name, a path, a mapping, a Terrain or shapes'
        )

    @classmethod
    def _from_text(cls, source: str | os.PathLike[str], folder: Path) -> Terrain:
        text = os.fspath(source)
        if isinstance(source, str) and text in NAMES:
            return cls.named(text)
        path = folder / text
        is_path = isinstance(source, os.PathLike) or path.suffix.lower() in {'.yaml', '.yml'}
        if not is_path and not (text and os.path.lexists(path)):
            raise ArgumentError(f'{unknown_name(text)}, or the path of a YAML file')
        return cls(read_file(path), text)

    # ---- the form that the kernels read

    @property
    def parts(self) -> tuple[Plane | Box | HeightMap, ...]:
        """The simple shapes: stairs as boxes, and all others."""
        return tuple(part for shape in self.shapes for part in shape.parts())

    def pack(self, mu: float = 0.5, restitution: float = 0.0) -> Floats:
        """The array that the kernels read (see `quad_dynamics.kernels.terrain.ground`).

        Args:
            mu: friction of shapes without their own.
            restitution: restitution of shapes without their own.

        Raises:
            ArgumentError: a negative friction, or a restitution that is not in [0, 1].
        """
        kept, problems = Shape.check({'mu': mu, 'restitution': restitution})
        if problems or None in kept.values():
            raise error_of('Terrain.pack', problems or ['mu or restitution is None; expected a number'])
        parts = self.parts
        at = K.Ground.words + len(parts) * K.Shape.words
        words = np.zeros(at)
        ground = K.Ground.array(words)
        ground['count'] = len(parts)
        ground['maps'] = sum(isinstance(part, HeightMap) for part in parts)
        for to, part in zip(K.Shape.array(words, K.Ground.words, len(parts)), parts, strict=True):
            _fill(to, part, at)
            to['mu'] = kept['mu'] if part.mu is None else part.mu
            to['restitution'] = kept['restitution'] if part.restitution is None else part.restitution
            at += part.grid.size if isinstance(part, HeightMap) else 0
        heights = [part.grid.ravel() for part in parts if isinstance(part, HeightMap)]
        return np.concatenate([words, *heights])

    @cached_property
    def _packed(self) -> Floats:
        return self.pack()

    # ---- queries

    def height(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Any:
        """Height of the ground: the highest surface at a point; -inf if there is none.

        Args:
            x: any shape [m].
            y: likewise.

        Returns:
            A number, or an array of the shape to which x and y broadcast [m].
        """
        points = np.broadcast_arrays(to_floats('x', x), to_floats('y', y))
        heights = np.full(points[0].shape, -np.inf)
        for part in self.parts:
            heights = np.maximum(heights, _top(part, *points))
        return float(heights) if heights.ndim == 0 else heights

    def distance(self, points: npt.ArrayLike, radius: float = 0.0) -> tuple[Floats, Floats]:
        """Distances of spheres from the ground, as in the simulator.

        Args:
            points: (..., 3) centres of spheres in the world [m].
            radius: of the spheres [m].

        Returns:
            Distance (...), negative inside [m], and normal (..., 3), a unit vector out of the ground.

        Raises:
            ArgumentError: a wrong shape, or a value that is not finite.
        """
        found = self._ground(points, radius, self._packed)
        return found[..., 0], found[..., 1:4]

    def _ground(self, points: npt.ArrayLike, radius: float, packed: Floats) -> Floats:
        """Distance, normal (3), friction and restitution of points (..., 3)."""
        p = to_floats('points', points)
        if p.ndim == 0 or p.shape[-1] != 3:
            raise ArgumentError(f'points has the shape {p.shape}; expected (..., 3)')
        check_finite('points', p)
        r = float(to_floats('radius', radius))
        if not 0.0 <= r < np.inf:
            raise ArgumentError(f'radius is {radius!r}; expected a number of at least 0')
        out = np.empty((*p.shape[:-1], K.GROUND_WORDS))
        K.ground_distances.run(p.size // 3, r, p, packed, out)
        return out

    def mesh(self, plane_size: float = 20.0) -> tuple[Floats, Ints]:
        """Triangles for viewers.

        Args:
            plane_size: edge of the square that represents a plane, around its point [m].

        Returns:
            Vertices (n, 3) [m] and triangles (m, 3) of their indices, counterclockwise seen from outside.
        """
        vertices, faces, n = [], [], 0
        for part in self.parts:
            x, triangles = mesh_of(part, plane_size)
            vertices.append(x)
            faces.append(triangles + n)
            n += len(x)
        return np.concatenate(vertices), np.concatenate(faces)


TerrainSource = str | os.PathLike[str] | Mapping[str, Any] | Terrain | Shape | Sequence[Any]


def _fill(to: Any, part: Plane | Box | HeightMap, heights_at: int) -> None:
    """Fill a `kernels.terrain.ground.Shape`, without friction and restitution."""
    origin = np.array(part.point if isinstance(part, Plane) else part.position)
    to['origin'], to['axes'], to['bound'] = origin, part.R_WS.ravel(), K.FAR
    if isinstance(part, Plane):
        to['kind'], to['level'] = K.PLANE, part.R_WS[:, 2] @ origin
    elif isinstance(part, Box):
        half = 0.5 * np.array(part.size)
        to['kind'], to['half'], to['bound'] = K.BOX, half, np.linalg.norm(half)
    else:
        to['kind'] = K.HEIGHTS
        to['map']['columns'], to['map']['rows'] = part.grid.shape[::-1]
        to['map']['spacing'], to['map']['heights'] = part.spacing, heights_at


def _top(part: Plane | Box | HeightMap, x: Floats, y: Floats) -> Floats:
    """Height of the top of a shape; -inf outside of it."""
    R, origin = part.R_WS, part.point if isinstance(part, Plane) else part.position
    x, y = x - origin[0], y - origin[1]
    if isinstance(part, Plane):
        if R[2, 2] < _WALL:
            return np.full(x.shape, -np.inf)
        return np.asarray(origin[2] - (R[0, 2] * x + R[1, 2] * y) / R[2, 2])
    local = np.stack([x, y], axis=-1) @ R[:2]
    return origin[2] + (_box_top(part, local, R[2]) if isinstance(part, Box) else _map_top(part, local))


def _box_top(box: Box, local: Floats, up: Floats) -> Floats:
    """Where a vertical line leaves a box: the line is local + t up, in the box's axes."""
    half = 0.5 * np.array(box.size)
    with np.errstate(divide='ignore', invalid='ignore'):
        ends = np.stack([(-half - local) / up, (half - local) / up])
    # if the line is parallel to a face, it is within its slab for all t, or for none
    within = np.abs(local) <= half
    low = np.where(up == 0.0, np.where(within, -np.inf, np.inf), ends.min(axis=0)).max(axis=-1)
    high = np.where(up == 0.0, np.where(within, np.inf, -np.inf), ends.max(axis=0)).min(axis=-1)
    return np.where(low <= high, high, -np.inf)


def _map_top(part: HeightMap, local: Floats) -> Floats:
    """Bilinear height of a map; -inf outside of it."""
    heights, half = part.grid, np.array(part.half)
    count = np.array(heights.shape[::-1])
    u = np.clip((local[..., :2] + half) / part.spacing, 0.0, count - 1.0)
    cell = np.minimum(u.astype(np.int64), count - 2)
    (i, j), (a, b) = np.moveaxis(cell, -1, 0), np.moveaxis(u - cell, -1, 0)
    low = (1.0 - a) * heights[j, i] + a * heights[j, i + 1]
    high = (1.0 - a) * heights[j + 1, i] + a * heights[j + 1, i + 1]
    return np.where(np.all(np.abs(local[..., :2]) <= half, axis=-1), (1.0 - b) * low + b * high, -np.inf)
