# SPDX-License-Identifier: Apache-2.0
"""Types of the arguments and results of kernel functions.

A formula gets plain numbers, lanes, or the placeholders of `quad_dynamics.compiler.trace`, and treats them
alike. To mypy all of these are floats, and integers are ints, so it checks kernels as plain Python: a vector
or a record in place of a number is an error.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

LANES = 4  # numbers that one vector register holds

# Scalars and lanes.
Lanes: TypeAlias = float  # four floats, one for each body of a pack
Number: TypeAlias = float  # a float or Lanes
Int: TypeAlias = int  # an int64: a count, an index, an offset, flags, the status of a kernel
Bool: TypeAlias = bool  # a Boolean; only in routines


class Object(Protocol):
    """An argument of a kernel as passed by Python: an array, a tuple or None; `arrays` reads it."""

    def __add__(self, offset: Int) -> Int:
        """The address at an offset [bytes] in the object."""


class Address(Protocol):
    """Numbers in memory, `x[i]`: the `data` of an array, or `Numbers` of a record."""

    def __getitem__(self, i: Int) -> Number: ...

    def __setitem__(self, i: Int, value: Number) -> None: ...

    @property
    def builder(self) -> Any:
        """The LLVM builder, inside a formula."""

    def pointer(self, index: Any, kind: Any) -> Any:
        """Address of element `index`, to be read as the given type, inside a formula."""


# Tuples of Numbers.
Vec3: TypeAlias = tuple[Number, ...]  # x y z
Vec6: TypeAlias = tuple[Number, ...]  # [linear; angular] of a motion, [force; moment] of a wrench
Mat3: TypeAlias = tuple[Number, ...]  # 9, row by row
Sym3: TypeAlias = tuple[Number, ...]  # 6 entries of a symmetric matrix: xx xy yy xz yz zz
Upper3: TypeAlias = tuple[Number, ...]  # 6 entries of a symmetric matrix, row by row: 11 12 13 22 23 33
Quat: TypeAlias = tuple[Number, ...]  # x y z w
