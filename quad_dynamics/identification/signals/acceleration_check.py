# SPDX-License-Identifier: Apache-2.0
"""Validation of recorded accelerations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.signals.base_check import LINEAR, is_measured
from quad_dynamics.identification.signals.filters import LowPass
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.motion import base_signals, world_acceleration
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.velocity_check import check_velocities

_HIGHEST = 10.0  # frequency below which they are compared [Hz]: near impacts they differ
_LEAST, _MOST = 0.5, 2.0  # bounds of the ratio to derivatives of velocities, median over moving signals
_NOISE = 0.75  # share of accelerations that derivatives of velocities do not explain, median
_FALL = 3.0  # implausible mean acceleration of a base [m/s^2]
_WINDOW = 20.0  # time that is processed at once [s]


def refuse_accelerations(source: Source, grid: Grid, settings: SignalSettings, cutoff: float) -> None:
    """Check that recorded accelerations are those of the joints and of the base.

    Args:
        source: recording.
        grid: its rows.
        settings: of signals.
        cutoff: of the motion [Hz].

    Raises:
        ArgumentError: they differ from the derivatives of velocities, or those of the base include gravity.
    """
    low_pass = LowPass(min(cutoff, _HIGHEST), 4, grid.rate)
    if 'acceleration' in grid:
        _compare(
            source,
            grid,
            lambda rows: (_velocities(grid, rows), grid.get(rows, 'acceleration')),
            low_pass,
            'accelerations of the joints',
        )
    if 'base_acceleration' not in grid:
        return
    windows = grid.windows(round(_WINDOW * grid.rate))
    total = sum(world_acceleration(grid, rows)[:, :3].sum(axis=0) for _, _, _, rows in windows)
    mean = np.asarray(total) / max(len(grid), 1)
    if np.linalg.norm(mean) > _FALL:
        raise ArgumentError(
            f'{source.name}: the mean acceleration of the base is {np.round(mean, 2).tolist()} m/s^2 in '
            'world axes; expected about 0: without gravity, and given in base axes'
        )
    measured = settings.velocity != 'positions' and is_measured(grid, 'base', LINEAR)
    _compare(
        source,
        grid,
        lambda rows: (_base_velocities(grid, rows, measured), world_acceleration(grid, rows)[:, :3]),
        low_pass,
        'accelerations of the base',
    )


def _velocities(grid: Grid, rows: Floats) -> Floats:
    """(n, nj) velocities of the joints, as measured, or as differences of positions."""
    if 'velocity' in grid:
        return grid.get(rows, 'velocity')
    return np.asarray(np.gradient(grid.get(rows, 'position'), grid.period, axis=0))


def _base_velocities(grid: Grid, rows: Floats, measured: bool) -> Floats:
    """(n, 3) velocities of the base in world axes, as measured, or as differences of positions."""
    position, slope = base_signals(grid, rows)
    return slope[:, :3] if measured else np.asarray(np.gradient(position[:, :3], grid.period, axis=0))


def _compare(
    source: Source,
    grid: Grid,
    signals: Callable[[Floats], tuple[Floats, Floats]],
    low_pass: LowPass,
    what: str,
) -> None:
    """Compare accelerations with derivatives of velocities."""
    found = check_velocities(grid, signals, low_pass)
    factor = found.factor
    if not np.isfinite(factor).any():
        return
    if not _LEAST <= (usual := float(np.nanmedian(factor))) <= _MOST:
        raise ArgumentError(
            f'{source.name}: {what} are {usual:.3g} times the derivatives of velocities; expected 1'
        )
    if (left := float(np.nanmedian(found.left))) > _NOISE:
        raise ArgumentError(
            f'{source.name}: {what} are mostly noise: below {low_pass.cutoff:.3g} Hz, the derivatives of '
            f'velocities explain {100.0 * (1.0 - left):.0f} % of their power; expected accelerations of this '
            'motion. Without them, velocities are differentiated'
        )
