# SPDX-License-Identifier: Apache-2.0
"""Comparison of all methods on the same samples: errors on held-out data, and inconsistent bodies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import QuadDynamicsError
from quad_dynamics.identification.baselines.instrumental import instrumental
from quad_dynamics.identification.baselines.kalman import kalman
from quad_dynamics.identification.baselines.least_squares import METHODS as LEAST_SQUARES
from quad_dynamics.identification.baselines.maximum_likelihood import maximum_likelihood
from quad_dynamics.identification.baselines.nonlinear import nonlinear
from quad_dynamics.identification.baselines.output_error import output_error
from quad_dynamics.identification.equations.columns import NOT_NEGATIVE, Columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.number_text import number
from quad_dynamics.identification.solvers.first_fit import first_fit
from quad_dynamics.identification.solvers.fit import FOLDS, fit
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.pseudo_inertia import margins
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import SolveSettings
from quad_dynamics.identification.validation.held_out import HELD_OUT, hold_out
from quad_dynamics.identification.validation.validation import Errors, pooled, torque_errors, with_own_bias

Method = Callable[[Equations, Freedom], Solution]

DEFAULT = 'consistent'  # name of the default method
_NEGATIVE = -1e-9  # friction below this is negative, not a rounding error


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of one method.

    Attributes:
        method: its name.
        solution: None if it failed.
        errors: on held-out data; None if it failed.
        consistent: number of physically consistent bodies.
        negative: number of friction and rotor parameters below zero.
        distance: to the true values, see `distance_to`; NaN if these are unknown.
        seconds: computing time.
        failure: reason of a failure; empty without one.
    """

    method: str
    solution: Solution | None
    errors: Errors | None
    consistent: int = 0
    negative: int = 0
    distance: float = float('nan')
    seconds: float = float('nan')
    failure: str = ''


