# SPDX-License-Identifier: Apache-2.0
"""Errors of predicted torques on data that were not fitted: before, after, and the lowest possible."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.held_out import HELD_OUT
from quad_dynamics.identification.validation.leg_spreads import Spread, leg_spreads
from quad_dynamics.identification.validation.offset_changes import offset_notes
from quad_dynamics.identification.validation.replay import Replay, replay

_NEGLIGIBLE = 1e-9  # directions with singular values below this fraction of the largest are not fitted
# Rows for each fitted parameter that a floor needs. A fit to n rows with p parameters lowers the RMS error of
# pure noise by a factor of sqrt(1 - p / n), which is 0.9 for five.
_ROWS_PER_PARAMETER = 5.0
_WITH_FLOOR = 0.9  # share of the rows that must have a floor for a pooled one


@dataclass(frozen=True, eq=False)
class Errors:
    """Root mean squares of measured minus predicted torques, one for each row.

    Attributes:
        names: of the rows: 'base force', 'base moment' (norms of these vectors), then the joints.
        units: of each row.
        measured: (rows,) RMS of the measurements; NaN for a base without force sensors.
        before: (rows,) RMS of measured minus predicted, with the original model including its friction.
        after: (rows,) the same with the solution.
        floor: (rows,) the same with a least-squares fit to these samples themselves: no parameters do much
            better. If `after` is lower (the fit weights all rows together), its value. NaN if there are too
            few samples for the number of parameters, which then fit their noise.
        samples: (rows,) number of used samples; `sampling.UNUSED_ROWS` says which are not.
        total: number of all samples.
        every: (3, rows) RMS of the measurements, before and after, over all rows including unused ones; NaN
            for joints whose torque is unknown.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    measured: Floats
    before: Floats
    after: Floats
    floor: Floats
    samples: npt.NDArray[np.int64]
    total: int
    every: Floats

    def relative(self, errors: Floats) -> Floats:
        """Errors relative to the measurements, both RMS."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.asarray(errors / self.measured)

    @property
    def left_out(self) -> Floats:
        """(rows,) share of unused rows."""
        return np.asarray(1.0 - self.samples / max(self.total, 1))

    @property
    def relative_every(self) -> Floats:
        """(2, rows) errors before and after over all rows, relative to the measurements over all rows."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.asarray(self.every[1:] / self.every[0])


@dataclass(frozen=True)
class Pooled:
    """One value for all joints: RMS error over all their rows, relative to the RMS measured in these rows.

    Joints with large torques have more weight than those with small ones, as in the sum of squares. If a
    robot has base rows only, it is the value of the base force.

    Attributes:
        name: 'all joints' or 'base force'.
        unit: of the errors; 'N m, N' if joints of both kinds are pooled as numbers.
        rms: RMS errors before and after, and the floor; the latter is NaN if more than a tenth of the rows
            has none.
        relative: the same relative to the RMS measured.
        left_out: share of unused rows.
        every: relative errors before and after over all rows, including unused ones.
    """

    name: str
    unit: str
    rms: tuple[float, float, float]
    relative: tuple[float, float, float]
    left_out: float
    every: tuple[float, float]


def pooled(errors: Errors) -> Pooled:
    """The pooled value for all joints; NaN if no row is used."""
    joints = [i for i, name in enumerate(errors.names) if name not in ('base force', 'base moment')]
    # a joint without torques, such as that of a gripper, is not left out: it was not recorded
    rows = [i for i in joints if np.isfinite(errors.every[0, i])] or joints or [0]
    weights = np.where(np.isfinite(errors.measured[rows]), errors.samples[rows], 0).astype(np.float64)

    def mean(values: Floats, weight: Floats) -> float:
        known = np.isfinite(values[rows]) & (weight > 0.0)
        total = float(weight[known].sum())
        return float(np.sum(values[rows][known] ** 2 * weight[known])) / total if total else float('nan')

    has_floor = np.where(np.isfinite(errors.floor[rows]), weights, 0.0)
    if has_floor.sum() < _WITH_FLOOR * weights.sum():
        has_floor = np.zeros(len(rows))
    squares, measured = (
        [mean(values, weight) for values, weight in zip(each, (weights, weights, has_floor), strict=True)]
        for each in ((errors.before, errors.after, errors.floor), (errors.measured,) * 3)
    )
    every = [mean(values, np.ones(len(rows))) for values in errors.every]
    with np.errstate(divide='ignore', invalid='ignore'):
        relative = np.sqrt(np.divide(squares, measured)).tolist()
        of_every = np.sqrt(np.divide(every[1:], every[0])).tolist()
    return Pooled(
        name='all joints' if joints else errors.names[0],
        unit=', '.join(dict.fromkeys(errors.units[i] for i in rows)),
        rms=(math.sqrt(squares[0]), math.sqrt(squares[1]), math.sqrt(squares[2])),
        relative=(relative[0], relative[1], relative[2]),
        left_out=float(np.mean(errors.left_out[rows])),
        every=(of_every[0], of_every[1]),
    )


