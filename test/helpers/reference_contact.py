# SPDX-License-Identifier: Apache-2.0
"""Both contact models as dense, slow and obvious NumPy. Nothing of quad_dynamics is used.

M, h and J come from a reference robot (PinocchioReference or GearedReference). The ground is one plane. Rows
of contact i are 3 i (first tangent), 3 i + 1 (second tangent) and 3 i + 2 (normal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from reference_pinocchio import PinocchioReference


@dataclass(frozen=True)
class Point:
    """A contact point: a sphere about a position of a link."""

    link: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0


def _level() -> np.ndarray:
    return np.eye(3)


def _origin() -> np.ndarray:
    return np.zeros(3)


@dataclass(frozen=True)
class Ground:
    """A plane: columns of axes are the two tangents and the normal, in the world."""

    mu: float = 0.5
    restitution: float = 0.0
    axes: np.ndarray = field(default_factory=_level)
    origin: np.ndarray = field(default_factory=_origin)


def bodies_of(reference: Any) -> PinocchioReference:
    """Where poses of links are asked: the robot itself, or the one with rotors as links."""
    return reference if isinstance(reference, PinocchioReference) else reference.full


def full_q(reference: Any, q: np.ndarray) -> np.ndarray:
    """Q for bodies_of."""
    return q if isinstance(reference, PinocchioReference) else reference.q_full(q)


def geometry(
    reference: Any, q: np.ndarray, points: Sequence[Point], ground: Ground
) -> tuple[np.ndarray, np.ndarray]:
    """Distances z (P,) to the ground and the Jacobian (3 P, nv) of the points that touch, in its axes."""
    normal, rows, z = ground.axes[:, 2], [], []
    for point in points:
        R_WL, p_WL = bodies_of(reference).frame_pose(full_q(reference, q), point.link)
        centre = p_WL + R_WL @ np.asarray(point.position)
        z.append(normal @ (centre - ground.origin) - point.radius)
        offset = np.asarray(point.position) - point.radius * R_WL.T @ normal
        rows.append(ground.axes.T @ reference.point_jacobian(q, point.link, offset))
    return np.array(z), np.vstack(rows)


def bias(reference: Any, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(nv,) h."""
    return reference.inverse_dynamics(q, u, np.zeros(len(u)))


# ---------------------------------------------------------------- impulse model


@dataclass(frozen=True)
class Problem:
    """What the impulses p (3 n) of the n active contacts have to solve; v = v_free + A p.

    Attributes:
        active: (n,) indices of the points.
        M, J, A: (nv, nv), (3 n, nv), (3 n, 3 n) J M^-1 J^T.
        u, u_free: (nv,) before the step, and after it without contact.
        target: (n,) lowest normal velocity after the step [m/s].
        mu: friction.
    """

    active: np.ndarray
    M: np.ndarray
    J: np.ndarray
    A: np.ndarray
    u: np.ndarray
    u_free: np.ndarray
    target: np.ndarray
    mu: float

    def velocity(self, p: np.ndarray) -> np.ndarray:
        """(3 n,) of the contacts after the step."""
        return self.J @ self.u_free + self.A @ p

    def u_after(self, p: np.ndarray) -> np.ndarray:
        """(nv,) after the step."""
        return self.u_free + np.linalg.solve(self.M, self.J.T @ p)


def impulse_problem(
    reference: Any,
    q: np.ndarray,
    u: np.ndarray,
    tau: np.ndarray,
    points: Sequence[Point],
    ground: Ground,
    dt: float,
    recovery: float = 0.0,
) -> Problem:
    """The contact problem of one step, as the MIT simulator poses it.

    Args:
        tau: (nj,) joint torques, friction included.
        recovery: r, what a penetration adds to the target velocity [1/s].
    """
    M, nv = reference.mass_matrix(q), len(u)
    generalised = np.concatenate([np.zeros(nv - len(tau)), tau])
    u_free = u + dt * np.linalg.solve(M, generalised - bias(reference, q, u))
    z, J = geometry(reference, q, points, ground)
    active = np.flatnonzero(z < 0.0)
    J = J.reshape(len(points), 3, nv)[active].reshape(-1, nv)
    v = (J @ u)[2::3]
    target = np.where(v < 0.0, -ground.restitution * v - recovery * z[active], 0.0)
    A = J @ np.linalg.solve(M, J.T)
    return Problem(active, M, J, A, u, u_free, target, ground.mu)


def solve_normals(problem: Problem, p: np.ndarray, tolerance: float, sweeps: int) -> None:
    """Gauss-Seidel over the normal impulses, in place, the others held."""
    A = problem.A
    for _ in range(sweeps):
        change = 0.0
        for i, target in enumerate(problem.target):
            k = 3 * i + 2
            v = problem.J[k] @ problem.u_free + A[k] @ p
            new = max(0.0, p[k] + (target - v) / A[k, k])
            change, p[k] = max(change, abs(new - p[k]) * A[k, k]), new
        if change < tolerance:
            return


