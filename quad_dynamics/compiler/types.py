# SPDX-License-Identifier: Apache-2.0
"""Names of what the functions of the kernels take and return, for the reader.

To mypy each of them is Any: the same formula gets plain numbers, lanes, or the placeholders of
`quad_dynamics.compiler.trace`, and the same `load_int` gives a placeholder in a formula and an int in a
routine.
"""

from __future__ import annotations

from typing import Any, TypeAlias

LANES = 4  # numbers that one vector register holds

# Words of the header of the memory that every kernel gets, with addresses of Python objects in this process:
# the type of arrays, two types of their elements, and None.
ARRAY_TYPE, FLOAT64_DTYPE, NONE_OBJECT, BOOL_DTYPE = range(13, 17)

# The first words of that header are sizes of the robot; these are the ones that `arguments` know by name.
SIZES = {'nj': 0, 'nq': 3, 'nv': 4, 'nb': 5}

# Single things.
Lanes: TypeAlias = Any  # four floats, one for each body of a pack
Number: TypeAlias = Any  # a float or Lanes
Int: TypeAlias = Any  # an int64: a count, an index, a place in the arena, flags, the status of a kernel
Bool: TypeAlias = Any  # a truth value; only routines have them
Address: TypeAlias = Any  # numbers in memory, `x[i]`: the arena, or what `data` finds in an array
Object: TypeAlias = Any  # an argument of a kernel as Python hands it in: an array or None

# Tuples of Numbers.
Vec3: TypeAlias = Any  # x y z
Vec6: TypeAlias = Any  # [linear; angular] of a motion, [force; moment] of a wrench
Mat3: TypeAlias = Any  # 9, row by row
Sym3: TypeAlias = Any  # 6 of a symmetric matrix: xx xy yy xz yz zz
Quat: TypeAlias = Any  # x y z w
