# SPDX-License-Identifier: Apache-2.0
"""Formulas that compile fast: plain Python functions that are traced to LLVM instructions.

A kernel has two parts. Loops and branches are ordinary numba functions. The formulas inside them, which have
neither, are decorated with `@formula`: when numba meets a call of such a function, the function is run once,
with placeholders for its arguments, and every `+ - * /` on them emits one instruction. Numba never analyses
the formulas, whose hundreds of operations would take it seconds. A formula can call others, return tuples
and loop over a literal range: all of Python is available, at no cost at run time.

A placeholder is a float, an int, or four floats at once (`LANES` of them, in one vector register; see
`quad_dynamics.memory.layout` for the meaning of the lanes). A formula looks the same for all of them, and
also runs on plain Python numbers. Numbers in memory are accessed through addresses: see
`quad_dynamics.compiler.arrays`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from quad_dynamics.compiler import interpreter
from quad_dynamics.compiler.records import Place, wrong_record
from quad_dynamics.compiler.types import LANES, Address, Int, Lanes, Number

# What LLVM may do with our formulas: fuse a*b + c, reorder sums, ignore the sign of zero. NaN and inf are
# preserved (numba's `fastmath=True` would assume that they do not occur, and NaN could go undetected).
FASTMATH = {'contract', 'nsz', 'arcp', 'reassoc'}
_FLAGS = tuple(sorted(FASTMATH))

_Function = TypeVar('_Function', bound=Callable[..., Any])

# Python calls kernels without numba's wrappers (see `entry`), and never calls routines.
OPTIONS = {'fastmath': FASTMATH, 'error_model': 'numpy', 'no_cpython_wrapper': True, 'no_cfunc_wrapper': True}


def routine(function: _Function) -> _Function:
    """A numba function with loops and branches, to be called from kernels only."""
    return cast(_Function, _with_checks(njit(forceinline=True, **OPTIONS)(function)))


def subroutine(function: _Function) -> _Function:
    """As `routine`, for large functions or functions with many callers; with `apart` it is compiled once."""
    return cast(_Function, _with_checks(njit(**OPTIONS)(function)))


def _with_checks(dispatcher: Any) -> Any:
    """Make a numba function reject records of other types than its annotations."""
    if config.DISABLE_JIT:  # then it is the plain function, and `Kernel.load` reports that nothing can run
        return dispatcher
    find = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        _check_records(dispatcher.py_func, args)
        return find(args, kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _check_records(function: Callable[..., Any], args: Any) -> None:
    problem = wrong_record(function, args)
    if problem:
        raise TypingError(problem)


_INT = ir.IntType(64)
_FLOAT = ir.DoubleType()
VECTOR = ir.VectorType(_FLOAT, LANES)


class LanesType(types.Type):  # type: ignore[misc]
    """Numba type of four lanes, for values that pass from one formula to another through a numba function."""

    def __init__(self) -> None:
        super().__init__(name='Lanes')


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, VECTOR)


class IndexedType(types.Type):  # type: ignore[misc]
    """Base of the numba types with elements, `x[i]`; elements that are numbers can also be written."""

    @property
    def element(self) -> Any:
        """Numba type of an element."""
        raise NotImplementedError


class AddressType(IndexedType):
    """Numba type of an address of float64 numbers."""

    element = types.float64

    def __init__(self) -> None:
        super().__init__(name='Address')


@register_model(AddressType)
class _AddressModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _FLOAT.as_pointer())


class ObjectType(types.Type):  # type: ignore[misc]
    """Numba type of a Python object as an argument of a kernel, which gets its address as an integer."""

    def __init__(self) -> None:
        super().__init__(name='Object')


@register_model(ObjectType)
class _ObjectModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _INT)


class PlaceType(types.Type):  # type: ignore[misc]
    """Numba type of a location in memory that is not plain numbers (see `record_types`)."""

    llvm_type: ir.Type

    def wrap(self, builder: ir.IRBuilder, value: ir.Value) -> Any:
        """Convert to the object that formulas work with."""
        raise NotImplementedError

    def unwrap(self, builder: ir.IRBuilder, place: Any) -> ir.Value:
        """Convert to a value of a numba function."""
        raise NotImplementedError


POINTER = _FLOAT.as_pointer()
_NUMBA_TYPES = {_INT: types.int64, _FLOAT: types.float64, VECTOR: LanesType(), POINTER: AddressType()}
_LLVM_TYPES = {numba_type: kind for kind, numba_type in _NUMBA_TYPES.items()} | {ObjectType(): _INT}


@dataclass(frozen=True)
class Placeholder:
    """A number that is known when the kernel runs; operations on it are recorded as instructions."""

    builder: ir.IRBuilder
    value: ir.Value

    def _binary(self, other: Any, float_op: str, int_op: str, swapped: bool = False) -> Placeholder:
        kind = self.value.type
        if isinstance(other, Placeholder) and other.value.type == VECTOR:
            kind = VECTOR
        left, right = as_type(self.builder, self, kind), as_type(self.builder, other, kind)
        if swapped:
            left, right = right, left
        if kind == _INT:
            return Placeholder(self.builder, getattr(self.builder, int_op)(left, right))
        return Placeholder(self.builder, getattr(self.builder, float_op)(left, right, flags=_FLAGS))

    def __add__(self, other: Any) -> Placeholder:
        return self._binary(other, 'fadd', 'add')

    __radd__ = __add__

    def __sub__(self, other: Any) -> Placeholder:
        return self._binary(other, 'fsub', 'sub')

    def __rsub__(self, other: Any) -> Placeholder:
        return self._binary(other, 'fsub', 'sub', swapped=True)

    def __mul__(self, other: Any) -> Placeholder:
        return self._binary(other, 'fmul', 'mul')

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Placeholder:
        return self._binary(other, 'fdiv', 'sdiv')

    def __rtruediv__(self, other: Any) -> Placeholder:
        return self._binary(other, 'fdiv', 'sdiv', swapped=True)

    def __floordiv__(self, other: Any) -> Placeholder:
        return Placeholder(self.builder, self.builder.sdiv(self.value, as_type(self.builder, other, _INT)))

    def __and__(self, other: Any) -> Placeholder:
        return Placeholder(self.builder, self.builder.and_(self.value, as_type(self.builder, other, _INT)))

    def __neg__(self) -> Placeholder:
        return Placeholder(self.builder, self.builder.fneg(self.value, flags=_FLAGS))


@dataclass(frozen=True)
class Memory:
    """Numbers in memory, from an address on."""

    builder: ir.IRBuilder
    value: ir.Value

    def pointer(self, index: Any, kind: ir.Type) -> ir.Value:
        """Address of element `index`, to be read as the given type."""
        at = self.builder.gep(self.value, [as_type(self.builder, index, _INT)])
        return self.builder.bitcast(at, kind.as_pointer())

    def __getitem__(self, index: Any) -> Placeholder:
        return Placeholder(self.builder, self.builder.load(self.pointer(index, _FLOAT), align=8))

    def __setitem__(self, index: Any, value: Any) -> None:
        stored = as_type(self.builder, value, _FLOAT)
        self.builder.store(stored, self.pointer(index, _FLOAT), align=8)


def formula(function: _Function) -> _Function:
    """Let numba functions call `function` as a formula; other formulas call the unchanged function."""

    class _Template(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            args = tuple(types.unliteral(a) for a in args)
            _check_records(function, args)
            return signature(result_type(function, args), *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        inputs = [unpack_argument(context, builder, t, v) for t, v in zip(sig.args, args, strict=True)]
        return pack_result(context, builder, sig.return_type, function(*inputs))

    infer_global(function, types.Function(_Template))
    lower_builtin(function, types.VarArg(types.Any))(lower)
    return function


def result_type(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The type that a formula returns for arguments of these types: it is traced into a temporary module."""
    scratch = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), 'scratch')
    builder = ir.IRBuilder(scratch.append_basic_block())
    return _numba_type(function(*[_dummy(builder, t) for t in args]))


