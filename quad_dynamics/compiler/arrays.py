# SPDX-License-Identifier: Apache-2.0
"""Access to NumPy arrays inside kernels, without conversion.

A kernel is called with the array objects themselves and reads what it needs from them. Numba would unpack
each array and hold a reference to it, 40 ns per array; checking type and shape in Python costs as much again.
With both, a call would take longer than the computation. What is read here is the public part of NumPy's
array object (PyArrayObject_fields in its C header), which belongs to its ABI; `check_layout` verifies it
once, before the first kernel runs.

The addresses needed to check types (array type, float64 and bool dtypes, None) are in the header of the
memory that every kernel gets, see `header`.

Several arrays are passed as a tuple, which the public functions make. Arguments that kernels do not validate
themselves are declared, and validated on entry (see `arguments`).
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from quad_dynamics.compiler import interpreter
from quad_dynamics.compiler.header import Header
from quad_dynamics.compiler.trace import formula, load_byte, load_int, memory_at, routine
from quad_dynamics.compiler.types import Address, Bool, Int, Object

_WORD = 8
_HEAD = object.__basicsize__  # every Python object begins with this; its last word is the type
TYPE = _HEAD - _WORD
DATA, NDIM, SHAPE, DTYPE, FLAGS = (_HEAD + _WORD * i for i in (0, 1, 2, 5, 6))
CONTIGUOUS_ALIGNED = 0x0101
WRITEABLE = 0x0400
SIZE, ITEMS = _HEAD, tuple.__basicsize__  # of a tuple


@formula
def word(obj: Object | Int, offset: Int) -> Int:
    """The 64-bit word at an offset [bytes] in an object."""
    return load_int(memory_at(obj + offset), 0)


@formula
def data(array: Object) -> Address:
    """The data of an array."""
    return memory_at(word(array, DATA))


@routine
def optional_data(header: Header, obj: Object) -> Address:
    """The data of an array; for None, memory that must not be accessed."""
    if is_none(header, obj):
        return memory_at(0)
    return data(obj)


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
    if word(obj, TYPE) != header.array_type or word(obj, DTYPE) != header.float64_dtype:
        return False
    # the number of dimensions and the flags are 32-bit integers
    return (word(obj, NDIM) & 0xFFFFFFFF) == ndim and (
        word(obj, FLAGS) & CONTIGUOUS_ALIGNED
    ) == CONTIGUOUS_ALIGNED


@routine
def is_writeable(header: Header, obj: Object, ndim: Int) -> Bool:
    """As `is_array`, and the array is writeable."""
    return is_array(header, obj, ndim) and (word(obj, FLAGS) & WRITEABLE) != 0


@routine
def is_mask(header: Header, obj: Object, size: Int) -> Bool:
    """Whether an argument is a contiguous array (size,) of bool."""
    if word(obj, TYPE) != header.array_type or word(obj, DTYPE) != header.bool_dtype:
        return False
    flags = word(obj, FLAGS) & CONTIGUOUS_ALIGNED
    return (word(obj, NDIM) & 0xFFFFFFFF) == 1 and flags == CONTIGUOUS_ALIGNED and extent(obj, 0) == size


@formula
def mask_at(array: Object, i: Int) -> Int:
    """Element i of an array of bool: 0 or 1."""
    return load_byte(word(array, DATA) + i)


@formula
def length(items: Object) -> Int:
    """Number of elements of a tuple."""
    return word(items, SIZE)


@formula
def item(items: Object, i: Int) -> Int:
    """Address of element i of a tuple."""
    return word(items, ITEMS + i * _WORD)


@routine
def extent(obj: Object, axis: Int) -> Int:
    """Length of an array along an axis."""
    return word(word(obj, SHAPE), 8 * axis)


if interpreter.INTERPRETED:
    globals().update(interpreter.ARRAYS)


@functools.cache
def check_layout() -> None:
    """Compare example arrays and tuples with the assumed layout; raise RuntimeError if they differ."""
    example = np.arange(6.0).reshape(2, 3)

    def at(offset: int, obj: object = example) -> int:
        return ctypes.c_int64.from_address(id(obj) + offset).value

    shape = (ctypes.c_int64 * 2).from_address(at(SHAPE))
    flags = CONTIGUOUS_ALIGNED | WRITEABLE
    found = (
        at(TYPE),
        at(DATA),
        at(NDIM) & 0xFFFFFFFF,
        tuple(shape),
        at(DTYPE),
        at(FLAGS) & flags,
    )
    dtype = id(np.dtype(np.float64))
    expected = (id(np.ndarray), example.ctypes.data, 2, (2, 3), dtype, flags)
    if found != expected:
        raise RuntimeError(
            f'quad_dynamics does not know how NumPy {np.__version__} lays out its arrays on this Python: '
            f'expected {expected}, found {found}'
        )
    pair = (example, None)
    if [at(SIZE, pair), at(ITEMS, pair), at(ITEMS + _WORD, pair)] != [2, id(example), id(None)]:
        raise RuntimeError('quad_dynamics does not know how this Python lays out its tuples')
