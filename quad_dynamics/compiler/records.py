# SPDX-License-Identifier: Apache-2.0
"""Typed records: the memory layout of the kernels, declared field by field.

    class Stop(Record):
        '''A limit of a joint, or its dry friction.'''

        joint = field(INT, 'index of its joint')
        impulse = field(FLOAT, 'that it gives in this step', 'N m s')
        normal = field(VEC3, 'world axes')

Fields are consecutive 64-bit words, in the order of their declaration. Everything else follows from the
declaration: offsets and sizes, NumPy views (`Stop.dtype`, `Stop.array`), the reference page docs/memory.md,
and the code of the kernels.

*In kernels* an argument that is annotated with a record, `stop: Stop`, has its fields as attributes:
`stop.joint`, `stop.impulse += x`, `stop.normal = add(stop.normal, n)`. Fields of several numbers are tuples,
which are read and written as a whole. Routines and formulas use the same syntax; an access costs one address
computation and one load or store per number. `record_types` has the functions that need numba:
`record_at(Stop)` makes a formula that returns a record in memory, `clear(stop)` writes zeros. A call with a
record of another type than the annotation does not compile, and mypy rejects it.

*Constants*, declared with `constant` instead of `field`, are only read by kernels. An assignment does not
compile, and mypy rejects it. Python fills them, through the NumPy views.

*Other records* are accessed through fields, too:

    settings = embedded(Settings, 'meaning')              inside the record:   scene.settings.dt
    state = reference(State, 'meaning')                   elsewhere:           scene.state.step
    stops = table(Stop, ('nj',), 'meaning')               consecutive:         scene.stops[i].joint
    q = numbers(('nq',), 'meaning', 'm, rad')             plain numbers:       scene.q[i]

A reference is one word, an int64: the offset of its target from the beginning of the record itself, in words.
The shape gives the number of targets, as numbers or as names whose values are passed to `Placement`; `()`
leaves it to the code that fills the record. `numbers` work wherever plain memory does: `load(scene.q, 4)`,
`fill_zero`; `part(scene.q, 4)` is the same from the fourth number on.

*A root record*, declared with `root=True`, is at the beginning of its memory and is the argument of a kernel:
the scene, the robot. For LLVM it is one address; every other record is the address of its root and an offset.
Code with records therefore compiles to the same instructions as code with explicit offsets.

*Four bodies at a time*: `rows(VEC3, ...)` reserves LANES numbers for each number. A record declared with
`view='pack'` reads and writes all four as Lanes; one with `view='lane'`, which begins at the offset of its
lane, reads and writes single numbers. Declare the rows in a class with `view='abstract'` and derive both
from it.

*In Python* a record is an object with a memory and an offset: `Stop(memory, at)`. The memory supports `[]`
and `load`, `store`, `load_int` and `store_int` of `trace`; inside formulas it is `trace.Memory`. This module
does not import numba, so loading a model does not need it.
"""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.types import LANES, Address, Int, Mat3, Number, Sym3, Upper3, Vec3, Vec6

T = TypeVar('T')
R = TypeVar('R', bound='Record')
Shape = tuple[int | str, ...]

RECORDS: dict[str, type[Record]] = {}


# ---------------------------------------------------------------- kinds of fields


