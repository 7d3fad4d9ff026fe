# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories through given points that start at the current state.

Positions alone give a cubic spline with continuous acceleration; with velocities, cubic segments between the
points; with accelerations as well, quintic ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError


class JointTrajectory:
    """Positions, velocities and accelerations of all joints over time; the last point is held.

    Attributes:
        duration: time of the last point [s].
        blended: time from which on it follows the points [s].
    """

    def __init__(
        self,
        times: npt.ArrayLike,
        q: npt.ArrayLike,
        qd: npt.ArrayLike | None,
        qdd: npt.ArrayLike | None,
        q_now: Floats,
        qd_now: Floats,
        blend: float = 0.5,
        passed: float = 0.0,
    ) -> None:
        """Make it from n points.

        The first point is reached from the current state at its own time. If that time is 0, or if part of
        the trajectory has already passed, the difference to the current state fades out within the time
        `blend`, because the next point may be too close to be reached in the remaining time.

        Args:
            times: (n,) since the start, increasing, the first at least 0 [s].
            q: (n, nj) positions [rad or m].
            qd: (n, nj) velocities, None if they are not given.
            qdd: (n, nj) accelerations, likewise; they require velocities.
            q_now: (nj,) current positions.
            qd_now: (nj,) current velocities.
            blend: [s].
            passed: time since the start at the current state, at least 0 [s].

        Raises:
            ArgumentError: the points are invalid.
        """
        t, points = _checked(times, q, qd, qdd, q_now.size)
        self._offset: Any = None
        if t[0] > 0.0:
            present = (q_now, qd_now, np.zeros_like(q_now))
            t = np.concatenate([[0.0], t])
            points = [np.vstack([now, rows]) for now, rows in zip(present, points, strict=False)]
        self._piece = _interpolant(t, points, qd_now if len(points) == 1 else None)
        self.duration = float(t[-1])
        self._last = points[0][-1]
        self._begin, self.blended = passed, passed
        first = self._planned(passed)
        miss = np.array([q_now - first[0], qd_now - first[1], -first[2]])
        if np.abs(miss[:2]).max(initial=0.0) > 1e-9 and blend > 0.0:
            self.blended = passed + blend
            span, zero = np.array([passed, self.blended]), np.zeros_like(miss)
            self._offset = _interpolant(span, _pairs(miss, zero), None)

    def sample(self, t: float) -> tuple[Floats, Floats, Floats]:
        """Positions, velocities and accelerations, each (nj,), at a time since the start [s]."""
        t = max(t, self._begin)
        q, qd, qdd = self._planned(t)
        if self._offset is not None and t < self.blended:
            q, qd, qdd = q + self._offset(t), qd + self._offset(t, 1), qdd + self._offset(t, 2)
        return q, qd, qdd

    def _planned(self, t: float) -> tuple[Floats, Floats, Floats]:
        """The trajectory of the points, without the blend."""
        if t >= self.duration:
            return self._last.copy(), np.zeros(self._last.size), np.zeros(self._last.size)
        return self._piece(t), self._piece(t, 1), self._piece(t, 2)


def _pairs(first: Floats, second: Floats) -> list[Floats]:
    """Rows of two points: positions, velocities, accelerations."""
    return [np.stack([a, b]) for a, b in zip(first, second, strict=True)]


def _interpolant(t: Floats, points: list[Floats], first_velocity: Floats | None) -> Any:
    """A function of time and of the order of a derivative."""
    if len(t) == 1:  # one point, immediately
        return lambda _, order=0: points[order][0] if order < len(points) else np.zeros_like(points[0][0])
    if len(points) == 1:
        begin = np.zeros(points[0].shape[1]) if first_velocity is None else first_velocity
        return CubicSpline(t, points[0], bc_type=((1, begin), (1, np.zeros_like(begin))))
    if len(points) == 2:
        return CubicHermiteSpline(t, points[0], points[1])
    return BPoly.from_derivatives(t, np.stack(points, axis=1))


def _checked(
    times: npt.ArrayLike, q: npt.ArrayLike, qd: npt.ArrayLike | None, qdd: npt.ArrayLike | None, nj: int
) -> tuple[Floats, list[Floats]]:
    try:
        t = np.asarray(times, dtype=np.float64)
        given = {'q': q, 'qd': qd, 'qdd': qdd}
        points = {name: np.asarray(x, dtype=np.float64) for name, x in given.items() if x is not None}
    except (TypeError, ValueError) as error:
        raise ArgumentError(f'the trajectory is not made of numbers: {error}') from error
    if t.ndim != 1 or not t.size:
        raise ArgumentError(f'times has the shape {t.shape}; expected (n,), with at least one point')
    for name, rows in points.items():
        if rows.shape != (t.size, nj):
            raise ArgumentError(f'{name} has the shape {rows.shape}; expected {(t.size, nj)}')
    for name, rows in {'times': t, **points}.items():
        if not np.isfinite(rows).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(rows))[0])
            raise ArgumentError(f'{name}{list(where)} is {rows[where]}; expected finite numbers')
    if t[0] < 0.0 or not (np.diff(t) > 0.0).all():
        raise ArgumentError(f'times is {t.tolist()}; expected increasing times, the first at least 0')
    if 'qdd' in points and 'qd' not in points:
        raise ArgumentError('qdd is given without qd; expected velocities, too')
    return t, list(points.values())
