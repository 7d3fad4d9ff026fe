# SPDX-License-Identifier: Apache-2.0
"""Compiles or loads all kernels at once."""

from __future__ import annotations

import quad_dynamics.kernels.all  # noqa: F401 (fills KERNELS)
from quad_dynamics.compiler.registry import KERNELS


def warm_up(progress: bool = True) -> int:
    """Compile or load all kernels now, so that no later call has to wait; returns the number compiled.

    Args:
        progress: show a progress bar on stderr, if it is a terminal.
    """
    from tqdm import tqdm

    compiled = 0
    hidden = None if progress else True  # None: hidden if stderr is not a terminal
    with tqdm(KERNELS.values(), desc='preparing kernels', unit='kernel', disable=hidden) as bar:
        for item in bar:
            bar.set_postfix_str(item.name)
            compiled += item.load(announce=bool(progress and bar.disable))
    return compiled
