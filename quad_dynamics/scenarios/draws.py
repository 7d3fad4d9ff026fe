# SPDX-License-Identifier: Apache-2.0
"""Random values in a scenario: `{uniform: [low, high]}` and `{uniform: [[low, high], ...]}`.

The value drawn for a key of a file depends only on the seed and the key: other random values, their order and
the duration of the scenario do not change it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from quad_dynamics.parameters.parameter import show

UNIFORM = 'uniform'
# From a key and its lower and upper bounds to values.
Draw = Callable[[str, list[float], list[float]], list[float]]


def generator(seed: int, name: str) -> np.random.Generator:
    """The random number generator of one key."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def at_random(seed: int) -> Draw:
    """Draws of a seed."""
    return lambda name, low, high: generator(seed, name).uniform(low, high).tolist()


def at_low_end(name: str, low: list[float], high: list[float]) -> list[float]:
    """The smallest values."""
    return low


def at_high_end(name: str, low: list[float], high: list[float]) -> list[float]:
    """The largest values."""
    return high


def drawn(value: Any, name: str, draw: Draw) -> Any:
    """The value with all random values in it drawn.

    Args:
        value: as in a YAML file.
        name: its key.
        draw: draws the random values.
    """
    if isinstance(value, Mapping):
        if UNIFORM in value:
            ranges = _ranges(value)
            return value if ranges is None else _as_given(value[UNIFORM], draw(name, *ranges))
        return {key: drawn(item, f'{name}.{key}', draw) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [drawn(item, f'{name}[{i}]', draw) for i, item in enumerate(value)]
    return value


def wrong_draws(value: Any, name: str) -> list[str]:
    """Problems with the random values in a value, one text each, which starts with the key."""
    if isinstance(value, Mapping):
        if UNIFORM in value and _ranges(value) is None:
            expected = (
                'uniform: [low, high] or uniform: [[low, high], ...], with low <= high, and no other key'
            )
            return [f'{name} is {show(dict(value))}; expected {expected}']
        return [text for key, item in value.items() for text in wrong_draws(item, f'{name}.{key}')]
    if isinstance(value, (list, tuple)):
        return [text for i, item in enumerate(value) for text in wrong_draws(item, f'{name}[{i}]')]
    return []


def _ranges(value: Mapping[str, Any]) -> tuple[list[float], list[float]] | None:
    """Lower and upper bounds, or None if it is not a range."""
    given = value[UNIFORM]
    if len(value) != 1 or not isinstance(given, (list, tuple)) or not given:
        return None
    pairs = given if isinstance(given[0], (list, tuple)) else [given]
    if not all(_is_range(pair) for pair in pairs):
        return None
    return [float(low) for low, _ in pairs], [float(high) for _, high in pairs]


def _is_range(pair: Any) -> bool:
    return (
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x) for x in pair)
        and pair[0] <= pair[1]
    )


def _as_given(given: Any, values: list[float]) -> float | list[float]:
    return values if isinstance(given[0], (list, tuple)) else values[0]
