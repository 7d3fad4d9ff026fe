# SPDX-License-Identifier: Apache-2.0
"""Motion optimisation of the centre of mass against the same without elimination: two iterations each.

The peer is the straightforward implementation: the unknowns are all coefficients of all quintics in
normalised time, with equality rows for the start, the junctions and flight, and daqp solves the quadratic
programs. Cost, inequalities, settings, iterations and line search are the same, and so are the motions, which
is checked before the timing. The inequalities and the warm start of the peer are prepared beforehand.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import daqp
import numpy as np
from com_problems import gait_problem

from benchmarks.timing import Calls, Contest
from quad_dynamics.array_types import Floats
from quad_dynamics.planning.com_planner import ComPlanner, warm_start
from quad_dynamics.planning.com_problem import ComProblem, ComSettings, ComState
from quad_dynamics.planning.com_program import Program, make_program
from quad_dynamics.planning.com_rows import HARD
from quad_dynamics.planning.com_segments import hermite_data, path_matrix, sample_tables
from quad_dynamics.planning.motion_plan import HERMITE, ComSpline

# Gaits and horizons in strides, with up to 8 segments.
HORIZONS = {'trot': 1.0, 'crawl': 0.8, 'flying_trot': 1.5}
WALKS, UPDATES, PERIOD = 5, 8, 0.02  # for each gait: walks, updates of each, and time between them [s]
SETTINGS = ComSettings(tolerance=0.0, time_limit=1.0)  # always both iterations
_AGREE = 1e-3  # tolerance between the positions of both [m]
_EQUALITY = 5  # sense of a row of daqp
_FAR = 1e30


def problems(gait: str, strides: float) -> list[tuple[ComProblem, ComSpline | None]]:
    """Problems of walking robots that are pushed, each with the previously planned motion."""
    rng, planner = np.random.default_rng(1), ComPlanner(SETTINGS)
    found: list[tuple[ComProblem, ComSpline | None]] = []
    for _ in range(WALKS):
        previous, clock, velocity = None, float(rng.random()), tuple(rng.normal(0.0, 0.3, 2))
        for k in range(UPDATES):
            given = gait_problem(
                gait,
                velocity=velocity,
                clock=(clock + 0.05 * k) % 1.0,
                strides=strides,
                push=tuple(rng.normal(0.0, 0.1, 3)),
                time=PERIOD * k,
            )
            off = rng.normal(0.0, 0.005, 3)
            given = replace(given, start=ComState(given.start.p + off, given.start.v, given.start.a))
            found.append((given, previous))
            previous = planner.solve(given, previous).spline
    return found


class Peer:
    """The same without elimination: x = [slacks; coefficients of x, y and z]."""

    def __init__(self) -> None:
        S = SETTINGS.samples
        s = np.linspace(0.0, 1.0, S)
        self._p = s[:, None] ** np.arange(6)
        self._a = np.zeros((S, 6))
        self._a[:, 2:] = self._p[:, :4] * np.array([2.0, 6.0, 12.0, 20.0])

    def solve(self, problem: ComProblem, program: Program, at: Floats | None) -> Floats:
        """(3, 6 n) coefficients in the ground frame and its units.

        Args:
            problem: the problem.
            program: provides the frame, the inequalities and the known values.
            at: (3, 6 n) warm start.
        """
        n, S = len(problem.phases), SETTINGS.samples
        T = program.segments.durations
        P, A = np.zeros((n * S, 6 * n)), np.zeros((n * S, 6 * n))
        for k in range(n):
            P[k * S : (k + 1) * S, 6 * k : 6 * k + 6] = self._p
            A[k * S : (k + 1) * S, 6 * k : 6 * k + 6] = self._a / T[k] ** 2
        H, f, constant = self._cost(problem, program)
        equalities = self._equalities(problem, program)
        for _ in range(SETTINGS.iterations):
            c = self._quadratic_program(program, P, A, (H, f), equalities, at)
            if at is not None:
                c = self._line_search(program, P, A, (H, f, constant), at, c)
            at = c
        assert at is not None
        return at

    def _cost(self, problem: ComProblem, program: Program) -> tuple[Floats, Floats, float]:
        """(3, 6 n, 6 n) H, (3, 6 n) f and constant: c^T H c - 2 f^T c."""
        w, T, n = SETTINGS.weights, program.segments.durations, len(problem.phases)
        knots = np.concatenate([[0.0], np.cumsum(T)])
        frame, path = program.frame, problem.path
        ends = np.concatenate([frame.state(s.p, s.v, s.a) for s in (path.start, path.end)])
        X_path = hermite_data(ends, float(knots[-1]), knots)
        start = frame.state(problem.start.p, problem.start.v, problem.start.a)
        to_hermite = np.linalg.inv(HERMITE)
        power = np.arange(6)
        factor = power * (power - 1.0)
        square = np.outer(factor, factor) / np.maximum(power[:, None] + power - 3.0, 1.0)
        H, f, constant = np.zeros((3, 6 * n, 6 * n)), np.zeros((3, 6 * n)), 0.0
        for axis in range(3):
            on_path = path_matrix(T, w.path_position if axis < 2 else w.path_height, w.path_velocity)
            for k in range(n):
                block = slice(6 * k, 6 * k + 6)
                Q = to_hermite.T @ on_path[k] @ to_hermite
                H[axis, block, block] = Q + w.acceleration / T[k] ** 3 * square
                pull = on_path[k] @ X_path[k, :, axis]
                f[axis, block] = to_hermite.T @ pull
                constant += pull @ X_path[k, :, axis]
            last, speed = slice(6 * n - 6, 6 * n), power / T[-1]
            H[axis, last, last] += w.final_position + w.final_velocity * np.outer(speed, speed)
            f[axis, last] += w.final_position * ends[3, axis] + w.final_velocity * ends[4, axis] * speed
            if not program.segments.flight[0]:
                H[axis, 2, 2] += w.start_acceleration * (2.0 / T[0] ** 2) ** 2
                f[axis, 2] += w.start_acceleration * 2.0 / T[0] ** 2 * start[2, axis]
        return H, f, constant

    def _equalities(self, problem: ComProblem, program: Program) -> tuple[Floats, Floats]:
        """(rows, 6 n) and (3, rows): the same rows for each axis."""
        T, n, flight = program.segments.durations, len(problem.phases), program.segments.flight
        power = np.arange(6.0)
        rows: list[Floats] = []
        values: list[Floats] = []

        def add(value: Floats, *parts: tuple[int, Floats]) -> None:
            row = np.zeros(6 * n)
            for k, part in parts:
                row[6 * k : 6 * k + 6] = part
            rows.append(row)
            values.append(value)

        zero, unit = np.zeros(3), np.eye(6)
        p, v, gravity = program.known
        add(p, (0, unit[0]))
        add(v * T[0], (0, unit[1]))
        for k in range(n):
            if k + 1 < n:
                add(zero, (k, np.ones(6)), (k + 1, -unit[0]))
                add(zero, (k, power), (k + 1, -unit[1] * T[k] / T[k + 1]))
            if flight[k]:
                add(0.5 * gravity * T[k] ** 2, (k, unit[2]))
                for i in (3, 4, 5):
                    add(zero, (k, unit[i]))
                continue
            if T[k] < SETTINGS.shortest:
                for i in (4, 5):
                    add(zero, (k, unit[i]))
            if k and flight[k - 1]:
                add(0.5 * gravity * T[k] ** 2, (k, unit[2]))
            if k + 1 < n and flight[k + 1]:
                add(gravity * T[k] ** 2, (k, power * (power - 1.0)))
        return np.array(rows), np.array(values).T

    def _quadratic_program(
        self,
        program: Program,
        P: Floats,
        A: Floats,
        cost: tuple[Floats, Floats],
        equalities: tuple[Floats, Floats],
        at: Floats | None,
    ) -> Floats:
        """(3, 6 n) coefficients of the linearised program."""
        rows, (H, f), (E, e) = program.rows, cost, equalities
        stands = -program.known[2]
        if at is None:
            p, w = program.p_path, np.tile(stands, (len(program.p_path), 1))
        else:
            p, w = P @ at.T, A @ at.T + stands
            w = np.where(w[:, 2:] > 0.0, w, stands)
        slacks, size, count = len(rows.slack_lin), P.shape[1], len(rows.slack)
        G = np.zeros((count, slacks + 3 * size))
        P_all, A_all = np.broadcast_to(P, (3, *P.shape)), np.broadcast_to(A, (3, *A.shape))
        linear = rows.linearised(p, w)
        G[:, slacks:] = linear.matrix(np.arange(count), P_all, A_all).reshape(count, -1)
        soft = np.flatnonzero(rows.slack != HARD)
        G[soft, rows.slack[soft]] = 1.0
        low = -linear.values(np.zeros_like(p), np.tile(stands, (len(p), 1)))
        whole, slope = np.zeros((slacks + 3 * size,) * 2), np.zeros(slacks + 3 * size)
        equal, wanted = np.zeros((3 * len(E), slacks + 3 * size)), e.ravel()
        whole[range(slacks), range(slacks)], slope[:slacks] = 2.0 * rows.slack_quad, rows.slack_lin
        for axis in range(3):
            block = slice(slacks + axis * size, slacks + (axis + 1) * size)
            whole[block, block], slope[block] = 2.0 * H[axis], -2.0 * f[axis]
            equal[axis * len(E) : (axis + 1) * len(E), block] = E
        sense = np.zeros(slacks + len(equal) + count, dtype=np.int32)
        sense[slacks : slacks + len(equal)] = _EQUALITY
        x, _, flag, _ = daqp.solve(
            whole,
            slope,
            np.concatenate([equal, G]),
            np.concatenate([np.full(slacks, _FAR), wanted, np.full(count, _FAR)]),
            np.concatenate([np.zeros(slacks), wanted, low]),
            sense,
        )
        assert flag == 1, flag
        return np.asarray(x[slacks:].reshape(3, size))

    def _merit(self, program: Program, P: Floats, A: Floats, cost: tuple[Any, ...], c: Floats) -> float:
        H, f, constant = cost
        penalty, hard = program.rows.penalty(program.rows.values(P @ c.T, A @ c.T - program.known[2]))
        square = sum(float(c[axis] @ H[axis] @ c[axis]) for axis in range(3))
        return square - 2.0 * float(np.vdot(f, c)) + constant + penalty + 1e3 * hard

    def _line_search(
        self, program: Program, P: Floats, A: Floats, cost: tuple[Any, ...], at: Floats, c: Floats
    ) -> Floats:
        before = self._merit(program, P, A, cost, at)
        for step in (1.0, 0.5, 0.25, 0.125, 0.0625):
            new = at + step * (c - at)
            if self._merit(program, P, A, cost, new) < before:
                return new
        return at


def warm_coefficients(program: Program, problem: ComProblem, previous: ComSpline | None) -> Floats | None:
    """(3, 6 n) the warm start of our planner as coefficients."""
    if previous is None:
        return None
    u = program.cost.unknowns(warm_start(program, problem, previous))
    X = program.segments.E @ np.concatenate([program.known, u])
    return np.asarray((HERMITE @ X).transpose(2, 0, 1).reshape(3, -1))


def contests() -> list[Contest]:
    """One for each gait."""
    found, tables = [], sample_tables(SETTINGS.samples)
    for gait, strides in HORIZONS.items():
        given, theirs = problems(gait, strides), []
        ours, peer = ComPlanner(SETTINGS), Peer()
        for problem, previous in given:
            program = make_program(problem, SETTINGS, tables)
            theirs.append((problem, program, warm_coefficients(program, problem, previous)))
            mine = ours.solve(problem, previous).spline
            assert mine is not None
            other = peer.solve(*theirs[-1]).reshape(3, -1, 6).transpose(1, 2, 0) @ program.frame.R
            difference = np.abs(mine.coefficients[:, 1:] - problem.height * other[:, 1:]).max()
            assert difference < _AGREE, f'{gait}: motions differ by {difference:.2e} m'
        found.append(Contest(f'com_plan_{gait}', Calls(ours.solve, given), Calls(peer.solve, theirs)))
    return found


def quantiles(contest: Contest, rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of our calls [us]. Every call counts, because a late plan matters."""
    times = []
    for _ in range(rounds):
        for arguments in contest.ours.arguments:
            begin = time.perf_counter()
            contest.ours.function(*arguments)
            times.append(time.perf_counter() - begin)
    return 1e6 * float(np.percentile(times, 50)), 1e6 * float(np.percentile(times, 99))
