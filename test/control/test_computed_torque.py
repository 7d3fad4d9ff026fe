# SPDX-License-Identifier: Apache-2.0
"""Computed torque: trajectories, the accelerations that it asks for, and robots that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from cases import Case, model_of, pinocchio_of
from closeness import assert_close
from control_loop import drive, robot, state_of
from slow_variants import slow_but

from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.control.contact_forces import foot_points
from quad_dynamics.control.min_jerk import min_jerk
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.trajectory import JointTrajectory
from quad_dynamics.simulation.settings import SensorSettings
from quad_dynamics.simulation.simulator import Simulator

# ---------------------------------------------------------------- trajectories


def polynomial(order: int, seed: int) -> Any:
    return np.polynomial.Polynomial(np.random.default_rng(seed).normal(size=order + 1))


@pytest.mark.parametrize(('order', 'given'), [(3, 2), (5, 3)], ids=['cubic', 'quintic'])
def test_pieces_reproduce_polynomials(order: int, given: int, seed: int) -> None:
    """Cubic pieces a cubic, quintic ones a quintic, exactly."""
    wanted = [polynomial(order, seed + 10 * j) for j in range(3)]
    t = np.array([0.0, 0.4, 1.0])
    rows = [np.array([[p.deriv(k)(x) for p in wanted] for x in t]) for k in range(given)]
    points = [*rows, *[None] * (3 - given)]
    made = JointTrajectory(t, *points, rows[0][0], rows[1][0])
    for x in (0.0, 0.13, 0.4, 0.77, 0.99):
        for k, values in enumerate(made.sample(x)):
            assert_close(values, [p.deriv(k)(x) for p in wanted])


@pytest.mark.parametrize('first', [0.0, 0.3])
@pytest.mark.parametrize('given', [1, 2, 3])
def test_it_begins_where_the_robot_is_and_ends_at_the_last_point(given: int, first: float) -> None:
    rng = np.random.default_rng(given)
    t = first + np.array([0.0, 0.5, 1.1])
    rows = [rng.normal(size=(3, 4)) for _ in range(given)]
    now, speed = rng.normal(size=4), rng.normal(size=4)
    made = JointTrajectory(t, *rows, *[None] * (3 - given), now, speed)
    q, qd, _ = made.sample(0.0)
    assert_close(q, now)
    assert_close(qd, speed)
    if first:
        assert_close(made.sample(float(t[0]))[0], rows[0][0])
    assert_close(made.sample(float(t[1]))[0], rows[0][1])
    q, qd, qdd = made.sample(10.0)
    assert_close(q, rows[0][2])
    assert not qd.any()
    assert not qdd.any()
    # positions and velocities are continuous, and belong together
    grid = np.linspace(0.0, float(t[-1]) - 1e-9, 4001)
    samples = [made.sample(float(x)) for x in grid]
    q, qd = np.array([s[0] for s in samples]), np.array([s[1] for s in samples])
    h = grid[1] - grid[0]
    assert np.abs(np.diff(q, axis=0) / h - 0.5 * (qd[1:] + qd[:-1])).max() < 1e-2


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'times': []}, r'times has the shape \(0,\)'),
        ({'times': [0.5, 0.5]}, r'expected increasing times'),
        ({'times': [-0.5, 0.5]}, r'the first at least 0'),
        ({'q': [[0.0], [1.0]]}, r'q has the shape \(2, 1\); expected \(2, 2\)'),
        ({'q': [[0.0, 1.0], [np.nan, 0.0]]}, r'q\[1, 0\] is nan'),
        ({'qdd': np.zeros((2, 2))}, 'qdd is given without qd'),
        ({'q': [['a', 'b'], ['c', 'd']]}, 'not made of numbers'),
    ],
)
def test_bad_trajectories(qd: Any, change: dict[str, Any], message: str) -> None:
    arm = qd.load_model('two_link_arm')
    law = ComputedTorque(arm)
    with pytest.raises(qd.ArgumentError, match=message):
        law.set_trajectory(**{'times': [0.5, 1.0], 'q': np.zeros((2, 2)), **change})
    assert law.finished


def test_min_jerk_is_smooth_at_both_ends() -> None:
    assert min_jerk(-1.0) == (0.0, 0.0, 0.0)
    assert min_jerk(2.0) == (1.0, 0.0, 0.0)
    h = 1e-5
    for t in (0.1, 0.5, 0.8):
        before, here, after = min_jerk(t - h), min_jerk(t), min_jerk(t + h)
        assert (after[0] - before[0]) / (2 * h) == pytest.approx(here[1], abs=1e-8)
        assert (after[1] - before[1]) / (2 * h) == pytest.approx(here[2], abs=1e-8)


# ---------------------------------------------------------------- fixed base


@pytest.mark.parametrize('zeta', [0.5, 1.0, 2.0])
def test_the_error_of_an_arm_decays_as_that_of_a_linear_oscillator(qd: Any, zeta: float) -> None:
    """e'' + 2 zeta omega e' + omega^2 e = 0, in closed form, however the arm is shaped."""
    arm = qd.load_model('two_link_arm').with_friction([0.0, 0.0], [0.0, 0.0])
    omega, dt = 8.0, 1e-4
    law = ComputedTorque(arm, ControlSettings(omega=omega, zeta=zeta))
    sim = Simulator(arm, dt=dt, contact='none', motor_limits=False, joint_friction='none')
    error = np.array([0.3, -0.2])
    start = np.array([0.4, 0.5])
    sim.reset(start)
    law.update(state_of(sim))  # it holds this posture
    sim.reset(start - error)
    log = sim.run(lambda s: law.update(state_of(s)).tau, 0.6, progress=False)
    t = log.time[:, None]
    root = np.sqrt(complex(zeta**2 - 1.0))
    if zeta == 1.0:
        decay = (1.0 + omega * t) * np.exp(-omega * t)
    else:
        a, b = omega * (-zeta + root), omega * (-zeta - root)
        decay = ((a * np.exp(b * t) - b * np.exp(a * t)) / (a - b)).real
    # torques are constant over a time step: first order in dt
    assert np.abs(start - log.q - error * decay).max() < 10.0 * omega * dt * 0.3


