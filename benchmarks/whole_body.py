# SPDX-License-Identifier: Apache-2.0
"""Whole-body control on the go2 against the same with Pinocchio, numpy and daqp; and the complete walker.

The peer is a straightforward implementation: the equation of motion and the contact constraint are the rows
of one matrix, a QR factorisation gives its null space, and two quadratic programs follow. Tasks, weights,
limits and the solver of the programs are the same, and so are the torques, which is checked before the
timing.
"""

from __future__ import annotations

import time
from typing import Any

import daqp
import numpy as np
import pinocchio as pin

import quad_dynamics as qd
from benchmarks.dynamics import load
from benchmarks.timing import Calls, Contest
from quad_dynamics.array_types import Floats
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.walker import Walker
from quad_dynamics.control.whole_body import Tasks, Weights, WholeBodyControl
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.simulation.command import JointCommand

MU = 0.5
SPEED, SECONDS, WARM_UP = 0.5, 4.0, 1.0  # of the walk that is timed [m/s, s, s]
STATES = 200
_WORLD = pin.LOCAL_WORLD_ALIGNED
_REGULAR, _FORCE_WEIGHT = 1e-8, 1e-3
_AGREE = 1e-3  # tolerance between the torques of both controllers [N m]


class Walk:
    """A trotting robot, with the states and tasks of its controller.

    Attributes:
        problems: of all updates after the warm-up: (q, u, R_WB, tasks).
        states: of all updates.
    """

    def __init__(self, model: qd.Model) -> None:
        walker, self._sim = Walker(model), qd.Simulator(model, latency=0.004)
        self._walker, self._gains = walker, drive_gains(model, walker.settings)
        self.problems: list[tuple[Floats, Floats, Floats, Tasks]] = []
        self.states: list[RobotState] = []
        self._sim.reset()
        walker.reset(self._state())
        walker.command(SPEED, 0.0, 0.0)
        solve = walker._control.solve

        def note(terms: Any, R_WB: Floats, tasks: Tasks, *rest: Any, **options: Any) -> Any:
            state = self._seen
            if state.time > WARM_UP:
                self.problems.append((state.q, state.u, R_WB.copy(), tasks))
            return solve(terms, R_WB, tasks, *rest, **options)

        walker._control.solve = note  # type: ignore[method-assign]
        self._sim.run(self._turn, SECONDS, progress=False)
        walker._control.solve = solve  # type: ignore[method-assign]

    def _state(self) -> RobotState:
        sim = self._sim
        self._seen = RobotState(sim.time, sim.q, sim.u, sim.foot_forces, sim.tau)
        return self._seen

    def _turn(self, sim: qd.Simulator) -> JointCommand | None:
        if sim.step_count % 2:
            return None
        self.states.append(self._state())
        setpoint = self._walker.update(self._seen)
        return JointCommand(setpoint.tau, setpoint.q, setpoint.qd, *self._gains)


class Ours:
    """Terms of the dynamics and whole-body control."""

    def __init__(self, model: qd.Model, strict: bool) -> None:
        self._model, self._control = model, WholeBodyControl(model, strict=strict)
        self._terms: Any = None

    def solve(self, q: Floats, u: Floats, R_WB: Floats, tasks: Tasks) -> Floats:
        """(nj,) torques."""
        self._terms = qd.controller_terms(self._model, q, u, out=self._terms)
        found = self._control.solve(self._terms, R_WB, tasks, MU)
        assert found is not None
        return found.tau