@dataclass(frozen=True, eq=False)
class BandErrors:
    """Errors of torques after another filter than that of the fit.

    Attributes:
        cutoff: of that filter [Hz].
        errors: of torques, with the same solution as in the validation.
    """

    cutoff: float
    errors: Errors


@dataclass(frozen=True, eq=False)
class Validation:
    """Result of a validation.

    Attributes:
        on: hold-out set: 'held-out blocks', or the name of another recording.
        equations: of the validation samples.
        solution: that was validated; with held-out blocks, one that was fitted without them.
        before: (size,) unknowns of the original model, with the bias of these force sensors.
        after: (size,) unknowns of the solution, with the bias of these force sensors.
        errors: of torques.
        replay: simulations compared with the log; None if there is no segment of sufficient length, or no
            joint rows.
        spreads: differences between the legs of the result; empty for robots with fewer than two legs.
        notes: that matter for the errors.
        band: errors in the band of the motion; None if this is the band of the fit, or nearly.
    """

    on: str
    equations: Equations
    solution: Solution
    before: Floats
    after: Floats
    errors: Errors
    replay: Replay | None
    spreads: tuple[Spread, ...]
    notes: tuple[str, ...] = field(default=())
    band: BandErrors | None = None

    @property
    def held_out(self) -> bool:
        """Whether the data are held-out blocks of the training recordings."""
        return self.on == HELD_OUT


def validate(equations: Equations, solution: Solution, on: str, notes: tuple[str, ...] = ()) -> Validation:
    """Validate a solution on samples that were not used for the fit.

    Args:
        equations: of these samples.
        solution: from other samples.
        on: name of the recording, or 'held-out blocks'.
        notes: that matter for the errors.

    Raises:
        ArgumentError: there are no samples.
    """
    before, after = solution.columns.prior, solution.x
    part = solution.columns.slices['bias']
    if solution.free[part].any():
        before, after = (with_own_bias(equations, x) for x in (before, after))
        notes = (
            *notes,
            'the bias of force sensors differs between recordings; it is fitted here, before and after',
        )
    errors = torque_errors(equations, before, after)
    again = None
    if equations.mode != 'base':
        again = replay(equations, before, after)
        joints = errors.measured[-solution.columns.model.nj :]
        notes = (*notes, *offset_notes(equations, solution, after, joints))
    return Validation(on, equations, solution, before, after, errors, again, leg_spreads(solution), notes)


def _evenly(equations: Equations) -> Equations:
    """The same with rows weighted as if their noise were unknown.

    Noise that was estimated with a solution would include the errors of this solution.
    """
    columns, mode = equations.columns, equations.mode
    return Equations(equations.samples, columns, mode, first_noise(columns, mode == 'projection'))


def with_own_bias(equations: Equations, x: Floats) -> Floats:
    """(size,) unknowns with the bias of the force sensors that fits these samples best.

    A bias belongs to a recording: sensors drift from day to day, and are zeroed in between.
    """
    normal, part = _evenly(equations).accumulate()[0], equations.columns.slices['bias']
    A, own = normal.YtY[part, part], np.array(x)
    own[part] = 0.0
    b = (normal.Yty - normal.YtY @ own)[part]
    # A foot that is never in stance, or was never measured, has no bias.
    own[part] = np.linalg.lstsq(A, b, rcond=_NEGLIGIBLE)[0] if A.any() else 0.0
    return own


# ---------------------------------------------------------------- errors of torques


