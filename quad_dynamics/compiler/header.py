# SPDX-License-Identifier: Apache-2.0
"""What the memory that every kernel gets begins with."""

from __future__ import annotations

from quad_dynamics.compiler.records import INT, Record, field

# Sizes of a robot that `arguments` know by name; they are fields of the root that a kernel gets.
_SIZES = ('nj', 'nq', 'nv', 'nb')


def sizes_of(root: type[Record]) -> dict[str, int]:
    """Offsets of the sizes that a root has, by name."""
    return {one.name: one.offset for one in root.fields if one.name in _SIZES}


class Header(Record):
    """Addresses of Python objects in this process, for the checks of `arrays`."""

    array_type = field(INT, 'address of the type of arrays')
    float64_dtype = field(INT, 'address of the type of their elements: float64')
    bool_dtype = field(INT, 'address of the type of their elements: bool')
    none = field(INT, 'address of None')