def _dummy(builder: ir.IRBuilder, t: Any) -> Any:
    if isinstance(t, types.BaseTuple):
        return tuple(_dummy(builder, item) for item in t)
    kind = t.llvm_type if isinstance(t, PlaceType) else _LLVM_TYPES[t]
    return _wrap(builder, t, ir.Constant(kind, ir.Undefined))


def _wrap(builder: ir.IRBuilder, t: Any, value: ir.Value) -> Any:
    if isinstance(t, PlaceType):
        return t.wrap(builder, value)
    return (Memory if isinstance(value.type, ir.PointerType) else Placeholder)(builder, value)


def _numba_type(result: Any) -> Any:
    if result is None:
        return types.none
    if isinstance(result, tuple):
        return types.Tuple.from_types([_numba_type(item) for item in result])
    if isinstance(result, Place):
        return result.numba_type()
    return _NUMBA_TYPES[result.value.type] if isinstance(result, Placeholder | Memory) else types.float64


def unpack_argument(context: Any, builder: ir.IRBuilder, t: Any, value: ir.Value) -> Any:
    """Convert a value of a numba function to the object that formulas work with."""
    if isinstance(t, types.BaseTuple):
        items = cgutils.unpack_tuple(builder, value)
        pairs = zip(t, items, strict=True)
        return tuple(unpack_argument(context, builder, item_t, item) for item_t, item in pairs)
    return _wrap(builder, t, value)


