# SPDX-License-Identifier: Apache-2.0
"""Runs kernels as plain Python, for debugging: `QUAD_DYNAMICS_INTERPRET=1`.

Nothing is compiled in this mode. Routines and formulas stay Python functions, and the primitives they use
(`trace`, `arrays`) are replaced by those in this module: memory is an array with bounds checks, four lanes
are four numbers, and arguments are inspected as Python objects. A workspace is initially filled with a
special NaN; reading a word that still contains it is an error.

Numbers are NumPy scalars, whose division by zero gives inf as in compiled code. Results differ from compiled
code by rounding, because compiled code fuses multiplications with additions.
"""

from __future__ import annotations

import math
import operator
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.arguments import Array, ArrayTuple, description, is_good
from quad_dynamics.compiler.header import sizes_of
from quad_dynamics.compiler.records import Numbers, Record
from quad_dynamics.compiler.types import LANES

INTERPRETED = os.environ.get('QUAD_DYNAMICS_INTERPRET', '0') not in ('', '0')

# Marks a word that was never written: a NaN with a payload that no computation produces.
UNWRITTEN = 0x7FF8_0BAD_0BAD_0BAD

_WORD = 8
_FLOAT64 = np.dtype(np.float64)

_Function = TypeVar('_Function', bound=Callable[..., Any])


class OutsideMemoryError(IndexError):
    """A kernel reads or writes outside the array that it was given."""


class NeverWrittenError(ValueError):
    """A kernel reads a word that was never written."""


# ---------------------------------------------------------------- memory


class Lanes(np.ndarray[Any, np.dtype[np.float64]]):
    """Four floats. `x += y` makes a new object, as in compiled code."""

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        return self + other

    def __isub__(self, other: Any) -> Any:  # type: ignore[misc]
        return self - other

    def __imul__(self, other: Any) -> Any:  # type: ignore[misc]
        return self * other

    def __itruediv__(self, other: Any) -> Any:  # type: ignore[misc]
        return self / other


def _lanes(numbers: Any) -> Lanes:
    made: Lanes = numbers.view(Lanes)
    return made


class Memory:
    """The elements of an array from an offset on, as kernels access them: `x[i]`."""

    __slots__ = ('_floats', '_ints', '_size', '_start')

    def __init__(self, array: Floats | None, start: int = 0) -> None:
        """Wrap an array.

        Args:
            array: contiguous, float64; None is memory that must not be accessed.
            start: index of the word that becomes x[0].
        """
        flat = np.empty(0) if array is None else array.reshape(-1)
        assert array is None or np.shares_memory(flat, array) or not array.size
        self._floats, self._ints = flat, flat.view(np.int64)
        self._start, self._size = start, len(flat)

    def __repr__(self) -> str:
        return f'<memory of {self._size - self._start} words>'

    def __getitem__(self, index: int) -> Any:
        at = self._place(index, 1)
        self._check_written(at, index)
        return self._floats[at]

    def __setitem__(self, index: int, value: Any) -> None:
        self._floats[self._place(index, 1)] = value

    def load(self, index: int) -> Lanes:
        """Four floats."""
        at = self._place(index, LANES)
        for lane in range(LANES):
            self._check_written(at + lane, index + lane)
        return _lanes(self._floats[at : at + LANES].copy())

    def store(self, index: int, value: Any) -> None:
        """Write four floats; a single float is broadcast."""
        at = self._place(index, LANES)
        self._floats[at : at + LANES] = value

    def load_int(self, index: int) -> int:
        """The bits of a word as an int64."""
        at = self._place(index, 1)
        self._check_written(at, index)
        return int(self._ints[at])

    def store_int(self, index: int, value: int) -> None:
        """Write an int64 to the bits of a word."""
        self._ints[self._place(index, 1)] = value

    def _place(self, index: int, count: int) -> int:
        first = operator.index(index)
        if not 0 <= first <= self._size - self._start - count:
            last = f' to {first + count - 1}' if count > 1 else ''
            raise OutsideMemoryError(f'word {first}{last} of {self._size - self._start} words')
        return self._start + first

    def _check_written(self, at: int, index: int) -> None:
        if self._ints[at] == UNWRITTEN:
            raise NeverWrittenError(f'word {index} was never written')


# Arrays that are passed to kernels by address. Models and simulators own them.
_blocks: dict[int, weakref.ref[Floats]] = {}


def address_of(array: Floats) -> int:
    """Address of the data of an array, for a kernel. The caller keeps the array alive."""
    address = int(array.ctypes.data)
    if INTERPRETED:
        for old in [key for key, block in _blocks.items() if block() is None]:
            del _blocks[old]
        _blocks[address] = weakref.ref(array)
    return address


def mark_unwritten(words: Floats) -> None:
    """Mark a part of a workspace as never written: reading it gives NaN, or an error."""
    if INTERPRETED:
        words.view(np.int64)[...] = UNWRITTEN


