# SPDX-License-Identifier: Apache-2.0
"""The first fields of the memory that every kernel gets."""

from __future__ import annotations

from quad_dynamics.compiler.records import INT, Record, constant

# Sizes of a robot that `arguments` can use by name; they are fields of the root record of a kernel.
_SIZES = ('nj', 'nq', 'nv', 'nb')


def sizes_of(root: type[Record]) -> dict[str, int]:
    """Offsets of the size fields of a root record, by name."""
    return {one.name: one.offset for one in root.fields if one.name in _SIZES}


class Header(Record):
    """Addresses of Python objects in this process, for the type checks of `arrays`."""

    array_type = constant(INT, 'address of the array type')
    float64_dtype = constant(INT, 'address of the dtype float64')
    bool_dtype = constant(INT, 'address of the dtype bool')
    none = constant(INT, 'address of None')
