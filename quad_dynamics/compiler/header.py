# SPDX-License-Identifier: Apache-2.0
"""What the memory that every kernel gets begins with."""

from __future__ import annotations

from quad_dynamics.compiler.records import INT, Record, field


class Header(Record):
    """Addresses of Python objects in this process, for the checks of `arrays`."""

    array_type = field(INT, 'address of the type of arrays')
    float64_dtype = field(INT, 'address of the type of their elements: float64')
    bool_dtype = field(INT, 'address of the type of their elements: bool')
    none = field(INT, 'address of None')
