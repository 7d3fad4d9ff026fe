# SPDX-License-Identifier: Apache-2.0
"""Quintics of the centre of mass, one for each phase, that satisfy junctions by construction.

A quintic is given by positions, velocities and accelerations at both ends, in normalised time s = t / T:

    X = [p(0), T v(0), T^2 a(0), p(1), T v(1), T^2 a(1)],    p(s) = [1, s, ..., s^5] HERMITE X

(in seconds, as in (2) to (5) of the planner, the condition of such systems is 1e9 for a phase of 0.05 s). The
unknowns u are positions and velocities at knots, and accelerations. All X are affine in them,
X = E [known; u]:

* Position and velocity are those of the knot, so (9) holds exactly.
* Accelerations may jump where the feet in contact change. If two phases have the same feet, they may not.
* In flight X is the parabola (10) of the state at take-off; the state at landing is not an unknown.
  Accelerations of the stance phases before and after it are g there, because forces begin and end with zero.
* A very short stance phase is a cubic, because 6 conditions at its ends within such a short time are
  ill-conditioned. Between two flights it is part of the flight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bools, Floats, Ints
from quad_dynamics.planning.motion_plan import HERMITE

KNOWN = 3  # columns of E before the unknowns: initial position and velocity, and gravity
_POSITION, _VELOCITY, _GRAVITY = 0, 1, 2


def _square_integral(order: int) -> Floats:
    """(6, 6) Q with X^T Q X the integral over s of the squared derivative of an order: (6) for order 2."""
    power = np.arange(6)
    factor = np.ones(6)
    for k in range(order):
        factor *= power - k
    exponents = power - order
    total = exponents[:, None] + exponents[None, :] + 1.0
    Q = np.outer(factor, factor) / np.where(total > 0.0, total, 1.0)
    return np.asarray(HERMITE.T @ Q @ HERMITE)


Q_POSITION, Q_VELOCITY, Q_ACCELERATION = (_square_integral(order) for order in range(3))


@dataclass(frozen=True, eq=False)
class Tables:
    """Quintics at samples from s = 0 to 1.

    Attributes:
        position: (samples, 6), p = position X.
        acceleration: (samples, 6), T^2 a = acceleration X.
    """

    position: Floats
    acceleration: Floats


def sample_tables(samples: int) -> Tables:
    """Tables with a number of samples, including the ends."""
    s = np.linspace(0.0, 1.0, samples)
    powers = s[:, None] ** np.arange(6)
    second = np.zeros((samples, 6))
    second[:, 2:] = powers[:, :4] * np.array([2.0, 6.0, 12.0, 20.0])
    return Tables(powers @ HERMITE, second @ HERMITE)


@dataclass(frozen=True, eq=False)
class Segments:
    """All quintics as affine functions of the unknowns.

    Attributes:
        durations: (n,) T.
        E: (n, 6, KNOWN + unknowns), X = E [known; u] for each axis.
        flight: (n,) which are parabolas.
        starts_free: (n,) which have no load at their start, because they follow flight.
        ends_free: (n,) which have none at their end.
        first_acceleration: column of the initial acceleration, -1 if that is g.
        unknowns: (unknowns, 3) of each: order of the derivative, knot, and segment that it belongs to.
    """

    durations: Floats
    E: Floats
    flight: Bools
    starts_free: Bools
    ends_free: Bools
    first_acceleration: int
    unknowns: Ints


def make_segments(durations: list[float], flight: list[bool], same: list[bool], shortest: float) -> Segments:
    """Eliminate all junctions.

    Args:
        durations: of the phases.
        flight: which have no feet in contact.
        same: which have the feet of the previous phase.
        shortest: duration below which a stance phase is a cubic.
    """
    n, cubic = len(durations), [duration < shortest for duration in durations]
    flight = [flight[k] or (cubic[k] and 0 < k < n - 1 and flight[k - 1] and flight[k + 1]) for k in range(n)]
    E = np.zeros((n, 6, KNOWN + 4 * n))
    unit = np.eye(KNOWN + 4 * n)
    p, v, gravity = unit[_POSITION], unit[_VELOCITY], unit[_GRAVITY]
    used, first, before = KNOWN, -1, gravity
    unknowns: list[tuple[int, int, int]] = []
    for k, T in enumerate(durations):
        if flight[k]:
            begin = end = gravity
        else:
            if k and flight[k - 1]:
                begin = gravity
            elif k and same[k]:
                begin = before
            else:
                begin, used = unit[used], used + 1
                first = used - 1 if k == 0 else first
                unknowns.append((2, k, k))
            if k + 1 < n and flight[k + 1]:
                end = gravity
            else:
                end, used = unit[used], used + 1
                unknowns.append((2, k + 1, k))
        rows = E[k]
        rows[0], rows[1], rows[2] = p, T * v, T * T * begin
        if flight[k] or cubic[k]:  # an acceleration that is linear in time
            p = p + T * v + (T * T / 6.0) * (2.0 * begin + end)
            v = v + (0.5 * T) * (begin + end)
        else:
            p, v, used = unit[used], unit[used + 1], used + 2
            unknowns += [(0, k + 1, k), (1, k + 1, k)]
        rows[3], rows[4], rows[5] = p, T * v, T * T * end
        before = end
    is_flight = np.array(flight)
    starts_free, ends_free = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    starts_free[1:], ends_free[:-1] = is_flight[:-1], is_flight[1:]
    columns = np.array(unknowns, dtype=np.int64).reshape(-1, 3)
    return Segments(
        np.array(durations),
        np.ascontiguousarray(E[:, :, :used]),
        is_flight,
        starts_free,
        ends_free,
        first,
        columns,
    )


def acceleration_matrix(durations: Floats) -> Floats:
    """(n, 6, 6) Q of X^T Q X, the integrals of squared accelerations over time (6)."""
    return np.asarray(Q_ACCELERATION / durations[:, None, None] ** 3)


def path_matrix(durations: Floats, position: float, velocity: float) -> Floats:
    """(n, 6, 6) Q of (X - X_path)^T Q (X - X_path), integrals of weighted squared distances."""
    T = durations[:, None, None]
    return np.asarray(position * T * Q_POSITION + velocity / T * Q_VELOCITY)


def hermite_data(path: Floats, horizon: float, knots: Floats) -> Floats:
    """(n, 6, 3) X of the parts of one quintic between knots.

    Args:
        path: (6, 3) p, v, a at its start, then at its end.
        horizon: its duration.
        knots: (n + 1,) from 0 to the horizon.
    """
    T = horizon
    c = HERMITE @ (path * np.array([1.0, T, T * T, 1.0, T, T * T])[:, None])
    s = knots / T
    powers = s[:, None] ** np.arange(6)
    p = powers @ c
    v = powers[:, :5] @ (np.array([1.0, 2.0, 3.0, 4.0, 5.0])[:, None] * c[1:]) / T
    a = powers[:, :4] @ (np.array([2.0, 6.0, 12.0, 20.0])[:, None] * c[2:]) / T**2
    d = np.diff(knots)[:, None]
    return np.stack([p[:-1], d * v[:-1], d * d * a[:-1], p[1:], d * v[1:], d * d * a[1:]], axis=1)
