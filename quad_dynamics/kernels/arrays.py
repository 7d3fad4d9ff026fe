# SPDX-License-Identifier: Apache-2.0
"""How arrays of Python reach a kernel: as the objects that they are.

A kernel is called with the arrays themselves, and looks into them for what it needs. Numba would take a
record of each array and hold a reference to it, 40 ns an array; to check type and shape in Python costs as
much again. With both, a call would take longer than the computation. What is read here is the public head of
NumPy's array object (PyArrayObject_fields in its C header), which is part of its binary interface;
`check_layout` makes sure of it, once, before the first kernel runs.

The addresses of what an object may be (the array type, the float64 type, None) stand in the header of the
arena.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from quad_dynamics.kernels.trace import formula, load_int, memory_at, routine
from quad_dynamics.kernels.types import Address, Bool, Int, Object
from quad_dynamics.model import layout as L

_WORD = 8
_HEAD = object.__basicsize__  # every Python object begins with this; its type is the last word of it
_TYPE = _HEAD - _WORD
_DATA, _NDIM, _SHAPE, _DTYPE, _FLAGS = (_HEAD + _WORD * i for i in (0, 1, 2, 5, 6))
_CONTIGUOUS_ALIGNED = 0x0101


@formula
def word(obj: Object | Int, offset: Int) -> Int:
    """The 64 bits at an offset [bytes] in an object."""
    return load_int(memory_at(obj + offset), 0)


@formula
def data(array: Object) -> Address:
    """The numbers of an array."""
    return memory_at(word(array, _DATA))


@routine
def is_none(A: Address, obj: Object) -> Bool:
    """Whether an argument is None."""
    return obj_address(obj) == load_int(A, L.NONE_OBJECT)


@formula
def obj_address(obj: Object) -> Int:
    """The address of an object, as an integer."""
    return obj + 0


@routine
def is_array(A: Address, obj: Object, ndim: Int) -> Bool:
    """Whether an argument is a contiguous array of float64 with ndim dimensions."""
    if word(obj, _TYPE) != load_int(A, L.ARRAY_TYPE) or word(obj, _DTYPE) != load_int(A, L.FLOAT64_DTYPE):
        return False
    # the number of dimensions and the flags are ints of 32 bits
    return (word(obj, _NDIM) & 0xFFFFFFFF) == ndim and (
        word(obj, _FLAGS) & _CONTIGUOUS_ALIGNED
    ) == _CONTIGUOUS_ALIGNED


@routine
def extent(obj: Object, axis: Int) -> Int:
    """Length of an array along an axis."""
    return word(word(obj, _SHAPE), 8 * axis)


@functools.cache
def check_layout() -> None:
    """Make sure that arrays look as this module thinks, on an example; raises RuntimeError if not."""
    example = np.arange(6.0).reshape(2, 3)

    def at(offset: int) -> int:
        return ctypes.c_int64.from_address(id(example) + offset).value

    shape = (ctypes.c_int64 * 2).from_address(at(_SHAPE))
    found = (
        at(_TYPE),
        at(_DATA),
        at(_NDIM) & 0xFFFFFFFF,
        tuple(shape),
        at(_DTYPE),
        at(_FLAGS) & _CONTIGUOUS_ALIGNED,
    )
    dtype = id(np.dtype(np.float64))
    expected = (id(np.ndarray), example.ctypes.data, 2, (2, 3), dtype, _CONTIGUOUS_ALIGNED)
    if found != expected:
        raise RuntimeError(
            f'quad_dynamics does not know how NumPy {np.__version__} lays out its arrays on this Python: '
            f'expected {expected}, found {found}'
        )