def memory_at(address: int) -> Memory:
    """The memory at an address inside an array that was passed to `address_of`."""
    for start, block in _blocks.items():
        array = block()
        if array is not None and start <= address < start + array.nbytes:
            return Memory(array, (address - start) // _WORD)
    if address == 0:
        return Memory(None)
    raise OutsideMemoryError(f'there is no array of ours at the address {address:#x}')


# ---------------------------------------------------------------- replacements for `trace`


def _zeros_with_one(lane: int) -> Lanes:
    return _lanes(np.eye(1, LANES, lane)[0])


def _fused(a: Any, b: Any, c: Any) -> Any:
    exact = np.asarray(a, dtype=np.longdouble) * np.asarray(b, dtype=np.longdouble) + c
    return _lanes(exact.astype(np.float64))


def _split(value: Lanes) -> tuple[Any, ...]:
    return tuple(np.asarray(value))


def _lane_sum(value: Lanes) -> Any:
    a, b, c, d = _split(value)
    return (a + b) + (c + d)


def _fill_zero(x: Memory, start: int, count: int) -> None:
    for i in range(start, start + count):
        x[i] = 0.0


def _anywhere(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of `Memory` that also works on `Numbers` of a record."""

    def call(x: Any, index: int, *value: Any) -> Any:
        return method(x.memory, x.at + index, *value) if isinstance(x, Numbers) else method(x, index, *value)

    return call


_MATH = SimpleNamespace(**{name: getattr(math, name) for name in dir(math) if not name.startswith('_')})
# As in compiled code: NaN and inf instead of exceptions.
_MATH.sqrt, _MATH.exp, _MATH.sin, _MATH.cos, _MATH.hypot = np.sqrt, np.exp, np.sin, np.cos, np.hypot
_MATH.copysign, _MATH.atan, _MATH.atan2 = np.copysign, np.arctan, np.arctan2


def plain(function: _Function) -> _Function:
    """A routine or formula, unchanged except that `math` is replaced."""
    names = function.__globals__
    if names.get('math') is math:
        names['math'] = _MATH
    return function


TRACE: dict[str, Any] = {
    'routine': plain,
    'subroutine': plain,
    'formula': plain,
    'fill_zero': _fill_zero,
    'load': _anywhere(Memory.load),
    'store': _anywhere(Memory.store),
    'load_int': _anywhere(Memory.load_int),
    'store_int': _anywhere(Memory.store_int),
    'memory_at': memory_at,
    'apart': lambda _: None,
    'square_root': np.sqrt,
    'nearest': np.rint,
    'fused': _fused,
    'where_nonzero': lambda mask, a, b: _lanes(np.where(np.asarray(mask) != 0.0, a, b)),
    'zero_lanes': lambda _: _lanes(np.zeros(LANES)),
    'unit_lanes': lambda _: tuple(map(_zeros_with_one, range(3))),
    'split': _split,
    'join': lambda *numbers: _lanes(np.array(numbers)),
    'lane_sum': _lane_sum,
}


# ---------------------------------------------------------------- replacements for `arrays`


def _is_plain(obj: Any, dtype: Any, ndim: int) -> bool:
    return (
        type(obj) is np.ndarray
        and obj.dtype is dtype
        and obj.ndim == ndim
        and obj.flags.c_contiguous
        and obj.flags.aligned
    )


def _data(obj: Any) -> Memory:
    if obj is None:
        return Memory(None)
    assert _is_plain(obj, _FLOAT64, obj.ndim), f'{type(obj)} is not a contiguous array of float64'
    return Memory(obj)


ARRAYS: dict[str, Any] = {
    'data': _data,
    'optional_data': lambda _, obj: _data(obj),
    'is_none': lambda _, obj: obj is None,
    'is_array': lambda _, obj, ndim: _is_plain(obj, _FLOAT64, ndim),
    'is_writeable': lambda _, obj, ndim: _is_plain(obj, _FLOAT64, ndim) and obj.flags.writeable,
    'is_mask': lambda _, obj, size: _is_plain(obj, np.dtype(np.bool_), 1) and len(obj) == size,
    'mask_at': lambda array, i: int(array[i]),
    'length': len,
    'item': lambda items, i: items[i],
    'extent': lambda obj, axis: obj.shape[axis],
}


# ---------------------------------------------------------------- kernels


def interpret(
    name: str,
    function: Callable[..., int],
    declared: Mapping[str, Any],
    converters: Iterable[Callable[[Any], Any]],
) -> Callable[..., int]:
    """A kernel that is interpreted.

    Args:
        name: name of the kernel.
        function: its Python function.
        declared: its arguments, by name.
        converters: convert each Python argument to that of the kernel.
    """
    converters = tuple(converters)

    def run(*arguments: Any) -> int:
        if len(arguments) != len(converters):
            raise TypeError(f'the kernel {name} takes {len(converters)} arguments')
        given = [convert(one) for convert, one in zip(converters, arguments, strict=True)]
        _check(name, declared, given)
        with np.errstate(all='ignore'):
            return int(function(*given))

    return run


def creating(run: Callable[..., int]) -> Callable[..., Any]:
    """As the entry point of a compiled kernel that allocates its result."""

    def make(*arguments: Any) -> Any:
        *given, (_, ndim, *shape) = arguments
        result = np.empty(tuple(shape[:ndim]))
        return None if run(*given, result) else result

    return make


def _check(name: str, declared: Mapping[str, Any], given: Sequence[Any]) -> None:
    """Validate arrays as the entry point of a compiled kernel does."""
    names: dict[str, int] = {key: one for key, one in zip(declared, given, strict=True) if type(one) is int}
    for (key, kind), one in zip(declared.items(), given, strict=True):
        if isinstance(one, Record):
            names |= {size: one.memory.load_int(offset) for size, offset in sizes_of(type(one)).items()}
            names['states'] = max(names.get('n', 1), 1)
        elif isinstance(kind, Array | ArrayTuple) and not is_good(one, kind, names):
            raise TypeError(f'the kernel {name} needs {description(kind)} as {key}')
        if isinstance(kind, ArrayTuple) and one is not None:
            names[f'len_{key}'] = len(one)
