# SPDX-License-Identifier: Apache-2.0
"""Sums over many samples: chunks are processed by the compiled kernel in several threads.

Chunks are added in a fixed order, so the sums do not depend on the number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from quad_dynamics.api.validation import packed_form
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.equations.columns import JOINT_KINDS, Columns
from quad_dynamics.kernels.regression.whitened_equations import accumulate_whitened

_WIDE = 8  # the kernel needs a multiple of this many columns

_In = TypeVar('_In')
_Out = TypeVar('_Out')


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs of the kernel for n samples; see `accumulate_whitened`.

    Attributes:
        q: (n, nq); u: (n, nv); du: (n, nv) motion.
        variance: (n, nv) of the errors of the measured forces.
        J: (n, 3 feet, nv) Jacobians of the feet times the standard deviation of their forces.
        own: (n, nj, kinds) columns of each joint, without that of its rotor.
        shared: (n, nv, shared + 1) columns of sensor errors, and measured generalised forces.
    """

    q: Floats
    u: Floats
    du: Floats
    variance: Floats
    J: Floats
    own: Floats
    shared: Floats

    def __len__(self) -> int:
        return len(self.q)


class Summation:
    """Calls the kernel, which has its columns in another order and only those that are needed.

    Attributes:
        places: (size,) index of each of its columns among all columns.
        width: number of columns of the kernel, with the measurements and zero padding.
    """

    def __init__(self, columns: Columns, kinds: Sequence[str], shared: Sequence[str]) -> None:
        """Determine the order of the columns.

        Args:
            columns: the unknowns.
            kinds: unknowns of joints that are needed, in the order of JOINT_KINDS; rotors are always
                included.
            shared: sensor unknowns that are needed: 'bias', 'delay'.
        """
        model = columns.model
        self._columns, self._n_own = columns, len(kinds)
        base = model.nb - model.nj
        places = list(range(10 * base))
        for j in range(model.nj):
            places += range(10 * (base + j), 10 * (base + j + 1))
            places.append(columns.slices['rotor'].start + j)
            places += [columns.slices[kind].start + j for kind in kinds]
        alone = len(places)
        for kind in shared:
            places += range(columns.slices[kind].start, columns.slices[kind].stop)
        self.places: Ints = np.array(places)
        self.width = -(-(len(places) + 1) // _WIDE) * _WIDE  # with padding, and the measurements
        self._n_shared = self.width - alone

    @property
    def size(self) -> int:
        """Number of columns, without the measurements."""
        return len(self.places)

    def add(self, rows: Rows, x_robust: Floats | None) -> Floats:
        """(width, width) upper triangle of [Y y]^T W [Y y] of some samples; pass the sum to `spread`."""
        YtY = np.zeros((self.width, self.width))
        self._run(rows, x_robust, None, YtY, None)
        return YtY

    def scores(self, rows: Rows, x_robust: Floats | None, x: Floats) -> Floats:
        """(n, size) Y^T W (y - Y x) of each sample."""
        out = np.empty((len(rows), self.width))
        self._run(rows, x_robust, x, None, out)
        return out[:, : self.size]

    def _run(self, rows: Rows, x_robust: Floats | None, x: Floats | None, *results: Floats | None) -> None:
        model = self._columns.model
        nv, p = model.nv, self.width
        room = np.empty(nv * (2 * p + nv + 1) + 12 * p)
        solutions = [None if one is None else self._with_measurement(one) for one in (x_robust, x)]
        parts = [np.ascontiguousarray(part) for part in vars(rows).values()]
        parts[-1] = self._padded(parts[-1])
        counts = rows.J.shape[1], self._n_own, self._n_shared
        with packed_form(model).workspace() as address:
            status = accumulate_whitened.run_unlocked(
                address, len(rows), *parts, *counts, *solutions, room, *results
            )
        if status:
            name = ('q', 'u', 'du', 'variance')[status - 1]
            raise ValueError(f'{name} of a sample is not what the kernel expects')  # samples were validated

    def _with_measurement(self, x: Floats) -> Floats:
        """A solution in the order of the kernel; rows times this vector are predicted minus measured."""
        padded, total = np.zeros(self.width), x + self._columns.known
        total[self._columns.slices['pi']] += self._columns.carried @ x[self._columns.slices['rotor']]
        padded[: self.size] = total[self.places]
        padded[-1] = -1.0
        return padded

    def _padded(self, shared: Floats) -> Floats:
        """The shared columns, with zero columns before the measurements."""
        n, nv, given = shared.shape
        padded = np.zeros((n, nv, self._n_shared))
        padded[..., : given - 1] = shared[..., :-1]
        padded[..., -1] = shared[..., -1]
        return padded

    def spread(self, YtY: Floats) -> tuple[Floats, Floats, float]:
        """Y^T W Y, Y^T W y and y^T W y in the order of all columns, y without the known part.

        Args:
            YtY: (width, width) sum of what `add` returns.
        """
        known = self._columns.known
        full, right = self.in_order(self.symmetric(YtY[: self.size, : self.size])), np.zeros(len(known))
        right[self.places] = YtY[: self.size, -1]
        self._columns.carry(right)
        square = float(YtY[-1, -1]) - 2.0 * float(known @ right) + float(known @ full @ known)
        return full, right - full @ known, square

    def in_order(self, products: Floats) -> Floats:
        """Sums of products (size, size) of the kernel's columns, whose rotors only spin, for all columns."""
        full = np.zeros((self._columns.size, self._columns.size))
        full[np.ix_(self.places, self.places)] = products
        self._columns.carry(full)
        self._columns.carry(full.T)
        return self.symmetric(full)

    @staticmethod
    def symmetric(upper: Floats) -> Floats:
        """The full matrix from its upper triangle."""
        return np.triu(upper) + np.triu(upper, 1).T


def in_threads(work: Callable[[_In], _Out], items: Iterable[_In]) -> Iterator[_Out]:
    """work(item) for all items, in their order, on all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1
    waiting: list[Future[_Out]] = []
    with ThreadPoolExecutor(cores) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > cores:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def own_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """The kinds of joint unknowns other than rotors, in the order of JOINT_KINDS."""
    wanted = set(kinds)
    return tuple(kind for kind in JOINT_KINDS if kind in wanted and kind != 'rotor')
