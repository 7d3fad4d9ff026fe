# SPDX-License-Identifier: Apache-2.0
"""Types of what the functions of the kernels take and return.

A formula gets plain numbers, lanes, or the placeholders of `quad_dynamics.compiler.trace`, and works on all
of them alike. To mypy all of these are floats, and whole numbers are ints, so that it checks kernels as the
plain Python that they are: a vector or a record in the place of a number is an error.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

LANES = 4  # numbers that one vector register holds

# Single things.
Lanes: TypeAlias = float  # four floats, one for each body of a pack
Number: TypeAlias = float  # a float or Lanes
Int: TypeAlias = int  # an int64: a count, an index, a place in memory, flags, the status of a kernel
Bool: TypeAlias = bool  # a truth value; only routines have them


class Object(Protocol):
    """An argument of a kernel as Python hands it in: an array, a tuple or None; `arrays` looks into it."""

    def __add__(self, offset: Int) -> Int:
        """The address of what stands in the object at an offset [bytes]."""


class Address(Protocol):
    """Numbers in memory, `x[i]`: what `data` finds in an array, or `Numbers` of a record."""

    def __getitem__(self, i: Int) -> Number: ...

    def __setitem__(self, i: Int, value: Number) -> None: ...

    @property
    def builder(self) -> Any:
        """What writes instructions, inside a formula."""

    def pointer(self, index: Any, kind: Any) -> Any:
        """Address of element `index`, to be read as the given type, inside a formula."""


# Tuples of Numbers.
Vec3: TypeAlias = tuple[Number, ...]  # x y z
Vec6: TypeAlias = tuple[Number, ...]  # [linear; angular] of a motion, [force; moment] of a wrench
Mat3: TypeAlias = tuple[Number, ...]  # 9, row by row
Sym3: TypeAlias = tuple[Number, ...]  # 6 of a symmetric matrix: xx xy yy xz yz zz
Upper3: TypeAlias = tuple[Number, ...]  # 6 of a symmetric matrix, row by row: 11 12 13 22 23 33
Quat: TypeAlias = tuple[Number, ...]  # x y z w