def solve_axis(problem: Problem, p: np.ndarray, axis: int, tolerance: float, sweeps: int) -> None:
    """Gauss-Seidel over one tangential direction, each impulse limited by itself (a pyramid)."""
    A = problem.A
    for _ in range(sweeps):
        change = 0.0
        for i in range(len(problem.target)):
            k, limit = 3 * i + axis, problem.mu * p[3 * i + 2]
            v = problem.J[k] @ problem.u_free + A[k] @ p
            new = min(max(p[k] - v / A[k, k], -limit), limit)
            change, p[k] = max(change, abs(new - p[k]) * A[k, k]), new
        if change < tolerance:
            return


def solve_discs(problem: Problem, p: np.ndarray, tolerance: float, sweeps: int) -> None:
    """Gauss-Seidel over the tangential impulses, both of a contact at once within a disc (a cone)."""
    A = problem.A
    for _ in range(sweeps):
        change = 0.0
        for i in range(len(problem.target)):
            k = slice(3 * i, 3 * i + 2)
            v = problem.J[k] @ problem.u_free + A[k] @ p
            new = in_disc(A[k, k], v - A[k, k] @ p[k], problem.mu * p[3 * i + 2])
            change = max(change, float(np.abs(A[k, k] @ (new - p[k])).max()))
            p[k] = new
        if change < tolerance:
            return


