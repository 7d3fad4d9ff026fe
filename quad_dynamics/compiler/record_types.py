# SPDX-License-Identifier: Apache-2.0
"""Numba types for records (see `records`): in routines, too, the fields of a record are attributes.

A record is an address and an offset; a root record is only an address. Reading or writing an attribute emits
the same instructions as in a formula: no call, no copy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core.errors import NumbaAttributeError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from quad_dynamics.compiler.records import Field, Numbers, Place, Record, Table, no_such_field
from quad_dynamics.compiler.trace import (
    POINTER,
    AddressType,
    IndexedType,
    Memory,
    Placeholder,
    PlaceType,
    as_type,
    formula,
    pack_result,
    result_type,
    unpack_argument,
)
from quad_dynamics.compiler.types import Address, Int

R = TypeVar('R', bound=Record)


class _PairType(PlaceType):
    """An address of memory and an offset into it."""

    llvm_type = ir.LiteralStructType([POINTER, ir.IntType(64)])

    def wrap(self, builder: ir.IRBuilder, value: ir.Value) -> Any:
        """Convert to the object that formulas work with."""
        memory = Memory(builder, builder.extract_value(value, 0))
        return self.make(memory, Placeholder(builder, builder.extract_value(value, 1)))

    def unwrap(self, builder: ir.IRBuilder, place: Place) -> ir.Value:
        """Convert to a value of a numba function."""
        pair = ir.Constant(self.llvm_type, ir.Undefined)
        pair = builder.insert_value(pair, place.memory.value, 0)
        return builder.insert_value(pair, as_type(builder, place.at, ir.IntType(64)), 1)

    def make(self, memory: Memory, at: Placeholder) -> Place:
        """The object for formulas."""
        raise NotImplementedError


class RecordType(_PairType):
    """Numba type of a record."""

    def __init__(self, record: type[Record]) -> None:
        self.record = record
        super().__init__(name=record.__name__)

    def make(self, memory: Memory, at: Placeholder) -> Place:
        """The record."""
        return self.record(memory, at)


class RootType(RecordType):
    """Numba type of a root record, which is at the beginning of its memory: one address."""

    llvm_type = POINTER

    def wrap(self, builder: ir.IRBuilder, value: ir.Value) -> Any:
        """Convert to the object that formulas work with."""
        return self.record(Memory(builder, value))

    def unwrap(self, builder: ir.IRBuilder, place: Place) -> ir.Value:
        """Convert to a value of a numba function."""
        return place.memory.pointer(place.at, ir.DoubleType())


class TableType(_PairType, IndexedType):
    """Numba type of a table of records."""

    @property
    def element(self) -> RecordType:
        """Numba type of one record."""
        return type_of_record(self.record)

    def __init__(self, record: type[Record]) -> None:
        self.record = record
        super().__init__(name=f'Table[{record.__name__}]')

    def make(self, memory: Memory, at: Placeholder) -> Place:
        """The table."""
        return Table(self.record, memory, at)


class NumbersType(_PairType, IndexedType):
    """Numba type of plain numbers that a record refers to."""

    element = types.float64

    def __init__(self) -> None:
        super().__init__(name='Numbers')

    def make(self, memory: Memory, at: Placeholder) -> Place:
        """The numbers."""
        return Numbers(memory, at)


def type_of_record(record: type[Record]) -> RecordType:
    """Numba type of a record."""
    return RootType(record) if record.root else RecordType(record)


@register_model(RecordType)
@register_model(TableType)
@register_model(NumbersType)
class _PairModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, [('memory', AddressType()), ('at', types.int64)])


@register_model(RootType)
class _RootModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, POINTER)


# ---------------------------------------------------------------- fields


_FIELD_TYPES: dict[tuple[type[Record], str], Any] = {}


def _field_type(record: type[Record], name: str) -> Any:
    """Numba type of a field."""
    key = record, name
    if key not in _FIELD_TYPES:
        _FIELD_TYPES[key] = result_type(operator.attrgetter(name), (type_of_record(record),))
    return _FIELD_TYPES[key]


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = RecordType

    def generic_resolve(self, kind: RecordType, name: str) -> Any:
        if not isinstance(getattr(kind.record, name, None), Field):
            raise NumbaAttributeError(no_such_field(kind.record, name))
        return _field_type(kind.record, name)


@lower_getattr_generic(RecordType)
def _lower_get(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    found = getattr(kind.wrap(builder, value), name)
    return pack_result(context, builder, _field_type(kind.record, name), found)


@lower_setattr_generic(RecordType)
def _lower_set(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    record = sig.args[0].wrap(builder, args[0])
    setattr(record, name, unpack_argument(context, builder, sig.args[1], args[1]))


# ---------------------------------------------------------------- elements


@lower_builtin(operator.getitem, TableType, types.int64)
@lower_builtin(operator.getitem, NumbersType, types.int64)
def _lower_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    found = sig.args[0].wrap(builder, args[0])[Placeholder(builder, args[1])]
    return pack_result(context, builder, sig.return_type, found)


@lower_builtin(operator.setitem, NumbersType, types.int64, types.float64)
def _lower_set_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    sig.args[0].wrap(builder, args[0])[Placeholder(builder, args[1])] = Placeholder(builder, args[2])
    return context.get_dummy_value()


# ---------------------------------------------------------------- whole records


def record_at(record: type[R]) -> Callable[[Address, Int], R]:
    """A formula that returns the record of this type at an offset in memory."""

    def find(memory: Address, at: Int) -> R:
        return record(memory, at)

    find.__name__ = f'find_{record.__name__}'
    return formula(find)


@formula
def part(x: Any, at: Int) -> Numbers:
    """The numbers of x (`Numbers` or memory) from an offset on."""
    return Numbers(x.memory, x.at + at) if isinstance(x, Numbers) else Numbers(x, at)


@formula
def words(record: Any) -> Numbers:
    """All words of a record as numbers."""
    return Numbers(record.memory, record.at)


@formula
def place(record: Any) -> Int:
    """Offset of a record in its memory [words]."""
    at: Int = record.at
    return at


@formula
def clear(record: Any) -> None:
    """Write zeros to all words of a record."""
    for k in range(record.words):
        record.memory[record.at + k] = 0.0
