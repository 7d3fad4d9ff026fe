# SPDX-License-Identifier: Apache-2.0
"""Colours of the page."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

GREY = (0.72, 0.74, 0.77, 1.0)  # of shapes without a material
BRAND = (36, 99, 181)
SKY = (226, 235, 244)
PUSH = (174, 62, 201)  # of the arrow that shows a push before it acts
STAND_IN = (0.05, 0.58, 0.55, 1.0)  # of shapes that stand in for a mesh that cannot be shown
# Of legs, in plots.
LINES = ('#2463b5', '#e8590c', '#2f9e44', '#ae3ec9', '#0c8599', '#c92a2a', '#f08c00', '#495057')


def linear(rgba: Iterable[float]) -> npt.NDArray[np.uint8]:
    """A colour for GLB, which is linear, while files have sRGB colours.

    Args:
        rgba: (4,) from 0 to 1.

    Returns:
        (4,) from 0 to 255.
    """
    r, g, b, a = rgba
    light = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (r, g, b)]
    return np.clip(np.round(np.array([*light, a]) * 255.0), 0, 255).astype(np.uint8)


_LINEAR_BYTES = np.array([linear((x / 255.0, 0.0, 0.0, 1.0))[0] for x in range(256)])


def linear_bytes(colors: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Colours (..., 3) for viser's lines, arrows and fog, which it draws as linear colours."""
    return _LINEAR_BYTES[colors]