def pack_result(context: Any, builder: ir.IRBuilder, t: Any, result: Any) -> Any:
    """Convert the result of a formula to a value of a numba function."""
    if result is None:
        return context.get_dummy_value()
    if isinstance(result, tuple):
        return context.make_tuple(
            builder, t, [pack_result(context, builder, *pair) for pair in zip(t, result, strict=True)]
        )
    if isinstance(result, Place):
        return result.numba_type().unwrap(builder, result)
    return result.value if isinstance(result, Placeholder | Memory) else ir.Constant(_FLOAT, float(result))


def as_type(builder: ir.IRBuilder, number: Any, kind: ir.Type) -> ir.Value:
    """The number as a value of the given type; a float is broadcast to lanes if needed."""
    if not isinstance(number, Placeholder):
        if kind == VECTOR:
            return ir.Constant(VECTOR, [float(number)] * LANES)
        return ir.Constant(kind, number if kind == _INT else float(number))
    if number.value.type == kind:
        return number.value
    if kind == VECTOR and number.value.type == _FLOAT:
        undefined = ir.Constant(VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, number.value, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(first, undefined, zeros)
    raise TypeError(f'a formula mixes {number.value.type} and {kind}')


def _number(builder: ir.IRBuilder, value: ir.Value) -> Number:
    """A number of a formula; to mypy it is a float."""
    return cast(Number, Placeholder(builder, value))


def _int(builder: ir.IRBuilder, value: ir.Value) -> Int:
    """An integer of a formula."""
    return cast(Int, Placeholder(builder, value))


# ---------------------------------------------------------------- reading and writing


class _GetTemplate(AbstractTemplate):  # type: ignore[misc]
    key = operator.getitem

    def generic(self, args: Any, kws: Any) -> Any:
        target, index = args
        if isinstance(target, IndexedType) and isinstance(index, types.Integer):
            return signature(target.element, target, types.int64)
        return None


class _SetTemplate(AbstractTemplate):  # type: ignore[misc]
    key = operator.setitem

    def generic(self, args: Any, kws: Any) -> Any:
        target, index, _ = args
        numbers = isinstance(target, IndexedType) and target.element == types.float64
        if numbers and isinstance(index, types.Integer):
            return signature(types.none, target, types.int64, types.float64)
        return None


infer_global(operator.getitem)(_GetTemplate)
infer_global(operator.setitem)(_SetTemplate)


@lower_builtin(operator.getitem, AddressType, types.int64)
def _lower_get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(builder.gep(args[0], [args[1]]), align=8)


@lower_builtin(operator.setitem, AddressType, types.int64, types.float64)
def _lower_set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], builder.gep(args[0], [args[1]]), align=8)
    return context.get_dummy_value()


@routine
def fill_zero(x: Address, start: Int, count: Int) -> None:
    """x[start : start + count] = 0."""
    for i in range(start, start + count):
        x[i] = 0.0


@formula
def load(A: Address, at: Int) -> Lanes:
    """Four lanes from A[at : at + 4]."""
    return _number(A.builder, A.builder.load(A.pointer(at, VECTOR), align=8))


@formula
def store(A: Address, at: Int, value: Number) -> None:
    """Write four lanes to A[at : at + 4]; a float is broadcast."""
    A.builder.store(as_type(A.builder, value, VECTOR), A.pointer(at, VECTOR), align=8)


@formula
def load_int(A: Address, at: Int) -> Int:
    """The bits of A[at] as an int64."""
    return _int(A.builder, A.builder.load(A.pointer(at, _INT), align=8))


