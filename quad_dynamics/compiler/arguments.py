# SPDX-License-Identifier: Apache-2.0
"""What a kernel expects of the arrays that it does not look into itself: `array`, `tuple_of`, `each`.

A kernel validates what users hand in, and refuses it with a status, for it may only have to be converted.
Results, workspaces and tables are made by the library. They are declared with the kernel, by their sizes, and
checked on the way into it: an array that is not one, or too small, is a TypeError, and nothing has run.

    @kernel(Robot, INT, OBJECT, array(lambda states, nv: states * nv * nv))
    def mass_matrix(robot, n, q, M): ...

A size is a function of numbers that it takes by name: integer arguments of the kernel, `states` (1 for n = 0,
else n), len_x of a tuple x, and nj, nq, nv, nb of the robot. It is a formula: it is run once, when the entry
is made.
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
        size: how many numbers it has at least.
        writeable: whether the kernel writes to it.
        optional: whether None may stand for it.
    """

    size: Size
    writeable: bool
    optional: bool


@dataclass(frozen=True)
class ArrayTuple:
    """A tuple of arrays.

    Attributes:
        items: what is expected of each; a single one goes for all of them, however many there are. None: they
            are of any kind, and the kernel looks at them.
        optional: whether None may stand for it.
    """

    items: tuple[Array, ...] | Array | None
    optional: bool = False


def array(size: Size, writeable: bool = True, optional: bool = False) -> Array:
    """An array that the library makes."""
    return Array(size, writeable, optional)


def table(size: Size, optional: bool = False) -> Array:
    """An array that the library makes, and that the kernel only reads."""
    return Array(size, writeable=False, optional=optional)


def tuple_of(*items: Array) -> ArrayTuple:
    """A tuple of just these arrays."""
    return ArrayTuple(items)


def each(item: Array | None, optional: bool = False) -> ArrayTuple:
    """A tuple of any length; None: of anything."""
    return ArrayTuple(item, optional)


def evaluate(size: Size, names: Mapping[str, Any]) -> Any:
    """A size, from numbers by name."""
    return size(*(names[name] for name in inspect.signature(size).parameters))


def description(expected: Array | ArrayTuple) -> str:
    """What is expected, for a message."""
    if isinstance(expected, ArrayTuple):
        if expected.items is None:
            return 'a tuple'
        some = '' if isinstance(expected.items, Array) else f'{len(expected.items)} '
        return f'a tuple of {some}contiguous float64 arrays that are large enough'
    kind = 'writeable, contiguous' if expected.writeable else 'contiguous'
    return f'a {kind} float64 array that is large enough'


def is_good(value: object, expected: Array | ArrayTuple, names: Mapping[str, Any]) -> bool:
    """Whether an argument is what is expected, for kernels that are interpreted."""
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
