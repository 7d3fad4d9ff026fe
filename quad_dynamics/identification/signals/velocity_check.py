# SPDX-License-Identifier: Apache-2.0
"""Comparison of measured velocities with derivatives of positions, and their fusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.recordings.checks import check_velocity
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.signals.agreement import MOVES, Pair, lagged_sums
from quad_dynamics.identification.signals.filters import HALF, LowPass, derivative, noise_level
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.motion import Fusion
from quad_dynamics.model.model import Model

_FACTOR = 0.02  # largest relative error of velocities that are used
_LOW, _ALONE = 0.7, 0.25  # lowest corner relative to the cutoff; below the second value, velocities alone
LEAST_WAY = 1e-3  # smaller motion [rad or m] may be caused by encoder steps
_WINDOW = 10.0  # time that is processed at once [s]
_STEP = 1.25  # factor between distinct corners
_LAG = 0.05  # largest delay of velocities that are used, in periods of the cutoff
_HIGHEST = 15.0  # highest cutoff of the comparison [Hz]: motion, without impacts or noise


@dataclass(frozen=True, eq=False)
class VelocityCheck:
    """Measured velocities v compared with positions p: v(t) = factor p'(t - lag).

    Attributes:
        factor: (k,); NaN for signals that do not move.
        lag: (k,) [s].
        position_noise: (k,) standard deviations.
        velocity_noise: (k,).
        left: (k,) share of the velocities that positions do not explain, below the cutoff, from 0 to 1; NaN
            for signals that do not move.
    """

    factor: Floats
    lag: Floats
    position_noise: Floats
    velocity_noise: Floats
    left: Floats

    def good(self, cutoff: float) -> npt.NDArray[np.bool_]:
        """(k,) velocities that can be used."""
        near = np.abs(np.nan_to_num(self.factor, nan=1.0) - 1.0) < _FACTOR
        return near & (np.abs(self.lag) < _LAG / cutoff)

    def fusion(self, cutoff: float) -> Fusion:
        """How positions and velocities are fused.

        The fusion filter must not reach further than the low-pass filter: if the corner were far below the
        cutoff, measured velocities alone are as good.
        """
        ratio = self.velocity_noise / np.maximum(self.position_noise, 1e-300)
        own = 2.0 * np.pi * cutoff
        corner = np.clip(ratio, _LOW * own, 1e9)
        # rounded, so that similar columns share one filter
        corner = _STEP ** np.rint(np.log(corner) / np.log(_STEP))
        corner = np.where(ratio < _ALONE * own, 0.0, corner)
        good = self.good(cutoff)
        return Fusion(np.where(good, corner, np.inf), np.where(good, self.lag, 0.0))


def check_velocities(
    grid: Grid,
    signals: Callable[[Floats], tuple[Floats, Floats]],
    low_pass: LowPass,
    groups: Sequence[int] = (),
) -> VelocityCheck:
    """Compare measured velocities with positions, below the cutoff.

    Args:
        grid: rows.
        signals: positions and measured velocities (n, k) of rows.
        low_pass: filter.
        groups: numbers of adjacent columns that share one factor, lag and noise (parts of a vector); empty:
            each column has its own.
    """
    sums: Floats | None = None
    lowest, highest = np.inf, -np.inf
    count = 0
    noise: list[Floats] = []
    weights: list[int] = []
    for p, v, (x, a, y) in _slopes(grid, signals, low_pass):
        lowest, highest = np.minimum(lowest, p.min(axis=0)), np.maximum(highest, p.max(axis=0))
        noise.append(np.stack([noise_level(p) ** 2, noise_level(v) ** 2]))
        weights.append(len(p))
        count += len(x)
        products = np.stack([x * x, x * a, a * a, x * y, a * y, y * y]).sum(axis=1)
        sums = products if sums is None else sums + products
    if sums is None:
        k = signals(grid.read(0, min(len(grid), 50)))[0].shape[1]
        nothing = np.full(k, np.nan)
        return VelocityCheck(nothing, nothing * 0.0, nothing, nothing, nothing)
    levels = np.average(np.stack(noise), axis=0, weights=weights)
    if groups:
        sums, levels = _together(sums, groups), _together(levels, groups) / np.repeat(groups, groups)
    xx, xa, aa, xy, ay, yy = sums
    determinant = xx * aa - xa * xa
    # The derivative of positions must exceed their noise.
    moves = xx > MOVES**2 * levels[0] * low_pass.slope_noise * count
    moves &= determinant > 1e-12 * np.maximum(xx * aa, 1e-300)
    moves &= highest - lowest > LEAST_WAY
    safe = np.where(moves, determinant, 1.0)
    factor = np.where(moves, (aa * xy - xa * ay) / safe, np.nan)
    slope = np.where(moves, (xx * ay - xa * xy) / safe, 0.0)
    lag = np.where(moves, -slope / np.where(np.abs(factor) > 1e-6, factor, 1.0), 0.0)
    left = 1.0 - (factor * xy + slope * ay) / np.maximum(yy, 1e-300)
    return VelocityCheck(factor, np.nan_to_num(lag), np.sqrt(levels[0]), np.sqrt(levels[1]), left)


def _slopes(
    grid: Grid, signals: Callable[[Floats], tuple[Floats, Floats]], low_pass: LowPass
) -> Iterator[tuple[Floats, Floats, tuple[Floats, Floats, Floats]]]:
    """Positions p and velocities v in windows; and p', p'' and v with the same filter, without the ends."""
    trim = int(np.ceil(grid.rate / low_pass.cutoff))
    for _, _, _, rows in grid.windows(round(_WINDOW * grid.rate)):
        if len(rows) < 2 * HALF + 2 * trim + 20:
            continue
        p, v = signals(rows)
        inner = slice(trim, len(rows) - 2 * HALF - trim)
        x, a = (derivative(low_pass(p), grid.period, order)[inner] for order in (1, 2))
        yield p, v, (x, a, low_pass(v)[HALF : len(v) - HALF][inner])


def refuse_velocities(source: Source, grid: Grid, model: Model, cutoff: float) -> None:
    """Check that measured joint velocities are the derivatives of the positions.

    Args:
        source: recording.
        grid: its rows, with velocities.
        model: robot.
        cutoff: below which they are compared [Hz]; may differ from that of the samples.

    Raises:
        ArgumentError: they are not.
    """

    def signals(rows: Floats) -> tuple[Floats, Floats]:
        return grid.get(rows, 'position'), grid.get(rows, 'velocity')

    low_pass = LowPass(min(cutoff, _HIGHEST), 4, grid.rate)
    moves = np.isfinite(check_velocities(grid, signals, low_pass).factor)
    found = [sums.agreement(0) for sums in lagged_sums(_pairs(grid, signals, low_pass), low_pass)]
    if found:
        factor, error = np.array([(one.low, one.error) for one in found]).T
        check_velocity(source, model, np.where(moves, factor, np.nan), error)


def _pairs(
    grid: Grid, signals: Callable[[Floats], tuple[Floats, Floats]], low_pass: LowPass
) -> Iterator[list[Pair]]:
    """Each measured velocity, and the derivative of its position, as vectors of one component."""
    for _, _, (x, a, y) in _slopes(grid, signals, low_pass):
        columns = [slice(k, k + 1) for k in range(x.shape[1])]
        yield [Pair(x[None, :, k], a[None, :, k], y[:, k]) for k in columns]


def _together(sums: Floats, groups: Sequence[int]) -> Floats:
    """Sums over columns that share one result."""
    begins = np.cumsum([0, *groups[:-1]])
    return np.repeat(np.add.reduceat(sums, begins, axis=1), groups, axis=1)
