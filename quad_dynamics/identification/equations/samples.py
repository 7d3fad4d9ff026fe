# SPDX-License-Identifier: Apache-2.0
"""Samples: data of a bag after filtering, differentiation and resampling to one clock.

Samples are rows of numbers. Long recordings are stored in a temporary file, so memory does not grow with the
bag.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

_RATES = ('dtau', 'dforce')

CHUNK = 1024  # rows that are processed at once
_MOST_IN_MEMORY = 4 * CHUNK  # rows beyond which a file is used


class SampleLayout:
    """Position of each quantity of a sample in its row.

    Attributes:
        width: length of a row.
        sizes: length of each quantity, by name:
            time: since the beginning of its bag [s].
            segment: number of the segment of evenly spaced samples. Segments do not cross a gap, an impact,
                or the end of a bag.
            q: (nq,) configuration; u: (nv,) velocity; du: (nv,) acceleration.
            tau: (nj,) motor torque, corrected for its delay [N m or N].
            sign: (nj,) of the velocity, filtered like all other signals: between -1 and 1 near a reversal.
            use: (nj,) 1 if the row of the joint is used; 0 near rest, at the torque limit, in an outlier.
            force: (3 feet,) of the ground on each foot, in world axes [N]; 0 if it was not measured.
            stance: (feet,) 1 if the foot is on the ground, 0 if it is in the air.
            dtau: (nj,) rate of tau [N m/s or N/s], and dforce: (3 feet,) of force [N/s]: used to estimate
                residual delays. 0 if they are not given.
    """

    def __init__(self, model: Model) -> None:
        feet = len(model.foot_names) if model.floating_base else 0
        self.sizes = {
            'time': 1,
            'segment': 1,
            'q': model.nq,
            'u': model.nv,
            'du': model.nv,
            'tau': model.nj,
            'sign': model.nj,
            'use': model.nj,
            'force': 3 * feet,
            'stance': feet,
            'dtau': model.nj,
            'dforce': 3 * feet,
        }
        ends = np.cumsum(list(self.sizes.values()))
        self._slices = {
            name: slice(int(end) - size, int(end))
            for (name, size), end in zip(self.sizes.items(), ends, strict=True)
        }
        self.width = int(ends[-1])

    def get(self, rows: Floats, name: str) -> Floats:
        """(n, size) view of one quantity of n rows; time and segment are (n,)."""
        part = rows[:, self._slices[name]]
        return part[:, 0] if name in ('time', 'segment') else part

    def join(self, **quantities: npt.ArrayLike) -> Floats:
        """(n, width) rows from all quantities, each (n, size); time and segment (n,). Rates are optional.

        Raises:
            ArgumentError: a quantity is missing or unknown, or has another shape.
        """
        if set(self.sizes) - set(quantities) - set(_RATES) or set(quantities) - set(self.sizes):
            raise ArgumentError(f'samples have {sorted(quantities)}; expected {sorted(self.sizes)}')
        n = len(np.atleast_1d(quantities['time']))
        rows = np.zeros((n, self.width))
        for name, values in quantities.items():
            wanted = (n,) if name in ('time', 'segment') else (n, self.sizes[name])
            given = np.asarray(values, dtype=np.float64)
            if given.shape != wanted:
                raise ArgumentError(f'{name} has the shape {given.shape}; expected {wanted}')
            self.get(rows, name)[...] = given
        return rows


class Samples:
    """All samples of one or several bags, in time order; they can be read repeatedly in chunks.

    Attributes:
        layout: of each row.
    """

    def __init__(self, model: Model) -> None:
        self.layout = SampleLayout(model)
        self._parts: list[Floats] = []
        self._in_memory = self._in_file = 0
        self._file: BinaryIO | None = None

    def __len__(self) -> int:
        return self._in_memory + self._in_file

    def append(self, rows: Floats) -> None:
        """Add (n, width) rows.

        Raises:
            ArgumentError: the width is wrong, or a number is not finite.
        """
        if rows.ndim != 2 or rows.shape[1] != self.layout.width:
            raise ArgumentError(f'rows have the shape {rows.shape}; expected (n, {self.layout.width})')
        if not np.isfinite(rows).all():
            raise ArgumentError('a sample holds a number that is not finite')
        self._parts.append(np.array(rows))
        self._in_memory += len(rows)
        if self._in_memory > _MOST_IN_MEMORY:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.seek(0, 2)
            for part in self._parts:
                part.tofile(self._file)
            self._in_file += self._in_memory
            self._in_memory = 0
            self._parts.clear()

    def chunks(self, size: int = CHUNK) -> Iterator[Floats]:
        """All rows, in chunks of `size`; the last chunk may be shorter."""
        done = 0
        while self._file is not None and done < self._in_file:
            # Seek every time: others may read the same file between two chunks.
            self._file.seek(done * self.layout.width * 8)
            count = min(size, self._in_file - done)
            rows = np.fromfile(self._file, count=count * self.layout.width)
            done += count
            yield rows.reshape(count, self.layout.width)
        rest = np.concatenate(self._parts) if self._parts else np.empty((0, self.layout.width))
        for begin in range(0, len(rest), size):
            yield rest[begin : begin + size]

    def all(self) -> Floats:
        """All rows at once; only for short bags."""
        return np.concatenate([*self.chunks(), np.empty((0, self.layout.width))])
