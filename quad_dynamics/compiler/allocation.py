# SPDX-License-Identifier: Apache-2.0
"""Allocates several result arrays in one call: a tuple of new, uninitialised float64 arrays.

`numpy.empty` takes 0.12 us, mostly to parse its arguments; for a dozen arrays that is more than a kernel
takes to fill them. The built-in function made here (as in `entry`) reads all shapes from one integer array
and calls PyArray_New of NumPy's C API for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from quad_dynamics.array_types import Ints
from quad_dynamics.compiler.arrays import DATA, check_layout
from quad_dynamics.compiler.c_calls import call_of, new_array
from quad_dynamics.compiler.entry import make_builtin

_INT, _OBJECT, _C_INT = ir.IntType(64), ir.IntType(8).as_pointer(), ir.IntType(32)


class Allocator:
    """Allocates tuples of arrays.

    Attributes:
        run: (type of the tuple, `shape_words` of its arrays) -> the tuple. The arguments are not validated;
            see `memory.packing` for `shape_words`.
    """

    def __init__(self) -> None:
        self.run: Callable[[type[Any], Ints], Any] = self._make_and_run

    def _make_and_run(self, kind: type[Any], words: Ints) -> Any:
        """First call: make the built-in function."""
        check_layout()
        self.run = make_builtin('new_arrays', _write_code())
        return self.run(kind, words)


new_arrays = Allocator()


def _write_code() -> ir.Module:
    """LLVM code of `enter(self, arguments, count)`, as the interpreter calls it."""
    module = ir.Module()
    enter = ir.Function(module, ir.FunctionType(_OBJECT, [_OBJECT, _OBJECT.as_pointer(), _INT]), 'enter')
    null, one = ir.Constant(_OBJECT, None), ir.Constant(_INT, 1)
    begin, loop, fill, failed, end = (enter.append_basic_block() for _ in range(5))
    builder = ir.IRBuilder(begin)
    kind = builder.load(enter.args[1])
    array = builder.load(builder.gep(enter.args[1], [one]))
    data = builder.gep(array, [ir.Constant(_INT, DATA)])
    words = builder.load(builder.bitcast(data, _INT.as_pointer().as_pointer()))
    count = builder.load(words)
    result = call_of(builder, 'PyType_GenericAlloc', _OBJECT, kind, count)
    builder.cbranch(builder.icmp_unsigned('==', result, null), failed, loop)

    builder.position_at_end(loop)
    i, at = builder.phi(_INT), builder.phi(_INT)
    i.add_incoming(ir.Constant(_INT, 0), begin)
    at.add_incoming(one, begin)
    ndim = builder.load(builder.gep(words, [at]))
    first = builder.add(at, one)
    shape = builder.bitcast(builder.gep(words, [first]), _OBJECT)
    array = new_array(builder, ndim, shape)
    builder.cbranch(builder.icmp_unsigned('==', array, null), failed, fill)

    builder.position_at_end(fill)
    call_of(builder, 'PyTuple_SetItem', _C_INT, result, i, array)
    i_next, at_next = builder.add(i, one), builder.add(first, ndim)
    i.add_incoming(i_next, fill)
    at.add_incoming(at_next, fill)
    builder.cbranch(builder.icmp_signed('<', i_next, count), loop, end)

    builder.position_at_end(failed)  # out of memory: the exception is set; release what was allocated
    call_of(builder, 'Py_DecRef', ir.VoidType(), result)  # may be NULL
    builder.ret(null)
    builder.position_at_end(end)
    builder.ret(result)
    return module