class Kind(Generic[T]):
    """Representation of a field in memory.

    Attributes:
        name: for the reference page.
        words: its size.
    """

    name: str
    words: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type."""
        raise NotImplementedError

    def read(self, record: Record, at: Any) -> T:
        """Read the value at an offset in the memory of a record."""
        raise NotImplementedError

    def read_component(self, record: Record, at: Any, i: int) -> Number:
        """Number i of a field of several numbers."""
        raise TypeError(f'a field of the kind {self.name} has no components')

    def write(self, record: Record, at: Any, value: T) -> None:
        """Write a value."""
        raise TypeError(f'a field of the kind {self.name} cannot be written by a kernel')


class _Float(Kind[Number]):
    name, words = 'Number', 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def read(self, record: Record, at: Any) -> Number:
        return cast(Number, record.memory[at])

    def write(self, record: Record, at: Any, value: Number) -> None:
        record.memory[at] = value


class _Int(Kind[Int]):
    name, words = 'Int', 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int64)

    def read(self, record: Record, at: Any) -> Int:
        from quad_dynamics.compiler.trace import load_int

        return load_int(record.memory, at)

    def write(self, record: Record, at: Any, value: Int) -> None:
        from quad_dynamics.compiler.trace import store_int

        store_int(record.memory, at, value)


class _Tuple(Kind[T]):
    def __init__(self, name: str, words: int) -> None:
        self.name, self.words = name, words

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype((np.float64, self.words))

    def read(self, record: Record, at: Any) -> T:
        return tuple(record.memory[at + k] for k in range(self.words))  # type: ignore[return-value]

    def read_component(self, record: Record, at: Any, i: int) -> Number:
        found: Number = record.memory[at + i]
        return found

    def write(self, record: Record, at: Any, value: T) -> None:
        for k in range(self.words):
            record.memory[at + k] = value[k]  # type: ignore[index]


FLOAT: Kind[Number] = _Float()
INT: Kind[Int] = _Int()
VEC3: Kind[Vec3] = _Tuple('Vec3', 3)
VEC6: Kind[Vec6] = _Tuple('Vec6', 6)
MAT3: Kind[Mat3] = _Tuple('Mat3', 9)
SYM3: Kind[Sym3] = _Tuple('Sym3', 6)
UPPER3: Kind[Upper3] = _Tuple('Upper3', 6)


def tuple_of(count: int) -> Kind[tuple[Number, ...]]:
    """The kind of a tuple of `count` numbers."""
    return _Tuple(f'{count} Numbers', count)


class _Rows(Kind[T]):
    """LANES numbers for each number of a kind: one for each body of a pack."""

    def __init__(self, kind: Kind[T]) -> None:
        self.kind, self.name, self.words = kind, f'rows of {kind.name}', kind.words * LANES

    @property
    def dtype(self) -> np.dtype[Any]:
        base = np.dtype(np.int64 if self.kind is INT else np.float64)
        return np.dtype((base, LANES if self.kind.words == 1 else (self.kind.words, LANES)))

    def read(self, record: Record, at: Any) -> T:
        whole = record._view == 'pack'
        found = tuple(self._read_row(record, at + LANES * k, whole) for k in range(self.kind.words))
        return cast(T, found[0] if self.kind.words == 1 else found)

    def write(self, record: Record, at: Any, value: T) -> None:
        whole = record._view == 'pack'
        values: Any = (value,) if self.kind.words == 1 else value
        for k in range(self.kind.words):
            self._write_row(record, at + LANES * k, values[k], whole)

    def read_component(self, record: Record, at: Any, i: int) -> Number:
        found: Number = self._read_row(record, at + LANES * i, record._view == 'pack')
        return found

    def _read_row(self, record: Record, at: Any, whole: bool) -> Any:
        from quad_dynamics.compiler.trace import load, load_int

        if self.kind is INT:
            if whole:
                return tuple(load_int(record.memory, at + lane) for lane in range(LANES))
            return load_int(record.memory, at)
        return load(record.memory, at) if whole else record.memory[at]

    def _write_row(self, record: Record, at: Any, value: Any, whole: bool) -> None:
        from quad_dynamics.compiler.trace import store, store_int

        if self.kind is INT:
            if whole:
                raise TypeError('whole numbers of a pack cannot be written at once')
            store_int(record.memory, at, value)
        elif whole:
            store(record.memory, at, value)
        else:
            record.memory[at] = value


class _Embedded(Kind[R]):
    def __init__(self, target: type[R]) -> None:
        self.target, self.name, self.words = target, target.__name__, target.words

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.target.dtype

    def read(self, record: Record, at: Any) -> R:
        return self.target(record.memory, at)


class _Reference(Kind[T]):
    """One word: the offset of the target from the record, in words."""

    words = 1

    def __init__(self, target: type[Record] | str | None, shape: Shape | None) -> None:
        self._target, self.shape = target, shape

    @property
    def target(self) -> type[Record] | None:
        """The record type of the target, None for plain numbers."""
        return RECORDS[self._target] if isinstance(self._target, str) else self._target

    @property
    def name(self) -> str:  # type: ignore[override]
        what = 'Number' if self._target is None else getattr(self._target, '__name__', self._target)
        if self.shape is None:
            return f'reference to {what}'
        return f'{what}[{", ".join(map(str, self.shape))}]'

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int64)

    def read(self, record: Record, at: Any) -> T:
        from quad_dynamics.compiler.trace import load_int

        place, target = load_int(record.memory, at) + record.at, self.target
        found: Any
        if target is None:
            found = Numbers(record.memory, place)
        elif self.shape is None:
            found = target(record.memory, place)
        else:
            found = Table(target, record.memory, place)
        return cast(T, found)

    def write(self, record: Record, at: Any, value: T) -> None:
        from quad_dynamics.compiler.trace import store_int

        store_int(record.memory, at, cast(Place, value).at - record.at)

    def count(self, sizes: Mapping[str, int]) -> int:
        """Number of targets, given the values of the names in the shape."""
        return math.prod(lengths(self.shape or (), sizes))

    def extent(self, sizes: Mapping[str, int]) -> int:
        """Size of all targets in words, including those of their own references."""
        if self.target is None:
            return self.count(sizes)
        if self.shape is None:
            return Placement(self.target, sizes).words
        return self.count(sizes) * self.target.words


def lengths(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with its names replaced by their values."""
    return tuple(sizes[one] if isinstance(one, str) else one for one in shape)


