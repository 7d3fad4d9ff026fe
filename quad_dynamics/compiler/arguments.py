# SPDX-License-Identifier: Apache-2.0
"""Declares the arrays that a kernel does not validate itself: `array`, `tuple_of`, `each`.

A kernel validates user input itself, and rejects it with a status, because the input may only need a
conversion. Results, workspaces and tables are made by the library. They are declared with the kernel, by
size, and validated on entry: anything but an array, or an array that is too small, raises a TypeError before
the kernel runs.

    @kernel(Robot, INT, OBJECT, array(lambda states, nv: states * nv * nv))
    def mass_matrix(robot, n, q, M): ...

A size is a function whose parameters are matched by name: integer arguments of the kernel, `states` (1 for
n = 0, else n), len_x for a tuple x, and nj, nq, nv, nb of the robot. It is a formula: it runs once, when the
entry point is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Size = Callable[..., Any]

_FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Array:
    """A contiguous array of float64.

    Attributes:
        size: minimum number of elements.
        writeable: whether the kernel writes to it.
        optional: whether None is accepted.
    """

    size: Size
    writeable: bool
    optional: bool


@dataclass(frozen=True)
class ArrayTuple:
    """A tuple of arrays.

    Attributes:
        items: one declaration per array, or a single one for all arrays of a tuple of any length. None: any
            objects; the kernel validates them.
        optional: whether None is accepted.
    """

    items: tuple[Array, ...] | Array | None
    optional: bool = False


def array(size: Size, writeable: bool = True, optional: bool = False) -> Array:
    """An array made by the library."""
    return Array(size, writeable, optional)


def table(size: Size, optional: bool = False) -> Array:
    """An array made by the library that the kernel only reads."""
    return Array(size, writeable=False, optional=optional)


def tuple_of(*items: Array) -> ArrayTuple:
    """A tuple of exactly these arrays."""
    return ArrayTuple(items)


def each(item: Array | None, optional: bool = False) -> ArrayTuple:
    """A tuple of any length; None accepts items of any type."""
    return ArrayTuple(item, optional)


def evaluate(size: Size, names: Mapping[str, Any]) -> Any:
    """Evaluate a size with the given values of its parameters."""
    return size(*(names[name] for name in inspect.signature(size).parameters))


def description(expected: Array | ArrayTuple) -> str:
    """Describe what is expected, for an error message."""
    if isinstance(expected, ArrayTuple):
        if expected.items is None:
            return 'a tuple'
        some = '' if isinstance(expected.items, Array) else f'{len(expected.items)} '
        return f'a tuple of {some}contiguous float64 arrays that are large enough'
    kind = 'writeable, contiguous' if expected.writeable else 'contiguous'
    return f'a {kind} float64 array that is large enough'


def is_good(value: object, expected: Array | ArrayTuple, names: Mapping[str, Any]) -> bool:
    """Whether an argument is as expected, for interpreted kernels."""
    if value is None and expected.optional:
        return True
    if isinstance(expected, Array):
        return (
            type(value) is np.ndarray
            and value.dtype is _FLOAT64
            and value.flags.c_contiguous
            and value.flags.aligned
            and (value.flags.writeable or not expected.writeable)
            and value.size >= evaluate(expected.size, names)
        )
    if not isinstance(value, tuple):
        return False
    if expected.items is None:
        return True
    items: Sequence[Array]
    items = [expected.items] * len(value) if isinstance(expected.items, Array) else expected.items
    return len(value) == len(items) and all(map(lambda one, item: is_good(one, item, names), value, items))