@formula
def apart(A: Address | Place) -> None:
    """Do not inline the subroutine that contains this call; A only gives access to the function."""
    attributes = A.builder.function.attributes
    attributes.discard('alwaysinline')
    attributes.add('noinline')


@formula
def load_byte(address: Int) -> Int:
    """The byte at an address given as an integer."""
    at: Any = address
    pointer = at.builder.inttoptr(at.value, ir.IntType(8).as_pointer())
    return _int(at.builder, at.builder.zext(at.builder.load(pointer, align=1), _INT))


@formula
def store_int(A: Address, at: Int, value: Int) -> None:
    """Write an int64 to the bits of A[at]."""
    A.builder.store(as_type(A.builder, value, _INT), A.pointer(at, _INT), align=8)


@formula
def square_root(x: Number) -> Number:
    """Square root of a float or of four lanes."""
    number: Any = x
    builder, kind = number.builder, number.value.type
    name = 'llvm.sqrt.f64' if kind == _FLOAT else f'llvm.sqrt.v{LANES}f64'
    root = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
    return _number(builder, builder.call(root, [number.value]))


@formula
def zero_lanes(A: Address | Place) -> Lanes:
    """Four zeros; A only gives access to the function."""
    return _number(A.builder, ir.Constant(VECTOR, [0.0] * LANES))


@formula
def unit_lanes(A: Address | Place) -> tuple[Lanes, Lanes, Lanes]:
    """Lanes (1 0 0 0), (0 1 0 0) and (0 0 1 0); A only gives access to the function."""
    x, y, z = (
        _number(A.builder, ir.Constant(VECTOR, [float(i == lane) for lane in range(LANES)])) for i in range(3)
    )
    return x, y, z


@formula
def split(value: Lanes) -> tuple[Number, Number, Number, Number]:
    """Four lanes as floats."""
    lanes: Any = value
    a, b, c, d = (
        _number(lanes.builder, lanes.builder.extract_element(lanes.value, ir.Constant(ir.IntType(32), i)))
        for i in range(LANES)
    )
    return a, b, c, d


@formula
def join(*numbers: Number) -> Lanes:
    """Four floats as lanes."""
    placeholders: Any = numbers
    builder, lanes = placeholders[0].builder, ir.Constant(VECTOR, ir.Undefined)
    for i, number in enumerate(placeholders):
        lanes = builder.insert_element(lanes, number.value, ir.Constant(ir.IntType(32), i))
    return _number(builder, lanes)


@formula
def memory_at(address: Int) -> Address:
    """The memory at an address given as an integer."""
    at: Any = address
    return cast(Address, Memory(at.builder, at.builder.inttoptr(at.value, POINTER)))


@formula
def nearest(x: Lanes) -> Lanes:
    """Round to the nearest integers."""
    return _vector_function('rint', x)


@formula
def fused(a: Lanes, b: Number, c: Lanes) -> Lanes:
    """a * b + c, rounded once."""
    builder = cast(Placeholder, a).builder
    return _vector_function('fma', a, _number(builder, as_type(builder, b, VECTOR)), c)


def _vector_function(name: str, *args: Lanes) -> Lanes:
    """Call an LLVM intrinsic on lanes."""
    lanes = cast(tuple[Placeholder, ...], args)
    builder = lanes[0].builder
    function_type = ir.FunctionType(VECTOR, [VECTOR] * len(lanes))
    function = cgutils.get_or_insert_function(builder.module, function_type, f'llvm.{name}.v{LANES}f64')
    return _number(builder, builder.call(function, [one.value for one in lanes]))


@formula
def where_nonzero(mask: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """a in the lanes where the mask is not zero, b elsewhere."""
    given, yes, no = (cast(Placeholder, one) for one in (mask, a, b))
    builder = given.builder
    nonzero = builder.fcmp_unordered('!=', given.value, ir.Constant(VECTOR, [0.0] * LANES))
    return _number(builder, builder.select(nonzero, yes.value, no.value))


@formula
def lane_sum(value: Lanes) -> Number:
    """Sum over the lanes, as (0 + 1) + (2 + 3)."""
    a, b, c, d = split(value)
    return (a + b) + (c + d)


if interpreter.INTERPRETED:
    globals().update(interpreter.TRACE)
