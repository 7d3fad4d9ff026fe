# SPDX-License-Identifier: Apache-2.0
"""Checks once, before the first kernel runs, that Python, NumPy and numba behave as the compiler assumes.

It takes milliseconds, and reports a difference that would otherwise crash the process.
"""

from __future__ import annotations

import functools
import sys

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target

from quad_dynamics.compiler.arrays import DATA, check_layout
from quad_dynamics.compiler.entry import machine_code, make_entry
from quad_dynamics.compiler.trace import ObjectType

_INT, _FLOAT = ir.IntType(64), ir.DoubleType()
_PROBE_TYPE = ir.FunctionType(
    ir.IntType(32), [_INT.as_pointer(), ir.IntType(8).as_pointer().as_pointer(), _INT, _FLOAT, _INT]
)


@functools.cache
def check_compiler() -> None:
    """Raise a RuntimeError if compiled code cannot be called in the assumed way."""
    if sys.byteorder != 'little' or sys.maxsize != 2**63 - 1:
        raise RuntimeError('quad_dynamics needs a processor of 64 bits with the lower byte first')
    check_layout()
    check_convention()
    check_call()


def check_convention() -> None:
    """Compare numba's calling convention with that of `entry`."""
    found = cpu_target.target_context.call_conv.get_function_type(
        types.int64, (types.int64, types.float64, types.int64)
    )
    pointers = [isinstance(kind, ir.PointerType) for kind in found.args]
    plain = [str(kind) for kind in found.args[2:]]
    if (
        str(found.return_type) != 'i32'
        or pointers != [True, True, False, False, False]
        or str(found.args[0]) != str(_INT.as_pointer())
        or plain != ['i64', 'double', 'i64']
    ):
        raise RuntimeError(f'{_versions()}: numba calls a function as {found}; expected {_PROBE_TYPE}')


def check_call() -> None:
    """Call a few instructions with an array, a float and an int, and check the result."""
    module = ir.Module()
    probe = ir.Function(module, _PROBE_TYPE, 'probe')
    builder = ir.IRBuilder(probe.append_basic_block())
    result, _, obj, x, n = probe.args
    at = builder.inttoptr(builder.add(obj, ir.Constant(_INT, DATA)), _FLOAT.as_pointer().as_pointer())
    third = builder.load(builder.gep(builder.load(at), [ir.Constant(_INT, 2)]))
    total = builder.fadd(builder.fadd(third, x), builder.sitofp(n, _FLOAT))
    builder.store(builder.fptosi(total, _INT), result)
    builder.ret(ir.Constant(ir.IntType(32), 0))
    arguments = {'values': ObjectType(), 'x': types.float64, 'n': types.int64}
    run = make_entry('probe', arguments, machine_code(module, 'probe'))
    found, expected = run(np.array([1.0, 2.0, 4.0]), 16.0, 256), 4 + 16 + 256
    if found != expected:
        raise RuntimeError(f'{_versions()}: a call of compiled code gives {found}; expected {expected}')


def _versions() -> str:
    return (
        f'quad_dynamics cannot use its kernels with Python {sys.version.split()[0]}, NumPy {np.__version__}, '
        f'numba {numba.__version__} and llvmlite {llvmlite.__version__}'
    )
