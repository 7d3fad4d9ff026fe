# SPDX-License-Identifier: Apache-2.0
"""Random contact problems, and the laws that the result of a time step must obey. Dense NumPy and Pinocchio.

A problem is a random state of a robot in or near level ground. M, h and J come from Pinocchio; the impulses
of the contacts and the velocity after the step come from the simulator. What the joints got (dry friction and
limits) follows from the equation of motion, so nothing that the solver says about itself is needed.

Violations are velocities [m/s or rad/s]: an impulse counts as the velocity that it gives its own constraint.
Rows of contact i are 3 i (first tangent), 3 i + 1 (second tangent) and 3 i + 2 (normal), as in
`reference_contact`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
import simple_robots as robots
from reference_contact import Point, bias, bodies_of, full_q

from quad_dynamics.api.kinematics import integrate
from quad_dynamics.kernels.simulation.drives import STUCK

ROBOTS = ('mini_cheetah', 'a1', 'go2', 'anymal_c', 'block', 'sled', 'chain')
FAST = 0.03  # angle in a step from which on paths of points are not taken as straight [rad]
RESTING = 1e-6  # a point nearer to the ground than this may not approach it at all [m]


@dataclass(frozen=True)
class Family:
    """Problems of one robot with one set of settings."""

    robot: str
    friction: str
    mu: float
    dt: float
    correction: float
    joint_friction: bool
    joint_limits: bool


@dataclass(frozen=True)
class Result:
    """A time step, seen from outside.

    Attributes:
        q, u, tau: the state before it, and the torques.
        after: (nv,) velocity that the step moved with; see `as_solved`.
        p: (3 P,) impulses of all contact points [N s].
        settled: largest speed that was taken from a joint because it has come to rest [rad/s or m/s].
        residual, converged: what the simulator says.
        locked: (nj,) joints that were held by a large inertia.
        M, h, J, z: mass matrix, bias, Jacobian of all points, their distances to the ground.
        target: (P,) lowest normal velocity of each point; -inf where it cannot touch in this step [m/s].
        lower, upper: (nj,) distances to the limits of the joints.
        viscous, coulomb: (nj,) of the joints.
    """

    family: Family
    q: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    after: np.ndarray
    p: np.ndarray
    settled: float
    residual: float
    converged: bool
    locked: np.ndarray
    M: np.ndarray
    h: np.ndarray
    J: np.ndarray
    z: np.ndarray
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray

    @functools.cached_property
    def inertia(self) -> np.ndarray:
        """(nv, nv) M with viscous friction, which acts at the end of the step."""
        M, nj = self.M.copy(), len(self.lower)
        rows = np.arange(len(M) - nj, len(M))
        M[rows, rows] += self.family.dt * self.viscous
        return M

    @functools.cached_property
    def velocity(self) -> np.ndarray:
        """(P, 3) of the points after the step."""
        return (self.J @ self.after).reshape(-1, 3)

    @functools.cached_property
    def impulse(self) -> np.ndarray:
        """(P, 3)."""
        return self.p.reshape(-1, 3)

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """(P,) D of the points: the mean of the diagonal of J M^-1 J^T of each."""
        return self.weights_with(self.inertia)

    def weights_with(self, M: np.ndarray) -> np.ndarray:
        """The same with another mass matrix."""
        diagonal = np.einsum('ij,ji->i', self.J, np.linalg.solve(M, self.J.T))
        return diagonal.reshape(-1, 3).mean(axis=1)

    @functools.cached_property
    def joint_weights(self) -> np.ndarray:
        """(nj,) what a unit impulse does to the speed of its joint."""
        return np.diag(np.linalg.inv(self.inertia))[len(self.M) - len(self.lower) :]

    @functools.cached_property
    def defect(self) -> np.ndarray:
        """(nv,) what the equation of motion lacks [N s]: nothing on the base; friction, limits on joints."""
        dt, nj = self.family.dt, len(self.lower)
        forces = np.concatenate([np.zeros(len(self.M) - nj), self.tau]) - self.h
        return self.inertia @ self.after - self.M @ self.u - dt * forces - self.J.T @ self.p

    def delassus(self, points: np.ndarray) -> np.ndarray:
        """J M^-1 J^T of some points."""
        J = self.J.reshape(-1, 3, len(self.M))[points].reshape(-1, len(self.M))
        return J @ np.linalg.solve(self.inertia, J.T)

    def touching(self) -> np.ndarray:
        """Indices of the points that got an impulse."""
        return np.flatnonzero(self.impulse[:, 2] > 0.0)


# ---------------------------------------------------------------- problems


def level_geometry(reference: Any, q: np.ndarray, points: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """Distances (P,) to level ground, and the Jacobian (3 P, nv): `geometry` for thousands of states."""
    bodies = bodies_of(reference)
    model, data, q = bodies.model, bodies.data, full_q(reference, q)
    pin.computeJointJacobians(model, data, bodies.q_pin(q))
    pin.updateFramePlacements(model, data)
    rows, z = np.empty((len(points), 3, model.nv)), np.empty(len(points))
    for i, point in enumerate(points):
        index = bodies.frame_id(point.link)
        pose = data.oMf[index]
        arm = pose.rotation @ np.asarray(point.position)
        z[i] = pose.translation[2] + arm[2] - point.radius
        arm[2] -= point.radius
        J = pin.getFrameJacobian(model, data, index, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        rows[i] = J[:3] - pin.skew(arm) @ J[3:]
    J = rows.reshape(-1, model.nv)[:, bodies.iv] @ bodies.T(q)
    return z, J if bodies is reference else J @ reference.G


def path_curvature(
    reference: Any, model: Any, q: np.ndarray, u: np.ndarray, points: Sequence[Point], z: np.ndarray
) -> np.ndarray:
    """(P,) second derivatives of the distances to level ground while u stays the same, by differences."""
    # [s]; the fourth derivative at 100 rad/s is some 1e7 m/s^4: an error of 1e-7 m/s of a target
    step = 1e-5
    ahead, behind = (
        level_geometry(reference, integrate(model, q, u, sign * step), points)[0] for sign in (1.0, -1.0)
    )
    return (ahead - 2.0 * z + behind) / step**2


@functools.cache
def robot_of(name: str) -> tuple[Any, Any]:
    """A model, and its reference in Pinocchio."""
    if name in robots.QUADRUPEDS:
        return robots.quadruped(name), robots.quadruped_reference(name)
    options = {} if name == 'block' else {'limits': (-0.5, 0.5)}
    model = getattr(robots, name)(**options)
    return model, robots.simple_reference(model)


def draw_family(rng: np.random.Generator, robot: str) -> Family:
    """Settings at random, friction coefficients from ice to rubber."""
    return Family(
        robot=robot,
        friction=str(rng.choice(['cone', 'pyramid'])),
        mu=float(np.exp(rng.uniform(np.log(0.05), np.log(1.5)))),
        dt=float(rng.choice([2.5e-4, 1e-3, 2e-3])),
        correction=float(rng.choice([0.0, 0.2])),
        joint_friction=bool(rng.random() < 0.5),
        joint_limits=bool(rng.random() < 0.5),
    )


def draw_state(
    model: Any, reference: Any, family: Family, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, u, tau): any posture, with up to eight points in the ground, at rest or in motion."""
    standing = robots.upright(model, 0.5) if model.standing is None else model.standing.copy()
    q, nj = standing, model.nj
    low, high = np.maximum(model.q_min, -2.5), np.minimum(model.q_max, 2.5)
    if nj:
        q[7:] = np.clip(q[7:] + rng.choice([0.02, 0.5]) * rng.normal(size=nj), low, high)
        at_limit = rng.random(nj) < (0.25 if family.joint_limits else 0.0)
        ends = np.where(rng.random(nj) < 0.5, model.q_min + 5e-4, model.q_max - 5e-4)
        beside = ends + rng.choice([0.0, 1e-3], nj) * rng.uniform(-1.0, 1.0, nj)
        q[7:] = np.where(at_limit & (np.abs(ends) < 3.0), beside, q[7:])
    axis = rng.normal(size=3)
    q[3:7] = robots.quaternion_about(axis / np.linalg.norm(axis), rng.choice([0.03, 2.0]) * rng.normal())
    z, _ = level_geometry(reference, q, robots.points_of(model))
    count = int(rng.integers(1, min(8, len(z)) + 1))
    q[2] -= np.sort(z)[count - 1] + rng.uniform(1e-6, 2e-3)
    u = rng.choice([0.0, 0.02, 1.0], p=[0.1, 0.3, 0.6]) * rng.normal(size=model.nv)
    return q, u, rng.choice([0.0, 5.0]) * rng.normal(size=nj)


