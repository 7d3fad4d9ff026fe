# SPDX-License-Identifier: Apache-2.0
"""Descent inside limits: L-BFGS whose steps are halved until they stay inside, and go down enough.

(Nocedal and Wright 2006, algorithms 7.4 and 3.1.) A value costs little beside its derivative here, so that a
step is tried by values alone; and a value of inf, which is outside, only makes a step shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quad_dynamics.array_types import Floats

_KEPT = 15  # pairs of steps and changes of the derivative
_ENOUGH = 1e-4  # of the fall that the derivative promises
_HALVINGS = 25
_STUCK = 1e-7  # steps that go down by less than this part end the descent


def descend(
    value: Callable[[Floats], float],
    gradient: Callable[[Floats], Floats],
    x: Floats,
    iterations: int,
    longest: float,
    each: Callable[[], None] = lambda: None,
) -> Floats:
    """Go down from x.

    Args:
        value: of a point; inf outside of the limits.
        gradient: there, for points inside.
        x: (n,) where to begin, inside.
        iterations: at most so many steps.
        longest: change of any number in one step.
        each: called after each step.

    Returns:
        (n,) the best point.
    """
    f, g = value(x), gradient(x)
    pairs: list[tuple[Floats, Floats]] = []
    for _ in range(iterations):
        direction = -_times_inverse(pairs, g)
        slope = float(direction @ g)
        if slope >= 0.0:  # the memory is of no use here
            pairs.clear()
            direction, slope = -g, -float(g @ g)
        direction, slope, step = _cut(direction, slope, longest)
        for _ in range(_HALVINGS):
            f_new = value(x + step * direction)
            if f_new <= f + _ENOUGH * step * slope:
                break
            step *= 0.5
        else:
            if not pairs:
                break
            pairs.clear()  # once more, straight down
            continue
        x_new = x + step * direction
        g_new = gradient(x_new)
        if (x_new - x) @ (g_new - g) > 1e-12 * float((g_new - g) @ (g_new - g)):
            pairs.append((x_new - x, g_new - g))
            del pairs[:-_KEPT]
        fall, x, f, g = f - f_new, x_new, f_new, g_new
        each()
        if fall < _STUCK * (1.0 + abs(f)):
            break
    return x


def _cut(direction: Floats, slope: float, longest: float) -> tuple[Floats, float, float]:
    size = float(np.abs(direction).max(initial=0.0))
    share = min(1.0, longest / size) if size > 0.0 else 1.0
    return share * direction, share * slope, 1.0


def _times_inverse(pairs: list[tuple[Floats, Floats]], g: Floats) -> Floats:
    """The derivative times what is known of the inverse of the second one."""
    x, shares = g.copy(), []
    for s, y in reversed(pairs):
        share = float(s @ x) / float(s @ y)
        x -= share * y
        shares.append(share)
    if pairs:
        s, y = pairs[-1]
        x *= float(s @ y) / float(y @ y)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        x += (share - float(y @ x) / float(s @ y)) * s
    return x
