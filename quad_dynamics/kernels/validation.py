# SPDX-License-Identifier: Apache-2.0
"""Validation inside the kernels: types, shapes and finiteness of their arguments, before they compute.

It costs a few nanoseconds here and hundreds in Python. A kernel returns 0 on success; otherwise it returns
the number of the invalid argument (1 for the first after the number of states), without having computed or
written anything. `quad_dynamics.api.validation` then finds out what is wrong: often the argument only has to
be converted.

The number of states n is 0 for a single state, whose arguments have no leading axis.
"""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, extent, is_array, is_none
from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Address, Bool, Int, Object
from quad_dynamics.memory.layout import Robot

# A quaternion whose squared norm is off by more than this is rejected; a smaller error is normalised.
QUATERNION_TOLERANCE = 1e-3


@routine
def all_finite(x: Address, count: Int) -> Bool:
    """Whether x[:count] contains neither NaN nor inf."""
    return finite_from(x, 0, count)


@routine
def finite_from(x: Address, start: Int, count: Int) -> Bool:
    """Whether x[start : start + count] contains neither NaN nor inf."""
    bad = False
    for i in range(start, start + count):
        bad |= x[i] * 0.0 != 0.0
    return not bad


@routine
def has_shape(robot: Robot, n: Int, size: Int, x: Object) -> Bool:
    """Whether x is an array (size,) for n = 0, else (n, size)."""
    if n == 0:
        return is_array(robot, x, 1) and extent(x, 0) == size
    return is_array(robot, x, 2) and extent(x, 0) == n and extent(x, 1) == size


@routine
def good_vector(robot: Robot, n: Int, size: Int, x: Object) -> Bool:
    """Whether x contains finite vectors of the given size."""
    return has_shape(robot, n, size, x) and all_finite(data(x), max(n, 1) * size)


@routine
def good_optional(robot: Robot, n: Int, size: Int, x: Object) -> Bool:
    """As `good_vector`; None means zeros."""
    return is_none(robot, x) or good_vector(robot, n, size, x)


@routine
def good_configuration(robot: Robot, n: Int, q: Object) -> Bool:
    """Whether q contains finite configurations with unit quaternions."""
    nq = robot.nq
    if not good_vector(robot, n, nq, q):
        return False
    if robot.floating != 0:
        x = data(q)
        for i in range(3, max(n, 1) * nq, nq):
            length2 = x[i] ** 2 + x[i + 1] ** 2 + x[i + 2] ** 2 + x[i + 3] ** 2
            if abs(length2 - 1.0) > QUATERNION_TOLERANCE:
                return False
    return True
