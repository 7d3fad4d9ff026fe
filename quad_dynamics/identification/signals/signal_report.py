# SPDX-License-Identifier: Apache-2.0
"""Report of how recordings were processed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from quad_dynamics.identification.number_text import percent
from quad_dynamics.identification.signals.clock import ClockCheck
from quad_dynamics.identification.signals.delay import Delay
from quad_dynamics.identification.signals.sampling import Counts


@dataclass(frozen=True, eq=False)
class SourceReport:
    """One recording.

    Attributes:
        name: of the recording.
        sha256: of its data.
        notes: assumptions.
        rate: of the uniform clock [Hz].
        duration: on this clock [s].
        sample_rate: of the samples [Hz].
        clocks: regularity of the stamps of each channel.
        base: 'odom', 'imu', or '' for a fixed base.
        stance: how feet on the ground were detected; '' for a fixed base.
        stood: share of the time in which each foot is in stance.
        carried: mean of the vertical foot forces relative to the weight; NaN if they were not measured.
        impacts: number of detected impacts.
        across: whether filters run across impacts, because they are too frequent.
        joint_names: of the following values.
        position_noise: standard deviations [rad or m].
        velocity_noise: [rad/s or m/s]; infinite without measured velocities.
        torque_noise: [N m or N].
        velocity_factor: velocities over derivatives of positions; empty without measured velocities.
        velocity_lag: delay of velocities [s].
        velocity_used: whether they are used.
        rest: below these velocities the direction of friction is unknown [rad/s or m/s].
        counts: numbers of used and unused samples.
    """

    name: str
    sha256: str
    notes: tuple[str, ...]
    rate: float
    duration: float
    sample_rate: float
    clocks: dict[str, ClockCheck]
    base: str
    stance: str
    stood: tuple[float, ...]
    carried: float
    impacts: int
    across: bool
    joint_names: tuple[str, ...]
    position_noise: tuple[float, ...]
    velocity_noise: tuple[float, ...]
    torque_noise: tuple[float, ...]
    velocity_factor: tuple[float, ...]
    velocity_lag: tuple[float, ...]
    velocity_used: tuple[bool, ...]
    rest: tuple[float, ...]
    counts: Counts

    def text(self, before: str = '') -> list[str]:
        """Human-readable lines; the first one begins with `before` and the name of the recording."""
        lines = [
            f'{before}{self.name}: {self.duration:.1f} s of joint states at {self.rate:.4g} Hz, '
            f'{self.counts.samples} samples at {self.sample_rate:.4g} Hz in {self.counts.segments} '
            f'segment{"s" * (self.counts.segments != 1)}',
            f'  sha256 {self.sha256}',
        ]
        lines += self._clocks()
        if self.base:
            stood = ', '.join(f'{100 * share:.0f} %' for share in self.stood)
            lines.append(f'  base from {self.base}; feet stand (by {self.stance}): {stood}')
        if math.isfinite(self.carried):
            lines.append(f'  foot forces carry {self.carried:.3f} of the weight of the model')
        if self.impacts:
            filters = 'filters run' if self.across else 'no filter runs'
            lines.append(f'  {self.impacts} impacts; {filters} across them')
        lines += self._joints()
        return lines + [f'  note: {note}' for note in self.notes]

    def _clocks(self) -> list[str]:
        """Irregularity of stamps: one line for similar channels."""
        found: dict[str, list[str]] = {}
        for key, clock in self.clocks.items():
            if clock.gaps or clock.doubled or clock.jitter > 0.01 * clock.period:
                text = (
                    f'jitter {1e3 * clock.jitter:.3g} ms, {clock.gaps} gaps, longest '
                    f'{1e3 * clock.longest:.4g} ms, {clock.doubled} double stamps'
                )
                found.setdefault(text, []).append(key)
        return [f'  {", ".join(keys)}: {text}' for text, keys in found.items()]

    def _joints(self) -> list[str]:
        lines = []
        n = max(self.counts.samples, 1)
        found = self.counts
        kinds = {
            'resting': found.resting,
            'saturated': found.saturated,
            'at a stop': found.stopped,
            'near spikes': found.spikes,
        }
        for name, share in kinds.items():
            if np.any(share > 0.005 * n):
                worst = int(np.argmax(share))
                lines.append(
                    f'  {name}: {percent(float(np.mean(share)) / n)} of the rows do not count, '
                    f'{percent(float(share[worst]) / n)} of {self.joint_names[worst]}'
                )
        if np.any(self.counts.stopped > 0):
            stops = [self.joint_names[i] for i in np.flatnonzero(self.counts.stopped)]
            lines.append(f'  at the end of their range at times: {", ".join(stops)}')
        if self.velocity_factor:
            factors = [f for f in self.velocity_factor if math.isfinite(f)]
            if factors:
                lines.append(
                    f'  velocities over derivatives of positions: {min(factors):.3f} to {max(factors):.3f}, '
                    f'late by {round(1e3 * float(np.median(self.velocity_lag)), 2) + 0.0:.2f} ms'
                )
        else:
            lines.append('  no measured velocities; positions are differentiated')
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        joints = {
            name: {
                'position_noise': self.position_noise[i],
                'velocity_noise': self.velocity_noise[i] if math.isfinite(self.velocity_noise[i]) else None,
                'torque_noise': self.torque_noise[i],
                'rest_velocity': self.rest[i],
                'resting': int(self.counts.resting[i]) if len(self.counts.resting) else 0,
                'saturated': int(self.counts.saturated[i]) if len(self.counts.saturated) else 0,
                'at_stop': int(self.counts.stopped[i]) if len(self.counts.stopped) else 0,
                'near_spikes': int(self.counts.spikes[i]) if len(self.counts.spikes) else 0,
                **self._velocity(i),
            }
            for i, name in enumerate(self.joint_names)
        }
        clocks = {
            key: {
                'messages': clock.messages,
                'period': clock.period,
                'jitter': clock.jitter,
                'longest': clock.longest,
                'gaps': clock.gaps,
                'double_stamps': clock.doubled,
            }
            for key, clock in self.clocks.items()
        }
        return {
            'name': self.name,
            'sha256': self.sha256,
            'notes': list(self.notes),
            'rate': self.rate,
            'duration': self.duration,
            'sample_rate': self.sample_rate,
            'samples': self.counts.samples,
            'segments': self.counts.segments,
            'rows_at_ends': self.counts.trimmed,
            'clocks': clocks,
            'base': self.base,
            'stance': self.stance,
            'stood': list(self.stood),
            'carried': self.carried if math.isfinite(self.carried) else None,
            'impacts': self.impacts,
            'filters_across_impacts': self.across,
            'joints': joints,
        }

    def _velocity(self, i: int) -> dict[str, Any]:
        if not self.velocity_factor:
            return {}
        factor = self.velocity_factor[i]
        return {
            'velocity_factor': factor if math.isfinite(factor) else None,
            'velocity_lag': self.velocity_lag[i],
            'velocity_used': self.velocity_used[i],
        }


@dataclass(frozen=True)
class RefusedCutoff:
    """A cutoff that spectra allow, but that fits reject.

    Attributes:
        cutoff: [Hz].
        factor: by which fits with it predict held-out forces below a lower cutoff worse than fits with the
            lower one.
    """

    cutoff: float
    factor: float


@dataclass(frozen=True, eq=False)
class SignalReport:
    """All recordings.

    Attributes:
        sources: reports of the recordings.
        cutoff: of the low-pass filter [Hz].
        automatic: whether it was chosen from spectra and by fits.
        order: of the filter, which runs forwards and backwards.
        delay: of torques relative to positions.
        force_delay: of foot forces relative to positions.
        forces_measured: of all feet, in all recordings.
        refused: higher cutoffs that were rejected by fits.
    """

    sources: tuple[SourceReport, ...]
    cutoff: float
    automatic: bool
    order: int
    delay: Delay
    force_delay: Delay
    forces_measured: bool
    refused: tuple[RefusedCutoff, ...] = ()

    def text(self, validation: SignalReport | None = None) -> list[str]:
        """Human-readable lines.

        Args:
            validation: of the validation recordings, which pass the same filter; None without any.
        """
        chosen = 'chosen' if self.automatic else 'given'
        lines = [line for source in self.sources for line in source.text()]
        if validation is not None:
            lines += [line for source in validation.sources for line in source.text('validation recording ')]
        lines.append(
            f'low-pass filter: Butterworth of order {self.order}, forwards and backwards, cutoff '
            f'{self.cutoff:.3g} Hz ({chosen})'
        )
        for one in self.refused:
            lines.append(
                f'  not {one.cutoff:.3g} Hz, as spectra allow: held-out errors at lower frequencies '
                f'are {one.factor:.3g} times as large after a fit with it'
            )
        lines.append(f'delay of torques behind positions: {_delay_text(self.delay)}')
        if self.forces_measured:
            lines.append(f'delay of foot forces behind positions: {_delay_text(self.force_delay)}')
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML."""
        return {
            'cutoff': self.cutoff,
            'cutoff_automatic': self.automatic,
            'cutoffs_refused': {one.cutoff: one.factor for one in self.refused},
            'order': self.order,
            'delay': _delay_dict(self.delay),
            'force_delay': _delay_dict(self.force_delay) if self.forces_measured else None,
            'forces_measured': self.forces_measured,
            'sources': [source.to_dict() for source in self.sources],
        }


def _delay_text(delay: Delay) -> str:
    if delay.how == 'given':
        return f'{1e3 * delay.value:.2f} ms (given)'
    if not math.isfinite(delay.estimate):
        return f'{delay.how}; taken as 0'
    error = f' ± {1e3 * delay.error:.2f}' if math.isfinite(delay.error) else ''
    estimate = round(1e3 * delay.estimate, 2) + 0.0  # no negative zero
    return f'{estimate:.2f}{error} ms ({delay.how}{"" if delay.value else "; taken as 0"})'


def _delay_dict(delay: Delay) -> dict[str, Any]:
    def plain(number: float) -> float | None:
        return number if math.isfinite(number) else None

    return {
        'value': delay.value,
        'estimate': plain(delay.estimate),
        'standard_error': plain(delay.error),
        'how': delay.how,
    }
