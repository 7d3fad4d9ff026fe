# SPDX-License-Identifier: Apache-2.0
"""LLVM instructions that validate arguments on entry to a kernel, as declared with `arguments`."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from quad_dynamics.compiler import arrays as N
from quad_dynamics.compiler.arguments import Array, ArrayTuple, evaluate
from quad_dynamics.compiler.trace import Placeholder

_BOOL, _INT, _OBJECT = ir.IntType(1), ir.IntType(64), ir.IntType(8).as_pointer()
_TUPLE_SUBCLASS = 1 << 26  # Py_TPFLAGS_TUPLE_SUBCLASS


def is_good(
    builder: ir.IRBuilder, item: ir.Value, expected: Array | ArrayTuple, names: Mapping[str, Placeholder]
) -> ir.Value:
    """Whether an object (not None) is as expected; `names` are the numbers that sizes depend on."""
    if isinstance(expected, Array):
        good = _call(builder, _good_array(builder.module), item, expected, names)
    elif expected.items is None:
        good = builder.call(_has_length(builder.module), [item, ir.Constant(_INT, -1)])
    elif isinstance(expected.items, Array):
        good = _call(builder, _good_items(builder.module), item, expected.items, names)
    else:
        good = builder.call(_has_length(builder.module), [item, ir.Constant(_INT, len(expected.items))])
        with builder.if_else(good) as (fits, other):
            with fits:
                all_good = good
                for i, one in enumerate(expected.items):
                    found = _call(
                        builder,
                        _good_array(builder.module),
                        _object_at(builder, item, N.ITEMS + 8 * i),
                        one,
                        names,
                    )
                    all_good = builder.and_(all_good, found)
                end = builder.block
            with other:
                without = builder.block
        result = builder.phi(_BOOL)
        result.add_incoming(all_good, end)
        result.add_incoming(ir.Constant(_BOOL, 0), without)
        good = result
    return good


def _call(builder: ir.IRBuilder, function: ir.Function, item: ir.Value, array: Array, names: Any) -> ir.Value:
    size, flags = evaluate(array.size, names), N.CONTIGUOUS_ALIGNED | array.writeable * N.WRITEABLE
    least = size.value if isinstance(size, Placeholder) else ir.Constant(_INT, size)
    return builder.call(function, [item, least, ir.Constant(_INT, flags)])


def _good_array(module: ir.Module) -> ir.Function:
    """`good_array(object, size, flags)`: whether it is a float64 array, large enough, with these flags."""
    function, builder, is_new = _function(module, 'good_array', [_OBJECT, _INT, _INT])
    if not is_new:
        return function
    item, least, flags = function.args
    _demand(builder, _word(builder, item, N.TYPE), ir.Constant(_INT, id(np.ndarray)))
    _demand(builder, _word(builder, item, N.DTYPE), ir.Constant(_INT, id(np.dtype(np.float64))))
    _demand(builder, builder.and_(_word(builder, item, N.FLAGS), flags), flags)
    ndim = builder.and_(_word(builder, item, N.NDIM), ir.Constant(_INT, 0xFFFFFFFF))
    shape = builder.inttoptr(_word(builder, item, N.SHAPE), _INT.as_pointer())
    # total = product of the extents
    start, loop, body, end = builder.block, *(function.append_basic_block() for _ in range(3))
    builder.branch(loop)
    builder.position_at_end(loop)
    axis, total = builder.phi(_INT), builder.phi(_INT)
    builder.cbranch(builder.icmp_unsigned('<', axis, ndim), body, end)
    builder.position_at_end(body)
    product = builder.mul(total, builder.load(builder.gep(shape, [axis])))
    following = builder.add(axis, ir.Constant(_INT, 1))
    builder.branch(loop)
    for phi, first, later in ((axis, 0, following), (total, 1, product)):
        phi.add_incoming(ir.Constant(_INT, first), start)
        phi.add_incoming(later, body)
    builder.position_at_end(end)
    builder.ret(builder.icmp_signed('>=', total, least))
    return function


def _has_length(module: ir.Module) -> ir.Function:
    """`has_length(object, count)`: whether it is a tuple of this length; -1 accepts any length."""
    function, builder, is_new = _function(module, 'has_length', [_OBJECT, _INT])
    if not is_new:
        return function
    item, count = function.args
    kind = builder.inttoptr(_word(builder, item, N.TYPE), _OBJECT)
    address = ctypes.cast(ctypes.pythonapi.PyType_GetFlags, ctypes.c_void_p).value
    pointer = ir.FunctionType(_INT, [_OBJECT]).as_pointer()
    flags = builder.call(builder.inttoptr(ir.Constant(_INT, address), pointer), [kind])
    tuple_flag = ir.Constant(_INT, _TUPLE_SUBCLASS)
    _demand(builder, builder.and_(flags, tuple_flag), tuple_flag)
    any_number = builder.icmp_signed('==', count, ir.Constant(_INT, -1))
    builder.ret(builder.or_(any_number, builder.icmp_signed('==', _word(builder, item, N.SIZE), count)))
    return function


def _good_items(module: ir.Module) -> ir.Function:
    """`good_items(object, size, flags)`: whether it is a tuple of arrays that are all valid."""
    good_array, has_length = _good_array(module), _has_length(module)
    function, builder, is_new = _function(module, 'good_items', [_OBJECT, _INT, _INT])
    if not is_new:
        return function
    item, least, flags = function.args
    _demand(builder, builder.call(has_length, [item, ir.Constant(_INT, -1)]), ir.Constant(_BOOL, 1))
    with cgutils.for_range(builder, _word(builder, item, N.SIZE)) as loop:
        offset = builder.add(builder.mul(loop.index, ir.Constant(_INT, 8)), ir.Constant(_INT, N.ITEMS))
        one = builder.inttoptr(_word(builder, item, offset), _OBJECT)
        _demand(builder, builder.call(good_array, [one, least, flags]), ir.Constant(_BOOL, 1))
    builder.ret(ir.Constant(_BOOL, 1))
    return function


def _function(
    module: ir.Module, name: str, arguments: list[ir.Type]
) -> tuple[ir.Function, ir.IRBuilder, bool]:
    """A function of the module that returns a Boolean, and whether it is new and needs a body."""
    if name in module.globals:
        return module.globals[name], None, False
    function = ir.Function(module, ir.FunctionType(_BOOL, arguments), name)
    function.linkage = 'internal'
    return function, ir.IRBuilder(function.append_basic_block()), True


def _demand(builder: ir.IRBuilder, found: ir.Value, expected: ir.Value) -> None:
    """Return 0 if a number is not the expected one."""
    with builder.if_then(builder.icmp_unsigned('!=', found, expected), likely=False):
        builder.ret(ir.Constant(_BOOL, 0))


def _word(builder: ir.IRBuilder, item: ir.Value, offset: Any) -> ir.Value:
    at = offset if isinstance(offset, ir.Value) else ir.Constant(_INT, offset)
    return builder.load(builder.bitcast(builder.gep(item, [at]), _INT.as_pointer()), align=8)


def _object_at(builder: ir.IRBuilder, item: ir.Value, offset: int) -> ir.Value:
    return builder.inttoptr(_word(builder, item, offset), _OBJECT)
