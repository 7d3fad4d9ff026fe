# SPDX-License-Identifier: Apache-2.0
"""How well torques are predicted that were not fitted: errors before and after, beside what is possible."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.leg_spreads import Spread, leg_spreads
from quad_dynamics.identification.validation.offset_changes import offset_notes
from quad_dynamics.identification.validation.repeats import find_repetition
from quad_dynamics.identification.validation.replay import Replay, replay
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]

_NEGLIGIBLE = 1e-9  # directions whose singular value is below this part of the largest are not fitted
_HELD_OUT = 5  # one stretch of so many is held out
_STRETCHES = 20  # into which a recording is cut
LEAST_SAMPLES = 10 * _STRETCHES  # for blocks to be held out
_GAP = 0.25  # left out on both sides of what is held out [s]; filters reach so far


@dataclass(frozen=True, eq=False)
class Errors:
    """Root mean squares of what torques differ from their prediction, one for each row.

    Attributes:
        names: of the rows: 'base force', 'base moment' (lengths of these vectors), then the joints.
        units: of each row.
        measured: (rows,) RMS of what was measured; NaN for a base without force sensors.
        before: (rows,) RMS of measured minus predicted, with the model as it was, its friction included.
        after: (rows,) with what was found.
        floor: (rows,) with the least-squares fit to these samples themselves: no parameters do much better.
            Where `after` is better (the fit weighs all rows together), that.
        samples: (rows,) how many count.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    measured: Floats
    before: Floats
    after: Floats
    floor: Floats
    samples: npt.NDArray[np.int64]

    def relative(self, errors: Floats) -> Floats:
        """Errors as a part of what was measured, both RMS."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.asarray(errors / self.measured)


@dataclass(frozen=True, eq=False)
class Validation:
    """What validation has shown.

    Attributes:
        on: on what: 'held-out blocks', or the name of another recording.
        equations: of the samples that it was done on.
        solution: that was validated; with held-out blocks one that was found without them.
        before: (size,) unknowns of the model as it was; with the bias of these force sensors.
        after: (size,) unknowns of the solution; likewise.
        errors: of torques.
        replay: simulated beside the log; None where there is no stretch long enough, or no joint rows.
        spreads: how much the legs differ; empty for robots with fewer than two legs.
        notes: what must be known to judge them.
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


def validate(equations: Equations, solution: Solution, on: str, notes: tuple[str, ...] = ()) -> Validation:
    """Validate a solution on samples that it was not fitted to.

    Args:
        equations: of these samples.
        solution: what was found from others.
        on: name of the recording, or 'held-out blocks'.
        notes: what must be known to judge the figures.

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
    """The same with rows weighted as if nothing were known of their noise.

    Noise that was fitted with a solution takes for noise what this solution has missed.
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
    # A foot that never stands, or was never measured, has none.
    own[part] = np.linalg.lstsq(A, b, rcond=_NEGLIGIBLE)[0] if A.any() else 0.0
    return own


# ---------------------------------------------------------------- errors of torques


def torque_errors(equations: Equations, before: Floats, after: Floats) -> Errors:
    """Errors of predicted torques on all samples whose rows count.

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
    sums, counts = np.zeros((4, k)), np.zeros(k)
    candidates = before, after, best_fit(_evenly(equations))
    for parts in zip(*(equations.residuals(x) for x in candidates), strict=True):
        rows = parts[0][0]
        use = equations.use(rows)
        counts += use.sum(axis=0)
        sums[0] += np.sum(_measured(equations, rows) ** 2 * use, axis=0)
        for i, (_, r) in enumerate(parts):
            sums[i + 1] += np.sum(r**2 * use, axis=0)
    return _as_errors(equations, sums, counts)


def _as_errors(equations: Equations, sums: Floats, counts: Floats) -> Errors:
    """Roots of the means of (4, rows) sums of squares: measured, before, after, floor."""
    model, mode = equations.columns.model, equations.mode
    base = 0 if mode == 'fixed' else 6
    with np.errstate(divide='ignore', invalid='ignore'):
        means = sums / counts
    wide = [means[:, :3].sum(axis=1), means[:, 3:6].sum(axis=1)] if base else []
    rms = np.sqrt(np.column_stack([*wide, means[:, base:]]))
    rms[3] = np.minimum(rms[3], rms[2])
    if mode == 'projection':
        rms[0, :2] = np.nan
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
    )


def _measured(equations: Equations, rows: Floats) -> Floats:
    """(n, rows) what was measured: forces of the ground on the base, torques of the motors."""
    get, model = equations.samples.layout.get, equations.columns.model
    values = np.zeros((len(rows), model.nv))
    values[:, model.nv - model.nj :] = get(rows, 'tau')
    if equations.mode in ('forces', 'base'):
        J = equations.foot_jacobians(rows)[:, :, :6]
        values[:, :6] = np.einsum('nkv,nk->nv', J, get(rows, 'force'))
    return values[:, : equations.rows]


def best_fit(equations: Equations) -> Floats:
    """(size,) the least-squares fit to the samples themselves, nearest to what the model says.

    It is no solution, for it need not be physical; no model of this form has smaller errors.
    """
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
    return x


# ---------------------------------------------------------------- blocks that are held out


def hold_out(samples: Samples, model: Model) -> tuple[Samples, Samples, tuple[str, ...]]:
    """Split samples into those to train on and those to validate on, which are every fifth stretch of time.

    Returns:
        Both, and notes: what must be known to judge errors on the second.

    Raises:
        ArgumentError: too few samples.
    """
    train, test = Samples(model), Samples(model)
    total, get, done = len(samples), samples.layout.get, 0
    if total < LEAST_SAMPLES:
        raise ArgumentError(f'there are {total} samples, too few to hold some out; expected {LEAST_SAMPLES}')
    size = -(-total // _STRETCHES)
    for chunk in samples.chunks():
        rows = chunk.copy()
        index = done + np.arange(len(rows))
        held = (index // size) % _HELD_OUT == _HELD_OUT // 2
        dt = float(np.median(np.diff(get(rows, 'time')))) if len(rows) > 1 else 0.0
        gap = min(int(_GAP / dt) if dt > 0.0 else 0, size // 4)
        near = ((index - gap) // size != index // size) | ((index + gap) // size != index // size)
        # What is not next to each other any more is another stretch.
        get(rows, 'block')[...] = get(rows, 'block') * (_STRETCHES + 1) + index // size
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