def falling(model: Any, reference: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(q, u): the standing posture in any attitude, 0.2 m above the ground."""
    q, axis = model.standing.copy(), rng.normal(size=3)
    q[3:7] = robots.quaternion_about(axis / np.linalg.norm(axis), rng.uniform(0.0, np.pi))
    q[2] += 0.2 - level_geometry(reference, q, robots.points_of(model))[0].min()
    return q, 0.5 * rng.normal(size=model.nv)


def take_step(sim: Any, reference: Any, family: Family, state: tuple[np.ndarray, ...]) -> Result:
    """One time step from a state, however deep in the ground."""
    sim.reset()
    sim._scene.q[:], sim._scene.u[:] = state[:2]  # `reset` refuses a start that is deep in the ground
    return next_step(sim, reference, family, state[2])


def next_step(sim: Any, reference: Any, family: Family, tau: np.ndarray) -> Result:
    """One time step from where the simulator is, with what it remembers of the last one."""
    q, u, model, dt = sim.q, sim.u, sim.model, family.dt
    points = robots.points_of(sim)
    z, J = level_geometry(reference, q, points)
    sim.step(tau)
    if family.correction > 0.0:
        turns = np.abs(u[model.nv - model.nj - 3 * model.floating_base :]).max(initial=0.0) * dt > FAST
        curve = path_curvature(reference, model, q, u, points, z) * turns
        # a point arrives at the ground on the curve on which it moves; it never has to leave the ground
        target = np.where(z > RESTING, np.clip(-(z + 0.5 * dt**2 * curve) / dt, -z / dt, 0.0), 0.0)
    else:
        target = np.where(z < 0.0, 0.0, -np.inf)
    far = np.full(model.nj, np.inf)
    sticks = family.joint_friction
    result = Result(
        family=family,
        q=q,
        u=u,
        tau=tau,
        after=sim.u,
        p=dt * sim.contact_forces.ravel(),
        settled=0.0,
        residual=sim.residual,
        converged=sim.converged,
        locked=sim._scene.joint_memory['mode'] == STUCK,
        M=reference.mass_matrix(q),
        h=bias(reference, q, u),
        J=J,
        z=z,
        target=target,
        lower=q[7:] - model.q_min if family.joint_limits else far,
        upper=model.q_max - q[7:] if family.joint_limits else far,
        viscous=model.viscous if sticks else np.zeros(model.nj),
        coulomb=model.coulomb if sticks else np.zeros(model.nj),
    )
    return as_solved(result)


def as_solved(result: Result) -> Result:
    """The result with the velocity that solved the step, before what the simulator changes afterwards.

    In flight, where no contact pushes, it corrects the velocity of the base to keep the momentum: what that
    was before follows from the speeds of the joints. Joints that come to rest get a speed of exactly zero,
    where the solver stopped at one below its tolerance: what they had follows from the motion of the base.
    """
    base = slice(0, len(result.M) - len(result.lower))
    after = result.after.copy()
    if not len(result.touching()):
        after[base] -= np.linalg.solve(result.inertia[base, base], result.defect[base])
        return replace(result, after=after)
    rest = np.flatnonzero(after == 0.0)
    rest = rest[rest >= base.stop]
    if not len(rest):
        return result
    speed = np.linalg.lstsq(result.inertia[base][:, rest], -result.defect[base], rcond=None)[0]
    after[rest] = speed
    return replace(result, after=after, settled=float(np.abs(speed).max()))


def simulator_of(qd: Any, family: Family, **changes: Any) -> tuple[Any, Any]:
    """A simulator of a family, and its reference."""
    model, reference = robot_of(family.robot)
    if family.joint_friction:
        rng = np.random.default_rng(int(1e6 * family.mu))
        model = model.with_friction(
            rng.uniform(0.0, 0.1, model.nj), rng.choice([0.0, 0.1, 2.0], model.nj) * rng.random(model.nj)
        )
    options: dict[str, Any] = {
        'friction': family.friction,
        'mu': family.mu,
        'dt': family.dt,
        'correction': family.correction,
        'joint_friction': 'stick' if family.joint_friction else 'none',
        'joint_limits': family.joint_limits,
        'motor_limits': False,
        'energy_limit': np.inf,
    }
    return qd.Simulator(model, **(options | changes)), reference


def problems(qd: Any, robot: str, seed: int, families: int, each: int, **changes: Any) -> Iterator[Result]:
    """Time steps from random states."""
    for k in range(families):
        rng = np.random.default_rng([seed, ROBOTS.index(robot), k])
        family = draw_family(rng, robot)
        sim, reference = simulator_of(qd, family, **changes)
        for _ in range(each):
            state = draw_state(sim.model, reference, family, rng)
            yield take_step(sim, reference, family, state)


# ---------------------------------------------------------------- laws


def motion_error(result: Result) -> float:
    """Velocity that the equation of motion lacks on the rows of the base, where nothing but contacts act."""
    base = result.defect.copy()
    base[len(base) - len(result.lower) :] = 0.0
    return float(np.abs(np.linalg.solve(result.inertia, base)).max())


def contact_violations(result: Result) -> dict[str, float]:
    """The laws of Signorini and Coulomb, each on its own."""
    worst = dict.fromkeys(('approach', 'pull', 'float', 'friction', 'slip', 'direction'), 0.0)
    mu, cone = result.family.mu, result.family.friction == 'cone'
    for p, v, target, D in zip(result.impulse, result.velocity, result.target, result.weights, strict=True):
        p_t, p_n, v_t, excess = D * p[:2], D * p[2], v[:2], v[2] - target
        values = {'approach': -excess, 'pull': -p_n, 'float': min(max(excess, 0.0), max(p_n, 0.0))}
        limit = mu * max(p_n, 0.0)
        if cone:
            size, speed = float(np.linalg.norm(p_t)), float(np.linalg.norm(v_t))
            values['friction'], values['slip'] = size - limit, min(max(limit - size, 0.0), speed)
            # the part of friction that is not opposite to the sliding velocity, where there is both
            if min(size, speed) > 0.0:
                values['direction'] = float(np.linalg.norm(p_t / size + v_t / speed)) * min(size, speed)
        else:
            values['friction'] = float(np.abs(p_t).max()) - limit
            values['slip'] = float(np.minimum(np.maximum(limit - np.abs(p_t), 0.0), np.abs(v_t)).max())
            values['direction'] = float(np.where(p_t * v_t > 0.0, np.minimum(abs(p_t), abs(v_t)), 0.0).max())
        for key, value in values.items():
            worst[key] = max(worst[key], float(value))
    return worst


def joint_violations(result: Result, still: float) -> dict[str, float]:
    """Dry friction and limits of the joints; a joint slower than `still` may be at rest, or at its limit."""
    dt, nj = result.family.dt, len(result.lower)
    if nj == 0:
        return {'limit': 0.0, 'joint': 0.0}
    speed, x = result.after[-nj:], result.defect[-nj:]
    slowest, fastest = -np.maximum(result.lower, 0.0) / dt, np.maximum(result.upper, 0.0) / dt
    passed = np.maximum(np.maximum(slowest - speed, speed - fastest), 0.0)
    most = dt * result.coulomb
    low, high = np.where(speed < -still, most, -most), np.where(speed > still, -most, most)
    high = np.where(speed <= slowest + still, np.inf, high)
    low = np.where(speed >= fastest - still, -np.inf, low)
    outside = np.maximum(np.maximum(low - x, x - high), 0.0) * result.joint_weights
    return {'limit': float(passed.max()), 'joint': float(outside.max())}


def natural_residual(result: Result) -> float:
    """The residual of the natural map of all contacts and joints, see `kernels/natural_map` [m/s]."""
    M, nj = result.inertia.copy(), len(result.lower)
    held = np.flatnonzero(result.locked) + len(M) - nj
    M[held, held] += 1e8 * np.diag(result.M)[held]  # as good as not moving at all
    mu, largest = result.family.mu, 0.0
    for p, v, target, D in zip(
        result.impulse, result.velocity, result.target, result.weights_with(M), strict=True
    ):
        if np.isfinite(target):
            x, w = D * p, v - [0.0, 0.0, target]
            project = in_cone if result.family.friction == 'cone' else in_pyramid
            largest = max(largest, float(project(x, w, mu)))
    if nj:
        weights = np.diag(np.linalg.inv(M))[-nj:]
        speed, x, most = result.after[-nj:], result.defect[-nj:], result.family.dt * result.coulomb
        slowest = -np.maximum(result.lower, 0.0) / result.family.dt
        fastest = np.maximum(result.upper, 0.0) / result.family.dt
        for j in np.flatnonzero(~result.locked):
            r = _joint_residual(weights[j], x[j], speed[j], most[j], slowest[j], fastest[j])
            largest = max(largest, r)
    return largest


def _joint_residual(d: float, x: float, speed: float, most: float, slowest: float, fastest: float) -> float:
    """The smallest residual of one joint over all ways to share its impulse x among friction and limits."""
    best = np.inf
    for f in {float(np.clip(x, -most, most)), float(-most * np.sign(speed))}:
        up, down = max(x - f, 0.0), max(f - x, 0.0)
        r = [abs(f - np.clip(f - speed / d, -most, most)) * d] if most > 0.0 else []
        if np.isfinite(slowest):
            r.append(abs(up - max(up - (speed - slowest) / d, 0.0)) * d)
            up = 0.0
        if np.isfinite(fastest):
            r.append(abs(down - max(down - (fastest - speed) / d, 0.0)) * d)
            down = 0.0
        r.append((up + down) * d)  # an impulse that nothing explains
        best = min(best, max(r))
    return float(best)


def in_cone(x: np.ndarray, v: np.ndarray, mu: float) -> float:
    """|x - P_K(x - v - mu |v_t| n)|, P_K the projection onto the friction cone."""
    y = x - v - [0.0, 0.0, mu * np.linalg.norm(v[:2])]
    t, n = float(np.linalg.norm(y[:2])), float(y[2])
    if t <= mu * n:
        projected = y
    elif mu * t <= -n:
        projected = np.zeros(3)
    else:
        s = (n + mu * t) / (1.0 + mu * mu)
        projected = np.array([*(mu * s / t * y[:2]), s])
    return float(np.linalg.norm(x - projected))


def in_pyramid(x: np.ndarray, v: np.ndarray, mu: float) -> float:
    """The same for tangents with a limit each."""
    limit = mu * max(float(x[2]), 0.0)
    slip = np.abs(x[:2] - np.clip(x[:2] - v[:2], -limit, limit)).max()
    return float(max(slip, abs(x[2] - max(x[2] - v[2], 0.0))))
