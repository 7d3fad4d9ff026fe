# SPDX-License-Identifier: Apache-2.0
"""Named terrains. They are level around the origin, and deterministic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches

import numpy as np

from quad_dynamics.terrain.terrain_shapes import Box, HeightMap, Plane, Shape, Stairs


def flat() -> tuple[Shape, ...]:
    """A level plane at height zero."""
    return (Plane(),)


def slope() -> tuple[Shape, ...]:
    """A plane that rises by 15 degrees towards +x."""
    return (Plane(pitch=-math.radians(15.0)),)


def stairs() -> tuple[Shape, ...]:
    """Five steps of 6 cm up and down again, ahead of the origin."""
    return (Plane(), Stairs(0.06, 0.3, 5, width=2.0, position=(0.6, 0.0, 0.0), landing=1.0, down=True))


def boxes() -> tuple[Shape, ...]:
    """Boxes of 2 to 6 cm height, rotated and tilted, on a level plane, with free space at the origin."""
    rng = np.random.default_rng(1)
    found: list[Shape] = [Plane()]
    for x in np.arange(-1.5, 3.1, 0.5):
        for y in np.arange(-1.5, 1.6, 0.5):
            size = (*rng.uniform(0.2, 0.4, 2), 0.2)
            top, yaw = rng.uniform(0.02, 0.06), rng.uniform(-np.pi, np.pi)
            roll, pitch = rng.uniform(-0.1, 0.1, 2)
            if max(abs(x), abs(y)) > 0.6:
                found.append(Box(size, (x, y, top - 0.1), (roll, pitch, yaw)))
    return tuple(found)


def rough() -> tuple[Shape, ...]:
    """Hills up to 6 cm high, 8 m x 8 m, that fade into a level plane at their boundary and at the origin."""
    rng = np.random.default_rng(2)
    grid = np.linspace(-4.0, 4.0, 161)
    x, y = np.meshgrid(grid, grid)
    waves = np.zeros_like(x)
    for _ in range(24):
        length, angle, phase = (
            rng.uniform(0.3, 1.2),
            rng.uniform(0.0, 2.0 * np.pi),
            rng.uniform(0.0, 2.0 * np.pi),
        )
        waves += np.sin(2.0 * np.pi / length * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    waves = (waves - waves.min()) / np.ptp(waves)
    rim = np.clip(4.0 - np.maximum(abs(x), abs(y)), 0.0, 1.0)
    middle = np.clip(np.hypot(x, y) - 0.5, 0.0, 1.0)
    return (Plane(), HeightMap(0.06 * waves * rim * middle, 0.05))


NAMES: Mapping[str, Callable[[], tuple[Shape, ...]]] = {
    'flat': flat,
    'slope': slope,
    'stairs': stairs,
    'boxes': boxes,
    'rough': rough,
}


def unknown_name(name: str) -> str:
    """Error message for an unknown name."""
    near = get_close_matches(name.lower(), NAMES, 1)
    hint = f"did you mean '{near[0]}'? " if near else ''
    shown = name if len(name) <= 80 else name[:77] + '...'
    return f"unknown terrain '{shown}'; {hint}expected one of {', '.join(NAMES)}"