# ---------------------------------------------------------------- declarations


class Field(Generic[T]):
    """A field of a record.

    Attributes:
        name: as declared.
        kind: its representation in memory.
        unit: of its numbers, '' for none.
        meaning: description for the reader.
        part: the part of memory that contains the target of a reference (see `Placement`).
        offset: words from the beginning of the record.
    """

    name: str
    offset: int

    def __init__(self, kind: Kind[T], meaning: str, unit: str = '', part: str = '') -> None:
        self.kind, self.meaning, self.unit, self.part = kind, meaning, unit, part

    def __set_name__(self, owner: type[Record], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, record: None, owner: type[Record]) -> Field[T]: ...

    @overload
    def __get__(self, record: Record, owner: type[Record]) -> T: ...

    def __get__(self, record: Record | None, owner: type[Record]) -> Field[T] | T:
        return self if record is None else self.kind.read(record, record.at + self.offset)

    @property
    def span(self) -> slice:
        """Slice of its numbers in those of the record."""
        return slice(self.offset, self.offset + self.kind.words)

    def numbers(self, record: Record) -> Numbers:
        """The numbers of the field, for formulas that access them one by one."""
        return Numbers(record.memory, record.at + self.offset)

    def __set__(self, record: Record, value: T) -> None:
        self.kind.write(record, record.at + self.offset, value)

    def component(self, record: Record, i: int) -> Number:
        """Number i of a field of several numbers."""
        return self.kind.read_component(record, record.at + self.offset, i)


class Constant(Field[T]):
    """A field that kernels only read."""

    def __set__(self, record: Record, value: NoReturn) -> None:  # type: ignore[override]
        raise TypeError(f'{self.name} of {type(record).__name__} is a constant: kernels can only read it')


def field(kind: Kind[T], meaning: str, unit: str = '') -> Field[T]:
    """Declare a field."""
    return Field(kind, meaning, unit)


def constant(kind: Kind[T], meaning: str, unit: str = '') -> Constant[T]:
    """Declare a field that kernels only read: it is filled in Python, through the NumPy view."""
    return Constant(kind, meaning, unit)


def rows(kind: Kind[T], meaning: str, unit: str = '') -> Field[T]:
    """Declare a field with one value for each of the four bodies of a pack."""
    return Field(_Rows(kind), meaning, unit)


def constant_rows(kind: Kind[T], meaning: str, unit: str = '') -> Constant[T]:
    """The same for constants."""
    return Constant(_Rows(kind), meaning, unit)


def embedded(target: type[R], meaning: str) -> Field[R]:
    """Declare a record inside the record."""
    return Field(_Embedded(target), meaning)


