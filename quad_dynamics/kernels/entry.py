# SPDX-License-Identifier: Apache-2.0
"""The way from Python into a compiled kernel: as short as the interpreter allows.

Numba's own entry point takes the arguments as a tuple and keeps an account of errors that a kernel cannot
raise, which costs 50 ns a call. Here a built-in function with the interpreter's fast calling convention
(METH_FASTCALL) is made of a few instructions: they turn the arguments into numbers and addresses, and jump.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import types

from quad_dynamics.kernels.trace import AddressType, ObjectType

_METH_FASTCALL = 0x0080

# How each kind of argument is made of the Python object %o: instructions, and its type.
_CONVERSIONS: dict[types.Type, tuple[str, str]] = {
    ObjectType(): ('  %a{i} = ptrtoint ptr %o{i} to i64', 'i64'),
    types.float64: ('  %a{i} = call double %as_double(ptr %o{i})', 'double'),
    types.int64: ('  %a{i} = call i64 %as_long(ptr %o{i})', 'i64'),
    AddressType(): ('  %l{i} = call i64 %as_long(ptr %o{i})\n  %a{i} = inttoptr i64 %l{i} to ptr', 'ptr'),
}

# Arguments of a kernel, as numba lays it out: where the result goes, where an error would go, then ours.
_CODE = """
define ptr @enter(ptr %self, ptr %arguments, i64 %count) {{
  %result = alloca i64
  %error = alloca ptr
  %as_long = inttoptr i64 {PyLong_AsLongLong} to ptr
  %as_double = inttoptr i64 {PyFloat_AsDouble} to ptr
  %to_long = inttoptr i64 {PyLong_FromLongLong} to ptr
  %occurred = inttoptr i64 {PyErr_Occurred} to ptr
  %kernel = inttoptr i64 {kernel} to ptr
{conversions}
  %failed = call ptr %occurred()
  %good = icmp eq ptr %failed, null
  br i1 %good, label %run, label %leave
run:
  call i32 %kernel(ptr %result, ptr %error, {arguments})
  %status = load i64, ptr %result
  %boxed = call ptr %to_long(i64 %status)
  ret ptr %boxed
leave:
  ret ptr null
}}
"""


class _MethodDef(ctypes.Structure):
    """PyMethodDef of the interpreter."""

    _fields_ = (
        ('name', ctypes.c_char_p),
        ('function', ctypes.c_void_p),
        ('flags', ctypes.c_int),
        ('doc', ctypes.c_char_p),
    )


# What the built-in functions live on, for as long as the process does.
_kept: list[Any] = []


def make_entry(name: str, signature: tuple[types.Type, ...], kernel: int) -> Callable[..., int]:
    """A built-in function that calls a kernel.

    Args:
        name: what it is called.
        signature: types of the kernel's arguments. The caller passes as many: nobody counts them.
        kernel: address of the compiled kernel.
    """
    conversions = []
    for i, kind in enumerate(signature):
        conversions.append(
            f'  %p{i} = getelementptr ptr, ptr %arguments, i64 {i}\n  %o{i} = load ptr, ptr %p{i}'
        )
        conversions.append(_CONVERSIONS[kind][0].format(i=i))
    code = _CODE.format(
        kernel=kernel,
        conversions='\n'.join(conversions),
        arguments=', '.join(f'{_CONVERSIONS[kind][1]} %a{i}' for i, kind in enumerate(signature)),
        **{name: _address_of(name) for name in _API},
    )
    module = binding.parse_assembly(code)
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    method = _MethodDef(name.encode(), engine.get_function_address('enter'), _METH_FASTCALL, None)
    _kept.extend((engine, method))
    return _new_builtin(ctypes.byref(method), None, None)  # type: ignore[no-any-return]


_API = ('PyLong_AsLongLong', 'PyFloat_AsDouble', 'PyLong_FromLongLong', 'PyErr_Occurred')
_new_builtin = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ('PyCFunction_NewEx', ctypes.pythonapi)
)


def _address_of(name: str) -> int:
    """Address of a function of the interpreter."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address
