# SPDX-License-Identifier: Apache-2.0
"""A recording on a uniform clock: read once, validated, and split at impacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.checks import check_effort, check_forces, check_positions
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.signals.acceleration_check import refuse_accelerations
from quad_dynamics.identification.signals.base_check import refuse_base
from quad_dynamics.identification.signals.clock import EvenClock
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.grid_reader import make_grid
from quad_dynamics.identification.signals.quantities import Quantities
from quad_dynamics.identification.signals.sampling import rows_at_end
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.spectrum import Spectrum, choose_cutoff, measure_spectrum
from quad_dynamics.identification.signals.stance import Stance, find_stance, stance_method
from quad_dynamics.identification.signals.velocity_check import LEAST_WAY, refuse_velocities
from quad_dynamics.model.model import Model

_LOWEST_RATE = 20.0  # of joint states; differentiation needs at least this [Hz]
_LEAST_LEFT = 0.02  # share of rows that must remain between impacts, if filters stop at them
_WINDOW = 20.0  # time that is processed at once [s]


@dataclass(frozen=True, eq=False)
class EvenLog:
    """A recording on a uniform clock.

    Attributes:
        source: recording.
        grid: its rows.
        clock: the uniform clock, with the regularity of the stamps.
        chosen: quantities that are used.
        spectrum: of its signals.
        stance: feet in stance, and impacts.
        speed: (nj,) root mean square of the velocities [rad/s or m/s].
        largest: (nj,) largest torques [N m or N].
        spread: (nj,) standard deviations of the torques [N m or N].
    """

    source: Source
    grid: Grid
    clock: EvenClock
    chosen: Quantities
    spectrum: Spectrum
    stance: Stance
    speed: Floats
    largest: Floats
    spread: Floats


def read_log(
    source: Source, model: Model, settings: SignalSettings, tell: Callable[[str], object] | None
) -> EvenLog:
    """Resample a recording to a uniform clock, validate it, and find impacts.

    Args:
        source: recording.
        model: robot.
        settings: of signals.
        tell: called with the progress of reading.

    Raises:
        ArgumentError: the recording cannot be used; with the reason.
    """
    grid, clock, chosen = make_grid(source, model, settings, tell)
    if (rate := 1.0 / clock.period) < _LOWEST_RATE:
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
        raise ArgumentError(f'{source.name}: has no segment of 2 s without a gap; expected one')
    cutoff = choose_cutoff([spectrum])
    if 'velocity' in grid:
        refuse_velocities(source, grid, model, cutoff)
    refuse_base(source, grid, model, chosen, settings, cutoff)
    refuse_accelerations(source, grid, settings, cutoff)
    stance = find_stance(grid, model, settings, source.force_frames, _stance_method(source, chosen, settings))
    check_forces(source, model, stance.carried)
    _split(source, grid, stance, settings.cutoff or cutoff)
    return EvenLog(source, grid, clock, chosen, spectrum, stance, *looks)


def _split(source: Source, grid: Grid, stance: Stance, cutoff: float) -> None:
    """Split segments at impacts, unless this would leave next to nothing of the recording."""
    segments = list(grid.segments)
    grid.split(stance.impacts)
    ends = 2 * rows_at_end(grid.rate, cutoff)
    left = sum(max(len(segment) - ends, 0) for segment in grid.segments)
    whole = sum(max(len(segment) - ends, 0) for segment in segments)
    if left >= _LEAST_LEFT * whole:
        return
    grid.segments, stance.across = segments, True
    every = len(grid) * grid.period / max(len(stance.impacts), 1)
    help_ = [f'a higher rate than {grid.rate:.4g} Hz', 'slower steps']
    if 'acceleration' not in grid:
        help_.append('accelerations of joints and base in the recording')
    if stance.method == 'kinematics':
        help_.append('flags of contact in the recording')
    source.note(
        f'impacts come every {1e3 * every:.0f} ms on the mean, too often to filter between them: filters run '
        f'across impacts, which costs accuracy. What would help: {", ".join(help_)}'
    )


def _stance_method(source: Source, chosen: Quantities, settings: SignalSettings) -> str:
    """How feet on the ground are detected; '' for a fixed base."""
    if not chosen.base:
        return ''
    method = stance_method(settings, bool(chosen.forces), bool(chosen.contacts), chosen.base == 'odom')
    if method == 'forces' and not chosen.forces:
        raise ArgumentError(f"{source.name}: stance is 'forces', but not all feet have measured forces")
    if method == 'flags' and not chosen.contacts:
        raise ArgumentError(f"{source.name}: stance is 'flags', but not all feet have flags of contact")
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
