# SPDX-License-Identifier: Apache-2.0
"""Variants of a test of which `make quick` runs some, and `make test` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_but(quick: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Values for `parametrize`: all but the quick ones are marked slow.

    Args:
        quick: those that `make quick` runs.
        values: all of them; a tuple is a value of several parameters.
    """
    values = list(values)
    missing = [value for value in quick if value not in values]
    assert not missing, f'{missing} are not among {values}: `make quick` would run nothing in their place'
    return [value if value in quick else _slow(value) for value in values]


def _slow(value: Any) -> Any:
    several = value if isinstance(value, tuple) else (value,)
    return pytest.param(*several, marks=pytest.mark.slow)
