# SPDX-License-Identifier: Apache-2.0
"""Numbers as text, in one format everywhere: terminal, report, notes and tables."""

from __future__ import annotations

import math


def number(value: float, digits: int = 4) -> str:
    """A number with this many digits or more, including trailing zeros; '-' for NaN."""
    if math.isnan(value):
        return '-'
    if 10.0**digits <= abs(value) < 1e6:
        return f'{value:.0f}'
    return '0' if value == 0.0 else f'{value:#.{digits}g}'.rstrip('.')


def percent(value: float) -> str:
    """A fraction as per cent; '-' for NaN."""
    if not math.isfinite(value):
        return '-'
    if 0.0 < value < 5e-5:
        return '< 0.01 %'
    digits = 0 if value == 0.0 or abs(value) >= 1.0 else 1 if abs(value) >= 0.01 else 2
    return f'{100.0 * value:.{digits}f} %'


def with_std(value: float, std: float) -> str:
    """A value and its standard deviation, with as many digits as the latter justifies."""
    if not math.isfinite(std) or std <= 0.0:
        return number(value)
    places = max(0, 1 - math.floor(math.log10(std)))
    if places > 6 or abs(value) >= 1e5:
        return f'{value:.3e} ± {std:.1e}'
    return f'{round(value, places) + 0.0:.{places}f} ± {std:.{places}f}'
