# SPDX-License-Identifier: Apache-2.0
"""Held-out blocks of samples, for validation without another recording."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.validation.repeats import find_repetition
from quad_dynamics.model.model import Model

HELD_OUT = 'held-out blocks'  # name of the hold-out set if there is no other recording
_ONE_OF = 5  # one block of this many is held out
_MOST_BLOCKS, _LEAST_BLOCK = 20, 10  # largest number of blocks, and smallest number of samples of a block
LEAST_SAMPLES = _ONE_OF * _LEAST_BLOCK  # needed to hold out blocks
_GAP = 0.25  # removed on both sides of a held-out block [s]; the reach of filters


def is_held_out(index: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.bool_]:
    """(n,) whether samples are in held-out blocks: every fifth one.

    Args:
        index: (n,) indices of samples.
        total: number of samples.
    """
    size = _block_size(total)
    held: npt.NDArray[np.bool_] = (index // size) % _ONE_OF == _ONE_OF // 2
    return held


def _block_size(total: int) -> int:
    """Number of samples in a block."""
    return -(-total // min(_MOST_BLOCKS, max(total // _LEAST_BLOCK, _ONE_OF)))


def segment_before(segment: Floats) -> Floats:
    """(n,) segments of held-out samples in the recordings: `hold_out` gives each block its own."""
    return np.floor_divide(segment, _MOST_BLOCKS + 1)


def hold_out(samples: Samples, model: Model) -> tuple[Samples, Samples, tuple[str, ...]]:
    """Split samples into training and hold-out set; every fifth block is held out.

    Returns:
        Both, and notes that matter for errors on the hold-out set.

    Raises:
        ArgumentError: too few samples.
    """
    train, test = Samples(model), Samples(model)
    total, get, done = len(samples), samples.layout.get, 0
    if total < LEAST_SAMPLES:
        raise ArgumentError(f'there are {total} samples, too few to hold some out; expected {LEAST_SAMPLES}')
    size = _block_size(total)
    for chunk in samples.chunks():
        rows = chunk.copy()
        index = done + np.arange(len(rows))
        held = is_held_out(index, total)
        dt = float(np.median(np.diff(get(rows, 'time')))) if len(rows) > 1 else 0.0
        gap = min(int(_GAP / dt) if dt > 0.0 else 0, size // 4)
        near = ((index - gap) // size != index // size) | ((index + gap) // size != index // size)
        # Samples that are not adjacent any more belong to different segments.
        get(rows, 'segment')[...] = get(rows, 'segment') * (_MOST_BLOCKS + 1) + index // size
        train.append(rows[~held])
        test.append(rows[held & ~near])
        done += len(rows)
    notes = []
    found = find_repetition(train, test, model)
    if found.is_repetition:
        notes.append(
            f'{100.0 * found.share:.0f} % of the motion in the held-out blocks is in the training blocks as '
            'well (the trajectory is periodic): errors on another trajectory may be larger'
        )
    return train, test, tuple(notes)