class Peer:
    """The same with Pinocchio, numpy and daqp."""

    def __init__(self, model: qd.Model, peer: Any, strict: bool) -> None:
        self._model, self._data, self._strict = peer, peer.createData(), strict
        self._feet = [peer.getFrameId(leg.foot) for leg in model.legs]
        self._radius = [contact_ball(model, leg.foot)[1] for leg in model.legs]
        self._unit, self._mass = model.total_mass / len(model.legs), model.total_mass
        self._zero, self._weights = np.zeros(peer.nv), Weights()

    def solve(self, q: Floats, v: Floats, R_WB: Floats, tasks: Tasks) -> Floats:
        """(nj,) torques, at a velocity in the frame of the base."""
        model, data, nv = self._model, self._data, self._model.nv
        pin.computeAllTerms(model, data, q, v)
        pin.computeCentroidalMomentumTimeVariation(model, data, q, v, self._zero)
        M, h = data.M, data.nle
        down = np.flatnonzero(tasks.down)
        n = nv + 3 * len(down)
        S = np.zeros((nv, n))  # generalised forces of x = [dv; f / unit]
        S[:, :nv] = M
        E, e = np.zeros((6 + 3 * len(down), n)), np.zeros(6 + 3 * len(down))
        W, b = np.zeros((6 + 3 * (4 - len(down)), n)), np.empty(6 + 3 * (4 - len(down)))
        com, turn = np.sqrt(self._weights.com), np.sqrt(self._weights.angular)
        swing = self._weights.swing**0.5
        R_CW = tasks.axes.T
        W[:3, :nv] = com[:, None] * (R_CW @ data.Jcom)
        b[:3] = com * (R_CW @ (tasks.com - data.dhg.linear / self._mass))
        W[3:6, 3:6], b[3:6] = turn[:, None] * (R_CW @ R_WB), turn * (R_CW @ tasks.angular)
        contact, air = 6, 6
        for k, foot in enumerate(self._feet):
            pin.updateFramePlacement(model, data, foot)
            J = pin.getFrameJacobian(model, data, foot, _WORLD)
            bias = pin.getFrameClassicalAcceleration(model, data, foot, _WORLD)
            if tasks.down[k]:
                arm = -self._radius[k] * tasks.axes[:, 2]
                J_point = J[:3] - pin.skew(arm) @ J[3:]
                S[:, nv + contact - 6 : nv + contact - 3] = -self._unit * J_point.T
                E[contact : contact + 3, :nv] = J_point
                e[contact : contact + 3] = tasks.feet[k] - bias.linear - np.cross(bias.angular, arm)
                contact += 3
            else:
                W[air : air + 3, :nv] = swing * J[:3]
                b[air : air + 3] = swing * (tasks.feet[k] - bias.linear)
                air += 3
        E[:6], e[:6] = S[:6], -h[:6]
        limits = self._limits(tasks, S, h, down, n)
        # E x = e: x = x0 + N y
        Q, R = np.linalg.qr(E.T, mode='complete')
        rank = len(e)
        x0 = Q[:, :rank] @ np.linalg.solve(R[:rank].T, e)
        N = Q[:, rank:]
        x = self._programs(x0, N, (W, b), limits, tasks.forces[down].ravel() / self._unit)
        return np.asarray(S[6:] @ x + h[6:])

    def _limits(self, tasks: Tasks, S: Floats, h: Floats, down: Any, n: int) -> tuple[Floats, Floats, Floats]:
        """Rows low <= C x <= high of torques and friction pyramids."""
        nv, nj, mu = len(h), len(h) - 6, MU / np.sqrt(2.0)
        rows = nj + 5 * len(down)
        C, low, high = np.zeros((rows, n)), np.empty(rows), np.zeros(rows)
        C[:nj], low[:nj], high[:nj] = S[6:], tasks.low - h[6:], tasks.high - h[6:]
        x, y, up = tasks.axes.T
        pyramid = np.array([x - mu * up, -x - mu * up, y - mu * up, -y - mu * up, up])
        for i, k in enumerate(down):
            row = nj + 5 * i
            C[row : row + 5, nv + 3 * i : nv + 3 * i + 3] = pyramid
            low[row : row + 4], low[row + 4] = -1e30, 0.0
            high[row + 4] = tasks.most_force[k] / self._unit
        return C, low, high

    def _programs(
        self, x: Floats, N: Floats, aims: tuple[Floats, Floats], limits: tuple[Floats, ...], f: Floats
    ) -> Floats:
        """The tasks, and the forces below them."""
        (W, b), (C, low, high), nv = aims, limits, self._model.nv
        A, r = W @ N, b - W @ x
        F, s = N[nv:], f - x[nv:]
        weight = _REGULAR if self._strict else _FORCE_WEIGHT
        H = A.T @ A + weight * F.T @ F + 1e-10 * np.eye(A.shape[1])
        G = C @ N
        offset = C @ x
        y, _, flag, _ = daqp.solve(H, -A.T @ r - weight * F.T @ s, G, high - offset, low - offset)
        assert flag == 1
        x = x + N @ y
        if not self._strict:
            return x
        _, values, V = np.linalg.svd(A)
        rank = int((values > 1e-7 * values[0]).sum())
        if rank == A.shape[1]:
            return x
        N = N @ V[rank:].T
        F, G, offset = N[nv:], C @ N, C @ x
        above, below = np.maximum(high - offset, 0.0), np.minimum(low - offset, 0.0)
        y, _, flag, _ = daqp.solve(F.T @ F, -F.T @ (f - x[nv:]), G, above, below)
        return x + N @ y if flag == 1 else x


def contests() -> tuple[list[Contest], Walk]:
    """Strict and weighted whole-body control at states of a walk; and the walk itself."""
    model, peer_model, _ = load()
    walk = Walk(model)
    chosen = walk.problems[:: max(len(walk.problems) // STATES, 1)][:STATES]
    theirs = [(q, np.concatenate([R.T @ u[:3], u[3:]]), R, tasks) for q, u, R, tasks in chosen]
    found = []
    for name, strict in (('whole_body', True), ('whole_body_weighted', False)):
        ours, peer = Ours(model, strict), Peer(model, peer_model, strict)
        for mine, other in zip(chosen, theirs, strict=True):
            difference = np.abs(ours.solve(*mine) - peer.solve(*other)).max()
            assert difference < _AGREE, f'{name}: torques differ by {difference:.2e} N m'
        found.append(Contest(name, Calls(ours.solve, chosen), Calls(peer.solve, theirs)))
    return found, walk


def quantiles(contest: Contest, rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of our calls, each the fastest of some rounds [us]."""
    times = np.full((rounds, len(contest.ours.arguments)), np.inf)
    for row in times:
        for i, arguments in enumerate(contest.ours.arguments):
            begin = time.perf_counter()
            contest.ours.function(*arguments)
            row[i] = time.perf_counter() - begin
    return _quantiles(times)


def update_quantiles(walk: Walk, rounds: int) -> dict[str, tuple[float, float]]:
    """Median and 99th percentile of `Walker.update`, with the same walk in each round [us].

    For updates that only follow a plan, as all do with planner_node, and for those that make one.
    """
    walker, states = Walker(load()[0]), walk.states
    times, plans = np.empty((rounds, len(states))), np.zeros(len(states), dtype=np.bool_)
    for row in times:
        walker.reset(states[0])
        walker.command(SPEED, 0.0, 0.0)
        for i, state in enumerate(states):
            before = walker.counts.plans
            begin = time.perf_counter()
            walker.update(state)
            row[i] = time.perf_counter() - begin
            plans[i] = walker.counts.plans > before
    warm = np.array([state.time > WARM_UP for state in states])
    return {
        'walker_update': _quantiles(times[:, warm & ~plans]),
        'walker_planning_update': _quantiles(times[:, warm & plans]),
    }


def _quantiles(times: Floats) -> tuple[float, float]:
    best = 1e6 * times.min(axis=0)
    return float(np.percentile(best, 50)), float(np.percentile(best, 99))
