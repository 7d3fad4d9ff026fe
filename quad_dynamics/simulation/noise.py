# SPDX-License-Identifier: Apache-2.0
"""Noise as a function of the sample index, independent of history.

Sample k of a stream depends only on the seed, the stream's name and k. Therefore no generator state has to be
saved with a simulation; a sensor that is read twice in one step returns the same values; and a sensor that is
not read, or is switched on or off, does not affect the others.

Samples are generated in blocks. Each block has its own generator, seeded with these numbers.
"""

from __future__ import annotations

import zlib

import numpy as np

from quad_dynamics.array_types import Floats

# Samples per block: enough that the cost of a new generator does not matter, and few enough to compute at
# once.
_BLOCK = 256


class NormalStream:
    """Independent normal vectors with zero mean."""

    def __init__(self, seed: int, name: str, width: int, scale: float = 1.0) -> None:
        """Set up the stream.

        Args:
            seed: common to all streams of a simulation.
            name: name of this stream; other names give independent streams.
            width: length of each sample.
            scale: standard deviation of the samples.
        """
        self._seed, self._scale = seed, scale
        self._key = zlib.crc32(name.encode())
        self._width = width
        self._number = -1
        self._samples: Floats = np.empty((0, width))

    def block(self, number: int) -> Floats:
        """(_BLOCK, width) samples of a block; the last block is cached."""
        if number != self._number:
            source = np.random.SeedSequence(self._seed, spawn_key=(self._key, number))
            generator = np.random.Generator(np.random.PCG64(source))
            self._samples = self._scale * generator.standard_normal((_BLOCK, self._width))
            self._samples.setflags(write=False)
            self._number = number
        return self._samples

    def sample(self, k: int) -> Floats:
        """(width,) sample k >= 0; read-only."""
        number, index = divmod(k, _BLOCK)
        sample: Floats = self.block(number)[index]
        return sample


class WalkStream:
    """A random walk: sample k is the sum of the first k vectors of a normal stream, and sample 0 is zero.

    Its variance is k. The sums up to the start of each block are cached and always added in the same order,
    so samples do not depend on the order of access.
    """

    def __init__(self, seed: int, name: str, width: int) -> None:
        """Set up the stream; for the arguments see `NormalStream`."""
        self._increments = NormalStream(seed, name, width)
        self._starts: list[Floats] = [np.zeros(width)]
        self._number = -1
        self._sums: Floats = np.empty((0, width))

    def block(self, number: int) -> Floats:
        """(_BLOCK + 1, width) sums from the start of a block to the start of the next one."""
        while len(self._starts) <= number:
            self._starts.append(self._sums_of(len(self._starts) - 1)[-1])
        if number != self._number:
            self._sums = self._sums_of(number)
            self._number = number
        return self._sums

    def _sums_of(self, number: int) -> Floats:
        start = self._starts[number]
        sums: Floats = np.cumsum(np.concatenate([start[None], self._increments.block(number)]), axis=0)
        return sums

    def sample(self, k: int) -> Floats:
        """(width,) sample k >= 0."""
        number, index = divmod(k, _BLOCK)
        sample: Floats = self.block(number)[index].copy()
        return sample