def reference(target: type[R] | str, meaning: str, part: str = '') -> Field[R]:
    """Declare a reference to a record elsewhere; use its name if it is declared later."""
    return Field(_Reference(target, None), meaning, part=part)


def table(target: type[R], shape: Shape, meaning: str, part: str = '') -> Field[Table[R]]:
    """Declare a reference to consecutive records elsewhere."""
    return Field(_Reference(target, shape), meaning, part=part)


def numbers(shape: Shape, meaning: str, unit: str = '', part: str = '') -> Field[Numbers]:
    """Declare a reference to plain numbers elsewhere."""
    return Field(_Reference(None, shape), meaning, unit, part)


class Place:
    """Base class of objects at an offset in memory.

    Attributes:
        memory: `Memory` of `trace`, or numbers with `[]`.
        at: offset of its first word in that memory.
    """

    __slots__ = ('at', 'memory')

    memory: Any
    at: Any

    def __init__(self, memory: Any, at: Any = 0) -> None:
        object.__setattr__(self, 'memory', memory)
        object.__setattr__(self, 'at', at)

    @property
    def builder(self) -> Any:
        """The LLVM builder, inside a formula."""
        return self.memory.builder

    def numba_type(self) -> Any:
        """Its numba type."""
        raise NotImplementedError


