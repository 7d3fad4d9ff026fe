# SPDX-License-Identifier: Apache-2.0
"""Equations for the estimation of delays: joint rows, rows projected off the contact forces, or base rows."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.signals.interpolation import shifted
from quad_dynamics.identification.signals.sampling import Counts, Filtered, Plan, make_samples

_MOST = 4000  # samples that are used
_KEPT_ROWS = 100_000  # rows of recordings up to which filtered rows are kept in memory
_ARM = 0.2  # lever arm of forces on the base [m]
# A sticking joint follows no friction law: its torque changes before it moves. At most this share of a
# filtered row may come from such times.
_MOVING = 3e-3
_MODEL = 1e-2  # relative error of torques of the model


@dataclass(frozen=True, eq=False)
class SampleChunk:
    """Some samples, and the filtered rows from which they were taken.

    Attributes:
        plan: of the recording.
        samples: (n, width).
        filtered: all rows around them.
        at: (n,) indices of the samples in these rows.
    """

    plan: Plan
    samples: Floats
    filtered: Filtered
    at: Ints


class SampleChunks:
    """A limited number of samples of all recordings, for repeated iteration.

    Attributes:
        longest: largest possible shift [s].
        cutoff: of the filter [Hz].
    """

    def __init__(self, plans: Sequence[Plan], longest: float) -> None:
        self.longest, self.cutoff = longest, plans[0].low_pass.cutoff
        self._plans = plans
        self._kept: list[SampleChunk] = []

    def __iter__(self) -> Iterator[SampleChunk]:
        if self._kept:
            yield from self._kept
            return
        few = sum(len(plan.grid) for plan in self._plans) <= _KEPT_ROWS
        for chunk in self._made():
            if few:
                self._kept.append(chunk)
            yield chunk

    def _made(self) -> Iterator[SampleChunk]:
        layout = Samples(self._plans[0].model).layout
        expected = sum(len(plan.grid) // plan.step for plan in self._plans)
        every = max(1, -(-expected // _MOST))
        for plan in self._plans:
            for rows, filtered, at in make_samples(plan, layout, self.longest, self.longest, 0, Counts()):
                if len(rows[::every]):
                    yield SampleChunk(plan, rows[::every], filtered, at[::every])


@dataclass(frozen=True, eq=False)
class DelayEquations:
    """Y x = constant + map shifted(signal), for rows (n, r).

    Attributes:
        Y: (n, r, size).
        constant: (n, r).
        map: (n, r, k).
        signal: all filtered rows (m, k).
        at: (n,) indices in these rows.
        rate: of the rows [Hz].
        weights: (n, r, r) or (n, r).
    """

    Y: Floats
    constant: Floats
    map: Floats
    signal: Floats
    at: Ints
    rate: float
    weights: Floats

    def weigh(self, values: Floats) -> Floats:
        """(n r, k) weighted rows, from (n, r, k)."""
        if self.weights.ndim == 3:
            return (self.weights @ values).reshape(-1, values.shape[2])
        return (self.weights[..., None] * values).reshape(-1, values.shape[2])

    def weighted(self, tried: Floats) -> tuple[Floats, Floats]:
        """(n r, size) and (n r, tried), for all delays."""
        C = np.repeat(self.constant[..., None], len(tried), axis=2)
        for k, delay in enumerate(tried):
            C[..., k] += np.einsum('nrk,nk->nr', self.map, shifted(self.signal, delay * self.rate, self.at))
        return self.weigh(self.Y), self.weigh(C)


class Rows(abc.ABC):
    """Creates equations from samples.

    Attributes:
        columns: the unknowns.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    @abc.abstractmethod
    def equations(self, chunk: SampleChunk, step: int) -> DelayEquations:
        """Equations of the samples, or of the states some rows later."""

    def rates(self, chunk: SampleChunk, equations: DelayEquations, x: Floats, delay: float) -> Floats:
        """(n r,) weighted rates of the predicted values of the shifted signal.

        Args:
            chunk: samples.
            equations: of the samples.
            x: (size,) the unknowns.
            delay: for which x was fitted [s].
        """
        after, before = self.equations(chunk, 1), self.equations(chunk, -1)
        change = (after.Y @ x - after.constant) - (before.Y @ x - before.constant)
        return equations.weigh(0.5 * equations.rate * change[..., None])[:, 0]

    def _raw(self, chunk: SampleChunk, step: int) -> tuple[Equations, Floats, Floats, Floats]:
        """Equations without torques and forces: samples, Y (n, nv, size), and the known part (n, nv)."""
        samples, model = Samples(chunk.plan.model), chunk.plan.model
        mode = 'forces' if model.floating_base else 'fixed'
        equations = Equations(samples, self.columns, mode, first_noise(self.columns, False))
        rows = chunk.samples.copy()
        for name in ('tau', 'force', 'dtau', 'dforce'):
            samples.layout.get(rows, name)[...] = 0.0
        if step:
            for name in ('q', 'u', 'du', 'sign'):
                samples.layout.get(rows, name)[...] = getattr(chunk.filtered, name)[chunk.at + step]
        return equations, rows, *equations.raw(rows)

    def _use(self, chunk: SampleChunk, equations: Equations, rows: Floats) -> Floats:
        """(n, nv) 1 where a row is used."""
        use = equations.use(rows)
        use[:, -chunk.plan.model.nj :] *= chunk.filtered.unknown[chunk.at] < _MOVING
        return use