def in_disc(A: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """The x of A x + b = -s x, s >= 0, |x| <= radius, s (|x| - radius) = 0: friction of one contact.

    |x(s)| falls with s, so bisection finds it.
    """
    if radius <= 0.0:
        return np.zeros(2)
    (a0, a1), V = np.linalg.eigh(A)
    c0, c1 = V.T @ b

    def size(s: float) -> float:
        return math.hypot(c0 / (a0 + s), c1 / (a1 + s))

    low, high = 0.0, math.hypot(c0, c1) / radius
    if size(0.0) <= radius:
        high = 0.0
    while high - low > 1e-15 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if size(middle) > radius else (low, middle)
    x = -V @ [c0 / (a0 + high), c1 / (a1 + high)]
    return x * min(1.0, radius / np.linalg.norm(x)) if high > 0.0 else x


def solve_impulses(
    problem: Problem, cone: bool, tolerance: float = 1e-12, sweeps: int = 2000, inner: int = 200
) -> np.ndarray:
    """(3 n,) impulses: nested sweeps, all normals, then all tangents, until nothing moves by tolerance [m/s].

    Where friction lifts a contact strongly, normal and tangents chase each other for ever. Going only a part
    of the way leads to the same place, and ends that.

    Raises:
        AssertionError: it did not settle.
    """
    p = np.zeros(3 * len(problem.target))
    for share in (1.0, 0.5, 0.2, 0.05):
        for _ in range(sweeps if share < 1.0 else 300):
            before = p.copy()
            solve_normals(problem, p, tolerance, inner)
            p = before + share * (p - before)
            if cone:
                solve_discs(problem, p, tolerance, inner)
            else:
                solve_axis(problem, p, 0, tolerance, inner)
                solve_axis(problem, p, 1, tolerance, inner)
            if len(p) == 0 or np.abs(problem.A @ (p - before)).max() < share * tolerance:
                return p
    raise AssertionError('the reference did not settle')


def violations(problem: Problem, p: np.ndarray, cone: bool) -> dict[str, float]:
    """How far impulses are from solving the problem, however they were found. All in m/s, 0 if they do.

    An impulse counts as the velocity that it gives its own contact.
    """
    result = dict.fromkeys(('approach', 'pull', 'float', 'friction', 'slip', 'direction'), 0.0)
    v = problem.velocity(p)
    for i, target in enumerate(problem.target):
        A = problem.A[3 * i : 3 * i + 3, 3 * i : 3 * i + 3]
        p_t, p_n, v_t = p[3 * i : 3 * i + 2], p[3 * i + 2], v[3 * i : 3 * i + 2]
        excess, weight = v[3 * i + 2] - target, float(np.abs(A).max())
        worst = {
            'approach': -excess,
            'pull': -p_n * weight,
            'float': min(max(excess, 0.0), max(p_n, 0.0) * weight),  # not both: complementarity
        }
        if cone:
            worst |= _cone_violations(p_t, v_t, problem.mu * p_n, weight)
        else:
            worst |= _pyramid_violations(p_t, v_t, problem.mu * p_n, weight)
        for key, value in worst.items():
            result[key] = max(result[key], float(value))
    return result


def _cone_violations(p_t: np.ndarray, v_t: np.ndarray, limit: float, weight: float) -> dict[str, float]:
    size, speed = float(np.linalg.norm(p_t)), float(np.linalg.norm(v_t))
    room = (limit - size) * weight
    # largest dissipation: p_t . v_t = -limit |v_t|
    lack = (p_t @ v_t + limit * speed) / limit if limit * weight > 1e-9 else 0.0
    return {'friction': -room, 'slip': min(max(room, 0.0), speed), 'direction': lack}


def _pyramid_violations(p_t: np.ndarray, v_t: np.ndarray, limit: float, weight: float) -> dict[str, float]:
    room = (limit - np.abs(p_t)) * weight
    slip = np.minimum(np.maximum(room, 0.0), np.abs(v_t))
    # an impulse along the sliding would drive it
    along = np.where(p_t * v_t > 0.0, np.minimum(np.abs(p_t) * weight, np.abs(v_t)), 0.0)
    return {'friction': -room.min(), 'slip': slip.max(), 'direction': along.max()}


def step_impulse(
    reference: Any,
    q: np.ndarray,
    u: np.ndarray,
    tau: np.ndarray,
    points: Sequence[Point],
    ground: Ground,
    dt: float,
    cone: bool,
    recovery: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step: (q, u) after it and the impulses (P, 3) of all points, in world axes."""
    problem = impulse_problem(reference, q, u, tau, points, ground, dt, recovery)
    p = solve_impulses(problem, cone)
    impulses = np.zeros((len(points), 3))
    impulses[problem.active] = p.reshape(-1, 3) @ ground.axes.T
    u_after = problem.u_after(p)
    return integrate(reference, q, u_after, dt), u_after, impulses


def integrate(reference: Any, q: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
    """Q moved with u."""
    if isinstance(reference, PinocchioReference):
        return reference.integrate(q, u, dt)
    return reference.full.integrate(reference.q_full(q), reference.G @ u, dt)[: len(q)]


# ---------------------------------------------------------------- spring-damper model


@dataclass(frozen=True)
class Spring:
    """Stiffness and damping of the ground."""

    stiffness: float = 5e5
    damping: float = 5e3


def spring_contact(
    spring: Spring, mu: float, z: float, zd: float, v_t: np.ndarray, delta: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Normal force, tangential force (2,) and rate of the deflection (2,) of one point."""
    K, D = spring.stiffness, spring.damping
    s = np.sqrt(max(0.0, -z))
    if s == 0.0:
        return 0.0, np.zeros(2), -(K / D) * delta
    normal = max(0.0, s * (-K * z - D * zd))
    f_t = s * (-K * delta - D * v_t)
    size = float(np.linalg.norm(f_t))
    if size <= mu * normal:
        return normal, f_t, v_t.copy()
    f_t *= mu * normal / size
    return normal, f_t, -(f_t + K * s * delta) / (D * s)


def spring_rates(
    reference: Any,
    q: np.ndarray,
    u: np.ndarray,
    delta: np.ndarray,
    tau: np.ndarray,
    points: Sequence[Point],
    ground: Ground,
    spring: Spring,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(du (nv,), rate of the deflections (P, 2), forces (P, 3) in the axes of the ground)."""
    z, J = geometry(reference, q, points, ground)
    v = (J @ u).reshape(-1, 3)
    forces, rate = np.zeros((len(points), 3)), np.zeros((len(points), 2))
    for i in range(len(points)):
        normal, f_t, rate[i] = spring_contact(spring, ground.mu, z[i], v[i, 2], v[i, :2], delta[i])
        forces[i] = [*f_t, normal]
    generalised = np.concatenate([np.zeros(len(u) - len(tau)), tau]) + J.T @ forces.ravel()
    du = np.linalg.solve(reference.mass_matrix(q), generalised - bias(reference, q, u))
    return du, rate, forces


def spring_trajectory(
    reference: Any,
    q: np.ndarray,
    u: np.ndarray,
    tau: np.ndarray,
    points: Sequence[Point],
    ground: Ground,
    spring: Spring,
    duration: float,
    steps: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """State (q, u, deflections) after a time, by the explicit midpoint rule; and the mean forces (P, 3)."""
    h, delta, total = duration / steps, np.zeros((len(points), 2)), np.zeros((len(points), 3))
    for _ in range(steps):
        du, rate, _ = spring_rates(reference, q, u, delta, tau, points, ground, spring)
        middle = integrate(reference, q, u, 0.5 * h), u + 0.5 * h * du, delta + 0.5 * h * rate
        du, rate, forces = spring_rates(reference, *middle, tau, points, ground, spring)
        q, u, delta = integrate(reference, q, middle[1], h), u + h * du, delta + h * rate
        total += forces / steps
    return q, u, delta, total