def torque_errors(equations: Equations, before: Floats, after: Floats) -> Errors:
    """Errors of predicted torques on all samples with used rows.

    Args:
        equations: of the samples.
        before: (size,) unknowns to compare with.
        after: (size,) unknowns.

    Raises:
        ArgumentError: there are no samples.
    """
    if not len(equations.samples):
        raise ArgumentError('there are no samples to compute errors of; expected at least one')
    k = equations.rows
    sums, every, counts = np.zeros((4, k)), np.zeros((3, k)), np.zeros(k)
    best = best_fit(_evenly(equations))
    candidates = before, after, best.x
    for parts in zip(*(equations.residuals(x) for x in candidates), strict=True):
        rows = parts[0][0]
        use = equations.use(rows)
        counts += use.sum(axis=0)
        squares = [_measured(equations, rows) ** 2, *(r**2 for _, r in parts)]
        sums += [np.sum(square * use, axis=0) for square in squares]
        every += [np.sum(square, axis=0) for square in squares[:3]]
    sums[3, ~best.has_floor(counts)] = np.nan
    return _as_errors(equations, sums, counts, every)


def _as_errors(equations: Equations, sums: Floats, counts: Floats, every: Floats) -> Errors:
    """Roots of the means of (4, rows) sums of squares: measured, before, after, floor; and of all rows."""
    model, mode, total = equations.columns.model, equations.mode, len(equations.samples)
    base = 0 if mode == 'fixed' else 6

    def rms_of(means: Floats) -> Floats:
        wide = [means[:, :3].sum(axis=1), means[:, 3:6].sum(axis=1)] if base else []
        return np.asarray(np.sqrt(np.column_stack([*wide, means[:, base:]])))

    with np.errstate(divide='ignore', invalid='ignore'):
        rms, rms_every = rms_of(sums / counts), rms_of(every / total)
    rms[3] = np.minimum(rms[3], rms[2])
    rms_every[:, rms_every[0] == 0.0] = np.nan  # a torque that is always zero was not measured
    if mode == 'projection':
        rms[0, :2] = rms_every[0, :2] = np.nan
    joints = model.joint_names if mode != 'base' else ()
    units = ['N' if prismatic else 'N m' for prismatic in model.is_prismatic[: len(joints)]]
    of_base = ('base force', 'base moment') if base else ()
    measured, before, after, floor = rms
    return Errors(
        names=(*of_base, *joints),
        units=(*('N', 'N m')[: len(of_base)], *units),
        measured=measured,
        before=before,
        after=after,
        floor=floor,
        samples=np.concatenate([counts[:base:3], counts[base:]]).astype(np.int64),
        total=total,
        every=rms_every,
    )


def _measured(equations: Equations, rows: Floats) -> Floats:
    """(n, rows) measurements: forces of the ground on the base, torques of the motors."""
    get, model = equations.samples.layout.get, equations.columns.model
    values = np.zeros((len(rows), model.nv))
    values[:, model.nv - model.nj :] = get(rows, 'tau')
    if equations.mode in ('forces', 'base'):
        J = equations.foot_jacobians(rows)[:, :, :6]
        values[:, :6] = np.einsum('nkv,nk->nv', J, get(rows, 'force'))
    return values[:, : equations.rows]


@dataclass(frozen=True, eq=False)
class BestFit:
    """Least-squares fit to the samples themselves, closest to the model.

    It is not a solution, because it need not be physically consistent; no model of this form has smaller
    errors.

    Attributes:
        x: (size,) unknowns.
        parameters: number of independent combinations of unknowns that the samples determine.
        n: number of informative rows.
    """

    x: Floats
    parameters: int
    n: int

    def has_floor(self, counts: Floats) -> Bools:
        """(rows,) whether the samples are enough for the number of parameters, so that errors are a floor.

        Args:
            counts: (rows,) number of used samples of each row.
        """
        informative = counts * self.n / max(float(counts.sum()), 1.0)
        share = self.parameters / max(int(np.count_nonzero(counts)), 1)  # of each row
        return np.asarray(informative >= _ROWS_PER_PARAMETER * share, dtype=np.bool_)


def best_fit(equations: Equations) -> BestFit:
    """Fit all unknowns to the samples, by least squares."""
    normal, prior = equations.accumulate()[0], equations.columns.prior
    scale = np.sqrt(np.maximum(np.diag(normal.YtY), 0.0))
    used = scale > 0.0
    S = 1.0 / scale[used]
    A = normal.YtY[np.ix_(used, used)] * S[:, None] * S
    b = (normal.Yty - normal.YtY @ prior)[used] * S
    values, vectors = np.linalg.eigh(A)
    keep = values > _NEGLIGIBLE * values[-1] if len(values) else values > 0.0
    x = prior.copy()
    x[used] += S * (vectors[:, keep] @ ((vectors[:, keep].T @ b) / values[keep]))
    return BestFit(x, int(keep.sum()), normal.n)