@dataclass(frozen=True, eq=False)
class Comparison:
    """Table of all methods.

    Attributes:
        outcomes: of each method; the first is the original model.
        bodies: number of bodies.
        on: description of the hold-out set.
        head: titles of the columns.
        rows: cells. They do not depend on the speed of the machine; `timed` adds computing times.
    """

    outcomes: tuple[Outcome, ...]
    bodies: int
    on: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def timed(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Head and rows with the computing time of each method."""
        times = ['' if np.isnan(o.seconds) else f'{o.seconds:.2f}' for o in self.outcomes]
        rows = [(*row[:-1], t, row[-1]) for row, t in zip(self.rows, times, strict=True)]
        return (*self.head[:-1], 'time [s]', self.head[-1]), rows

    def text(self) -> str:
        """The table as text."""
        head, rows = self.timed()
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
        lines = [
            '  '.join(cell.ljust(w) if i in (0, len(head) - 1) else cell.rjust(w) for i, (cell, w) in cells)
            for cells in (list(enumerate(zip(row, widths, strict=True))) for row in (head, *rows))
        ]
        return '\n'.join(line.rstrip() for line in (f'errors on {self.on}', *lines)) + '\n'


def methods_for(folds: int = FOLDS, settings: SolveSettings | None = None) -> dict[str, Method]:
    """All methods by name, the default one first.

    Args:
        folds: of the cross-validation of the default method.
        settings: of the default method.
    """

    def consistent(equations: Equations, freedom: Freedom) -> Solution:
        return fit(equations.samples, equations.columns, equations.mode, freedom, folds, settings)[1]

    return {
        DEFAULT: consistent,
        **LEAST_SQUARES,
        'ml': maximum_likelihood,
        'iv': instrumental,
        'output_error': output_error,
        'nonlinear': nonlinear,
        'ekf': kalman,
    }


def compare(
    train: Equations,
    validate: Equations | None,
    columns: Columns,
    freedom: Freedom,
    truth: Floats | None = None,
    methods: Sequence[str] | None = None,
    on: str = 'samples of other recordings',
    folds: int = FOLDS,
    settings: SolveSettings | None = None,
) -> Comparison:
    """Run all methods and compare them in a table.

    The default method selects the free groups by cross-validation. The others free what was requested, or
    else what textbooks do (inertia, viscous and Coulomb friction, offsets, rotors). A method that fails gives
    the reason. The rows of the original model and of the default method are the errors before and after of
    a validation on the same data.

    Args:
        train: equations to fit.
        validate: equations of other samples; None: a fifth of the samples is held out.
        columns: the unknowns.
        freedom: the free unknowns.
        truth: (size,) the true unknowns, if they are known.
        methods: names of those to run; None for all.
        on: name of the other samples.
        folds: of the cross-validation of the default method.
        settings: of the default method.
    """
    if validate is None:
        kept, held, _ = hold_out(train.samples, columns.model)
        # The noise of the rows must not be known from held-out blocks either.
        train, _ = first_fit(kept, columns, train.mode, freedom)
        validate, on = Equations(held, columns, train.mode, train.noise), HELD_OUT
    known = methods_for(folds, settings)
    runs = [_run(name, known[name], train, freedom) for name in (known if methods is None else methods)]
    judge = _Judge(validate, columns, freedom, truth, _fits_bias(runs, freedom))
    outcomes = [judge.judge(_Run('as it was', None)), *map(judge.judge, runs)]
    head, rows = _cells(outcomes, columns.model.nb, truth is not None)
    return Comparison(tuple(outcomes), columns.model.nb, on, head, rows)


@dataclass(frozen=True, eq=False)
class _Run:
    """What a method has found; the fields are those of `Outcome`."""

    method: str
    solution: Solution | None
    seconds: float = float('nan')
    failure: str = ''


def _run(name: str, method: Method, train: Equations, freedom: Freedom) -> _Run:
    begin = time.perf_counter()
    try:
        solution = method(train, freedom)
    except (QuadDynamicsError, np.linalg.LinAlgError, FloatingPointError, ValueError) as error:
        return _Run(name, None, time.perf_counter() - begin, str(error))
    return _Run(name, solution, time.perf_counter() - begin)


def _fits_bias(runs: Sequence[_Run], freedom: Freedom) -> bool:
    """Whether the bias of force sensors is fitted to the other samples: as in a validation of the default."""
    for run in runs:
        if run.method == DEFAULT and run.solution is not None:
            return bool(run.solution.free[run.solution.columns.slices['bias']].any())
    return 'bias' in freedom.groups


class _Judge:
    """Evaluates solutions."""

    def __init__(
        self,
        validate: Equations,
        columns: Columns,
        freedom: Freedom,
        truth: Floats | None,
        own_bias: bool,
    ) -> None:
        self.validate, self.columns, self.freedom, self.truth = validate, columns, freedom, truth
        self.own_bias = own_bias

    def judge(self, run: _Run) -> Outcome:
        """All results of one method; without a solution, those of the original model."""
        if run.failure:
            return Outcome(run.method, None, None, seconds=run.seconds, failure=run.failure)
        columns = self.columns if run.solution is None else run.solution.columns
        x = columns.prior if run.solution is None else run.solution.x
        equations = self.validate
        if columns.stribeck_velocity != equations.columns.stribeck_velocity:
            equations = Equations(equations.samples, columns, equations.mode, equations.noise)
        friction = np.concatenate([x[columns.slices[kind]] for kind in NOT_NEGATIVE])
        here = with_own_bias(equations, x) if self.own_bias else x
        return Outcome(
            run.method,
            run.solution,
            torque_errors(equations, columns.prior, here),
            int(np.count_nonzero(margins(x[columns.slices['pi']].reshape(-1, 10)) > 0.0)),
            int(np.count_nonzero(friction < _NEGATIVE)),
            float('nan') if self.truth is None else distance_to(self.truth, x, self.freedom),
            run.seconds,
        )


def distance_to(truth: Floats, x: Floats, freedom: Freedom) -> float:
    """Distance of x from the true values: RMS over free unknowns, each in units of its own size.

    The units of a body are its mass, its mass times its radius of gyration, and its largest moment of
    inertia. Those of friction and rotors are the true value, or the mean over the joints if that is zero.
    Unidentifiable parameters are included.
    """
    columns = freedom.columns
    scale = np.ones(columns.size)
    pi = truth[columns.slices['pi']].reshape(-1, 10)
    moment = np.maximum(pi[:, [4, 6, 9]].max(axis=1), 1e-12)
    mass = np.maximum(pi[:, 0], 1e-12)
    scale[columns.slices['pi']] = np.concatenate(
        [mass[:, None], np.repeat(np.sqrt(mass * moment)[:, None], 3, 1), np.repeat(moment[:, None], 6, 1)],
        axis=1,
    ).ravel()
    counted = freedom.free.copy()
    for kind, part in columns.slices.items():
        if kind != 'pi':
            size = np.abs(truth[part])
            counted[part] &= bool(size.any())
            scale[part] = np.where(size > 0.0, size, max(float(size.mean()) if size.size else 0.0, 1e-12))
    return float(np.sqrt(np.mean(((x - truth) / scale)[counted] ** 2))) if counted.any() else float('nan')


# ---------------------------------------------------------------- cells


def _cells(
    outcomes: Sequence[Outcome], bodies: int, with_truth: bool
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Head and rows of the table."""
    first = outcomes[0].errors
    assert first is not None
    based = 'base force' in first.names
    joints = len(first.names) > 2 * based
    head = ['method']
    head += [f'all joints [{pooled(first).unit}]', 'all joints [%]'] if joints else []
    share = based and bool(np.isfinite(first.measured[0]))  # base forces may not be measured
    head += ['base [N]', *(['base [%]'] if share else []), 'base [N m]'] if based else []
    head += ['consistent', 'negative friction', *(['distance'] if with_truth else []), 'remark']
    rows = [_row(outcome, bodies, based, joints, with_truth, len(head)) for outcome in outcomes]
    return tuple(head), tuple(rows)


def _row(
    outcome: Outcome, bodies: int, based: bool, joints: bool, with_truth: bool, width: int
) -> tuple[str, ...]:
    cells = [outcome.method]
    errors = outcome.errors
    if errors is None:
        return (*cells, *[''] * (width - 2), f'failed: {outcome.failure}')
    relative = errors.relative(errors.after)
    if joints:
        all_joints = pooled(errors)
        cells += [number(all_joints.rms[1]), _percent(all_joints.relative[1])]
    if based:
        share = [_percent(relative[0])] if np.isfinite(errors.measured[0]) else []
        cells += [number(errors.after[0]), *share, number(errors.after[1])]
    cells += [f'{outcome.consistent}/{bodies}', str(outcome.negative)]
    cells += [number(outcome.distance, 3)] if with_truth else []
    return (*cells, _remark(outcome))


def _percent(value: float) -> str:
    return f'{100 * value:.2f}' if np.isfinite(value) else 'unknown'


def _remark(outcome: Outcome) -> str:
    """The last note of the method, if it is short."""
    if outcome.solution is None:
        return 'the model before the data'
    if outcome.method in ('iv', 'output_error', 'nonlinear', 'ekf') and outcome.solution.choices:
        return outcome.solution.choices[-1]
    return ''
