# SPDX-License-Identifier: Apache-2.0
"""The default method: least squares over physically consistent bodies, with the model as a prior.

It minimises, over z with x = x0 + T z,

    |y - Y x|^2 / (2 s^2) + weight * sum of D(P_i, P0_i) + sum of (z / scale)^2 / 2    with friction >= 0,
    D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,

the log-det (Bregman) divergence between pseudo-inertias (Lee, Wensing, Park: Geometric robot dynamic
identification, T-RO 2019). D is its own barrier, a logarithmic barrier keeps friction positive, and damped
Newton steps follow the path of decreasing weights. A weight of 100 means that the model is accurate to about
10 % (1 / sqrt(weight)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.solvers.consistent_problem import ConsistentProblem
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.pseudo_inertia import margins, nearest_consistent

WEIGHTS = tuple(10.0**k for k in range(6, -7, -1))

_STEPS = 100  # upper bound
_STUCK = 0.1  # after two steps shorter than this, the multipliers are reset
_LEAST_WEIGHT = 1e-9  # relative to the largest gain of the data term: below this, steps are rounding errors
_MU = 1e-10  # final weight of the friction barrier
_ROUNDING = 1e-10  # margin of a body (see `margins`) below which rounding errors could make it inconsistent


def solve_consistent(
    normal: NormalEquations, freedom: Freedom, weight: float, scales: Floats, noise: float = 1.0
) -> Floats:
    """(size,) the unknowns for one prior weight; bodies are consistent, and friction is not negative.

    Args:
        normal: normal equations.
        freedom: the free unknowns.
        weight: of the prior of the bodies; 0: bodies only have to be physically consistent.
        scales: (size,) prior standard deviations of all unknowns except inertia.
        noise: variance of the whitened rows.
    """
    if freedom.nz == 0:
        return freedom.x0.copy()
    return solve_problem(ConsistentProblem(normal, freedom, scales, noise), weight)


def solve_problem(problem: ConsistentProblem, weight: float) -> Floats:
    """(size,) the unknowns for one weight, to full accuracy."""
    with np.errstate(all='ignore'):  # overflows are detected and not used
        state = follow(problem, first_state(problem, weight), weight, _MU, 1e-6)
        y = minimise(problem, state.y, max(weight, least_weight(problem)), _MU, 1e-12)
    x = problem.x(y, _MU)
    pi = x[problem.freedom.columns.slices['pi']].reshape(-1, 10)
    mass = problem.freedom.columns.model.total_mass
    for i in problem.freedom.bodies:
        if not margins(pi[i : i + 1])[0] > _ROUNDING:  # lost by rounding if numbers are extreme
            pi[i] = nearest_consistent(pi[i], mass, 10.0 * _ROUNDING)
    return x


def path(
    problem: ConsistentProblem, weights: Sequence[float], mu: float, tolerance: float, x: Floats | None = None
) -> list[Floats]:
    """y for decreasing weights; each solution starts from the previous one.

    Args:
        problem: to solve.
        weights: of the prior of the bodies.
        mu: weight of the friction barrier.
        tolerance: by which the cost may still decrease.
        x: (size,) consistent unknowns near the first solution; None for the prior.
    """
    state, found = first_state(problem, weights[0], x), []
    with np.errstate(all='ignore'):
        for weight in weights:
            state = follow(problem, state, weight, mu, tolerance)
            found.append(state.y)
    return found


def least_weight(problem: ConsistentProblem) -> float:
    """The weight below which it cannot be distinguished from zero numerically."""
    return _LEAST_WEIGHT * problem.gain


# ---------------------------------------------------------------- Newton


@dataclass(frozen=True, eq=False)
class State:
    """State of the solver.

    Attributes:
        y: (nz,) rotated unknowns.
        Z: (bodies, 4, 4) multipliers of P > 0.
        duals: of friction >= 0.
        length: of the last step, 1 for a full one.
    """

    y: Floats
    Z: Floats
    duals: Floats
    length: float

    @property
    def is_finite(self) -> bool:
        """Whether all values are finite."""
        return bool(np.isfinite(self.y).all() and np.isfinite(self.Z).all() and np.isfinite(self.duals).all())


def first_state(problem: ConsistentProblem, weight: float, x: Floats | None = None) -> State:
    """The prior, or x, with multipliers of a weight, or of a larger one if the data term is steep."""
    y = problem.start(x)
    tau = max(weight, least_weight(problem))
    if x is None:
        tau = max(tau, problem.gain / (4 * len(problem.B) + len(problem.C) + 1))
    return State(y, tau * _inverse(problem.shape(y)), tau / problem.slack(y), 1.0)


def follow(problem: ConsistentProblem, state: State, weight: float, mu: float, tolerance: float) -> State:
    """Primal-dual steps (Nesterov, Todd) to the minimum for a weight, from any state.

    Plain Newton steps converge slowly if the data push bodies to the boundary of consistency. Primal-dual
    steps use multipliers Z of the bodies, with Z = weight P^-1 at the minimum, which represent the reaction
    of this boundary.
    """
    weight = max(weight, least_weight(problem))
    best, idle = np.inf, 0
    for _ in range(_STEPS):
        try:
            new, decrement, arrived = _primal_dual_step(problem, state, weight, mu)
        except np.linalg.LinAlgError:  # extreme numbers: only rounding errors are left
            return state
        if not (new.is_finite and new.length > 1e-12):
            return state
        stuck = new.length < _STUCK and state.length < _STUCK
        state = _recentred(problem, new, decrement) if stuck else new
        if arrived and state.length > 0.9:
            idle = idle + 1 if decrement > 0.5 * best else 0
            best = min(best, decrement)
            if decrement < 2.0 * tolerance or idle > 3:  # no further decrease: rounding errors
                break
    return state


def _recentred(problem: ConsistentProblem, state: State, decrement: float) -> State:
    """Reset the multipliers to those of a larger weight: steps are short if they are off-centre."""
    directions = 4 * len(state.Z) + len(state.duals)
    P, slack = problem.shape(state.y), problem.slack(state.y)
    tau = 10.0 * (float(np.einsum('bij,bji->', P, state.Z)) + float(slack @ state.duals)) / directions
    tau = max(tau, decrement / directions)
    return State(state.y, tau * _inverse(P), tau / slack, 0.5)


def _primal_dual_step(
    problem: ConsistentProblem, state: State, weight: float, mu: float
) -> tuple[State, float, bool]:
    """One step, the predicted decrease, and whether weight and mu have reached their final values."""
    y, Z, duals = state.y, state.Z, state.duals
    P, slack = problem.shape(y), problem.slack(y)
    inverse, K = _inverse(P), _scaling(P, Z)
    ease = 0.05 if state.length > 0.95 else 0.5 if state.length > 0.3 else 1.0
    tau = max(weight, ease * float(np.mean(np.einsum('bij,bji->b', P, Z)) / 4.0)) if len(Z) else weight
    edge = max(mu, ease * float(np.mean(slack * duals))) if len(slack) else mu
    gradient = problem.gradient(y, weight, tau, edge, inverse)
    step = -_solve(problem.hessian(K, duals / slack), gradient)
    change = problem.combine(problem.B @ step)
    dZ = tau * inverse - Z - K @ change @ K
    dZ = 0.5 * (dZ + np.swapaxes(dZ, 1, 2))
    d_duals = edge / slack - duals - duals / slack * (problem.C @ step)
    rooms = (_cone_room(P, change), _cone_room(Z, dZ), _room(slack, problem.C @ step), _room(duals, d_duals))
    t = min(1.0, 0.95 * min(rooms))
    new = State(y + t * step, Z + t * dZ, duals + t * d_duals, t)
    np.linalg.cholesky(problem.shape(new.y))  # raises if rounding led outside
    if np.any(problem.slack(new.y) <= 0.0):
        raise np.linalg.LinAlgError('a bound was lost by rounding')
    return new, -float(gradient @ step), tau == weight and edge == mu


def minimise(problem: ConsistentProblem, y: Floats, weight: float, mu: float, tolerance: float) -> Floats:
    """Damped Newton steps from a y near the minimum, until the predicted decrease is below the tolerance."""
    value = problem.value(y, weight, mu)
    for _ in range(_STEPS):
        try:
            K = _inverse(problem.shape(y))
            gradient = problem.gradient(y, weight, weight, mu, K)
            step = -_solve(problem.hessian(np.sqrt(weight) * K, mu / problem.slack(y) ** 2), gradient)
            t = min(1.0, 0.95 * _room_of(problem, y, step))
        except np.linalg.LinAlgError:  # extreme numbers: only rounding errors are left
            return y
        decrement = -float(gradient @ step)
        if not decrement >= 2.0 * max(tolerance, 1e-13 * abs(value)):
            return y
        trial = y + t * step
        while not problem.value(trial, weight, mu) <= value - 0.1 * t * decrement:
            t *= 0.5
            if t < 1e-9:  # rounding errors: no further decrease
                return y
            trial = y + t * step
        y, value = trial, problem.value(trial, weight, mu)
    return y


def _room_of(problem: ConsistentProblem, y: Floats, step: Floats) -> float:
    """Largest feasible length of a step, in multiples of it."""
    change = problem.combine(problem.B @ step)
    return min(_cone_room(problem.shape(y), change), _room(problem.slack(y), problem.C @ step))


def _inverse(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _scaling(P: Floats, Z: Floats) -> Floats:
    """(bodies, 4, 4) K with K P K = Z: the inverse of the scaling point of Nesterov and Todd."""
    L, R = np.linalg.cholesky(P), np.linalg.cholesky(Z)
    _, s, Vt = np.linalg.svd(np.swapaxes(R, 1, 2) @ L)
    G = np.sqrt(s)[:, :, None] * Vt @ np.linalg.inv(L)
    return np.asarray(np.swapaxes(G, 1, 2) @ G)


def _cone_room(P: Floats, change: Floats) -> float:
    """Multiple of the change at which one of the positive definite matrices P becomes singular."""
    if not len(P):
        return np.inf
    inverse = np.linalg.inv(np.linalg.cholesky(P))
    worst = -float(np.linalg.eigvalsh(inverse @ change @ np.swapaxes(inverse, 1, 2)).min())
    return 1.0 / worst if worst > 0.0 else np.inf


def _room(values: Floats, change: Floats) -> float:
    """Multiple of the change at which one of the positive values becomes zero."""
    worst = float(np.max(-change / values, initial=0.0))
    return 1.0 / worst if worst > 0.0 else np.inf


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    """Newton step with a symmetric matrix that is positive definite up to rounding errors."""
    d = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian * np.outer(d, d)
    if not (np.isfinite(scaled).all() and np.isfinite(gradient).all()):
        raise np.linalg.LinAlgError('the Hessian is not finite')
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        try:
            factor = cho_factor(scaled + jitter * np.eye(len(d)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(d * cho_solve(factor, d * gradient, check_finite=False))
    return d * d * gradient  # steepest descent; has never occurred
