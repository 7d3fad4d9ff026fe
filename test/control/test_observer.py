# SPDX-License-Identifier: Apache-2.0
"""The momentum observer, against closed forms and against the forces of the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from cases import Case, model_of, pinocchio_of
from control_loop import robot, state_of

from quad_dynamics.control.gains import default_gains
from quad_dynamics.control.observer import MomentumObserver
from quad_dynamics.control.stand import StandUp
from quad_dynamics.control.state import RobotState
from quad_dynamics.simulation.simulator import Simulator

DT = 1e-3


@pytest.mark.parametrize('frequency', [0.0, 1.0, 8.0, 40.0])
def test_it_is_a_first_order_lag(frequency: float) -> None:
    """A cart that is pushed by 3 + 2 cos(w t) N: the residual against the closed form of the lag."""
    mass, gain, omega = 2.0, 30.0, 2.0 * np.pi * frequency
    model = robots.cart(mass)
    observer = MomentumObserver(model, gain)
    h = 1e-4  # the observer is exact for forces that are constant over a step
    worst = 0.0
    for k in range(5000):
        t = k * h
        push = np.sin(omega * t) / omega if omega else t
        u = np.array([(3.0 * t + 2.0 * push) / mass])
        r = observer.update(RobotState(t, np.zeros(1), u, None, np.zeros(1)), h)[0]
        # K / (s + K) of 3 + 2 cos(w t), from rest
        lag = gain / (gain**2 + omega**2)
        wave = 2.0 * lag * (gain * np.cos(omega * t) + omega * np.sin(omega * t) - gain * np.exp(-gain * t))
        worst = max(worst, abs(r - 3.0 * (1.0 - np.exp(-gain * t)) - wave))
    # half a step of delay, of forces of 5 N that change by 2 w N/s
    assert worst < 5.0 * gain * h + 2.0 * omega * h


def test_friction_is_taken_for_what_it_is() -> None:
    """A cart that moves at a constant speed against its own friction is not pushed by anybody."""
    model = robots.cart(2.0, damping=3.0, friction=1.5)
    observer = MomentumObserver(model, 50.0)
    for k in range(500):
        state = RobotState(DT * k, np.zeros(1), np.array([0.8]), None, np.array([3.0 * 0.8 + 1.5]))
        residual = observer.update(state, DT)
    assert residual[0] == pytest.approx(0.0, abs=1e-9)


def test_a_long_step_is_stable() -> None:
    observer = MomentumObserver(robots.cart(2.0), 1000.0)
    for k in range(50):
        state = RobotState(0.1 * k, np.zeros(1), np.array([0.1 * k]), None, np.zeros(1))
        residual = observer.update(state, 0.1)
    assert residual[0] == pytest.approx(2.0)


@pytest.mark.parametrize('name', ['a1', 'anymal_b'])
def test_momentum_and_known_forces_are_those_of_pinocchio(name: str, seed: int) -> None:
    """In free motion dp/dt = S^T tau + C^T u - g: a step by Pinocchio's accelerations leaves no residual."""
    case = Case(name, True)
    model, reference = model_of(case), pinocchio_of(case)
    rng = np.random.default_rng([seed, 7])
    q = np.array(model.standing)
    q[7:] += rng.normal(scale=0.2, size=model.nj)
    u, tau = rng.normal(scale=0.5, size=model.nv), rng.normal(scale=2.0, size=model.nj)
    h = 1e-6
    du = reference.forward_dynamics(q, u, np.concatenate([np.zeros(6), tau]))
    from quad_dynamics.api.kinematics import integrate

    observer = MomentumObserver(model, 1.0 / h)  # it takes in nearly all of one step
    observer.update(RobotState(0.0, integrate(model, q, u - 0.5 * h * du, -h), u - h * du, None, tau), h)
    residual = observer.update(RobotState(h, q, u, None, tau), h)
    # first order in h; the largest term is the weight
    assert np.abs(residual).max() < 1e-4 * model.total_mass * 9.81


@pytest.mark.parametrize('name', ['mini_cheetah', 'a1', 'anymal_b', 'hyq'])
def test_foot_forces_when_standing_and_squatting(name: str) -> None:
    model = robot(name)
    weight = model.total_mass * 9.81
    kp, kd = default_gains(model)
    sim, observer, law = Simulator(model), MomentumObserver(model, 100.0), StandUp(model)
    law.start(state_of(sim))
    standing, bend = np.array(model.standing[7:]), np.zeros(model.nj)
    for leg in model.legs:
        hip, knee = leg.joint_indices[-2:]
        bend[knee] = 0.2 * np.sign(standing[knee])
        bend[hip] = -0.5 * bend[knee]
    misses = []
    for k in range(1500):
        if k % 2 == 0:
            held = law.update(state_of(sim))
            phase = 2.0 * np.pi * max(0.0, k * DT - 0.5)
            sim.command(held.tau, held.q + 0.5 * (1.0 - np.cos(phase)) * bend, None, kp, kd)
        sim.step()
        residual = observer.update(state_of(sim), DT)
        estimated = observer.foot_forces(sim.q, residual)
        if k == 499:
            assert np.abs(estimated - sim.foot_forces).max() < 0.02 * weight
        if k > 500:
            misses.append(np.abs(estimated - sim.foot_forces).max())
    # a lag of 10 ms, impacts that it smooths, and dry friction of joints that turn back: 0.4 N m of it is 2 N
    assert np.quantile(misses, 0.95) < 0.05 * weight


def test_a_foot_in_the_air_gets_no_force() -> None:
    model = robot('mini_cheetah')
    observer = MomentumObserver(model, 100.0)
    from quad_dynamics.control.contact_forces import foot_points

    q = np.array(model.standing)
    f = np.array([[1.0, -2.0, 30.0], [0.0, 0.0, 0.0], [3.0, 1.0, 25.0], [0.0, 2.0, 30.0]])
    residual = foot_points(model).jacobian(q, range(4)).T @ f.ravel()
    for feet in (None, (0, 2, 3), ('FL_foot', 'RL_foot', 'RR_foot')):
        assert np.abs(observer.foot_forces(q, residual, feet) - f).max() < 1e-9
    with pytest.raises(ValueError, match="'tail'"):
        observer.foot_forces(q, residual, ['tail'])


@pytest.mark.parametrize('gain', [0.0, -1.0, np.nan, np.inf])
def test_a_bad_gain(qd: Any, gain: float) -> None:
    with pytest.raises(qd.ArgumentError, match='gain is'):
        MomentumObserver(robots.cart(2.0), gain)
