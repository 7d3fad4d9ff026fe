# SPDX-License-Identifier: Apache-2.0
"""Entry points: built-in functions through which Python calls compiled kernels, with minimal overhead.

Numba's own entry point takes the arguments as a tuple and tracks errors that a kernel cannot raise, which
costs 50 ns per call. Here a built-in function with the interpreter's fast calling convention (METH_FASTCALL)
is generated: a few instructions convert the arguments to numbers and addresses, and call the kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, cast

from llvmlite import binding, ir
from numba import types

from quad_dynamics.compiler.argument_checks import is_good
from quad_dynamics.compiler.arguments import Array, ArrayTuple, description
from quad_dynamics.compiler.arrays import DATA, length
from quad_dynamics.compiler.c_calls import call_of, function_at, new_array
from quad_dynamics.compiler.header import sizes_of
from quad_dynamics.compiler.record_types import RootType
from quad_dynamics.compiler.trace import AddressType, Memory, ObjectType, Placeholder, load_int
from quad_dynamics.compiler.types import Address, Object

# Arguments of a kernel by name: numba types, or declarations of arrays.
Arguments = Mapping[str, Any]

_METH_FASTCALL = 0x0080

_INT, _FLOAT, _OBJECT = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()


class _MethodDef(ctypes.Structure):
    """PyMethodDef of the interpreter."""

    _fields_ = (
        ('name', ctypes.c_char_p),
        ('function', ctypes.c_void_p),
        ('flags', ctypes.c_int),
        ('doc', ctypes.c_char_p),
    )


# Objects that the built-in functions need; kept for the lifetime of the process.
_kept: list[Any] = []


def make_entry(
    name: str, arguments: Arguments, kernel: int, release: bool = False, creates: bool = False
) -> Callable[..., Any]:
    """A built-in function that calls a kernel.

    Args:
        name: name of the function.
        arguments: the kernel's arguments, by name. A wrong number of arguments, or an array that does not
            match its declaration, raises a TypeError.
        kernel: address of the compiled kernel.
        release: release the GIL while the kernel runs, so that other threads can run. The caller's references
            keep the arguments alive.
        creates: allocate the last argument, which is the result, and return it if the kernel returns 0, else
            return None. In its place the function takes the shape: `shape_words` of one array, see
            `memory.packing`; it is not validated. `numpy.empty` would take as long as two arguments and a
            short kernel.
    """
    return make_builtin(name, _write_code(name, arguments, kernel, release, creates))


def make_builtin(name: str, code: ir.Module) -> Callable[..., Any]:
    """A built-in function from LLVM code that defines `enter(self, arguments, count)`."""
    method = _MethodDef(name.encode(), machine_code(code, 'enter'), _METH_FASTCALL, None)
    _kept.append(method)
    return _new_builtin(ctypes.byref(method), None, None)  # type: ignore[no-any-return]


def machine_code(code: ir.Module, function: str) -> int:
    """Compile LLVM code; returns the address of a function that it defines."""
    module = binding.parse_assembly(str(code))
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _kept.append(engine)
    address: int = engine.get_function_address(function)
    return address


def _write_code(name: str, declared: Arguments, kernel: int, release: bool, creates: bool) -> ir.Module:
    """LLVM code of `enter(self, arguments, count)`, as the interpreter calls it."""
    module = ir.Module()
    enter = ir.Function(module, ir.FunctionType(_OBJECT, [_OBJECT, _OBJECT.as_pointer(), _INT]), 'enter')
    builder = ir.IRBuilder(enter.append_basic_block())
    expected = ir.Constant(_INT, len(declared))
    with builder.if_then(builder.icmp_signed('!=', enter.args[2], expected), likely=False):
        _refuse(builder, f'the kernel {name} takes {len(declared)} arguments')
    items = [builder.load(builder.gep(enter.args[1], [ir.Constant(_INT, i)])) for i in range(len(declared))]
    arguments = [_convert(builder, kind, item) for kind, item in zip(declared.values(), items, strict=True)]
    null = ir.Constant(_OBJECT, None)
    failed = call_of(builder, 'PyErr_Occurred', _OBJECT)
    with builder.if_then(builder.icmp_unsigned('!=', failed, null), likely=False):
        builder.ret(null)
    if creates:
        items[-1] = _new_result(builder, items[-1])
        arguments[-1] = builder.ptrtoint(items[-1], _INT)
        with builder.if_then(builder.icmp_unsigned('==', items[-1], null), likely=False):
            builder.ret(null)
    _check(builder, name, declared, items, arguments)
    # Numba's calling convention: address of the result, address of an error, then the arguments.
    result, error = builder.alloca(_INT), builder.alloca(_OBJECT)
    inputs = [result, error, *arguments]
    function_type = ir.FunctionType(ir.IntType(32), [x.type for x in inputs])
    thread = call_of(builder, 'PyEval_SaveThread', _OBJECT) if release else None
    builder.call(function_at(builder, kernel, function_type), inputs)
    if thread is not None:
        call_of(builder, 'PyEval_RestoreThread', ir.VoidType(), thread)
    status = builder.load(result)
    if creates:
        with builder.if_then(builder.icmp_signed('!=', status, ir.Constant(_INT, 0)), likely=False):
            call_of(builder, 'Py_DecRef', ir.VoidType(), items[-1])
            none = builder.inttoptr(ir.Constant(_INT, id(None)), _OBJECT)
            call_of(builder, 'Py_IncRef', ir.VoidType(), none)
            builder.ret(none)
        builder.ret(items[-1])
    else:
        builder.ret(call_of(builder, 'PyLong_FromLongLong', _OBJECT, status))
    return module


def _new_result(builder: ir.IRBuilder, words: ir.Value) -> ir.Value:
    """A new array; `words` is an integer array with 1, the number of dimensions, and the shape."""
    place = builder.bitcast(builder.gep(words, [ir.Constant(_INT, DATA)]), _INT.as_pointer().as_pointer())
    numbers = builder.load(place)
    ndim = builder.load(builder.gep(numbers, [ir.Constant(_INT, 1)]))
    shape = builder.bitcast(builder.gep(numbers, [ir.Constant(_INT, 2)]), _OBJECT)
    return new_array(builder, ndim, shape)


def _check(
    builder: ir.IRBuilder, name: str, declared: Arguments, items: list[ir.Value], arguments: list[ir.Value]
) -> None:
    """Raise a TypeError if an array does not match its declaration, or the address of an arena is 0."""
    given = dict(zip(declared, arguments, strict=True))
    names: dict[str, Any] = {
        key: Placeholder(builder, value) for key, value in given.items() if value.type == _INT
    }
    for (key, kind), item in zip(declared.items(), items, strict=True):
        if isinstance(kind, AddressType | RootType):
            missing = builder.icmp_unsigned('==', builder.ptrtoint(given[key], _INT), ir.Constant(_INT, 0))
            with builder.if_then(missing, likely=False):
                _refuse(builder, f'the kernel {name} needs memory at {key}, which is 0')
            if isinstance(kind, RootType):
                memory, sizes = cast(Address, Memory(builder, given[key])), sizes_of(kind.record)
                names |= {size: load_int(memory, offset) for size, offset in sizes.items()}
            if 'n' in names:
                n, one = names['n'].value, ir.Constant(_INT, 1)
                states = builder.select(builder.icmp_signed('>', n, one), n, one)
                names['states'] = Placeholder(builder, states)
        elif isinstance(kind, Array | ArrayTuple):
            message = f'the kernel {name} needs {description(kind)} as {key}'
            if kind.optional:
                none = builder.inttoptr(ir.Constant(_INT, id(None)), _OBJECT)
                with builder.if_then(builder.icmp_unsigned('!=', item, none)):
                    _demand(builder, is_good(builder, item, kind, names), message)
            else:
                _demand(builder, is_good(builder, item, kind, names), message)
            if isinstance(kind, ArrayTuple) and not kind.optional:
                names[f'len_{key}'] = length(cast(Object, Placeholder(builder, given[key])))


def _demand(builder: ir.IRBuilder, good: ir.Value, message: str) -> None:
    """Raise a TypeError unless `good`."""
    with builder.if_then(builder.not_(good), likely=False):
        _refuse(builder, message)


def _refuse(builder: ir.IRBuilder, message: str) -> None:
    """Raise a TypeError."""
    text = ctypes.create_string_buffer(message.encode())
    kind = ctypes.c_void_p.in_dll(ctypes.pythonapi, 'PyExc_TypeError')
    _kept.append(text)
    places = [
        builder.inttoptr(ir.Constant(_INT, place), _OBJECT) for place in (kind.value, ctypes.addressof(text))
    ]
    call_of(builder, 'PyErr_SetString', ir.VoidType(), *places)
    builder.ret(ir.Constant(_OBJECT, None))


def _convert(builder: ir.IRBuilder, kind: Any, item: ir.Value) -> ir.Value:
    """Convert a Python object to an argument of a kernel."""
    if isinstance(kind, ObjectType | Array | ArrayTuple):
        return builder.ptrtoint(item, _INT)
    if kind == types.float64:
        return call_of(builder, 'PyFloat_AsDouble', _FLOAT, item)
    number = call_of(builder, 'PyLong_AsLongLong', _INT, item)
    if isinstance(kind, AddressType | RootType):
        return builder.inttoptr(number, _FLOAT.as_pointer())
    return number


_new_builtin = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ('PyCFunction_NewEx', ctypes.pythonapi)
)