def test_an_arm_follows_a_trajectory(qd: Any) -> None:
    arm = qd.load_model('two_link_arm')
    sim = Simulator(arm, dt=1e-3)
    sim.reset([0.1, 0.2])
    law = ComputedTorque(arm, ControlSettings(omega=30.0))
    law.set_trajectory([0.5, 1.0, 1.5], [[0.5, 0.0], [0.2, 0.6], [0.0, 0.3]], start_time=0.2)
    drive(sim, law, 2.5, every=1)
    assert np.abs(sim.q - [0.0, 0.3]).max() < 2e-3
    assert law.finished


# ---------------------------------------------------------------- on feet


@pytest.mark.parametrize('name', ['a1', 'anymal_b'])
def test_feet_stay_on_the_ground_and_the_equation_of_motion_holds(name: str, seed: int) -> None:
    """Torques on feet that are held to the ground give the joints the accelerations that were asked for.

    The feet's constraints leave six directions for the joints; the wanted accelerations are chosen in them.
    """
    case = Case(name, True)
    model, reference = model_of(case), pinocchio_of(case)
    rng = np.random.default_rng([seed, 11])
    q = np.array(model.standing)
    q[7:] += rng.normal(scale=0.05, size=12)
    points = foot_points(model)
    J = points.jacobian(q, range(4))
    _, _, V = np.linalg.svd(J)
    du = V[12:].T @ rng.normal(scale=0.3, size=6)  # J du = 0, at rest
    law = ComputedTorque(model, ControlSettings(mu=5.0))
    still = np.zeros(model.nv)
    state = RobotState(0.0, q, still, None, np.zeros(12))
    law.update(state)
    there = np.stack([q[7:], q[7:]])
    law.set_trajectory([0.0, 1.0], there, np.zeros((2, 12)), np.stack([du[6:], np.zeros(12)]))
    tau = law.update(state).tau
    M, h = reference.mass_matrix(q), reference.nonlinear_effects(q, still)
    KKT = np.block([[M, -J.T], [J, np.zeros((12, 12))]])
    found = np.linalg.lstsq(
        KKT, np.concatenate([[0.0] * 6, tau, np.zeros(12)]) - [*h, *[0.0] * 12], rcond=1e-12
    )
    assert_close(found[0][: model.nv], du, rel=1e-6)


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
@pytest.mark.parametrize('name', slow_but(['mini_cheetah'], ['mini_cheetah', 'anymal_b', 'hyq']))
def test_a_robot_squats(name: str, contact: str) -> None:
    model = robot(name)
    sim = Simulator(model, contact=contact, latency=2e-3, sensors=SensorSettings.typical())
    law = ComputedTorque(model)
    standing = np.array(model.standing[7:])
    bent = standing.copy()
    for leg in model.legs:
        hip, knee = leg.joint_indices[-2:]
        bent[knee] += 0.3 * np.sign(standing[knee])
        bent[hip] -= 0.15 * np.sign(standing[knee])
    drive(sim, law, 0.5, noisy=True)
    law.set_trajectory([0.5, 1.0], [bent, standing], start_time=sim.time)
    log = drive(sim, law, 0.5, noisy=True)
    assert np.abs(log['q'][-1, 7:] - bent).max() < 0.06  # springs of contact and drives give way
    drive(sim, law, 1.0, noisy=True)
    assert np.abs(sim.q[7:] - standing).max() < 0.03
    assert sim.q[2] == pytest.approx(model.standing[2], abs=0.02 * model.standing[2])


