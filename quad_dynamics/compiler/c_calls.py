# SPDX-License-Identifier: Apache-2.0
"""LLVM instructions that call C functions of Python and NumPy."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from llvmlite import ir

_PY_ARRAY_TYPE, _PY_ARRAY_NEW = 2, 93  # positions in NumPy's table; part of its ABI
_NPY_DOUBLE = 12

_INT, _C_INT, _OBJECT = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


def call_of(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
    """Call a C function of the interpreter."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    function_type = ir.FunctionType(result, [x.type for x in arguments])
    return builder.call(function_at(builder, address, function_type), arguments)


def function_at(builder: ir.IRBuilder, address: int, function_type: ir.FunctionType) -> ir.Value:
    """The function at an address in memory."""
    return builder.inttoptr(ir.Constant(_INT, address), function_type.as_pointer())


def new_array(builder: ir.IRBuilder, ndim: ir.Value, shape: ir.Value) -> ir.Value:
    """A new, uninitialised float64 array; NULL if out of memory, with the exception set.

    Args:
        builder: where the call is inserted.
        ndim: number of dimensions, an int64.
        shape: address of that many int64.
    """
    null, zero, double = (
        ir.Constant(_OBJECT, None),
        ir.Constant(_C_INT, 0),
        ir.Constant(_C_INT, _NPY_DOUBLE),
    )
    kinds = [_OBJECT, _C_INT, _OBJECT, _C_INT, _OBJECT, _OBJECT, _C_INT, _C_INT, _OBJECT]
    table = _numpy_table()
    array_type = builder.inttoptr(ir.Constant(_INT, table[_PY_ARRAY_TYPE]), _OBJECT)
    return builder.call(
        function_at(builder, table[_PY_ARRAY_NEW], ir.FunctionType(_OBJECT, kinds)),
        [array_type, builder.trunc(ndim, _C_INT), shape, double, null, null, zero, zero, null],
    )


@functools.cache
def _numpy_table() -> Any:
    """The functions and types of NumPy's C API."""
    core: Any = getattr(np, '_core', None) or np.core
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ('PyCapsule_GetPointer', ctypes.pythonapi)
    )
    return ctypes.cast(pointer(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