class Record(Place):
    """Base class of all records; see the module.

    Attributes:
        words: (class) its size.
        fields: (class) all fields, in order.
        dtype: (class) the record as a NumPy type.
        root: (class) whether it is at the beginning of its memory.
    """

    __slots__ = ()

    words: ClassVar[int] = 0
    fields: ClassVar[tuple[Field[Any], ...]] = ()
    dtype: ClassVar[np.dtype[Any]]
    root: ClassVar[bool] = False
    _view: ClassVar[str] = 'plain'

    def __init_subclass__(cls, view: str = 'plain', root: bool = False) -> None:
        cls._view, cls.root = view, root
        own = [one for one in vars(cls).values() if isinstance(one, Field)]
        at = cls.words
        for one in own:
            one.offset = at
            at += one.kind.words if view == 'plain' else -(-one.kind.words // LANES) * LANES
        cls.words, cls.fields = at, cls.fields + tuple(own)
        cls.dtype = np.dtype(
            {
                'names': [one.name for one in cls.fields],
                'formats': [one.kind.dtype for one in cls.fields],
                'offsets': [8 * one.offset for one in cls.fields],
                'itemsize': 8 * cls.words,
            }
        )
        if view == 'abstract':
            return
        if cls.__name__ in RECORDS:
            raise TypeError(f'two records are called {cls.__name__}; expected names of their own')
        RECORDS[cls.__name__] = cls

    def __setattr__(self, name: str, value: Any) -> None:
        """Reject names that are not fields: a misspelt assignment would be lost."""
        found = getattr(type(self), name, None)
        if not isinstance(found, Field):
            raise AttributeError(no_such_field(type(self), name))
        found.__set__(self, value)

    @classmethod
    def array(cls, memory: Floats, at: int = 0, shape: int | tuple[int, ...] = 1) -> npt.NDArray[Any]:
        """NumPy view of records in a float64 array, from an offset on."""
        shape = (shape,) if isinstance(shape, int) else shape
        return memory[at : at + math.prod(shape) * cls.words].view(cls.dtype).reshape(shape)

    def numba_type(self) -> Any:
        """Its numba type."""
        from quad_dynamics.compiler.record_types import type_of_record

        return type_of_record(type(self))


class Table(Place, Generic[R]):
    """Consecutive records of one type: `table[i]`."""

    __slots__ = ('record',)

    def __init__(self, record: type[R], memory: Any, at: Any = 0) -> None:
        super().__init__(memory, at)
        self.record = record

    def __getitem__(self, i: Int) -> R:
        return self.record(self.memory, self.at + i * self.record.words)

    def numba_type(self) -> Any:
        """Its numba type."""
        from quad_dynamics.compiler.record_types import TableType

        return TableType(self.record)


class Numbers(Place):
    """Consecutive plain numbers: `x[i]`."""

    __slots__ = ()

    def __getitem__(self, i: Int) -> Number:
        return cast(Number, self.memory[self.at + i])

    def __setitem__(self, i: Int, value: Number) -> None:
        self.memory[self.at + i] = value

    def pointer(self, index: Any, kind: Any) -> Any:
        """As `Memory.pointer` of `trace`."""
        return self.memory.pointer(self.at + index, kind)

    def numba_type(self) -> Any:
        """Its numba type."""
        from quad_dynamics.compiler.record_types import NumbersType

        return NumbersType()


def no_such_field(record: type[Record], name: str) -> str:
    """Error message for a name that is not a field."""
    return f"{record.__name__} has no field '{name}'; it has {', '.join(one.name for one in record.fields)}"


# ---------------------------------------------------------------- types of arguments


@functools.cache
def _expected(function: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """Argument names of a function, with the record or table of records that each is annotated with."""
    hints = typing.get_type_hints(function)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return tuple((name, hints.get(name)) for name in names)


def _is_record(kind: Any, wanted: type[Record]) -> bool:
    """Whether a numba type is a record type that begins with the fields of `wanted`."""
    record = getattr(kind, 'record', Record)
    return issubclass(record, wanted) and str(kind) == record.__name__


def wrong_record(function: Callable[..., Any], kinds: Sequence[Any]) -> str:
    """Error message if a record in a call with these numba types is of the wrong type; else ''."""
    for (name, hint), kind in zip(_expected(function), kinds):
        origin = typing.get_origin(hint)
        wanted = typing.get_args(hint)[0] if origin is Table else hint
        if isinstance(wanted, type) and issubclass(wanted, Record):
            expected = f'Table[{wanted.__name__}]' if origin is Table else wanted.__name__
            if str(kind) != expected and not (origin is None and _is_record(kind, wanted)):
                return f"{function.__name__} got {kind} as '{name}'; expected {expected}"
        elif hint is Address and hasattr(kind, 'record'):
            return f"{function.__name__} got {kind} as '{name}'; expected plain numbers"
    return ''


# ---------------------------------------------------------------- placement


class Placement:
    """Offsets of everything that the references of a record refer to, behind it in one array.

    Attributes:
        at: offset of each target, by the name of the field.
        words: total size.
    """

    def __init__(self, record: type[Record], sizes: Mapping[str, int], align: int = 8) -> None:
        """Place the targets in the order of declaration, each aligned to `align` words.

        Args:
            record: the record with the references, at the beginning of the array.
            sizes: values of the names in the shapes.
            align: 8 words are a cache line.
        """
        self.at: dict[str, int] = {}
        self._record, self._sizes = record, dict(sizes)
        self._ends: dict[str, int] = {}
        self._parts: dict[str, slice] = {}
        end = record.words
        for one in record.fields:
            kind = one.kind
            if isinstance(kind, _Reference) and kind.shape != ():
                self.at[one.name] = -(-end // align) * align
                end = self.at[one.name] + kind.extent(sizes)
                self._ends[one.name] = end
        self.words = end

    def part(self, name: str) -> slice:
        """Slice of the targets that were declared for a part; they are contiguous."""
        if name not in self._parts:
            inside = [one.name for one in self._record.fields if one.part == name and one.name in self.at]
            first, last = min(self.at[one] for one in inside), max(self._ends[one] for one in inside)
            self._parts[name] = slice(first, last)
        return self._parts[name]

    def fill(self, memory: Floats) -> None:
        """Write the references."""
        header = self._record.array(memory)[0]
        for name, at in self.at.items():
            header[name] = at
            kind = getattr(self._record, name).kind
            if kind.shape is None:
                Placement(kind.target, self._sizes).fill(memory[at:])

    def view(self, memory: Floats, name: str, start: int = 0) -> npt.NDArray[Any]:
        """NumPy view of the target of a reference, in an array whose first element is the word `start`."""
        kind = getattr(self._record, name).kind
        assert isinstance(kind, _Reference)
        at, shape = self.at[name] - start, lengths(kind.shape or (), self._sizes)
        if kind.shape is None:
            shape = (1,)
        if kind.target is None:
            return memory[at : at + math.prod(shape)].reshape(shape)
        return kind.target.array(memory, at, shape)
