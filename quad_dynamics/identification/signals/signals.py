# SPDX-License-Identifier: Apache-2.0
"""From recordings to samples: one clock, no noise that can be filtered, no delay, and what counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.recordings.checks import check_effort, check_forces, check_positions
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.signals.delay import Delay, estimate_delays
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.grid_reader import make_grid
from quad_dynamics.identification.signals.plans import STILL, EvenLog, make_plan
from quad_dynamics.identification.signals.quantities import Quantities
from quad_dynamics.identification.signals.sampling import Counts, Plan, make_samples
from quad_dynamics.identification.signals.signal_report import SignalReport, SourceReport
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.spectrum import HIGHEST, choose_cutoff, measure_spectrum
from quad_dynamics.identification.signals.stance import find_stance, stance_method
from quad_dynamics.identification.signals.velocity_check import LEAST_WAY, VelocityCheck
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]

Refine = Callable[[Samples, SignalReport], tuple[float, float]]

_REFINEMENTS = 2  # of delays, at most
_LOWEST_RATE = 20.0  # of joint states, below which nothing can be differentiated [Hz]
_WINDOW = 20.0  # time that is looked at at once [s]


def collect(
    sources: Sequence[Source],
    model: Model,
    settings: SignalSettings | None = None,
    refine: Refine | None = None,
    tell: Callable[[str], object] | None = None,
) -> tuple[Samples, SignalReport]:
    """Samples of recordings.

    Args:
        sources: recordings.
        model: robot.
        settings: how; None: the usual ones.
        refine: tells what is left of the delays of torques and of foot forces in samples [s].
        tell: called with how far they are read.

    Raises:
        ArgumentError: a recording that cannot be used, and why.
    """
    settings = SignalSettings() if settings is None else settings
    if not sources:
        raise ArgumentError('there are no recordings; expected at least one')
    logs = [_read(source, model, settings, tell) for source in sources]
    cutoff = _cutoff(logs, settings)
    plans, checks = zip(*(make_plan(log, model, settings, cutoff) for log in logs), strict=True)
    measured = model.floating_base and all(log.chosen.forces for log in logs)
    clean = _delay_plans(logs, plans, model, settings)
    delays = estimate_delays(clean, settings.longest_delay, settings.force_delay, settings.delay, measured)

    def make() -> tuple[Samples, SignalReport]:
        samples, counts = _samples(plans, model, delays)
        reports = tuple(map(_source_report, logs, plans, checks, counts))
        _check_samples(samples, reports)
        automatic = settings.cutoff is None
        return samples, SignalReport(reports, cutoff, automatic, settings.order, *delays, measured)

    samples, report = make()
    if refine is None or not any(delay.may_move for delay in delays):
        return samples, report
    for _ in range(_REFINEMENTS):
        left = refine(samples, report)
        moved = delays[0].moved(left[0]), delays[1].moved(left[1])
        if moved == delays:
            break
        delays = moved
        samples, report = make()
    return samples, report


def _samples(
    plans: Sequence[Plan], model: Model, delays: tuple[Delay, Delay]
) -> tuple[Samples, list[Counts]]:
    """Samples of all recordings, and what was counted in each."""
    samples, found, block = Samples(model), [], 0
    for plan in plans:
        counts = Counts()
        torque, force = (delay.value for delay in delays)
        for rows, _, _ in make_samples(plan, samples.layout, torque, force, block, counts):
            samples.append(rows)
        block += len(plan.grid.pieces)
        found.append(counts)
    return samples, found


def _read(
    source: Source, model: Model, settings: SignalSettings, tell: Callable[[str], object] | None
) -> EvenLog:
    """Bring a recording to an even clock, check it, and find impacts."""
    grid, clock, chosen = make_grid(source, model, settings, tell)
    if clock.period <= 0.0 or 1.0 / clock.period < _LOWEST_RATE:
        rate = 1.0 / clock.period if clock.period > 0.0 else 0.0
        raise ArgumentError(
            f'{source.name}: joint states come with {rate:.3g} Hz; expected at least {_LOWEST_RATE:g} Hz'
        )
    if len(grid) * grid.period < settings.shortest:
        raise ArgumentError(
            f'{source.name}: is {len(grid) * grid.period:.3g} s long; expected at least '
            f'{settings.shortest:g} s in which all topics have messages'
        )
    looks = _look(source, grid, model, chosen)
    spectrum = measure_spectrum(grid)
    if spectrum is None:
        raise ArgumentError(f'{source.name}: has no stretch of 2 s without a gap; expected one')
    stance = find_stance(grid, model, settings, source.force_frames, _stance_method(source, chosen, settings))
    check_forces(source, model, stance.carried)
    grid.split(stance.impacts)
    return EvenLog(source, grid, clock, chosen, spectrum, stance, *looks)


def _stance_method(source: Source, chosen: Quantities, settings: SignalSettings) -> str:
    """How feet on the ground are found; '' for a fixed base."""
    if not chosen.base:
        return ''
    method = stance_method(settings, bool(chosen.forces), chosen.base == 'odom')
    if method == 'forces' and not chosen.forces:
        raise ArgumentError(f"{source.name}: stance is 'forces', but not all feet have measured forces")
    if method == 'kinematics' and chosen.base != 'odom':
        raise ArgumentError(f"{source.name}: stance is 'kinematics', but there is no odometry")
    if method == 'all':
        source.note('all feet are taken to stand all the time')
    return method


def _look(source: Source, grid: Grid, model: Model, chosen: Quantities) -> tuple[Floats, Floats, Floats]:
    """Check positions and torques.

    Returns:
        Root mean square of velocities (nj,), largest torques (nj,), and standard deviations of torques (nj,).
    """
    low, high = np.full(model.nj, np.inf), np.full(model.nj, -np.inf)
    largest, squares = np.zeros(model.nj), np.zeros(model.nj)
    sums = np.zeros((2, model.nj))
    for _, _, _, rows in grid.windows(round(_WINDOW * grid.rate)):
        position, tau = grid.get(rows, 'position'), grid.get(rows, 'effort')
        low, high = np.minimum(low, position.min(axis=0)), np.maximum(high, position.max(axis=0))
        largest = np.maximum(largest, np.abs(tau).max(axis=0))
        sums += np.stack([tau.sum(axis=0), np.sum(tau**2, axis=0)])
        measured = 'velocity' in grid
        v = grid.get(rows, 'velocity') if measured else np.diff(position, axis=0) * grid.rate
        squares += np.sum(v**2, axis=0)
    check_positions(source, model, low, high)
    check_effort(source, model, largest, chosen.commanded)
    mean, square = sums / len(grid)
    squares[high - low < LEAST_WAY] = 0.0
    return np.sqrt(squares / len(grid)), largest, np.sqrt(np.maximum(square - mean**2, 0.0))


def _cutoff(logs: Sequence[EvenLog], settings: SignalSettings) -> float:
    if settings.cutoff is None:
        return choose_cutoff([log.spectrum for log in logs])
    slowest = min(log.grid.rate for log in logs)
    if settings.cutoff > 2.0 * HIGHEST * slowest:
        raise ArgumentError(
            f'cutoff is {settings.cutoff:g} Hz; expected at most {2.0 * HIGHEST * slowest:g} Hz, '
            f'0.4 of the rate of the joint states'
        )
    return settings.cutoff


def _delay_plans(
    logs: Sequence[EvenLog], plans: Sequence[Plan], model: Model, settings: SignalSettings
) -> Sequence[Plan]:
    """Plans for finding delays: with the automatic cutoff where a higher one, and more noise, is wanted."""
    automatic = choose_cutoff([log.spectrum for log in logs])
    if automatic >= plans[0].low_pass.cutoff:
        return plans
    return [make_plan(log, model, settings, automatic)[0] for log in logs]


def _source_report(log: EvenLog, plan: Plan, joints: VelocityCheck | None, counts: Counts) -> SourceReport:
    source, grid = log.source, log.grid
    return SourceReport(
        name=source.name,
        sha256=source.sha256,
        notes=tuple(source.notes),
        rate=grid.rate,
        duration=len(grid) * grid.period,
        sample_rate=grid.rate / plan.step,
        clocks={key: line.check for key, line in log.clock.lines.items()},
        base=log.chosen.base,
        stance=log.stance.method,
        stood=tuple(float(x) for x in log.stance.stood / max(len(grid), 1)),
        carried=log.stance.carried,
        impacts=len(log.stance.impacts),
        joint_names=plan.model.joint_names,
        position_noise=tuple(map(float, log.spectrum.position_noise)),
        velocity_noise=tuple(map(float, log.spectrum.velocity_noise)),
        torque_noise=tuple(map(float, log.spectrum.torque_noise)),
        velocity_factor=() if joints is None else tuple(map(float, joints.factor)),
        velocity_lag=() if joints is None else tuple(map(float, joints.lag)),
        velocity_used=() if joints is None else tuple(map(bool, joints.good(plan.low_pass.cutoff))),
        rest=tuple(map(float, plan.rest)),
        counts=counts,
    )


def _check_samples(samples: Samples, reports: Sequence[SourceReport]) -> None:
    """Something must be left.

    Raises:
        ArgumentError: nothing is.
    """
    names = ', '.join(report.name for report in reports)
    if not len(samples):
        raise ArgumentError(f'{names}: no samples are left after gaps, impacts and the ends of the filters')
    used = sum(float(samples.layout.get(rows, 'use').sum()) for rows in samples.chunks())
    if not used:
        rests = [rest for report in reports for rest in report.rest if np.isfinite(rest)]
        raise ArgumentError(
            f'{names}: no joint moves; nothing can be identified from standstill. Expected joints that turn '
            f'faster than {max(rests, default=STILL):.2g} rad/s'
        )
