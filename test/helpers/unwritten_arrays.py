# SPDX-License-Identifier: Apache-2.0
"""Lets arrays that are allocated without a value start as never written, for kernels that are interpreted.

Install it before anything else of quad_dynamics is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.ma

from quad_dynamics.compiler.interpreter import mark_unwritten


def install() -> None:
    """Replace `np.empty`, and the allocator of results of several arrays."""
    np.empty = marked  # type: ignore[assignment]

    from quad_dynamics.compiler.allocation import new_arrays

    new_arrays.run = _new_arrays


def marked(shape: Any, dtype: Any = float, *_: Any, **__: Any) -> np.ndarray:
    """A new array in which no float was written."""
    made = np.zeros(shape, dtype)
    if made.dtype == np.float64:
        mark_unwritten(made)
    return made


def _new_arrays(kind: Any, words: Any) -> Any:
    shapes, at = [], 1
    for _ in range(words[0]):
        shapes.append(tuple(words[at + 1 : at + 1 + words[at]]))
        at += 1 + words[at]
    return kind(*map(marked, shapes))
