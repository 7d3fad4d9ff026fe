# SPDX-License-Identifier: Apache-2.0
"""Validation of terrain descriptions: each check returns the value to keep, or raises `WrongValueError`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.urdf import Vector3

# A larger length is an error, and its square could overflow in the kernels.
_LARGEST = 1e6

Check = Callable[[Any], Any]


class WrongValueError(ValueError):
    """An unexpected value; the message gives the expected one."""


def number(
    low: float = -_LARGEST, high: float = _LARGEST, above: float | None = None, what: str = ''
) -> Check:
    """A check for a finite number in [low, high], or above a limit.

    Args:
        low: the lowest.
        high: the highest.
        above: the number must be above this one.
        what: expected value, for the message; '': 'a finite number'.
    """

    def check(value: Any) -> float:
        if not _is_number(value):
            raise WrongValueError(what or 'a finite number')
        if not low <= value <= high or (above is not None and value <= above):
            raise WrongValueError(what or f'a number from {low:g} to {high:g}')
        return float(value)

    return check


def optional(inner: Check) -> Check:
    """A check that accepts None."""
    return lambda value: None if value is None else inner(value)


def count(value: Any) -> int:
    """An integer from 1 to 1000."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 1 <= value <= 1000:
        raise WrongValueError('a whole number from 1 to 1000')
    return int(value)


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise WrongValueError('true or false')
    return bool(value)


def vector(value: Any) -> Vector3:
    """Three finite numbers."""
    return _three(value, '3 finite numbers')


def lengths(value: Any) -> Vector3:
    """Three numbers above 0."""
    expected = '3 numbers above 0'
    found = _three(value, expected)
    if min(found) <= 0.0:
        raise WrongValueError(expected)
    return found


def direction(value: Any) -> Vector3:
    """Three numbers that are not all zero, normalised to a unit vector."""
    x, y, z = _three(value, '3 finite numbers')
    length = math.sqrt(x * x + y * y + z * z)
    if length < 1e-9:
        raise WrongValueError('a nonzero direction')
    return x / length, y / length, z / length


def _three(value: Any, expected: str) -> Vector3:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or len(value) != 3 or not all(map(_is_number, value)):
        raise WrongValueError(expected)
    return float(value[0]), float(value[1]), float(value[2])


def _is_number(value: Any) -> bool:
    """Whether it is a finite number of reasonable size; booleans are not numbers."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and abs(value) <= _LARGEST


def show(value: Any) -> str:
    """A value for a message, shortened; paths are shown in full."""
    if isinstance(value, os.PathLike):
        return f"'{os.fspath(value)}'"
    text = ' '.join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + '...'


def error_of(source: str, problems: Sequence[str]) -> ArgumentError:
    """An error with all problems of a source."""
    if len(problems) == 1:
        return ArgumentError(f'{source}: {problems[0]}')
    lines = '\n'.join(f'  - {problem}' for problem in problems)
    return ArgumentError(f'{source}: {len(problems)} problems:\n{lines}')
