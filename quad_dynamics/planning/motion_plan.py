# SPDX-License-Identifier: Apache-2.0
"""A motion plan: motion of the body over the next stride, contact schedule, and footholds.

Splines of fifth order are determined exactly by position, velocity and acceleration at their knots, which is
how a plan is sent (`knots`, `from_knots`).
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.contact_schedule import ContactSchedule

Vec3 = tuple[float, float, float]

# Coefficients of a quintic in normalised time from p(0), v(0), a(0), p(1), v(1), a(1), lowest power first.
HERMITE = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5],
        [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
        [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5],
    ]
)


@dataclass(frozen=True, eq=False)
class ComSpline:
    """The motion of the centre of mass: consecutive quintics for x, y and z (equations 2 to 5).

    Attributes:
        times: (segments + 1,) knots [s].
        coefficients: (segments, 6, 3) in normalised time (t - t_k) / (t_k+1 - t_k), lowest power first [m].
    """

    times: Floats
    coefficients: Floats

    @cached_property
    def _numbers(self) -> tuple[list[float], list[list[list[float]]]]:
        """Knots, and the coefficients of each segment, as plain numbers."""
        return self.times.tolist(), self.coefficients.tolist()

    def at(self, time: float) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration, each (3,); beyond both ends, the velocity is constant."""
        times = self._numbers[0]
        inside = min(max(time, times[0]), times[-1])
        p, v, a = self._segment(min(max(bisect(times, inside) - 1, 0), len(times) - 2), inside)
        if inside == time:
            return p, v, a
        return p + (time - inside) * v, v, np.zeros(3)

    def _segment(self, k: int, time: float) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration of one segment; in plain Python, because NumPy is slower."""
        times, coefficients = self._numbers
        rate = 1.0 / (times[k + 1] - times[k])
        s = (time - times[k]) * rate
        p, v, a = [], [], []
        for c0, c1, c2, c3, c4, c5 in zip(*coefficients[k], strict=True):
            p.append(c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5)))))
            v.append(rate * (c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))))
            a.append(rate * rate * (2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))))
        return np.array(p), np.array(v), np.array(a)

    def knots(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Times, positions, velocities and accelerations at both ends of each segment: (2 n,), (2 n, 3) x 3.

        Each knot appears twice, because accelerations may jump there.
        """
        times, rows = [], []
        for k in range(len(self.coefficients)):
            for time in (float(self.times[k]), float(self.times[k + 1])):
                times.append(time)
                rows.append(self._segment(k, time))
        p, v, a = (np.array(column) for column in zip(*rows, strict=True))
        return np.array(times), p, v, a

    @classmethod
    def from_knots(cls, times: Floats, p: Floats, v: Floats, a: Floats) -> ComSpline:
        """The spline with these knots, as `knots` returns them."""
        T = np.diff(times)[::2, None, None]
        ends = np.stack([p[::2], v[::2], a[::2], p[1::2], v[1::2], a[1::2]], axis=1)  # (n, 6, 3)
        scale = np.concatenate([T**0, T, T**2, T**0, T, T**2], axis=1)
        return cls(np.concatenate([times[::2], times[-1:]]), HERMITE @ (ends * scale))


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """The plan of the next stride, in world axes. Times are those of the states.

    Attributes:
        time: of the state that it was made for [s].
        phase: 'walk', 'stop' or 'stand'.
        gait: its name.
        command: (vx, vy, wz) after its ramp [m/s, m/s, rad/s].
        com: motion of the centre of mass.
        yaw: desired heading at `time` [rad]; it turns at command[2].
        contacts: which feet are in contact when.
        footholds: (legs, 3) next touch-down positions of the foot centres, or their current contacts [m].
        forces: (phases, legs) planned normal forces in each phase of `contacts` [N].
        normal: (3,) of the ground.
        zmp_slack: largest distance of the zero-moment point outside its polygon [m].
        solve_time: computation time of the plan [s].
    """

    time: float
    phase: str
    gait: str
    command: Vec3
    com: ComSpline
    yaw: float
    contacts: ContactSchedule
    footholds: Floats
    forces: Floats
    normal: Floats
    zmp_slack: float = 0.0
    solve_time: float = 0.0

    @property
    def end(self) -> float:
        """End of the horizon [s]."""
        return float(self.com.times[-1])
