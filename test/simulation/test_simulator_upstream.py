# SPDX-License-Identifier: Apache-2.0
"""Steps of the simulator against the dense reference of both contact models of the MIT simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from closeness import assert_close
from reference_contact import (
    Ground,
    Spring,
    impulse_problem,
    spring_contact,
    spring_trajectory,
    step_impulse,
    violations,
)
from slow_variants import slow_but

# As upstream: contact begins below the surface, penetration stays, friction is no part of the contact solver.
UPSTREAM = {
    'contact': 'impulse',
    'correction': 0.0,
    'momentum_correction': False,
    'joint_friction': 'none',
    'joint_limits': False,
    'motor_limits': False,
    'tolerance': 1e-11,
    'max_sweeps': 100_000,
}
# Sweeps stop when one changes velocities by 1e-11 m/s. With a convergence factor of 0.999 a thousand times
# that is left, and light links (A of 10 / kg) move ten times as much: far below the 1e-6 that is asked.
AGREES = 1e-7
both_sets = pytest.mark.parametrize('friction', ['pyramid', 'cone'])
over_robots = pytest.mark.parametrize('name', robots.QUADRUPEDS)
over_seeds = pytest.mark.parametrize('seed', range(5), ids=lambda k: f'state{k}')


def landing(sim: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """State (q, u) and torques tau of a quadruped whose feet are some millimetres in the ground."""
    sim.reset()  # stands on it
    model, rng, q = sim.model, np.random.default_rng([seed, 11]), sim.q
    q[2] -= 0.003
    axis = rng.normal(size=3)
    q[3:7] = robots.quaternion_about(axis / np.linalg.norm(axis), 0.005 * rng.normal())
    q[7:] += 0.005 * rng.normal(size=model.nj)
    u = 0.5 * rng.normal(size=model.nv)
    u[2] -= 1.0
    return q, u, 3.0 * rng.normal(size=model.nj)


@both_sets
@over_robots
@over_seeds
@pytest.mark.parametrize('restitution', [0.0, 0.4])
def test_one_step(qd: Any, name: str, friction: str, restitution: float, seed: int) -> None:
    model, reference = robots.quadruped(name), robots.quadruped_reference(name)
    options = UPSTREAM | {'friction': friction, 'restitution': restitution, 'mu': 0.5}
    sim = qd.Simulator(model, dt=1e-3, **options)
    q, u, tau = landing(sim, seed)
    sim.reset(q, u)
    sim.step(tau)
    q_after, u_after, impulses = step_impulse(
        reference, q, u, tau, robots.points_of(sim), Ground(0.5, restitution), 1e-3, friction == 'cone'
    )
    assert np.count_nonzero(impulses[:, 2]) >= 2
    assert sim.converged
    assert_close(sim.u, u_after, AGREES, what='u')
    assert_close(sim.q, q_after, AGREES, what='q')
    assert_close(sim.contact_forces, impulses / 1e-3, AGREES, what='forces')


@both_sets
@over_robots
@over_seeds
def test_forces_solve_the_contact_problem(qd: Any, name: str, friction: str, seed: int) -> None:
    """The laws themselves, whatever the order of the sweeps: for the default tolerance as well."""
    model, reference = robots.quadruped(name), robots.quadruped_reference(name)
    for tolerance, bound in ((1e-11, 1e-8), (1e-6, 1e-4)):  # a sweep's change, times what sweeps would follow
        sim = qd.Simulator(model, **(UPSTREAM | {'friction': friction, 'mu': 0.6, 'tolerance': tolerance}))
        q, u, tau = landing(sim, seed)
        sim.reset(q, u)
        sim.step(tau)
        problem = impulse_problem(reference, q, u, tau, robots.points_of(sim), Ground(0.6), 1e-3)
        idle = np.setdiff1d(np.arange(len(sim.contact_points)), problem.active)
        p = 1e-3 * sim.contact_forces[problem.active].ravel()
        assert np.all(sim.contact_forces[idle] == 0.0)
        assert_close(sim.u, problem.u_after(p), 1e-9, what='u of these forces')
        for key, value in violations(problem, p, friction == 'cone').items():
            assert value <= bound, (key, value)


@both_sets
@pytest.mark.parametrize('name', ['mini_cheetah', 'go2'])
def test_fifty_steps(qd: Any, name: str, friction: str, seed: int) -> None:
    """Contacts that open and close, with constant torques."""
    model, reference = robots.quadruped(name), robots.quadruped_reference(name)
    sim = qd.Simulator(model, **(UPSTREAM | {'friction': friction, 'mu': 0.5, 'restitution': 0.2}))
    q, u, tau = landing(sim, seed)
    sim.reset(q, u)
    points, ground = robots.points_of(sim), Ground(0.5, 0.2)
    for k in range(50):
        sim.step(tau)
        q, u, _ = step_impulse(reference, q, u, tau, points, ground, 1e-3, friction == 'cone')
        # each step adds its error, and the motion spreads them by some e^(5 t)
        assert_close(sim.u, u, 1e-6, what=f'u after step {k}')
    assert_close(sim.q, q, 1e-6, what='q')


@both_sets
def test_simple_bodies(qd: Any, friction: str, seed: int) -> None:
    """More contacts than a body needs: who carries what is not determined, but the laws hold."""
    rng = np.random.default_rng(seed)
    for model, height in ((robots.ball(), 0.0995), (robots.block(), 0.0995), (robots.sled(), 0.1995)):
        reference, u = robots.simple_reference(model), rng.normal(size=model.nv)
        u[3:6] *= 0.1
        q, tau = robots.upright(model, height), np.zeros(model.nj)
        sim = qd.Simulator(model, **(UPSTREAM | {'friction': friction, 'mu': 0.3}))
        sim.reset(q, u)
        sim.step(tau)
        problem = impulse_problem(reference, q, u, tau, robots.points_of(sim), Ground(0.3), 1e-3)
        p = 1e-3 * sim.contact_forces[problem.active].ravel()
        assert len(p) > 0
        assert_close(sim.u, problem.u_after(p), 1e-9, what=f'u of {model.name}')
        for key, value in violations(problem, p, friction == 'cone').items():
            assert value <= 1e-8, (model.name, key, value)


def test_explicit_joint_friction(qd: Any, seed: int) -> None:
    """-F_v qd - F_c sgn(qd) of the speed before the step, as upstream adds it to the torque."""
    model, reference = robots.quadruped('mini_cheetah'), robots.quadruped_reference('mini_cheetah')
    sim = qd.Simulator(model, **(UPSTREAM | {'friction': 'pyramid', 'joint_friction': 'explicit'}))
    q, u, tau = landing(sim, seed)
    sim.reset(q, u)
    sim.step(tau)
    total = tau - model.viscous * u[6:] - model.coulomb * np.sign(u[6:])
    expected = step_impulse(reference, q, u, total, robots.points_of(sim), Ground(0.5), 1e-3, False)[1]
    assert_close(sim.u, expected, AGREES, what='u')


# ---------------------------------------------------------------- spring-damper

SPRING = {'contact': 'spring_damper', 'joint_friction': 'none', 'joint_limits': False, 'motor_limits': False}


@pytest.mark.parametrize(
    ('height', 'u', 'mu'),
    [
        (0.0990, (0.0, 0.0, -0.1, 0.0, 0.0, 0.0), 0.5),
        (0.0990, (0.01, -0.02, -0.1, 0.0, 0.0, 0.0), 0.5),
        (0.0990, (1.0, -2.0, 0.05, 3.0, 2.0, 1.0), 0.5),
        (0.0999, (0.0, 0.0, 0.5, 0.0, 0.0, 0.0), 0.5),
        (0.1001, (1.0, 0.0, -0.01, 0.0, 0.0, 0.0), 0.5),
    ],
    ids=['press', 'stick', 'slide', 'leave', 'above'],
)
def test_spring_formula(qd: Any, height: float, u: tuple[float, ...], mu: float) -> None:
    """The force of the first sub-step is that of the state before it, with no deflection yet."""
    model, u_before = robots.ball(mass=2.0, radius=0.1), np.array(u)
    sim = qd.Simulator(model, **SPRING, dt=1e-6, substeps=1, mu=mu)
    sim.reset(robots.upright(model, height), u_before)
    sim.step()
    v_t = u_before[:2] + 0.1 * np.array([-u_before[4], u_before[3]])  # of the lowest point: v + w x (-r z)
    normal, f_t, _ = spring_contact(Spring(), mu, height - 0.1, u_before[2], v_t, np.zeros(2))
    # an implicit or a midpoint rule sees 1e-6 s of motion: D s / m = 150 /s of a change of the force
    assert_close(sim.contact_forces[0], [*f_t, normal], 1e-3, what='force')


@pytest.mark.parametrize(('model', 'height'), [('ball', 0.1), ('block', 0.1), ('sled', 0.2)])
@pytest.mark.parametrize('mu', slow_but([0.8], [0.1, 0.8]))
def test_spring_trajectory(qd: Any, model: str, height: float, mu: float, seed: int) -> None:
    """A landing, compared with tiny steps; sub-steps bring the simulator to the same motion."""
    robot, rng = getattr(robots, model)(), np.random.default_rng(seed)
    u = 0.3 * rng.normal(size=robot.nv)
    u[2] = -0.5
    q, tau, duration = robots.upright(robot, height), np.zeros(robot.nj), 0.01
    errors, points = [], []
    for substeps in (10, 40):
        sim = qd.Simulator(robot, **SPRING, dt=1e-3, substeps=substeps, mu=mu)
        points = robots.points_of(sim)
        sim.reset(q, u)
        for _ in range(10):
            sim.step()
        errors.append(sim.u)
    reference = robots.simple_reference(robot)
    _, expected, _, _ = spring_trajectory(
        reference, q, u, tau, points, Ground(mu), Spring(), duration, steps=1200
    )
    coarse, fine = (float(np.abs(found - expected).max()) for found in errors)
    # sub-steps of 0.1 ms at rates D s / m of 100 /s: within 1 % of 0.5 m/s; a quarter of the step, a quarter
    # of the error (first order), less what kinks disturb; the reference itself is within 3e-6 m/s
    assert coarse < 5e-3, (coarse, fine)
    assert fine < 0.4 * coarse + 1e-5, (coarse, fine)


def landing_on_springs(qd: Any, substeps: int | None) -> Any:
    """0.1 s of a mini_cheetah that lands with 0.4 m/s."""
    model = robots.quadruped('mini_cheetah')
    kp, kd = robots.GAINS['mini_cheetah']
    sim = qd.Simulator(model, contact='spring_damper', substeps=substeps)
    q = model.standing.copy()
    q[2] += 0.01
    sim.reset(q)
    sim.command(q=model.standing[7:], kp=kp, kd=kd)
    return sim.run(None, 0.1)


def test_spring_automatic_substeps(qd: Any) -> None:
    """Left to itself the simulator moves nearer to the fine motion than forty Euler sub-steps do."""
    fine, automatic, euler = (landing_on_springs(qd, substeps) for substeps in (500, None, 40))
    assert 1 < automatic.substeps.max() < 10
    error, other = (float(np.abs(log.q - fine.q).max()) for log in (automatic, euler))
    assert error < other < 1e-4, (error, other)
