# SPDX-License-Identifier: Apache-2.0
"""L-BFGS inside limits, with backtracking until a step is feasible and decreases the cost sufficiently.

(Nocedal and Wright 2006, algorithms 7.4 and 3.1.) A value is cheap compared with its gradient here, so steps
are tested by values alone. A value of inf means infeasible, and only makes a step shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quad_dynamics.array_types import Floats

_KEPT = 15  # pairs of steps and gradient changes
_ENOUGH = 1e-4  # fraction of the decrease that the gradient predicts
_HALVINGS = 25
_STUCK = 1e-7  # relative decrease below which the descent ends


def descend(
    value: Callable[[Floats], float],
    gradient: Callable[[Floats], Floats],
    x: Floats,
    iterations: int,
    longest: float,
    each: Callable[[], None] = lambda: None,
) -> Floats:
    """Minimise from x.

    Args:
        value: of a point; inf outside the limits.
        gradient: at points inside the limits.
        x: (n,) initial point, inside the limits.
        iterations: maximum number of steps.
        longest: largest change of any variable in one step.
        each: called after each step.

    Returns:
        (n,) the best point.
    """
    f, g = value(x), gradient(x)
    pairs: list[tuple[Floats, Floats]] = []
    for _ in range(iterations):
        direction = -_times_inverse(pairs, g)
        slope = float(direction @ g)
        if slope >= 0.0:  # the memory is not useful here
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
            pairs.clear()  # restart with steepest descent
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
    """The gradient times the approximate inverse of the Hessian."""
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
