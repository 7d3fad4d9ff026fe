# SPDX-License-Identifier: Apache-2.0
"""The identification pipeline: from recordings to a validated solution."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.blas_threads import single_threaded_blas
from quad_dynamics.identification.cutoff_choice import lower_cutoff
from quad_dynamics.identification.equations.columns import Columns, make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.modes import AUTO, choose_mode, needs_forces
from quad_dynamics.identification.equations.noise import Noise, first_noise, fit_noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.equations.torque_checks import refuse_other_torques
from quad_dynamics.identification.recordings.recording import Source, open_source
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.signals.delay import Delays
from quad_dynamics.identification.signals.signal_report import SignalReport, SourceReport
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import Logs
from quad_dynamics.identification.solvers.first_fit import first_fit
from quad_dynamics.identification.solvers.fit import FOLDS, fit
from quad_dynamics.identification.solvers.freedom import TRUNK, Freedom, make_freedom
from quad_dynamics.identification.solvers.missing import what_is_missing
from quad_dynamics.identification.solvers.plausible import MassRange
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.solvers.solve import SolveSettings
from quad_dynamics.identification.validation.held_out import HELD_OUT, LEAST_SAMPLES, hold_out
from quad_dynamics.identification.validation.leg_spreads import leg_spreads
from quad_dynamics.identification.validation.mass_distribution import outside_geometry
from quad_dynamics.identification.validation.motion_band import motion_band
from quad_dynamics.identification.validation.plausibility import (
    implausible,
    slow_motion,
    uncarried,
    unfaithful,
)
from quad_dynamics.identification.validation.repeats import refuse_repetition
from quad_dynamics.identification.validation.validation import Validation, validate
from quad_dynamics.model.model import Model

if TYPE_CHECKING:
    from quad_dynamics.identification.baselines.compare import Comparison

Progress = Callable[[str], object]

# Maximum number of fits after which delays are corrected.
_DELAY_PASSES = 2


@dataclass(frozen=True)
class IdentifySettings:
    """User settings.

    Attributes:
        free: parameters to free, as for `make_freedom`; empty: all, as far as they improve predictions.
        tie_legs: whether all legs share one set of parameters.
        mass: of the whole robot, if known.
        mode: one of `modes.MODES`, or 'auto'.
        folds: number of blocks of time for cross-validation.
        compare: whether to run all other methods too.
        hold_out: whether to hold out blocks for validation if there is no other recording.
        stribeck_velocity: of the Stribeck column [rad/s or m/s].
        topics: of all recordings, including those of the validation.
        signals: filters and derivatives, of all recordings. Cutoff and delays that are not given are found in
            the training recordings, and used for those of the validation.
        solve: settings of the default method.
    """

    free: tuple[str, ...] = ()
    tie_legs: bool = False
    mass: MassRange | None = None
    mode: str = AUTO
    folds: int = FOLDS
    compare: bool = False
    hold_out: bool = True
    stribeck_velocity: float = 0.1
    topics: Topics = field(default_factory=Topics)
    signals: SignalSettings = field(default_factory=SignalSettings)
    solve: SolveSettings = field(default_factory=SolveSettings)


@dataclass(frozen=True, eq=False)
class Result:
    """Result of an identification.

    Attributes:
        solution: the unknowns with their confidence intervals.
        signals: how the training recordings were processed.
        validation_signals: how the validation recordings were processed, with the same filter and delays;
            None without such recordings.
        equations: of the training data.
        noise: standard deviations of the rows.
        sources: name and SHA-256 of each training recording.
        validation: errors on other data; None without validation.
        missing: parameters that the recordings do not identify, and the motion that would.
        comparison: of all methods; None if it was not requested.
        settings: that were used.
        warnings: reasons not to use the result as it is; to be shown first.
    """

    solution: Solution
    signals: SignalReport
    validation_signals: SignalReport | None
    equations: Equations
    noise: Noise
    sources: tuple[tuple[str, str], ...]
    validation: Validation | None
    missing: tuple[str, ...]
    comparison: Comparison | None
    settings: IdentifySettings
    warnings: tuple[str, ...] = ()


def identify(
    paths: Sequence[str | os.PathLike[str]],
    model: Model,
    settings: IdentifySettings | None = None,
    validate_on: Sequence[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
) -> Result:
    """Identify a robot from recordings.

    Args:
        paths: of the recordings.
        model: robot; its parameters are the prior.
        settings: of the identification.
        validate_on: recordings of other motions, reported in `Result.validation_signals`; if empty, blocks
            are held out.
        progress: called with the name of the next stage.

    Raises:
        ArgumentError: the recordings or the settings are invalid.
    """
    settings = settings or IdentifySettings()
    sources = [open_source(path, model, settings.topics) for path in paths]
    others = [open_source(path, model, settings.topics) for path in validate_on]
    return identify_sources(sources, model, settings, others, progress)


@single_threaded_blas()
def identify_sources(
    sources: Sequence[Source],
    model: Model,
    settings: IdentifySettings,
    others: Sequence[Source] = (),
    progress: Progress | None = None,
) -> Result:
    """Like `identify`, with open recordings."""
    tell = progress or _silent
    if not sources:
        raise ArgumentError('there is no recording to identify from; expected at least one')
    job = _Job(model, settings)
    tell('reading the recordings')
    logs = Logs(sources, model, settings.signals, lambda part: tell(f'reading the recordings: {part}'))
    samples, report = job.prepare(logs, tell)
    few = job.hold_inertia_of_few(samples) if settings.hold_out and not others else ()
    hashes = [source.sha256 for source in sources]
    other_samples, other_logs, other_report = None, None, None
    if others:
        what = 'reading what to validate on'
        tell(what)
        other_logs = Logs(others, model, settings.signals, lambda part: tell(f'{what}: {part}'))
        if needs_forces(job.mode) and not other_logs.forces_measured:
            raise ArgumentError(
                f'{_names(others)}: contains no foot forces, which the fit uses (mode {job.mode}); expected '
                'foot forces in all recordings, or --mode projection'
            )
        # The same filter and delays, so that errors are comparable.
        delays = Delays(report.delay, report.force_delay)
        other_samples, other_report = other_logs.samples(report.cutoff, delays)
        for other in others:
            refuse_repetition(samples, other_samples, model, other.name, (hashes, other.sha256))
    tell('solving')
    equations, solution = job.fit(samples)
    tell('validating')
    checked = job.check(samples, solution, other_samples, _names(others))
    if checked is not None:
        checked = replace(checked, band=motion_band(checked, other_logs or logs, report))
    comparison = None
    if settings.compare and (others or len(samples) >= LEAST_SAMPLES):
        tell('comparing methods')
        comparison = job.compare(equations, checked if others else None)
    return Result(
        solution=solution,
        signals=report,
        validation_signals=other_report,
        equations=equations,
        noise=equations.noise,
        sources=tuple((source.name, source.sha256) for source in sources),
        validation=checked,
        missing=tuple(what_is_missing(solution, samples, job.mode)),
        comparison=comparison,
        settings=settings,
        warnings=(
            *few,
            *_uncompared(settings, comparison, len(samples)),
            *implausible(solution, job.freedom.limits, settings.mass),
            *outside_geometry(solution),
            *uncarried(equations, solution, settings.mass),
            *unfaithful(checked.replay if checked else None, model),
            *(() if others else slow_motion(samples, model)),
        ),
    )


def _uncompared(settings: IdentifySettings, comparison: Comparison | None, samples: int) -> list[str]:
    """Warning that the comparison that was asked for is missing."""
    if comparison is not None or not settings.compare:
        return []
    return [
        f'{samples} samples are too few to compare methods without another recording ({LEAST_SAMPLES}): '
        'there is no table of methods. Record for longer, or give --validate'
    ]


def _names(sources: Sequence[Source] | Sequence[SourceReport]) -> str:
    return ', '.join(source.name for source in sources)


def _silent(text: str) -> None:
    """Progress callback that does nothing."""


class _Job:
    """Common parts of the fits to training data and to all data."""

    def __init__(self, model: Model, settings: IdentifySettings) -> None:
        self.settings, self.mode = settings, ''
        self.columns: Columns = make_columns(model, settings.stribeck_velocity)
        freedom = make_freedom(
            self.columns, settings.free, settings.tie_legs, settings.solve.trust, settings.mass
        )
        if settings.signals.delay is not None:
            freedom = freedom.only(set(freedom.groups) - {'delay'})
        self.freedom: Freedom = freedom

    def prepare(self, logs: Logs, tell: Progress) -> tuple[Samples, SignalReport]:
        """Samples for the fit, in three passes.

        The first pass uses the cutoff of the spectra, and delays estimated from the signals. The second one
        uses a lower cutoff, if fits on held-out data need it. The third one also corrects the residual delays
        that a first fit finds.
        """
        cutoff = logs.first_cutoff
        delays = logs.find_delays(cutoff)
        samples, report = logs.samples(cutoff, delays)
        self._look_at(samples, report)
        if self.settings.signals.cutoff is None:
            tell('choosing the cutoff')
            (samples, report), delays = lower_cutoff(
                logs, (samples, report), delays, self.columns, self.mode, self.freedom
            )
        for _ in range(_DELAY_PASSES if delays.may_move else 0):
            moved = delays.moved(*self._delays_left(samples))
            if moved == delays:
                break
            delays = moved
            samples, report = logs.samples(report.cutoff, delays, report.refused)
        return samples, report

    def _look_at(self, samples: Samples, report: SignalReport) -> None:
        """Choose the mode of the equations, and reject torques with the opposite sign or another unit."""
        self.mode = choose_mode(self.columns.model, self.settings.mode, report.forces_measured)
        noise = first_noise(self.columns, self.mode == 'projection')
        names = _names(report.sources)
        friction = friction_scales(self.columns)[self.columns.slices['coulomb']]
        refuse_other_torques(Equations(samples, self.columns, self.mode, noise), names, friction)

    def hold_inertia_of_few(self, samples: Samples) -> tuple[str, ...]:
        """Keep the inertia of the model if there are too few samples for a hold-out set; returns the warning.

        Without a hold-out set it is unknown whether new inertia would predict other motions better or worse.
        Inertia that is requested by name is still free.
        """
        if len(samples) >= LEAST_SAMPLES or 'inertia' not in self.freedom.optional:
            return ()
        self.freedom = self.freedom.only(set(self.freedom.groups) - {'inertia'})
        return (
            f'{len(samples)} samples are too few to hold some out ({LEAST_SAMPLES}): inertia stays as in the '
            'model, and errors on other motion are unknown. Record for longer, or give --validate',
        )

    def _delays_left(self, samples: Samples) -> tuple[float, float]:
        """Residual delays of torques and of foot forces, from a first fit [s]."""
        freedom = self.freedom
        if freedom.has_trunk_and_legs:  # small errors of a leg's inertia would look like a delay
            freedom = freedom.only(set(freedom.groups) - {'inertia'} | {TRUNK})
        _, x = first_fit(samples, self.columns, self.mode, freedom)
        left = [*x[self.columns.slices['delay']], 0.0]
        return float(left[0]), float(left[1])

    def fit(self, samples: Samples) -> tuple[Equations, Solution]:
        """Estimate the noise of the rows, then the unknowns."""
        folds, settings = self.settings.folds, self.settings.solve
        return fit(samples, self.columns, self.mode, self.freedom, folds, settings)

    def check(
        self, samples: Samples, solution: Solution, others: Samples | None, name: str
    ) -> Validation | None:
        """Errors on other recordings, or on held-out blocks that a second fit does not use."""
        if others is not None:
            return self._validate(others, solution, name, ())
        if not self.settings.hold_out or len(samples) < LEAST_SAMPLES:
            return None
        train, held, notes = hold_out(samples, self.columns.model)
        _, without = self.fit(train)
        # Errors are those of the second fit; the legs that are compared are those of the result.
        return replace(self._validate(held, without, HELD_OUT, notes), spreads=leg_spreads(solution))

    def compare(self, equations: Equations, elsewhere: Validation | None) -> Comparison:
        """All methods, on another recording or on the held-out blocks of `check`."""
        from quad_dynamics.identification.baselines.compare import compare

        return compare(
            equations,
            None if elsewhere is None else elsewhere.equations,
            self.columns,
            self.freedom,
            on=HELD_OUT if elsewhere is None else elsewhere.on,
            folds=self.settings.folds,
            settings=self.settings.solve,
        )

    def _validate(self, samples: Samples, solution: Solution, name: str, notes: Any) -> Validation:
        noise = first_noise(self.columns, self.mode == 'projection')
        equations = Equations(samples, self.columns, self.mode, noise)
        noise = fit_noise(equations, solution.x)
        return validate(Equations(samples, self.columns, self.mode, noise), solution, name, notes)
