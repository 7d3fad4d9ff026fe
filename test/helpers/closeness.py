# SPDX-License-Identifier: Apache-2.0
"""The one closeness assertion of the tests, and the tolerances that several of them share."""

from __future__ import annotations

from typing import Any

import numpy as np

# Two exact algorithms in float64 differ by rounding only: some 1e-16 times the length of a chain (up to 40
# joints) times the condition of the problem. 1e-9 of the largest entry leaves room for a condition of 1e5.
EXACT = 1e-9
# Sixth-order central differences with h = 1e-3: truncation h^6 = 1e-18, rounding 1e-16 / h = 1e-13 of a
# quantity whose derivatives grow with the number of joints.
DIFFERENCES = 1e-8


def relative_error(actual: Any, expected: Any, scale: float | None = None) -> float:
    """Largest absolute difference over the scale (by default the largest entry expected, at least 1e-3).

    Rows of one vector mix units (N and N m, m and rad), so entries are compared with the largest of them,
    and not one by one: an entry that is zero but for cancellation has no relative accuracy to ask for.
    """
    actual = np.asarray(actual, dtype=float)
    expected = np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, f'shape {actual.shape}, expected {expected.shape}'
    if actual.size == 0:
        return 0.0
    largest = max(float(np.abs(expected).max()), 1e-3) if scale is None else scale
    return float(np.abs(actual - expected).max()) / largest


def assert_close(
    actual: Any, expected: Any, rel: float = EXACT, what: str = '', scale: float | None = None
) -> None:
    """Fail, with the worst entry in the message, when the relative error exceeds rel or is not a number."""
    error = relative_error(actual, expected, scale)
    if not error <= rel:  # catches NaN as well
        difference = np.abs(np.asarray(actual, dtype=float) - np.asarray(expected, dtype=float))
        worst = np.unravel_index(
            int(np.argmax(np.where(np.isnan(difference), np.inf, difference))), difference.shape
        )
        raise AssertionError(
            f'{what or "result"}: relative error {error:.3g} > {rel:.3g}; '
            f'worst at {tuple(int(i) for i in worst)}: '
            f'got {np.asarray(actual)[worst]:.17g}, expected {np.asarray(expected)[worst]:.17g}'
        )


def derivative(function: Any, h: float = 1e-3) -> Any:
    """Sixth-order central difference of function(t) at t = 0."""
    return (
        45.0 * (function(h) - function(-h))
        - 9.0 * (function(2 * h) - function(-2 * h))
        + function(3 * h)
        - function(-3 * h)
    ) / (60.0 * h)
