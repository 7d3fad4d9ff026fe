# SPDX-License-Identifier: Apache-2.0
"""Interpolation between samples. It is local: a value depends only on its nearest samples."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Bools, Floats, Ints

_POINTS = 6  # number of nearest samples of the polynomial
# A polynomial through unevenly spaced samples would oscillate; linear interpolation is used instead.
_SPACING = 0.4, 2.5
# If the six nearest samples cannot be used, at an end or beside a gap, others nearby are tried.
_OFFSETS = 0, -1, 1, -2, 2


def interpolate(time: Floats, values: Floats, at: Floats, longest: float) -> tuple[Floats, Bools]:
    """Polynomial interpolation through the six nearest samples; linear if they are not evenly spaced.

    Args:
        time: (n,) of the samples, increasing.
        values: (n, k).
        at: (m,) times.
        longest: time between two samples that may be connected [unit of time].

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
    """Where six samples, beginning with `first`, have about the same spacing as those around a time."""
    fits = (first >= 0) & (first + _POINTS <= len(time))
    steps = np.diff(time)
    middle = steps[left]
    for offset in range(_POINTS - 1):
        step = steps[np.clip(first + offset, 0, len(steps) - 1)]
        fits &= (step > _SPACING[0] * middle) & (step < _SPACING[1] * middle)
    return fits


def _polynomial(time: Floats, values: Floats, at: Floats, first: Ints) -> Floats:
    """Lagrange polynomial through six samples; at a sample it gives exactly its value."""
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
        shift: in steps; not necessarily an integer.
        at: (m,) rows; beyond the ends, the last row is repeated.
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
    """The last value before each time, as drives hold commands; otherwise like `interpolate`."""
    left = np.searchsorted(time, at, side='right') - 1
    known = left >= 0
    left = np.maximum(left, 0)
    known &= at - time[left] <= longest
    return values[left], known
