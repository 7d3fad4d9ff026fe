# SPDX-License-Identifier: Apache-2.0
"""Held-out blocks of samples, for validation without another recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.validation.repeats import find_repetition
from quad_dynamics.model.model import Model

HELD_OUT = 'held-out blocks'  # name of the hold-out set if there is no other recording
_ONE_OF = 5  # one block of this many is held out
_MOST_BLOCKS, _LEAST_BLOCK = 20, 10  # largest number of blocks, and smallest number of samples of a block
LEAST_SAMPLES = _ONE_OF * _LEAST_BLOCK  # needed to hold out blocks
_GAP = 0.25  # margins of a held-out block [s]; the reach of filters


@dataclass(frozen=True)
class Blocks:
    """Blocks of adjacent samples, of which every fifth is held out.

    Filters connect the first and last samples of a held-out block with fitted samples. These margins are
    neither fitted nor judged.

    Attributes:
        size: number of samples of a block.
        margin: number of samples at both ends of a held-out block that are not judged.
    """

    size: int
    margin: int

    def held(self, index: npt.NDArray[np.int64]) -> Bools:
        """(n,) whether the samples with these indices are in held-out blocks, and so not fitted."""
        return np.asarray((index // self.size) % _ONE_OF == _ONE_OF // 2, dtype=np.bool_)

    def judged(self, index: npt.NDArray[np.int64]) -> Bools:
        """(n,) whether these samples are in the hold-out set: in held-out blocks, without their margins."""
        inside = np.minimum(index % self.size, self.size - 1 - index % self.size) >= self.margin
        return np.asarray(self.held(index) & inside, dtype=np.bool_)


def blocks_of(samples: Samples) -> Blocks:
    """The blocks into which `hold_out` divides samples."""
    total = len(samples)
    size = max(-(-total // min(_MOST_BLOCKS, max(total // _LEAST_BLOCK, _ONE_OF))), 1)
    steps = [
        float(np.median(np.diff(samples.layout.get(rows, 'time'))))
        for rows in samples.chunks()
        if len(rows) > 1
    ]
    period = min((step for step in steps if step > 0.0), default=np.inf)  # of recordings with several rates
    return Blocks(size, min(int(_GAP / period), size // 4))


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
    blocks = blocks_of(samples)
    for chunk in samples.chunks():
        rows = chunk.copy()
        index = done + np.arange(len(rows))
        # Samples that are not adjacent any more belong to different segments.
        get(rows, 'segment')[...] = get(rows, 'segment') * (_MOST_BLOCKS + 1) + index // blocks.size
        train.append(rows[~blocks.held(index)])
        test.append(rows[blocks.judged(index)])
        done += len(rows)
    notes = []
    found = find_repetition(train, test, model)
    if found.is_repetition:
        notes.append(
            f'{100.0 * found.share:.0f} % of the motion in the held-out blocks is in the training blocks as '
            'well (the trajectory is periodic): errors on another trajectory may be larger'
        )
    return train, test, tuple(notes)