class JointRows(Rows):
    """Joint rows, with foot forces if they are measured."""

    def __init__(self, columns: Columns, force_delay: float) -> None:
        super().__init__(columns)
        self._force_delay = force_delay

    def equations(self, chunk: SampleChunk, step: int) -> DelayEquations:
        """See `Rows`."""
        plan, nj = chunk.plan, chunk.plan.model.nj
        equations, rows, Y, constant = self._raw(chunk, step)
        if plan.model.floating_base:
            force = shifted(chunk.filtered.force, self._force_delay * plan.grid.rate, chunk.at + step)
            constant = constant + np.einsum('nkv,nk->nv', equations.foot_jacobians(rows), force)
        # error of torques: their noise after the filter, and a fraction of their size
        kept = np.sqrt(2.0 * plan.low_pass.cutoff / plan.grid.rate)  # of white noise
        unsure = np.hypot(kept * plan.torque_noise, _MODEL * plan.torque_spread)
        weights = self._use(chunk, equations, rows)[:, -nj:] / np.maximum(unsure, 1e-9)
        place = np.broadcast_to(np.eye(nj), (len(rows), nj, nj))
        signal = chunk.filtered.tau
        return DelayEquations(Y[:, -nj:], constant[:, -nj:], place, signal, chunk.at, plan.grid.rate, weights)


class ContactRows(Rows):
    """All rows, projected off the forces of feet in stance; for forces that were not measured."""

    def equations(self, chunk: SampleChunk, step: int) -> DelayEquations:
        """See `Rows`."""
        plan, nv, nj = chunk.plan, chunk.plan.model.nv, chunk.plan.model.nj
        equations, rows, Y, constant = self._raw(chunk, step)
        Y[..., self.columns.slices['bias']] = 0.0
        # unused rows are treated like unknown forces
        unknown = (1.0 - self._use(chunk, equations, rows))[..., None] * np.eye(nv)
        constraints = np.concatenate([equations.foot_jacobians(rows), unknown], axis=1)
        P = np.eye(nv) - np.linalg.pinv(constraints, rcond=1e-9) @ constraints
        place = np.broadcast_to(np.eye(nv)[:, nv - nj :], (len(rows), nv, nj))
        signal = chunk.filtered.tau
        return DelayEquations(Y, constant, place, signal, chunk.at, plan.grid.rate, P)

    def rates(self, chunk: SampleChunk, equations: DelayEquations, x: Floats, delay: float) -> Floats:
        """See `Rows`; torques depend on unknown forces, so the rates of the measured torques are used."""
        rate = equations.rate
        later, signal = delay * rate, equations.signal
        change = shifted(signal, later + 1.0, equations.at) - shifted(signal, later - 1.0, equations.at)
        changes = np.einsum('nrk,nk->nr', equations.map, 0.5 * rate * change)
        return equations.weigh(changes[..., None])[:, 0]


class BaseRows(Rows):
    """The six base rows, which do not contain joint torques."""

    def equations(self, chunk: SampleChunk, step: int) -> DelayEquations:
        """See `Rows`."""
        equations, rows, Y, constant = self._raw(chunk, step)
        J = equations.foot_jacobians(rows)[..., :6]
        weights = np.broadcast_to(np.repeat([1.0, 1.0 / _ARM], 3), (len(rows), 6))
        return DelayEquations(
            Y[:, :6],
            constant[:, :6],
            np.swapaxes(J, 1, 2),
            chunk.filtered.force,
            chunk.at,
            chunk.plan.grid.rate,
            weights,
        )
