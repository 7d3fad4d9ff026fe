# SPDX-License-Identifier: Apache-2.0
"""From recordings to samples: resampled to one clock, filtered, corrected for delays, and selected.

Recordings are read once. Samples can then be made repeatedly, with other cutoffs or delays. These are chosen
by fits outside this package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.signals.delay import Delays, estimate_delays
from quad_dynamics.identification.signals.even_log import EvenLog, read_log
from quad_dynamics.identification.signals.plans import STILL, make_plan
from quad_dynamics.identification.signals.sampling import Counts, Plan, make_samples, rows_at_end
from quad_dynamics.identification.signals.signal_report import RefusedCutoff, SignalReport, SourceReport
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.spectrum import HIGHEST, choose_cutoff, lowest_cutoff
from quad_dynamics.identification.signals.velocity_check import VelocityCheck
from quad_dynamics.model.model import Model

Tell = Callable[[str], object]


class Logs:
    """Recordings on uniform clocks, from which samples are made.

    Attributes:
        model: robot.
        settings: filters, derivatives, and selection of samples.
        logs: the recordings.
        forces_measured: whether forces of all feet were measured in all recordings.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        model: Model,
        settings: SignalSettings | None = None,
        tell: Tell | None = None,
    ) -> None:
        """Read recordings.

        Args:
            sources: recordings.
            model: robot.
            settings: None: defaults.
            tell: called with the progress of reading.

        Raises:
            ArgumentError: a recording cannot be used; with the reason.
        """
        self.model = model
        self.settings = settings = SignalSettings() if settings is None else settings
        if not sources:
            raise ArgumentError('there are no recordings; expected at least one')
        self.logs = [read_log(source, model, settings, tell) for source in sources]
        self.forces_measured = model.floating_base and all(log.chosen.forces for log in self.logs)
        self._plans: dict[float, list[tuple[Plan, VelocityCheck | None]]] = {}

    @property
    def spectral_cutoff(self) -> float:
        """The cutoff that spectra of motion and noise suggest [Hz]."""
        return choose_cutoff([log.spectrum for log in self.logs])

    @property
    def lowest_cutoff(self) -> float:
        """The cutoff below which the motion itself would be filtered [Hz]."""
        return lowest_cutoff([log.spectrum for log in self.logs])

    @property
    def first_cutoff(self) -> float:
        """The requested cutoff, or that of the spectra [Hz].

        Raises:
            ArgumentError: it is too high for the rate of the joint states.
        """
        wanted = self.settings.cutoff
        if wanted is None:
            return self.spectral_cutoff
        highest = 2.0 * HIGHEST * min(log.grid.rate for log in self.logs)
        if wanted > highest:
            raise ArgumentError(
                f'cutoff is {wanted:g} Hz; expected at most {highest:g} Hz, 0.4 of the rate of the joint '
                'states'
            )
        return wanted

    def find_delays(self, cutoff: float) -> Delays:
        """The delays with which the equation of motion fits best.

        Args:
            cutoff: of the low-pass filter [Hz]; limited to that of the spectra, because of noise.
        """
        plans = [plan for plan, _ in self._plans_of(min(cutoff, self.spectral_cutoff))]
        known = self.settings
        return estimate_delays(
            plans, known.longest_delay, known.force_delay, known.delay, self.forces_measured
        )

    def samples(
        self, cutoff: float, delays: Delays, refused: tuple[RefusedCutoff, ...] = ()
    ) -> tuple[Samples, SignalReport]:
        """Samples of all recordings, and a report.

        Args:
            cutoff: of the low-pass filter [Hz].
            delays: that are corrected.
            refused: cutoffs that were rejected before, for the report.

        Raises:
            ArgumentError: no samples are left, or nothing moves.
        """
        samples, reports, number = Samples(self.model), [], 0
        for log, (plan, joints) in zip(self.logs, self._plans_of(cutoff), strict=True):
            counts = Counts()
            shifts = delays.torque.value, delays.force.value
            for rows, _, _ in make_samples(plan, samples.layout, *shifts, number, counts):
                samples.append(rows)
            number += len(plan.grid.segments)
            reports.append(_source_report(log, plan, joints, counts))
        _check_samples(samples, reports, cutoff)
        return samples, SignalReport(
            sources=tuple(reports),
            cutoff=cutoff,
            automatic=self.settings.cutoff is None,
            order=self.settings.order,
            delay=delays.torque,
            force_delay=delays.force,
            forces_measured=self.forces_measured,
            refused=refused,
        )

    def _plans_of(self, cutoff: float) -> list[tuple[Plan, VelocityCheck | None]]:
        """The plan of each recording for a cutoff."""
        if cutoff not in self._plans:
            self._plans[cutoff] = [make_plan(log, self.model, self.settings, cutoff) for log in self.logs]
        return self._plans[cutoff]


def collect(
    sources: Sequence[Source],
    model: Model,
    settings: SignalSettings | None = None,
    tell: Tell | None = None,
) -> tuple[Samples, SignalReport]:
    """Samples of recordings without a fit: cutoff from spectra, delays from the equation of motion.

    Args:
        sources: recordings.
        model: robot.
        settings: None: defaults.
        tell: called with the progress of reading.

    Raises:
        ArgumentError: a recording cannot be used; with the reason.
    """
    logs = Logs(sources, model, settings, tell)
    cutoff = logs.first_cutoff
    return logs.samples(cutoff, logs.find_delays(cutoff))


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
        across=log.stance.across,
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


def _check_samples(samples: Samples, reports: Sequence[SourceReport], cutoff: float) -> None:
    """Check that there are samples.

    Raises:
        ArgumentError: there are none.
    """
    names = ', '.join(report.name for report in reports)
    if not len(samples):
        needed = max(2.0 * rows_at_end(report.rate, cutoff) / report.rate for report in reports)
        raise ArgumentError(
            f'{names}: no samples are left after gaps, impacts and the ends of filters; expected at least '
            f'{needed:.2g} s between two of them. Fewer gaps, a higher rate, or a higher cutoff than '
            f'{cutoff:.3g} Hz would help'
        )
    used = sum(float(samples.layout.get(rows, 'use').sum()) for rows in samples.chunks())
    if not used:
        rests = [rest for report in reports for rest in report.rest if np.isfinite(rest)]
        raise ArgumentError(
            f'{names}: no joint moves; nothing can be identified from standstill. Expected joints that turn '
            f'faster than {max(rests, default=STILL):.2g} rad/s'
        )
