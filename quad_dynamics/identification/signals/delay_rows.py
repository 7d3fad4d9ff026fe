# SPDX-License-Identifier: Apache-2.0
"""Equations from which delays are found: of joints, of what contact leaves, or of the base."""

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
_KEPT_ROWS = 100_000  # of recordings whose filtered rows stay in memory
_ARM = 0.2  # on which forces turn the base [m]
# A joint that sticks follows no law of friction: its torque changes before it moves. Of a filtered row at
# most this share may be from such times.
_MOVING = 3e-3
_MODEL = 1e-2  # of a torque that no model explains


@dataclass(frozen=True, eq=False)
class Part:
    """Some samples, and the filtered rows that they are of.

    Attributes:
        plan: of the recording.
        samples: (n, width).
        filtered: all rows around.
        at: (n,) which of them.
    """

    plan: Plan
    samples: Floats
    filtered: Filtered
    at: Ints


class Parts:
    """Samples of all recordings, not too many; they can be gone through again and again.

    Attributes:
        longest: shift for which there is room [s].
        cutoff: of the filter [Hz].
    """

    def __init__(self, plans: Sequence[Plan], longest: float) -> None:
        self.longest, self.cutoff = longest, plans[0].low_pass.cutoff
        self._plans = plans
        self._kept: list[Part] = []

    def __iter__(self) -> Iterator[Part]:
        if self._kept:
            yield from self._kept
            return
        few = sum(len(plan.grid) for plan in self._plans) <= _KEPT_ROWS
        for part in self._made():
            if few:
                self._kept.append(part)
            yield part

    def _made(self) -> Iterator[Part]:
        layout = Samples(self._plans[0].model).layout
        expected = sum(len(plan.grid) // plan.step for plan in self._plans)
        every = max(1, -(-expected // _MOST))
        for plan in self._plans:
            for rows, filtered, at in make_samples(plan, layout, self.longest, self.longest, 0, Counts()):
                if len(rows[::every]):
                    yield Part(plan, rows[::every], filtered, at[::every])


@dataclass(frozen=True, eq=False)
class DelayEquations:
    """Y x = constant + map shifted(signal), row by row of (n, r).

    Attributes:
        Y: (n, r, size).
        constant: (n, r).
        map: (n, r, k).
        signal: all filtered rows (m, k).
        at: (n,) which of them.
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
        """(n r, k) weighted rows (n, r, k)."""
        if self.weights.ndim == 3:
            return (self.weights @ values).reshape(-1, values.shape[2])
        return (self.weights[..., None] * values).reshape(-1, values.shape[2])

    def weighted(self, tried: Floats) -> tuple[Floats, Floats]:
        """(n r, size) and (n r, tried), of all delays."""
        C = np.repeat(self.constant[..., None], len(tried), axis=2)
        for k, delay in enumerate(tried):
            C[..., k] += np.einsum('nrk,nk->nr', self.map, shifted(self.signal, delay * self.rate, self.at))
        return self.weigh(self.Y), self.weigh(C)


class Rows(abc.ABC):
    """Makes equations of samples.

    Attributes:
        columns: the unknowns.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    @abc.abstractmethod
    def equations(self, part: Part, step: int) -> DelayEquations:
        """Equations of the samples, or of the states some rows later."""

    def rates(self, part: Part, equations: DelayEquations, x: Floats, delay: float) -> Floats:
        """(n r,) weighted rates at which what is shifted should change.

        Args:
            part: samples.
            equations: of the samples.
            x: (size,) the unknowns.
            delay: that x belongs to [s].
        """
        after, before = self.equations(part, 1), self.equations(part, -1)
        change = (after.Y @ x - after.constant) - (before.Y @ x - before.constant)
        return equations.weigh(0.5 * equations.rate * change[..., None])[:, 0]

    def _raw(self, part: Part, step: int) -> tuple[Equations, Floats, Floats, Floats]:
        """Equations without torques and forces; samples, Y (n, nv, size), and what is known (n, nv)."""
        samples, model = Samples(part.plan.model), part.plan.model
        mode = 'forces' if model.floating_base else 'fixed'
        equations = Equations(samples, self.columns, mode, first_noise(self.columns, False))
        rows = part.samples.copy()
        for name in ('tau', 'force', 'dtau', 'dforce'):
            samples.layout.get(rows, name)[...] = 0.0
        if step:
            for name in ('q', 'u', 'du', 'sign'):
                samples.layout.get(rows, name)[...] = getattr(part.filtered, name)[part.at + step]
        return equations, rows, *equations.raw(rows)

    def _use(self, part: Part, equations: Equations, rows: Floats) -> Floats:
        """(n, nv) 1 where a row counts."""
        use = equations.use(rows)
        use[:, -part.plan.model.nj :] *= part.filtered.unknown[part.at] < _MOVING
        return use


class JointRows(Rows):
    """Rows of the joints, with forces at the feet where they are measured."""

    def __init__(self, columns: Columns, force_delay: float) -> None:
        super().__init__(columns)
        self._force_delay = force_delay

    def equations(self, part: Part, step: int) -> DelayEquations:
        """See `Rows`."""
        plan, nj = part.plan, part.plan.model.nj
        equations, rows, Y, constant = self._raw(part, step)
        if plan.model.floating_base:
            force = shifted(part.filtered.force, self._force_delay * plan.grid.rate, part.at + step)
            constant = constant + np.einsum('nkv,nk->nv', equations.foot_jacobians(rows), force)
        # torques are as unsure as their noise after the filter, and a little of what they are
        kept = np.sqrt(2.0 * plan.low_pass.cutoff / plan.grid.rate)  # of white noise
        unsure = np.hypot(kept * plan.torque_noise, _MODEL * plan.torque_spread)
        weights = self._use(part, equations, rows)[:, -nj:] / np.maximum(unsure, 1e-9)
        place = np.broadcast_to(np.eye(nj), (len(rows), nj, nj))
        signal = part.filtered.tau
        return DelayEquations(Y[:, -nj:], constant[:, -nj:], place, signal, part.at, plan.grid.rate, weights)


class ContactRows(Rows):
    """All rows, without what forces at standing feet can do; for forces that were not measured."""

    def equations(self, part: Part, step: int) -> DelayEquations:
        """See `Rows`."""
        plan, nv, nj = part.plan, part.plan.model.nv, part.plan.model.nj
        equations, rows, Y, constant = self._raw(part, step)
        Y[..., self.columns.slices['bias']] = 0.0
        # rows that do not count are like unknown forces
        unknown = (1.0 - self._use(part, equations, rows))[..., None] * np.eye(nv)
        constraints = np.concatenate([equations.foot_jacobians(rows), unknown], axis=1)
        P = np.eye(nv) - np.linalg.pinv(constraints, rcond=1e-9) @ constraints
        place = np.broadcast_to(np.eye(nv)[:, nv - nj :], (len(rows), nv, nj))
        signal = part.filtered.tau
        return DelayEquations(Y, constant, place, signal, part.at, plan.grid.rate, P)

    def rates(self, part: Part, equations: DelayEquations, x: Floats, delay: float) -> Floats:
        """See `Rows`; torques depend on forces that are unknown, so that their own rates are taken."""
        rate = equations.rate
        later, signal = delay * rate, equations.signal
        change = shifted(signal, later + 1.0, equations.at) - shifted(signal, later - 1.0, equations.at)
        changes = np.einsum('nrk,nk->nr', equations.map, 0.5 * rate * change)
        return equations.weigh(changes[..., None])[:, 0]


class BaseRows(Rows):
    """The six rows of the base, which no torque of a joint enters."""

    def equations(self, part: Part, step: int) -> DelayEquations:
        """See `Rows`."""
        equations, rows, Y, constant = self._raw(part, step)
        J = equations.foot_jacobians(rows)[..., :6]
        weights = np.broadcast_to(np.repeat([1.0, 1.0 / _ARM], 3), (len(rows), 6))
        return DelayEquations(
            Y[:, :6],
            constant[:, :6],
            np.swapaxes(J, 1, 2),
            part.filtered.force,
            part.at,
            part.plan.grid.rate,
            weights,
        )
