# SPDX-License-Identifier: Apache-2.0
"""Names of what the functions of the kernels take and return, for the reader.

To mypy each of them is Any: the same formula gets plain numbers, lanes, or the placeholders of
`quad_dynamics.compiler.trace`, and the same `load_int` gives a placeholder in a formula and an int in a
routine.
"""

from __future__ import annotations

from typing import Any, TypeAlias

LANES = 4  # numbers that one vector register holds

# Single things.
Lanes: TypeAlias = Any  # four floats, one for each body of a pack
Number: TypeAlias = Any  # a float or Lanes
Int: TypeAlias = Any  # an int64: a count, an index, a place in memory, flags, the status of a kernel
Bool: TypeAlias = Any  # a truth value; only routines have them
Address: TypeAlias = Any  # numbers in memory, `x[i]`: what `data` finds in an array
Object: TypeAlias = Any  # an argument of a kernel as Python hands it in: an array or None

# Tuples of Numbers.
Vec3: TypeAlias = Any  # x y z
Vec6: TypeAlias = Any  # [linear; angular] of a motion, [force; moment] of a wrench
Mat3: TypeAlias = Any  # 9, row by row
Sym3: TypeAlias = Any  # 6 of a symmetric matrix: xx xy yy xz yz zz
Upper3: TypeAlias = Any  # 6 of a symmetric matrix, row by row: 11 12 13 22 23 33
Quat: TypeAlias = Any  # x y z w
