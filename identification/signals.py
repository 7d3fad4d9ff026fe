# SPDX-License-Identifier: Apache-2.0
"""From recordings to samples: one clock, no noise that can be filtered, no delay, and what counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from identification.base_motion import ImuPlace, imu_place
from identification.checks import check_effort, check_positions, check_velocity
from identification.clock import EvenClock, make_grid
from identification.delay import estimate_delays
from identification.filters import LowPass
from identification.grid import Grid
from identification.motion import Fusion, MotionPlan, base_signals, imu_signals
from identification.quantities import Quantities
from identification.recording import Source
from identification.samples import Samples
from identification.sampling import Counts, Plan, make_samples
from identification.signal_report import SignalReport, SourceReport
from identification.signal_settings import SignalSettings
from identification.spectrum import HIGHEST, Spectrum, choose_cutoff, measure_spectrum
from identification.stance import Stance, find_stance, stance_method
from identification.velocity_check import VelocityCheck, check_velocities
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]

_SAMPLES_PER_CUTOFF = 3.0  # samples that are kept in a period of the cutoff
_LOWEST_RATE = 20.0  # of joint states, below which nothing can be differentiated [Hz]
_REST_NOISE = 3.0  # standard deviations of velocity below which its sign is unknown
_WIDER, _WIDEST = (
    3.0,
    0.4,
)  # cutoff of the velocity whose sign is taken, over that of the filter, and over the rate
_CLEAR = 0.01  # noise of that velocity over its root mean square
_LEAST_REST = 2e-3  # likewise, over the root mean square of the velocity


@dataclass
class _Log:
    """One recording on its way."""

    source: Source
    grid: Grid
    clock: EvenClock
    chosen: Quantities
    spectrum: Spectrum
    stance: Stance
    speed: Floats


def collect(
    sources: Sequence[Source], model: Model, settings: SignalSettings | None = None
) -> tuple[Samples, SignalReport]:
    """Samples of recordings.

    Args:
        sources: recordings.
        model: robot.
        settings: how; None: the usual ones.

    Raises:
        ArgumentError: a recording that cannot be used, and why.
    """
    settings = SignalSettings() if settings is None else settings
    if not sources:
        raise ArgumentError('there are no recordings; expected at least one')
    logs = [_read(source, model, settings) for source in sources]
    cutoff = _cutoff(logs, settings)
    checks = [_check_motion(log, model, settings, cutoff) for log in logs]
    plans = [_plan(log, model, settings, cutoff, *check) for log, check in zip(logs, checks, strict=True)]
    measured = model.floating_base and all(log.chosen.forces for log in logs)
    given = settings.delay, settings.force_delay
    torque, force = estimate_delays(plans, settings.longest_delay, given[1], given[0], measured)
    samples = Samples(model)
    reports, block = [], 0
    for log, plan, (joints, _, _) in zip(logs, plans, checks, strict=True):
        counts = Counts()
        for rows, _, _ in make_samples(plan, samples.layout, torque.value, force.value, block, counts):
            samples.append(rows)
        block += len(log.grid.pieces)
        reports.append(_source_report(log, plan, joints, counts))
    report = SignalReport(
        tuple(reports), cutoff, settings.cutoff is None, settings.order, torque, force, measured
    )
    _check_samples(samples, model, reports)
    return samples, report


def _read(source: Source, model: Model, settings: SignalSettings) -> _Log:
    """Bring a recording to an even clock, check it, and find impacts."""
    grid, clock, chosen = make_grid(source, model, settings)
    if clock.period <= 0.0 or 1.0 / clock.period < _LOWEST_RATE:
        rate = 1.0 / clock.period if clock.period > 0.0 else 0.0
        raise ArgumentError(
            f'{source.name}: joint states come with {rate:.3g} Hz; expected at least {_LOWEST_RATE:g} Hz'
        )
    if len(grid) * grid.period < settings.shortest:
        raise ArgumentError(
            f'{source.name}: is {len(grid) * grid.period:.3g} s long; expected at least {settings.shortest:g} s '
            'in which all topics have messages'
        )
    speed = _look(source, grid, model, chosen)
    method = ''
    if model.floating_base:
        method = stance_method(settings, bool(chosen.forces), chosen.base == 'odom')
        if method == 'forces' and not chosen.forces:
            raise ArgumentError(f"{source.name}: stance is 'forces', but not all feet have measured forces")
        if method == 'kinematics' and chosen.base != 'odom':
            raise ArgumentError(f"{source.name}: stance is 'kinematics', but there is no odometry")
        if method == 'all':
            source.note('all feet are taken to stand all the time')
    spectrum = measure_spectrum(grid)
    if spectrum is None:
        raise ArgumentError(f'{source.name}: has no stretch of 2 s without a gap; expected one')
    stance = find_stance(grid, model, settings, source.force_frames, method)
    grid.split(stance.impacts)
    return _Log(source, grid, clock, chosen, spectrum, stance, speed)


def _look(source: Source, grid: Grid, model: Model, chosen: Quantities) -> Floats:
    """(nj,) root mean square of the velocities; positions and torques are checked."""
    low, high = np.full(model.nj, np.inf), np.full(model.nj, -np.inf)
    largest, squares, total = np.zeros(model.nj), np.zeros(model.nj), 0
    for _, _, _, rows in grid.windows(round(20.0 * grid.rate)):
        position = grid.get(rows, 'position')
        low, high = np.minimum(low, position.min(axis=0)), np.maximum(high, position.max(axis=0))
        largest = np.maximum(largest, np.abs(grid.get(rows, 'effort')).max(axis=0))
        if 'velocity' in grid:
            squares += np.sum(grid.get(rows, 'velocity') ** 2, axis=0)
        elif len(rows) > 1:
            squares += np.sum((np.diff(position, axis=0) * grid.rate) ** 2, axis=0)
        total += len(rows)
    check_positions(source, model, low, high)
    check_effort(source, model, largest, chosen.commanded)
    return np.sqrt(squares / max(total, 1))


def _cutoff(logs: Sequence[_Log], settings: SignalSettings) -> float:
    if settings.cutoff is None:
        return choose_cutoff([log.spectrum for log in logs])
    slowest = min(log.grid.rate for log in logs)
    if settings.cutoff > 2.0 * HIGHEST * slowest:
        raise ArgumentError(
            f'cutoff is {settings.cutoff:g} Hz; expected at most {2.0 * HIGHEST * slowest:g} Hz, '
            f'0.4 of the rate of the joint states'
        )
    return settings.cutoff


def _check_motion(
    log: _Log, model: Model, settings: SignalSettings, cutoff: float
) -> tuple[VelocityCheck | None, VelocityCheck | None, ImuPlace | None]:
    """Compare measured velocities with positions: of the joints and of the base."""
    grid = log.grid
    low_pass = LowPass(cutoff, settings.order, grid.rate)
    segment = max(1, round(settings.segment * grid.rate))
    joints = base = place = None
    if 'velocity' in grid:
        joints = check_velocities(
            grid, lambda rows: (grid.get(rows, 'position'), grid.get(rows, 'velocity')), low_pass, segment
        )
        check_velocity(log.source, model, joints.factor, log.speed)
    if log.chosen.base == 'odom':
        base = check_velocities(grid, lambda rows: base_signals(grid, rows), low_pass, segment)
    elif log.chosen.base == 'imu':
        place = found = imu_place(model, settings)
        base = check_velocities(
            grid, lambda rows: imu_signals(grid, rows, found), low_pass, segment, joined=4
        )
    return joints, base, place


def _plan(
    log: _Log,
    model: Model,
    settings: SignalSettings,
    cutoff: float,
    joints: VelocityCheck | None,
    base: VelocityCheck | None,
    place: ImuPlace | None,
) -> Plan:
    grid = log.grid
    fusion = Fusion.positions(model.nj) if joints is None else joints.fusion(cutoff)
    base_fusion = Fusion.positions(0) if base is None else base.fusion(cutoff)
    if place is not None:
        # the IMU says nothing of the first three columns, which are those of the position
        base_fusion = Fusion(
            np.concatenate([np.full(3, np.inf), base_fusion.corner]), np.r_[np.zeros(3), base_fusion.lag]
        )
    low_pass = LowPass(cutoff, settings.order, grid.rate)
    wanted = settings.sample_rate or _SAMPLES_PER_CUTOFF * cutoff
    wide = _wide_cutoff(log, cutoff)
    noise = log.spectrum.velocity_noise_below(wide)
    rest = np.maximum(_REST_NOISE * noise, _LEAST_REST * log.speed)
    if settings.rest_velocity is not None:
        rest = np.full(model.nj, settings.rest_velocity)
    return Plan(
        grid,
        MotionPlan(model, fusion, base_fusion, place),
        low_pass,
        LowPass(wide, settings.order, grid.rate),
        max(1, math.floor(grid.rate / wanted + 1e-9)),
        np.maximum(rest, 1e-9),
        log.spectrum.torque_noise * math.sqrt(2.0 * cutoff / grid.rate),
        _idle(grid, model),
        log.source.force_frames,
        max(1, round(settings.segment * grid.rate)),
    )


def _wide_cutoff(log: _Log, cutoff: float) -> float:
    """Cutoff of the velocity whose sign is taken [Hz]: as high as noise allows, or reversals would be smeared."""
    low, high = min(_WIDER * cutoff, _WIDEST * log.grid.rate), _WIDEST * log.grid.rate
    for wide in np.geomspace(high, low, 20):
        if np.median(log.spectrum.velocity_noise_below(float(wide)) / np.maximum(log.speed, 1e-300)) < _CLEAR:
            return float(wide)
    return low


def _idle(grid: Grid, model: Model) -> npt.NDArray[np.bool_]:
    """(nj,) joints whose torque is 0 throughout."""
    idle = np.ones(model.nj, dtype=np.bool_)
    for _, _, _, rows in grid.windows(round(20.0 * grid.rate)):
        idle &= np.all(grid.get(rows, 'effort') == 0.0, axis=0)
    return idle


def _source_report(log: _Log, plan: Plan, joints: VelocityCheck | None, counts: Counts) -> SourceReport:
    source, grid = log.source, log.grid
    return SourceReport(
        name=source.name,
        sha256=source.sha256,
        notes=tuple(source.notes),
        rate=grid.rate,
        duration=(len(grid)) * grid.period,
        sample_rate=grid.rate / plan.step,
        clocks={key: line.check for key, line in log.clock.lines.items()},
        base=log.chosen.base,
        stance=log.stance.method,
        stood=tuple(float(x) for x in log.stance.stood / max(len(grid), 1)),
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


def _check_samples(samples: Samples, model: Model, reports: Sequence[SourceReport]) -> None:
    """Something must be left.

    Raises:
        ArgumentError: nothing is.
    """
    names = ', '.join(report.name for report in reports)
    if not len(samples):
        raise ArgumentError(f'{names}: no samples are left after gaps, impacts and the ends of the filters')
    used = sum(float(samples.layout.get(rows, 'use').sum()) for rows in samples.chunks())
    if not used:
        raise ArgumentError(
            f'{names}: no joint moves; nothing can be identified from standstill. Expected joints that turn faster '
            f'than {max(max(report.rest) for report in reports):.2g} rad/s'
        )
