# SPDX-License-Identifier: Apache-2.0
"""Motion optimisation of the centre of mass by sequential quadratic programming.

Bellicoso, Jenelten, Gehring, Hutter, "Dynamic Locomotion Through Online Nonlinear Motion Optimization for
Quadrupedal Robots" (RA-L 2018). Each iteration solves a convex model of the problem (`com_program.py`), and
a line search along the step decreases the merit.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.com_problem import ComProblem, ComSettings
from quad_dynamics.planning.com_program import Point, Program, make_program
from quad_dynamics.planning.com_segments import sample_tables
from quad_dynamics.planning.motion_plan import ComSpline

_STEPS = (1.0, 0.5, 0.25, 0.125, 0.0625)  # step lengths of the line search
_ARMIJO = 1e-4  # required share of the decrease that the model predicts
_GAP = 1e-6  # largest accepted gap at a knot [m, m/s]


@dataclass(frozen=True, eq=False)
class ComResult:
    """The result of the motion optimisation.

    Attributes:
        spline: the motion in world axes, None if there is none.
        accepted: whether it is finite, without gaps, and with small slack.
        reason: why it is not accepted, else empty.
        converged: whether the last iteration decreased the merit by less than the tolerance, or to within the
            tolerance of the merit of its model.
        iterations: number of quadratic programs.
        merits: after each of them; the first entry is that of the warm start if there is one.
        cost: of the motion without slacks.
        zmp_slack: largest distance of the zero-moment point from its region at the samples [m].
        gap: largest gap of positions and velocities at knots [m, m/s].
        solve_time: computation time [s].
    """

    spline: ComSpline | None
    accepted: bool
    reason: str
    converged: bool
    iterations: int
    merits: tuple[float, ...]
    cost: float
    zmp_slack: float
    gap: float
    solve_time: float


class ComPlanner:
    """Optimises motions of the centre of mass. It stores nothing from one problem to the next.

    Attributes:
        settings: of the optimisation.
    """

    def __init__(self, settings: ComSettings | None = None) -> None:
        """Prepare the tables.

        Raises:
            ArgumentError: a setting is invalid.
        """
        self.settings = settings or ComSettings()
        self.settings.check()
        self._tables = sample_tables(self.settings.samples)

    def solve(self, problem: ComProblem, previous: ComSpline | None = None) -> ComResult:
        """Optimise a motion. A failure is a result that is not accepted, not an exception.

        Args:
            problem: the problem.
            previous: the motion of the previous problem, for a warm start.

        Raises:
            ArgumentError: an entry of the problem is not finite, or is invalid.
        """
        begin = time.perf_counter()
        problem.check()
        with np.errstate(all='ignore'):
            try:
                return self._solve(problem, previous, begin)
            except (np.linalg.LinAlgError, ArithmeticError) as error:
                return _failed(f'numbers out of range: {error}', begin)

    def _solve(self, problem: ComProblem, previous: ComSpline | None, begin: float) -> ComResult:
        program = make_program(problem, self.settings, self._tables)
        if not program.is_finite:
            return _failed('numbers out of range', begin)
        if program.unknowns == 0:  # only flight phases
            point = program.evaluate(np.zeros((3, 0)))
            return self._result(problem, program, point, True, 0, (point.merit,), begin)
        at = None if previous is None else program.evaluate(warm_start(program, problem, previous))
        if at is not None and not math.isfinite(at.merit):
            at = None
        merits = [] if at is None else [at.merit]
        iterations, converged, limit = 0, False, self.settings.time_limit
        while not converged and iterations < self.settings.iterations:
            found = program.solve_model(at)
            if found is None:
                break
            iterations += 1
            y, model = found
            before, at = at, _step(program, at, y, model)
            merits.append(at.merit)
            # The next iteration gains about as much as the model of this one was wrong (docs/planning.md).
            small = self.settings.tolerance * (1.0 + abs(at.merit))
            converged = abs(at.merit - model) <= small
            converged |= before is not None and before.merit - at.merit <= small
            if limit is not None and time.perf_counter() - begin > limit:
                break
        if at is None or iterations == 0:
            return _failed('the quadratic program was not solved', begin)
        return self._result(problem, program, at, converged, iterations, tuple(merits), begin)

    def _result(
        self,
        problem: ComProblem,
        program: Program,
        at: Point,
        converged: bool,
        iterations: int,
        merits: tuple[float, ...],
        begin: float,
    ) -> ComResult:
        """The motion in world axes, and its quality."""
        coefficients, durations = program.coefficients(at.y), _durations(problem)
        if not (np.isfinite(coefficients).all() and math.isfinite(at.merit)):
            return _failed('numbers out of range', begin)
        times = problem.time + np.concatenate([[0.0], np.cumsum(durations)])
        gap, outside = largest_gap(coefficients, durations), program.rows.zmp_outside(at.w, at.c)
        slack, reason = outside * problem.height, ''
        if gap > _GAP:
            reason = f'gaps of {gap:.2g} at knots'
        elif outside > self.settings.most_slack:
            reason = f'the zero-moment point is {slack:.3f} m from its region'
        elif not (np.diff(times) > 0.0).all():
            reason = f'phases are too short for times about {problem.time} s'
        return ComResult(
            ComSpline(times, coefficients),
            not reason,
            reason,
            converged,
            iterations,
            merits,
            at.cost,
            slack,
            gap,
            time.perf_counter() - begin,
        )


def _step(program: Program, at: Point | None, y: Floats, model: float) -> Point:
    """The motion after a step towards y that decreases the merit; the current one if there is none."""
    if at is None:
        return program.evaluate(y)
    gain = max(at.merit - model, 0.0)
    for step in _STEPS:
        new = program.evaluate(at.y + step * (y - at.y))
        if new.merit <= at.merit - _ARMIJO * step * gain:
            return new
    return at


def warm_start(program: Program, problem: ComProblem, previous: ComSpline) -> Floats:
    """(3, unknowns) y of the previous motion at the knots of the new one, shifted to the current state.

    The deviation of position and velocity from the previous motion is extrapolated at constant velocity over
    the whole horizon. So the accelerations, at which the program is linearised, do not change.
    """
    knots = problem.time + np.concatenate([[0.0], np.cumsum(_durations(problem))])
    order, knot, segment = program.segments.unknowns.T
    # the first time is that of the initial state
    times = np.concatenate([knots[:1], knots[knot]])
    inside = 0.5 * (knots[:-1] + knots[1:])[np.concatenate([[0], segment])]
    p, v, a = sample_spline(previous, times, inside)
    dp, dv = problem.start.p - p[0], problem.start.v - v[0]
    p = p[1:] + dp + (times[1:] - times[0])[:, None] * dv
    u = program.frame.state(p, v[1:] + dv, a[1:])[order, np.arange(len(order))]
    return program.cost.whitened(u)


def sample_spline(spline: ComSpline, times: Floats, inside: Floats) -> tuple[Floats, Floats, Floats]:
    """Positions, velocities and accelerations, each (n, 3), of a spline; straight beyond its ends.

    Args:
        spline: the spline.
        times: (n,) sample times [s].
        inside: (n,) times that select the segment: accelerations may jump at knots [s].
    """
    begin, end = float(spline.times[0]), float(spline.times[-1])
    k = np.searchsorted(spline.times, np.clip(inside, begin, end)) - 1
    k = np.clip(k, 0, len(spline.coefficients) - 1)
    t, first = np.clip(times, begin, end), spline.times[k]
    T = (spline.times[k + 1] - first)[:, None]
    s, c = ((t - first)[:, None] / T) ** np.arange(6), spline.coefficients[k]
    p = np.einsum('ni,nij->nj', s, c)
    v = np.einsum('ni,nij->nj', s[:, :5], np.arange(1.0, 6.0)[:, None] * c[:, 1:]) / T
    a = np.einsum('ni,nij->nj', s[:, :4], np.array([2.0, 6.0, 12.0, 20.0])[:, None] * c[:, 2:]) / T**2
    beyond = (times - t)[:, None]
    return p + beyond * v, v, np.where(beyond == 0.0, a, 0.0)


def largest_gap(coefficients: Floats, durations: Floats) -> float:
    """Largest gap of positions and velocities between segments [m, m/s]."""
    T = durations[:, None]
    p = coefficients.sum(axis=1)[:-1] - coefficients[1:, 0]
    v = (np.arange(6) @ coefficients / T)[:-1] - (coefficients[:, 1] / T)[1:]
    return float(max(np.abs(p).max(initial=0.0), np.abs(v).max(initial=0.0)))


def _durations(problem: ComProblem) -> Floats:
    """(phases,) [s]."""
    return np.array([phase.duration for phase in problem.phases])


def _failed(reason: str, begin: float) -> ComResult:
    nan = math.nan
    return ComResult(None, False, reason, False, 0, (), nan, nan, nan, time.perf_counter() - begin)
