# SPDX-License-Identifier: Apache-2.0
"""From markers to arrays that can be drawn, all markers of a kind and namespace at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quad_dynamics.array_types import Bytes, Floats
from viewer_node.markers import Marker

# Types of visualization_msgs/Marker.
ARROW, CUBE, SPHERE, CYLINDER, LINE_STRIP, LINE_LIST = 0, 1, 2, 3, 4, 5
CUBE_LIST, SPHERE_LIST, POINTS, TEXT, TRIANGLE_LIST = 6, 7, 8, 9, 11
SOLIDS = {CUBE: 'cubes', SPHERE: 'spheres', CYLINDER: 'cylinders', CUBE_LIST: 'cubes', SPHERE_LIST: 'spheres'}
_LISTS = (CUBE_LIST, SPHERE_LIST)
_MOST_POINTS = 3_000_000  # of one marker
_UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
_HEAD = (2.0, 0.3)  # of an arrow: diameter over that of the shaft, length over its own


class MarkerError(Exception):
    """A marker cannot be drawn; the message names it and the reason."""


@dataclass(frozen=True)
class Arrows:
    """Arrows from points (n, 0) to points (n, 1) of (n, 2, 3) [m]; colours (n, 3)."""

    points: Floats
    colors: Bytes
    shaft: float
    head: float
    head_length: float


@dataclass(frozen=True)
class Solids:
    """Bodies of one shape: positions (n, 3) [m], orientations (n, 4) w x y z, sizes (n, 3) [m]."""

    positions: Floats
    wxyz: Floats
    sizes: Floats
    colors: Bytes
    opacities: Floats


@dataclass(frozen=True)
class Lines:
    """Segments (n, 2, 3) [m] with colours (n, 2, 3)."""

    points: Floats
    colors: Bytes
    width: float


@dataclass(frozen=True)
class Dots:
    """Points (n, 3) [m] with colours (n, 3)."""

    points: Floats
    colors: Bytes
    size: float


@dataclass(frozen=True)
class Triangles:
    """Corners (3 n, 3) [m]; colours (4,) of all, or (3 n, 4)."""

    points: Floats
    colors: Bytes


@dataclass(frozen=True)
class Text:
    """A text that faces the viewer."""

    position: Floats
    text: str
    height: float


Batch = Arrows | Solids | Lines | Dots | Triangles | Text


def batches(markers: Sequence[Marker]) -> tuple[dict[str, Batch], list[str]]:
    """Batches to draw for the markers of one namespace.

    Args:
        markers: valid or invalid.

    Returns:
        batches by a name of their kind; and a message for each marker that cannot be drawn.
    """
    kinds: dict[str, list[Any]] = {}
    problems = []
    for marker in markers:
        try:
            kind, part = _part(marker)
        except MarkerError as error:
            problems.append(str(error))
            continue
        kinds.setdefault(kind, []).append(part)
    return {kind: _joined(parts) for kind, parts in kinds.items()}, problems


def _part(marker: Marker) -> tuple[str, Batch]:
    """The batch of one marker, and a name of its kind."""
    if marker.type in SOLIDS:
        return SOLIDS[marker.type], _solids(marker)
    makers: dict[int, tuple[str, Callable[[Marker], Batch]]] = {
        ARROW: ('arrows', _arrow),
        LINE_STRIP: ('lines', _lines),
        LINE_LIST: ('lines', _lines),
        POINTS: ('dots', _dots),
        TRIANGLE_LIST: ('triangles', _triangles),
        TEXT: ('text', _text),
    }
    if marker.type not in makers:
        raise MarkerError(f'{marker} has type {marker.type}, which is not supported')
    kind, make = makers[marker.type]
    made = make(marker)
    if isinstance(made, Text):
        kind = f'text_{marker.id}'
    if isinstance(made, Triangles):  # one mesh has one colour, or one for each corner
        kind = f'mesh_{made.colors.tobytes().hex()}' if made.colors.ndim == 1 else f'painted_{marker.id}'
    return kind, made


def _joined(parts: list[Any]) -> Batch:
    """One batch of several of the same kind."""
    first = parts[0]
    if len(parts) == 1 or isinstance(first, Text):
        return first  # type: ignore[no-any-return]
    if isinstance(first, Triangles):
        return Triangles(np.concatenate([part.points for part in parts]), first.colors)
    values = {}
    for field in first.__dataclass_fields__:
        all_of = [getattr(part, field) for part in parts]
        values[field] = np.concatenate(all_of) if isinstance(all_of[0], np.ndarray) else max(all_of)
    return type(first)(**values)  # type: ignore[no-any-return]


# ---- one marker


def _arrow(marker: Marker) -> Arrows:
    scale = _scale(marker)
    color, _ = _color(marker)
    if len(marker.points) not in (0, 2):
        raise MarkerError(f'{marker} is an arrow with {len(marker.points)} points; expected 0 or 2')
    if len(marker.points) == 2:
        points = _points(marker)[None]
        shaft, head, head_length = scale
    else:
        points = _placed(marker, np.array([[0.0, 0.0, 0.0], [scale[0], 0.0, 0.0]]))[None]
        shaft, head, head_length = scale[1], 0.0, 0.0
    length = math.dist(points[0, 0], points[0, 1])
    return Arrows(
        points, color[None], shaft / 2.0, (head or _HEAD[0] * shaft) / 2.0, head_length or _HEAD[1] * length
    )


def _solids(marker: Marker) -> Solids:
    is_list = marker.type in _LISTS
    positions = _points(marker) if is_list else _pose(marker)[0][None]
    n = len(positions)
    wxyz = np.tile(_pose(marker)[1], (n, 1))
    colors, alphas = _colors(marker, n) if is_list else _repeat(_color(marker), n)
    return Solids(positions, wxyz, np.tile(_scale(marker), (n, 1)), colors, alphas)


def _lines(marker: Marker) -> Lines:
    points = _points(marker)
    n = len(points)
    colors, _ = _colors(marker, n)
    if marker.type == LINE_STRIP:
        pairs = np.stack([np.arange(max(n - 1, 0)), np.arange(1, max(n, 1))], axis=1)
    else:
        if n % 2:
            raise MarkerError(f'{marker} is a LINE_LIST with {n} points; expected an even number')
        pairs = np.arange(n).reshape(-1, 2)
    return Lines(points[pairs], colors[pairs], float(_scale(marker)[0]))


def _dots(marker: Marker) -> Dots:
    points = _points(marker)
    return Dots(points, _colors(marker, len(points))[0], float(_scale(marker)[0]))


def _triangles(marker: Marker) -> Triangles:
    points = _points(marker, _scale(marker))
    if len(points) % 3:
        raise MarkerError(f'{marker} is a TRIANGLE_LIST with {len(points)} points; expected a multiple of 3')
    if len(marker.colors) == 0:
        color, alpha = _color(marker)
        return Triangles(points, np.append(color, np.uint8(round(255.0 * alpha))))
    each = max(1, len(points) // max(len(marker.colors), 1))  # a colour for each corner, or for each triangle
    rgba = np.repeat(_rgba(marker.colors), each, axis=0)
    if len(rgba) != len(points):
        n = len(marker.colors)
        raise MarkerError(f'{marker} has {n} colors; expected {len(points)} or {len(points) // 3}')
    return Triangles(points, rgba)


def _text(marker: Marker) -> Text:
    return Text(_pose(marker)[0], str(marker.text)[:200], float(_scale(marker)[2]))


# ---- fields of a marker


def _pose(marker: Marker) -> tuple[Floats, Floats]:
    """Position (3,) and orientation (4,) w x y z; an orientation of zeros means none, as in RViz."""
    if not (_is_finite(marker.position) and _is_finite(marker.wxyz)):
        raise MarkerError(f'{marker} has a pose that is not finite')
    norm = math.sqrt(float(marker.wxyz @ marker.wxyz))
    return marker.position, _UPRIGHT if norm < 1e-6 else marker.wxyz / norm


def _points(marker: Marker, scale: Floats | None = None) -> Floats:
    """Points (n, 3) of the marker in its frame."""
    if len(marker.points) > _MOST_POINTS:
        raise MarkerError(f'{marker} has {len(marker.points)} points; expected at most {_MOST_POINTS}')
    if not _is_finite(marker.points):
        raise MarkerError(f'{marker} has points that are not finite')
    return _placed(marker, marker.points if scale is None else marker.points * scale)


def _placed(marker: Marker, points: Floats) -> Floats:
    position, (w, x, y, z) = _pose(marker)
    if abs(w) == 1.0:
        return points + position
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.asarray(points @ R.T + position)


def _scale(marker: Marker) -> Floats:
    if not _is_finite(marker.scale):
        raise MarkerError(f'{marker} has a scale that is not finite')
    return marker.scale


def _is_finite(values: Floats) -> bool:
    # The sum of finite numbers is finite, or they are too large to be drawn.
    return math.isfinite(values.sum())


def _color(marker: Marker) -> tuple[Bytes, float]:
    rgba = _rgba(marker.rgba)
    return rgba[:3], float(rgba[3]) / 255.0


def _colors(marker: Marker, n: int) -> tuple[Bytes, Floats]:
    """Colours (n, 3) and opacities (n,), one for each point or the same for all."""
    if len(marker.colors) == 0:
        return _repeat(_color(marker), n)
    if len(marker.colors) != n:
        raise MarkerError(f'{marker} has {len(marker.colors)} colors; expected {n}, one per point')
    rgba = _rgba(marker.colors)
    return rgba[:, :3], rgba[:, 3] / 255.0


def _repeat(color: tuple[Bytes, float], n: int) -> tuple[Bytes, Floats]:
    return np.repeat(color[0][None], n, axis=0), np.full(n, color[1])


def _rgba(values: Floats) -> Bytes:
    """From 0 to 255."""
    return np.fmin(np.fmax(values * 255.0 + 0.5, 0.0), 255.0).astype(np.uint8)
