# SPDX-License-Identifier: Apache-2.0
"""Values between samples. All of it is local: a value depends on its nearest samples, and on nothing else."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Bools, Floats, Ints

_POINTS = 6  # of the polynomial through the nearest samples
# A polynomial through samples that are not about evenly spaced would swing; then a straight line is taken.
_SPACING = 0.4, 2.5
# Where the six nearest samples do not fit, at an end or beside a gap, others near by may.
_OFFSETS = 0, -1, 1, -2, 2


def interpolate(time: Floats, values: Floats, at: Floats, longest: float) -> tuple[Floats, Bools]:
    """Values between samples: a polynomial through the six nearest ones, a line where they are not even.

    Args:
        time: (n,) of the samples, growing.
        values: (n, k).
        at: (m,) times.
        longest: between two samples that may be joined [unit of time].

    Returns:
        (m, k) values, and (m,) whether they are known: 0 before the first sample, after the last, and between
        two that are too far apart.
    """
    if len(time) < 2:
        exact = np.isin(at, time)
        return np.repeat(values[:1], len(at), axis=0), exact
    left = np.clip(np.searchsorted(time, at, side='right') - 1, 0, len(time) - 2)
    span = time[left + 1] - time[left]
    share = (at - time[left]) / span
    known = (share >= 0.0) & (share <= 1.0) & ((span <= longest) | (share == 0.0) | (share == 1.0))
    share = np.clip(share, 0.0, 1.0)[:, None]
    result = (1.0 - share) * values[left] + share * values[left + 1]
    done = np.zeros(len(at), dtype=np.bool_)
    for offset in _OFFSETS:
        first = left - (_POINTS // 2 - 1) + offset
        fits = ~done & _even(time, left, first)
        if np.any(fits):
            result[fits] = _polynomial(time, values, at[fits], first[fits])
            done |= fits
        if done.all():
            break
    return result, known


def _even(time: Floats, left: Ints, first: Ints) -> Bools:
    """Where six samples, beginning with `first`, are about as far apart as those around a place."""
    fits = (first >= 0) & (first + _POINTS <= len(time))
    steps = np.diff(time)
    middle = steps[left]
    for offset in range(_POINTS - 1):
        step = steps[np.clip(first + offset, 0, len(steps) - 1)]
        fits &= (step > _SPACING[0] * middle) & (step < _SPACING[1] * middle)
    return fits


def _polynomial(time: Floats, values: Floats, at: Floats, first: Ints) -> Floats:
    """Lagrange's polynomial through six samples; at a sample it is the sample, exactly."""
    near = first[:, None] + np.arange(_POINTS)
    t = time[near]
    result = np.zeros((len(at), values.shape[1]))
    for j in range(_POINTS):
        weight = np.ones(len(at))
        for m in range(_POINTS):
            if m != j:
                weight *= (at - t[:, m]) / (t[:, j] - t[:, m])
        result += weight[:, None] * values[near[:, j]]
    return result


def shifted(values: Floats, shift: float, at: Ints) -> Floats:
    """Evenly spaced values, some steps later: values(at + shift), by the same polynomial as `interpolate`.

    Args:
        values: (n, k).
        shift: in steps; not necessarily whole.
        at: (m,) rows; what they need beyond the ends is taken as the last row.
    """
    whole = int(np.floor(shift))
    nodes = np.arange(_POINTS) - (_POINTS // 2 - 1)
    result = np.zeros((len(at), values.shape[1]))
    for node in nodes:
        others = nodes[nodes != node]
        weight = float(np.prod((shift - whole - others) / (node - others)))
        if weight:
            result += weight * values[np.clip(at + whole + node, 0, len(values) - 1)]
    return result


def hold(time: Floats, values: Floats, at: Floats, longest: float) -> tuple[Floats, Bools]:
    """The last value before each time, as commands are held by drives; otherwise as `interpolate`."""
    left = np.searchsorted(time, at, side='right') - 1
    known = left >= 0
    left = np.maximum(left, 0)
    known &= at - time[left] <= longest
    return values[left], known
