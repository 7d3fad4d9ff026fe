# SPDX-License-Identifier: Apache-2.0
"""How arrays of Python reach a kernel: as the objects that they are.

A kernel is called with the arrays themselves, and looks into them for what it needs. Numba would take a
record of each array and hold a reference to it, 40 ns an array; to check type and shape in Python costs as
much again. With both, a call would take longer than the computation. What is read here is the public head of
NumPy's array object (PyArrayObject_fields in its C header), which is part of its binary interface;
`check_layout` makes sure of it, once, before the first kernel runs.

The addresses of what an object may be (the array type, the float64 and bool types, None) stand in the header
of the memory that every kernel gets, see `header`.

Several arrays come as a tuple, which the public functions make: kernels do not check that it is one.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from quad_dynamics.compiler.header import Header
from quad_dynamics.compiler.trace import formula, load_byte, load_int, memory_at, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Object

_WORD = 8
_HEAD = object.__basicsize__  # every Python object begins with this; its type is the last word of it
_TYPE = _HEAD - _WORD
DATA, _NDIM, _SHAPE, _DTYPE, _FLAGS = (_HEAD + _WORD * i for i in (0, 1, 2, 5, 6))
_CONTIGUOUS_ALIGNED = 0x0101
_WRITEABLE = 0x0400
_SIZE, _ITEMS = _HEAD, tuple.__basicsize__  # of a tuple


@formula
def word(obj: Object | Int, offset: Int) -> Int:
    """The 64 bits at an offset [bytes] in an object."""
    return load_int(memory_at(obj + offset), 0)


@formula
def data(array: Object) -> Address:
    """The numbers of an array."""
    return memory_at(word(array, DATA))


@routine
def is_none(header: Header, obj: Object) -> Bool:
    """Whether an argument is None."""
    return obj_address(obj) == header.none


@formula
def obj_address(obj: Object) -> Int:
    """The address of an object, as an integer."""
    address: Int = obj + 0
    return address


@routine
def is_array(header: Header, obj: Object, ndim: Int) -> Bool:
    """Whether an argument is a contiguous array of float64 with ndim dimensions."""
    if word(obj, _TYPE) != header.array_type or word(obj, _DTYPE) != header.float64_dtype:
        return False
    # the number of dimensions and the flags are ints of 32 bits
    return (word(obj, _NDIM) & 0xFFFFFFFF) == ndim and (
        word(obj, _FLAGS) & _CONTIGUOUS_ALIGNED
    ) == _CONTIGUOUS_ALIGNED


@routine
def is_writeable(header: Header, obj: Object, ndim: Int) -> Bool:
    """As `is_array`, and it may be written to."""
    return is_array(header, obj, ndim) and (word(obj, _FLAGS) & _WRITEABLE) != 0


@routine
def is_mask(header: Header, obj: Object, size: Int) -> Bool:
    """Whether an argument is a contiguous array (size,) of bool."""
    if word(obj, _TYPE) != header.array_type or word(obj, _DTYPE) != header.bool_dtype:
        return False
    flags = word(obj, _FLAGS) & _CONTIGUOUS_ALIGNED
    return (word(obj, _NDIM) & 0xFFFFFFFF) == 1 and flags == _CONTIGUOUS_ALIGNED and extent(obj, 0) == size


@formula
def mask_at(array: Object, i: Int) -> Int:
    """Element i of an array of bool: 0 or 1."""
    return load_byte(word(array, DATA) + i)


@formula
def length(items: Object) -> Int:
    """Number of elements of a tuple."""
    return word(items, _SIZE)


@formula
def item(items: Object, i: Int) -> Int:
    """Address of element i of a tuple."""
    return word(items, _ITEMS + i * _WORD)


@routine
def extent(obj: Object, axis: Int) -> Int:
    """Length of an array along an axis."""
    return word(word(obj, _SHAPE), 8 * axis)


@functools.cache
def check_layout() -> None:
    """Compare examples of arrays and tuples with the layout that is assumed; RuntimeError if they differ."""
    example = np.arange(6.0).reshape(2, 3)

    def at(offset: int, obj: object = example) -> int:
        return ctypes.c_int64.from_address(id(obj) + offset).value

    shape = (ctypes.c_int64 * 2).from_address(at(_SHAPE))
    flags = _CONTIGUOUS_ALIGNED | _WRITEABLE
    found = (
        at(_TYPE),
        at(DATA),
        at(_NDIM) & 0xFFFFFFFF,
        tuple(shape),
        at(_DTYPE),
        at(_FLAGS) & flags,
    )
    dtype = id(np.dtype(np.float64))
    expected = (id(np.ndarray), example.ctypes.data, 2, (2, 3), dtype, flags)
    if found != expected:
        raise RuntimeError(
            f'quad_dynamics does not know how NumPy {np.__version__} lays out its arrays on this Python: '
            f'expected {expected}, found {found}'
        )
    pair = (example, None)
    if [at(_SIZE, pair), at(_ITEMS, pair), at(_ITEMS + _WORD, pair)] != [2, id(example), id(None)]:
        raise RuntimeError('quad_dynamics does not know how this Python lays out its tuples')