@pytest.mark.parametrize('late', [0.2, 0.3999, 0.7, 1.0, 5.0])
@pytest.mark.parametrize('given', [1, 2, 3], ids=['positions', 'velocities', 'accelerations'])
def test_a_late_trajectory_does_not_jump(late: float, given: int) -> None:
    """However late: it is joined within 0.5 s, and followed as planned after that."""
    nj, zero = 2, np.zeros(2)
    t = np.array([0.4, 0.8, 1.2])
    rows = [np.array([[0.2] * nj, [0.4] * nj, [0.6] * nj]), np.full((3, nj), 0.5), np.zeros((3, nj))]
    points = [*rows[:given], *[None] * (3 - given)]
    planned = JointTrajectory(t, *points, zero, zero, 0.0)
    made = JointTrajectory(t, *points, zero, zero, 0.5, passed=late)
    samples = [made.sample(late + 1e-3 * k) for k in range(1500)]
    assert np.abs(samples[0][0]).max() < 1e-12
    assert np.abs(samples[0][1]).max() < 1e-12
    assert np.abs(np.diff([q for q, _, _ in samples], axis=0)).max() < 1e-3 * 4.0  # at most 4 rad/s
    assert made.blended == late + 0.5
    for x in (late + 0.5, late + 0.6, late + 1.4):
        for found, wanted in zip(made.sample(x), planned.sample(x), strict=True):
            assert_close(found, wanted)


def test_without_a_trajectory_the_posture_is_held() -> None:
    model = robots.quadruped('mini_cheetah')
    sim = Simulator(model)
    drive(sim, ComputedTorque(model), 1.0)
    assert np.abs(sim.q[7:] - model.standing[7:]).max() < 0.01


def test_a_new_trajectory_takes_over_smoothly() -> None:
    model = robots.quadruped('mini_cheetah')
    law, state = ComputedTorque(model), state_of(Simulator(model))
    standing = np.array(model.standing[7:])
    law.update(state)
    law.set_trajectory([1.0], [standing + 0.4], start_time=0.0)
    references = []
    for k in range(1000):
        if k == 250:  # in the middle of its way, to a point that begins at once
            law.set_trajectory([0.0, 1.0], [standing - 0.2, standing], start_time=2e-3 * k)
        law.update(RobotState(2e-3 * k, state.q, state.u, None, state.tau))
        references.append(law._now[0].copy())
    steps = np.diff(np.array(references), axis=0)
    assert np.abs(steps).max() < 2e-3 * 4.0  # no jump: at most 4 rad/s
    assert_close(references[-1], standing)
