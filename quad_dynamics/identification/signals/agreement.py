# SPDX-License-Identifier: Apache-2.0
"""Agreement of measured vectors with the same vectors from another source, at the lag of best agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.signals.filters import HALF, LowPass
from quad_dynamics.identification.signals.grid import Grid

MOVES = 5.0  # ratio of motion to noise above which velocities can be compared
_WINDOW = 10.0  # time that is processed at once [s]
_LONGEST_LAG, _LAG_STEP = 0.1, 5e-3  # lags that are tried [s]

# From rows (n, width) to candidates (m, n - 2 HALF, d) and to what was measured (n - 2 HALF, d).
Vectors = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Pair:
    """A measured vector, and candidates for it, in rows without a gap; all passed the same filter.

    Attributes:
        x: (m, n, d) candidates.
        dx: (m, n, d) their derivatives with respect to time.
        y: (n, d) the measured vector.
    """

    x: Floats
    dx: Floats
    y: Floats


@dataclass(frozen=True)
class Agreement:
    """Measured vectors y compared with one candidate x: y(t) = factor x(t - lag).

    Attributes:
        low: least-squares factor of y on x [-]; noise of x makes it smaller in magnitude, noise of y does not
            change it.
        high: inverse of the factor of x on y; noise of y makes it larger, noise of x does not change it.
        error: standard deviation of `low`, from what is left of y.
        left: share of y that x does not explain, from 0 to 1.
        size: root mean square of x [unit of x].
        lag: [s].
    """

    low: float
    high: float
    error: float
    left: float
    size: float
    lag: float


@dataclass(frozen=True, eq=False)
class LaggedSums:
    """Sums over all rows, for each lag.

    Attributes:
        lags: (k,) [s].
        xx: (k, m, m) products of candidates.
        yx: (k, m, d, d) products of the components of y with those of the candidates.
        yy: sum of squares of y.
        rates: (m,) sums of squares of the derivatives of candidates.
        count: number of rows.
        free: number of independent rows, after the filter.
    """

    lags: Floats
    xx: Floats
    yx: Floats
    yy: float
    rates: Floats
    count: int
    free: float

    def agreement(self, i: int, limited: bool = True) -> Agreement:
        """That of one candidate.

        Args:
            i: which.
            limited: to lags of a quarter of the period of the motion: beyond it, a wrong sign would look like
                a lag.
        """
        return self._agreement(i, np.trace(self.yx[:, i], axis1=1, axis2=2), limited)

    def turned(self, i: int) -> Agreement:
        """That of one candidate in other axes, which are turned or mirrored such that it agrees best.

        The sum of the singular values is the largest trace (orthogonal Procrustes problem; Schoenemann 1966).
        """
        return self._agreement(i, np.linalg.svd(self.yx[:, i], compute_uv=False).sum(axis=1), False)

    def _agreement(self, i: int, xy: Floats, limited: bool) -> Agreement:
        """At the best lag, from products of a candidate with y (k,)."""
        xx = self.xx[:, i, i]
        # at the frequency w, derivatives are w times as large
        quarter = 0.5 * np.pi * np.sqrt(xx[len(xx) // 2] / max(float(self.rates[i]), 1e-300))
        longest = quarter if limited else np.inf
        agreement = np.where(np.abs(self.lags) < longest, xy / np.sqrt(np.maximum(xx, 1e-300)), -np.inf)
        at = int(np.argmax(agreement))
        at = at if agreement[at] > 0.0 else len(xx) // 2
        square, product, yy = float(xx[at]), float(xy[at]), max(self.yy, 1e-300)
        low = product / max(square, 1e-300)
        left = max(yy - low * product, 0.0)
        return Agreement(
            low,
            yy / product if product else np.inf,
            float(np.sqrt(left / (self.free * max(square, 1e-300)))),
            left / yy,
            float(np.sqrt(square / self.count)),
            float(self.lags[at]),
        )

    def apart(self, i: int, j: int) -> float:
        """Root mean square of the difference of two candidates, relative to the first one."""
        xx = self.xx[len(self.lags) // 2]
        return float(np.sqrt(max(xx[i, i] - 2.0 * xx[i, j] + xx[j, j], 0.0) / max(xx[i, i], 1e-300)))


def lagged_sums(windows: Iterable[Sequence[Pair]], low_pass: LowPass) -> tuple[LaggedSums, ...]:
    """Sums of products of candidates with measured vectors, for each vector.

    Args:
        windows: the vectors in each window.
        low_pass: filter that they passed.

    Returns:
        As many as a window has vectors; empty if all windows are too short.
    """
    rate = low_pass.rate
    step = max(1, round(_LAG_STEP * rate))
    edge = step * round(_LONGEST_LAG * rate / step)
    lags = np.arange(-edge, edge + 1, step)
    parts = [[_sums(pair, lags, edge) for pair in pairs] for pairs in windows if len(pairs[0].y) >= 4 * edge]
    found = []
    for of_one in zip(*parts, strict=True):
        xx, yx, yy, rates, counts = zip(*of_one, strict=True)
        count = sum(counts)
        free = max(count * 2.0 * low_pass.cutoff / rate, 1.0)
        found.append(LaggedSums(lags / rate, sum(xx), sum(yx), sum(yy), sum(rates), count, free))
    return tuple(found)


def filtered_pairs(
    grid: Grid, vectors: Vectors, low_pass: LowPass, centred: bool = False
) -> Iterator[tuple[Pair]]:
    """One measured vector and its candidates, in windows without their ends.

    Args:
        grid: rows.
        vectors: candidates and measured vectors of rows.
        low_pass: filter of both.
        centred: whether their means in each window are removed.
    """
    trim = int(np.ceil(grid.rate / low_pass.cutoff))
    for _, _, _, rows in grid.windows(round(_WINDOW * grid.rate)):
        n = len(rows) - 2 * HALF - 2 * trim
        if n < 20:
            continue
        x, y = vectors(rows)
        inner = slice(trim, trim + n)
        x, y = np.stack([low_pass(one)[inner] for one in x]), low_pass(y)[inner]
        if centred:
            x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=0)
        yield (Pair(x, np.gradient(x, grid.period, axis=1), y),)


def _sums(pair: Pair, lags: Ints, edge: int) -> tuple[Floats, Floats, float, Floats, int]:
    n = len(pair.y) - 2 * edge
    now = pair.y[edge : edge + n]
    late = [pair.x[:, edge - int(k) : edge - int(k) + n] for k in lags]
    xx = np.array([np.einsum('ink,jnk->ij', z, z) for z in late])
    yx = np.array([now.T @ z for z in late])
    rates = np.sum(pair.dx[:, edge : edge + n] ** 2, axis=(1, 2))
    return xx, yx, float(np.sum(now**2)), rates, n
